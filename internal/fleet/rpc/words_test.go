package rpc

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/loadgen/loadgen/internal/fleet/identity"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/servertest"
)

// letters is a stream that records what is sent on it.
type letters struct {
	grpc.BidiStreamingClient[pb.FromWorker, pb.FromCoordinator]
	sent   []any // messages, and "" for the end
	refuse error
}

func (l *letters) Send(m *pb.FromWorker) error {
	switch m := m.GetMessage().(type) {
	case *pb.FromWorker_Heartbeat:
		l.sent = append(l.sent, "heartbeat")
	case *pb.FromWorker_Envelope:
		l.sent = append(l.sent, m.Envelope.GetReady().GetOps())
	case *pb.FromWorker_Goodbye:
		l.sent = append(l.sent, m.Goodbye.GetReason())
	}
	return l.refuse
}

func (l *letters) CloseSend() error { l.sent = append(l.sent, ""); return nil }

// A worker may load until one lease after its newest heartbeat, on the run clock.
func TestHowLongALostWorkerMayHaveLoaded(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		timing := DefaultTiming()
		timing.Lease = 7 * time.Second
		s := newServer(Config{Timing: timing, Logger: slog.New(slog.DiscardHandler)})
		m := newMember(s, &pb.Hello{Name: "w"})
		m.zero = 3 * time.Second
		m.beat(health{cpu: 5}, 20*time.Second)
		require.True(t, m.strike("why"))
		require.Equal(t, []any{"w", "why", 24.0}, []any{m.lost.Worker, m.lost.Why, m.lost.LoadedSeconds})
		first := m.lost
		require.False(t, m.strike("once more"))
		require.Same(t, first, m.lost)
		m.beat(health{cpu: 6}, 30*time.Second)
		require.Equal(t, []time.Duration{20 * time.Second, 5}, []time.Duration{m.heard, m.health.cpu}, "what it says then is of no interest")
		select {
		case <-m.gone:
		default:
			t.Fatal("who waits for it is not told")
		}
		time.Sleep(time.Hour)
		require.Same(t, first, m.lost)
	})
}

// failing is a listener that fails, or waits until it is closed.
type failing struct {
	net.Listener
	why            error
	opened, closed chan struct{}
	once           sync.Once
}

func (*failing) Addr() net.Addr { return &net.UnixAddr{Name: "street"} }

func (f *failing) Close() error { f.once.Do(func() { close(f.closed) }); return nil }

func (f *failing) Accept() (net.Conn, error) {
	close(f.opened)
	if f.why == nil {
		<-f.closed
		return nil, net.ErrClosed
	}
	return nil, f.why
}

// heard is what is logged, line by line.
type heard chan string

func (h heard) Write(b []byte) (int, error) { h <- string(b); return len(b), nil }

// A listener that fails is reported, and one that is closed is not.
func TestAListenerThatFailsIsTold(t *testing.T) {
	for _, why := range []error{errors.New("out of luck"), nil} {
		logs := make(heard, 16)
		lis := &failing{why: why, opened: make(chan struct{}), closed: make(chan struct{})}
		place := Trusting("street", lis, nil)
		s, err := Listen(Config{Place: place, Timing: DefaultTiming(), Logger: slog.New(slog.NewTextHandler(logs, nil))})
		require.NoError(t, err)
		if why != nil {
			require.Contains(t, <-logs, `level=ERROR msg="listen for workers" err="out of luck"`)
		}
		<-lis.opened
		s.Close()
		s.Close() // says nothing more
		require.Empty(t, logs)
	}
	why := errors.New("why")
	place := Trusting("street", nil, nil)
	place.Listen = func() (net.Listener, error) { return nil, why }
	_, err := Listen(Config{Place: place})
	require.EqualError(t, err, "listen for workers: why")
	place.Prove = func(identity.Role) (credentials.TransportCredentials, error) { return nil, why }
	place.Listen = nil
	_, err = Listen(Config{Place: place})
	require.EqualError(t, err, "listen for workers: why")
}

// Each pause between attempts is twice the last, from 50 ms to 2 s, less a random part of at most half.
func TestPausesBetweenAttempts(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		for _, whole := range []bool{false, true} {
			b := backoff{longest: lastRetry, random: func(below int64) int64 {
				if whole {
					return below
				}
				return 0
			}}
			for range 2 {
				for _, want := range []time.Duration{50, 100, 200, 400, 800, 1600, 2000, 2000} {
					want *= time.Millisecond
					if !whole {
						want /= 2
					}
					began := time.Now()
					b.wait(t.Context())
					require.Equal(t, want, time.Since(began))
				}
				b.reset()
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		(&backoff{random: func(int64) int64 { return 0 }}).wait(ctx)
		require.Equal(t, began, time.Now())
	})
}

// Both ends check these limits, so a build with other ones speaks another protocol: if you change one, change the protocol's number, too.
func TestNumbersOfTheProtocol(t *testing.T) {
	require.Equal(t, []int{4, 16 << 20, 1 << 20, 256, 255}, []int{protocol, maxMessage, windowBytes, windowCount, maxLine})
	require.Equal(t, []int{10_000, 1 << 24, 1 << 20, 4096, 256}, []int{maxWorkers, maxSessions, maxLevels, maxServers, maxFacts})
	require.Equal(t, 87_600*time.Hour, maxRunTime)
	require.EqualValues(t, 1_000_000_000, maxRate)
}
