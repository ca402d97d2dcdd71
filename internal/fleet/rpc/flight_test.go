package rpc

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/servertest"
)

// river is a worker's stream with everything in flight on it, and the coordinator's end.
type river struct {
	link    link
	flight  flight
	clock   int64
	floats  []*pb.FromWorker // sent and not arrived
	echoes  []int64          // of heartbeats that have
	conn    conn
	arrived []*pb.Envelope
}

// send sends a message if one may be sent, as a session does.
func (r *river) send(t require.TestingT) bool {
	msg, full, err := r.flight.next(&r.link)
	require.NoError(t, err)
	if full && r.flight.probe() {
		r.beat()
		return true
	}
	if msg != nil {
		r.floats = append(r.floats, msg)
	}
	return msg != nil
}

func (r *river) beat() {
	r.clock++
	r.flight.beat(r.clock)
	r.floats = append(r.floats, &pb.FromWorker{Heartbeat: &pb.Heartbeat{SentNs: r.clock}})
}

// arrive lets the message that was sent first arrive.
func (r *river) arrive(t require.TestingT) {
	msg := r.floats[0]
	r.floats = r.floats[1:]
	switch {
	case msg.GetHeartbeat() != nil:
		r.echoes = append(r.echoes, msg.GetHeartbeat().GetSentNs())
	case msg.GetEnvelope() != nil:
		r.arrived = append(r.arrived, msg.GetEnvelope())
	case msg.GetPart() != nil:
		e, err := r.conn.join(msg)
		require.NoError(t, err)
		if e != nil {
			r.arrived = append(r.arrived, e)
		}
	}
}

// ahead is how many bytes of envelopes a heartbeat would wait for.
func (r *river) ahead() (bytes int) {
	for _, msg := range r.floats {
		bytes += proto.Size(msg.GetEnvelope()) + len(msg.GetPart())
	}
	return bytes
}

// TestHeartbeatsWaitForLittle queues envelopes of all sizes, and lets messages arrive and echoes come back whenever they like, or not at all.
// No heartbeat is ever behind more than a flight; streams that break in between lose nothing; and all arrives that was queued.
func TestHeartbeatsWaitForLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &river{}
		var queued []*pb.Envelope
		taken := func() { // the other end acknowledges what it has
			if n := len(r.arrived); n > 0 {
				require.NoError(t, r.link.ack(r.arrived[n-1].GetNumber()))
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"queue": func(t *rapid.T) {
				e := &pb.Envelope{Content: make([]byte, rapid.IntRange(1, 50_000).Draw(t, "size"))}
				r.link.push(e)
				queued = append(queued, e)
			},
			"send": func(t *rapid.T) { r.send(t) },
			"beat": func(*rapid.T) { r.beat() },
			"arrive": func(t *rapid.T) {
				if len(r.floats) > 0 {
					r.arrive(t)
				}
			},
			"echo": func(*rapid.T) {
				if len(r.echoes) > 0 {
					r.flight.echoed(r.echoes[0])
					r.echoes = r.echoes[1:]
				}
			},
			"echoes are left out": func(*rapid.T) {
				if len(r.echoes) > 1 {
					r.echoes = r.echoes[1:]
				}
			},
			"break": func(t *rapid.T) {
				taken()
				r.flight, r.floats, r.echoes, r.conn = flight{}, nil, nil, conn{}
				require.NoError(t, r.link.attach(uint64(len(r.arrived))))
			},
			"": func(t *rapid.T) { require.LessOrEqual(t, r.ahead(), flightBytes) },
		})
		for r.send(t) || len(r.floats) > 0 || len(r.echoes) > 0 {
			for len(r.floats) > 0 {
				r.arrive(t)
			}
			for ; len(r.echoes) > 0; r.echoes = r.echoes[1:] {
				r.flight.echoed(r.echoes[0])
			}
			taken()
		}
		require.Len(t, r.arrived, len(queued))
		for i, e := range r.arrived {
			require.True(t, proto.Equal(queued[i], e), i)
		}
	})
}

// narrow is a connection of 64 kbit/s.
type narrow struct{ net.Conn }

func (c narrow) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(len(b)) * time.Second / 8000)
	return c.Conn.Write(b)
}

// TestHeartbeatsOvertakeOnASlowLink: a worker returns with so much to send that a 64 kbit/s link is busy for minutes, with many snapshots and one
// large one. All of it arrives, and its heartbeats are never so late that it is suspected.
func TestHeartbeatsOvertakeOnASlowLink(t *testing.T) {
	for name, sizes := range map[string][]int{"many": {100: 5000}, "large": {0: 600_000}} {
		t.Run(name, func(t *testing.T) {
			servertest.Bubble(t, func(t *testing.T) {
				var words strings.Builder // of one goroutine at a time: timers of one member
				lis := bufconn.Listen(1 << 20)
				server, err := Listen(Config{Place: Trusting("memory", lis, nil), Timing: DefaultTiming(), Logger: slog.New(slog.NewTextHandler(&words, nil))})
				require.NoError(t, err)
				defer server.Close()
				s := newSession(JoinConfig{
					Name: "w", New: func() Local { return idle{} }, Logger: slog.New(slog.DiscardHandler), Spool: defaultSpool,
					Place: Trusting("memory", nil, func(ctx context.Context) (net.Conn, error) {
						conn, err := lis.DialContext(ctx)
						return narrow{conn}, err
					}),
				}, insecure.NewCredentials())
				defer s.end()
				for _, size := range sizes {
					s.push(&pb.Envelope{Content: make([]byte, max(size, 5000))})
				}
				ctx, leave := context.WithCancel(context.Background())
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					_, _ = s.live(ctx, &backoff{random: func(int64) int64 { return 0 }}) // it is called off
				}()
				defer func() {
					leave()
					<-gone
				}()
				time.Sleep(2 * time.Minute)
				server.mu.Lock()
				m := server.members["w"]
				server.mu.Unlock()
				require.NotNil(t, m, words.String())
				m.mu.Lock()
				require.Len(t, m.inbox, len(sizes))
				m.mu.Unlock()
				require.NotContains(t, words.String(), "suspected")
			})
		})
	}
}
