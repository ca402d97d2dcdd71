package rpc

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
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

// A stopped worker sends what it still has to say, as far as the coordinator takes it within Farewell, and then goodbye.
func TestWhatIsSaidBeforeAWorkerLeaves(t *testing.T) {
	const goodbye = "it was stopped on its own machine"
	for name, c := range map[string]struct {
		arrives time.Duration // when the coordinator has all that was sent before
		taken   time.Duration // when it has taken the last word
		want    []any
		after   time.Duration
	}{
		"at once":     {0, 0, []any{"heartbeat", uint64(7), goodbye, ""}, 0},
		"a slow link": {100 * time.Millisecond, 200 * time.Millisecond, []any{"heartbeat", uint64(7), goodbye, ""}, 200 * time.Millisecond},
		"not taken":   {100 * time.Millisecond, time.Hour, []any{"heartbeat", uint64(7), goodbye, ""}, 500 * time.Millisecond},
		"no link":     {time.Hour, time.Hour, []any{"heartbeat", goodbye, ""}, 500 * time.Millisecond},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			s := newSession(JoinConfig{Logger: slog.New(slog.DiscardHandler), Suspended: func() time.Duration { return 0 }}, nil)
			defer s.end()
			s.stream.flight.sent = flightBytes // of what came before
			s.link.push(payload(7))
			l := &letters{}
			began := time.Now()
			time.AfterFunc(c.arrives+1, func() { // once all has been sent that may be
				s.mu.Lock()
				s.stream.flight.echoed(s.stream.flight.marks[0].at)
				s.mu.Unlock()
				s.poke()
			})
			time.AfterFunc(c.taken+2, func() {
				s.mu.Lock()
				_ = s.link.ack(1)
				s.mu.Unlock()
				s.poke()
			})
			require.NoError(t, s.leave(&joined{stream: l}))
			require.Equal(t, c.want, l.sent, name)
			require.InDelta(t, c.after, time.Since(began), 2, name)
			require.Error(t, s.work.Err(), "its work has ended")
		})
	}
	s := echoing(t, new(time.Duration))
	s.stream.beat = true
	l := &letters{refuse: errors.New("why")}
	require.Equal(t, l.refuse, s.leave(&joined{stream: l}))
	require.Equal(t, []any{"heartbeat"}, l.sent, "nothing more follows what cannot be sent")
}

// An order is acknowledged as soon as it has arrived, and wakes the sender.
func TestOrdersAreAcknowledged(t *testing.T) {
	s := &session{orders: make(chan *pb.Envelope, 3), wake: make(chan struct{}, 1)} // nobody carries them out
	for n := uint64(1); n <= 2; n++ {
		require.NoError(t, s.accept(&pb.Envelope{Number: n, Content: &pb.Envelope_Start{}}))
		require.Len(t, s.wake, 1)
		<-s.wake
		msg, err := s.pick()
		require.NoError(t, err)
		require.Equal(t, &pb.FromWorker_Received{Received: n}, msg.GetMessage())
	}
	require.NoError(t, s.accept(&pb.Envelope{Number: 2}), "again")
	require.Empty(t, s.wake)
	require.Error(t, s.accept(&pb.Envelope{Number: 4}))
	require.Empty(t, s.wake)
	require.Len(t, s.orders, 2)
}

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

// A worker that the run does not need is neither suspected nor lost when it is silent.
func TestNobodyMissesWhoWasDismissed(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		var logs bytes.Buffer
		s := newServer(Config{Timing: DefaultTiming(), Logger: slog.New(slog.NewTextHandler(&logs, nil))})
		stays, goes := newMember(s, &pb.Hello{Name: "stays"}), newMember(s, &pb.Hello{Name: "goes"})
		goes.dismiss("the run has ended")
		goes.beat(health{cpu: 6}, 30*time.Second)
		require.Zero(t, goes.health.cpu)
		require.Equal(t, []bool{true, false}, []bool{stays.status(0).Up, goes.status(0).Up})
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []bool{true, false}, []bool{stays.isLost(), goes.isLost()})
		require.False(t, stays.status(0).Up)
		require.Contains(t, logs.String(), "worker=stays")
		require.NotContains(t, logs.String(), "worker=goes")
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

// Unset options of a session get their documented defaults.
func TestDefaultsOfAWorker(t *testing.T) {
	for given, want := range map[int][]any{
		0: {64 << 20, 30 * time.Second}, -1: {64 << 20, 30 * time.Second}, 1: {1, time.Duration(1)},
	} {
		s := newSession(JoinConfig{Spool: given, MaxLease: time.Duration(given)}, nil)
		require.Equal(t, want, []any{s.cfg.Spool, s.cfg.MaxLease})
		require.False(t, s.end())
	}
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

// At most a second's worth at 64 kbit/s is in flight ahead of a heartbeat, in at least two pieces: a heartbeat waits for no more than that.
func TestWhatIsAheadOfAHeartbeat(t *testing.T) {
	require.Equal(t, 64<<10, 8*flightBytes)
	require.Equal(t, flightBytes, 2*partBytes)
}
