package rpc

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
)

// welcoming is a stream of a coordinator whose first word is a message, or whose stream ends.
type welcoming struct {
	grpc.BidiStreamingClient[pb.FromWorker, pb.FromCoordinator]
	first *pb.FromCoordinator
	deaf  error // what is sent fails
	ended error
}

func (w *welcoming) Send(*pb.FromWorker) error { return w.deaf }

func (w *welcoming) Recv() (*pb.FromCoordinator, error) { return w.first, w.ended }

// TestWelcomeIsChecked clause by clause: each is refused by itself, and what just holds is taken.
func TestWelcomeIsChecked(t *testing.T) {
	good := func() *pb.Welcome {
		return &pb.Welcome{Protocol: protocol, HeartbeatNs: int64(time.Second), LeaseNs: int64(10 * time.Second)}
	}
	greet := func(m *pb.FromCoordinator) (*joined, error) {
		s := newSession(JoinConfig{}, nil)
		j := &joined{stream: &welcoming{first: m}}
		_, err := s.greet(j)
		return j, err
	}
	for name, c := range map[string]struct {
		change func(w *pb.Welcome)
		want   string
	}{
		"as it should be":                   {func(*pb.Welcome) {}, ""},
		"the shortest heartbeat":            {func(w *pb.Welcome) { w.HeartbeatNs = int64(time.Millisecond) }, ""},
		"the longest heartbeat":             {func(w *pb.Welcome) { w.HeartbeatNs, w.LeaseNs = int64(time.Minute), int64(time.Hour) }, ""},
		"a lease of one heartbeat":          {func(w *pb.Welcome) { w.LeaseNs = w.HeartbeatNs }, ""},
		"a heartbeat too short":             {func(w *pb.Welcome) { w.HeartbeatNs = int64(time.Millisecond) - 1 }, "heartbeats every 999.999µs"},
		"no heartbeat":                      {func(w *pb.Welcome) { w.HeartbeatNs = 0 }, "heartbeats every 0s"},
		"a heartbeat too long":              {func(w *pb.Welcome) { w.HeartbeatNs, w.LeaseNs = int64(time.Minute)+1, int64(time.Hour) }, "heartbeats every 1m0.000000001s"},
		"a lease shorter than a heartbeat":  {func(w *pb.Welcome) { w.LeaseNs = w.HeartbeatNs - 1 }, "grants leases of 999.999999ms"},
		"a lease too long":                  {func(w *pb.Welcome) { w.LeaseNs = int64(time.Hour) + 1 }, "grants leases of 1h0m0.000000001s"},
		"a lease in the past":               {func(w *pb.Welcome) { w.LeaseNs = -1 }, "grants leases of -1ns"},
		"an older protocol":                 {func(w *pb.Welcome) { w.Protocol-- }, "it speaks protocol"},
		"a newer protocol":                  {func(w *pb.Welcome) { w.Protocol++ }, "it speaks protocol"},
		"what was never sent it has stored": {func(w *pb.Welcome) { w.Stored = 1 }, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := good()
			c.change(w)
			j, err := greet(&pb.FromCoordinator{Message: &pb.FromCoordinator_Welcome{Welcome: w}})
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, min(time.Duration(w.LeaseNs), DefaultMaxLease), j.lease, "no longer than this worker allows")
				require.LessOrEqual(t, 10*j.heartbeat, j.lease)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := greet(&pb.FromCoordinator{})
	require.ErrorContains(t, err, "first word is no welcome")
}

// TestNoWelcome: if the stream ends, even before the hello got out, that is why there is no welcome; a goodbye instead is no error.
func TestNoWelcome(t *testing.T) {
	why := errors.New("why")
	s := newSession(JoinConfig{}, nil)
	defer s.end()
	for _, stream := range []*welcoming{{ended: why}, {ended: why, deaf: io.EOF}} {
		bye, err := s.greet(&joined{stream: stream})
		require.Equal(t, why, err)
		require.Nil(t, bye)
	}
	said := &pb.Goodbye{Reason: "it is over"}
	bye, err := s.greet(&joined{stream: &welcoming{first: &pb.FromCoordinator{Message: &pb.FromCoordinator_Goodbye{Goodbye: said}}}})
	require.NoError(t, err)
	require.Equal(t, said, bye)
}
