package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/loadgen/loadgen/internal/count/measure"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
)

// A worker gives up its run more than 15 s after its lease has ended, which includes sleep of the machine.
func TestWhenARunIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		run         bool
		lease, now  time.Duration
		slept       time.Duration
		isGivenOver bool
	}{
		"no run":        {false, 10 * time.Second, time.Hour, 0, false},
		"in its lease":  {true, 10 * time.Second, 9 * time.Second, 0, false},
		"15 s later":    {true, 10 * time.Second, 25 * time.Second, 0, false},
		"a little more": {true, 10 * time.Second, 25*time.Second + 1, 0, true},
		"asleep":        {true, 10 * time.Second, 20 * time.Second, 5 * time.Second, false},
		"a little more, asleep": {
			true, 10 * time.Second, 20 * time.Second, 5*time.Second + 1, true,
		},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			s := echoing(t, new(time.Duration))
			s.cfg.Suspended = func() time.Duration { return c.slept }
			if c.run {
				s.local = idle{}
			}
			s.lease = c.lease
			time.Sleep(c.now)
			require.Equal(t, c.isGivenOver, s.overdue(), name)
		})
	}
}

// progressing is a worker that says how far it is.
type progressing struct{ idle }

func (progressing) Progress() int64 { return 42 }

// A heartbeat reports what is known: nothing about the clocks before they were compared, and then an uncertainty of half a round trip.
func TestWhatAHeartbeatSays(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		s := echoing(t, new(time.Duration))
		time.Sleep(3 * time.Second)
		require.Equal(t, &pb.Heartbeat{SentNs: 3e9}, s.heartbeat())
		s.offsets.add(10, 3, 3, 20)
		s.cfg.CPU = func() time.Duration { return 7 }
		s.local = progressing{}
		require.Equal(t, &pb.Heartbeat{SentNs: 3e9, OffsetNs: 11, UncertaintyNs: 5, CpuNs: 7, Progress: 42}, s.heartbeat())
		s.local = idle{}
		require.Zero(t, s.heartbeat().GetProgress())
	})
}

// A stream's origin is its address without the port; for a socket, this machine.
func TestWhereAStreamComesFrom(t *testing.T) {
	here := netip.MustParseAddr("127.0.0.1")
	require.Equal(t, here, hostOf(&net.UnixAddr{Name: "@"}))
	require.Equal(t, here, hostOf(nil))
	require.Equal(t, netip.MustParseAddr("10.0.0.8"), hostOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[::ffff:10.0.0.8]:4"))))
	for page, ok := range map[string]bool{"127.0.0.1:1": true, "127.0.0.1:0": false, "127.0.0.1": false, "[::1]:1": true, "[::1%lo]:1": false, "10.0.0.8:1": false} {
		require.Equal(t, ok, checkMetrics(page, nil) == nil, page)
	}
	require.ErrorContains(t, checkMetrics("10.0.0.8:1", nil), `this worker's metrics are at "10.0.0.8:1": that has to be the address that it comes from, 127.0.0.1 here, and a port`)
}

// Between two readings of the clock, a process counts as awake for two beats at most.
func TestHowLongAProcessWasAwake(t *testing.T) {
	const beat = 500 * time.Millisecond
	now := time.Duration(0)
	a := &awake{now: func() time.Duration { return now }, beat: beat}
	for _, c := range []struct{ goesBy, counts time.Duration }{
		{0, 0}, {1, 1}, {beat, beat}, {2 * beat, 2 * beat}, {2*beat + 1, 2 * beat}, {time.Hour, 2 * beat}, {beat, beat},
	} {
		before := a.read()
		now += c.goesBy
		require.Equal(t, c.counts, a.read()-before, "%v", c.goesBy)
		require.Equal(t, c.counts, a.read()-before, "at the same time")
	}
	servertest.Bubble(t, func(t *testing.T) {
		began, done := time.Now(), make(chan struct{})
		a := &awake{now: func() time.Duration { return time.Since(began) }, beat: beat}
		ended := make(chan struct{})
		go func() {
			a.keep(done)
			close(ended)
		}()
		time.Sleep(10*beat + 1)
		require.Equal(t, 10*beat+1, a.read(), "none of it is left out")
		close(done)
		<-ended
	})
}

// An alarm rings once, a period after it was last set, however often that was.
func TestAlarmThatIsSetAgain(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		began := time.Now()
		clock := &awake{now: func() time.Duration { return time.Since(began) }, beat: time.Hour}
		var rang []time.Duration
		a := &alarm{clock: clock, after: 10 * time.Second, spare: time.Minute, call: func() { rang = append(rang, time.Since(began)) }}
		for range 5 {
			a.set()
			time.Sleep(3 * time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{22 * time.Second}, rang)
		a.set()
		time.Sleep(5 * time.Second)
		a.stop()
		time.Sleep(time.Second)
		a.set() // at 81 s
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{22 * time.Second, 91 * time.Second}, rang)
		a.stop()
		a.stop()
	})
}

// Work under a lease ends with the lease as it stands by then, or when it is done.
func TestWhatIsDoneUnderALease(t *testing.T) {
	for name, c := range map[string]struct {
		lease  time.Duration
		change func(s *session)
		after  time.Duration
		why    error
	}{
		"over":     {0, func(*session) {}, 0, errLapsed},
		"just so":  {1, func(*session) {}, 1, errLapsed},
		"in a bit": {5 * time.Second, func(*session) {}, 5 * time.Second, errLapsed},
		"renewed":  {5 * time.Second, func(s *session) { s.lease = 9 * time.Second }, 9 * time.Second, errLapsed},
		"the end":  {5 * time.Second, func(s *session) { s.abandon() }, 2 * time.Second, context.Canceled},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			s := echoing(t, new(time.Duration))
			s.lease = c.lease
			time.AfterFunc(2*time.Second, func() {
				s.mu.Lock()
				c.change(s)
				s.mu.Unlock()
			})
			ctx, stop := s.leased()
			<-ctx.Done()
			require.Equal(t, c.after, s.now(), name)
			require.Equal(t, c.why, context.Cause(ctx), name)
			stop()
			time.Sleep(time.Minute)
		})
	}
	servertest.Bubble(t, func(t *testing.T) {
		s := echoing(t, new(time.Duration))
		s.lease = time.Minute
		ctx, stop := s.leased()
		stop()
		require.Equal(t, context.Canceled, context.Cause(ctx))
		require.Zero(t, s.now())
	})
}

// A worker waits for its turn, but not once its work has ended.
func TestWorkersWaitForTheirTurn(t *testing.T) {
	for name, c := range map[string]struct {
		turn, ends, want time.Duration
	}{
		"the first": {0, time.Hour, 0},
		"another":   {32 * time.Millisecond, time.Hour, 32 * time.Millisecond},
		"the end":   {32 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			s := echoing(t, new(time.Duration))
			s.turn = c.turn
			time.AfterFunc(c.ends, s.abandon)
			s.wait()
			require.Equal(t, c.want, s.now(), name)
		})
	}
}

// A snapshot is merged with the one before it if the spool has no room for both, to the byte; and with nothing else.
func TestWhichSnapshotsAreJoined(t *testing.T) {
	size := func() (held, next int) {
		s := echoing(t, new(time.Duration))
		var running measure.Totals
		require.NoError(t, s.keep(interval(1, &running)))
		e, err := encodeSnapshot(interval(2, &running))
		require.NoError(t, err)
		return s.link.held, len(e.GetSnapshot())
	}
	held, next := size()
	for name, c := range map[string]struct {
		spool  int
		change func(s *session)
		queued int
		err    bool
	}{
		"room for both":       {held + next, func(*session) {}, 2, false},
		"a byte too little":   {held + next - 1, func(*session) {}, 1, false},
		"it was sent":         {1, func(s *session) { s.link.pop() }, 2, false},
		"it is something":     {1, func(s *session) { s.link.tail().Content = payload(7).Content }, 2, false},
		"it is not the next":  {1, func(s *session) { s.link.tail().Content = other(t) }, 2, false},
		"it cannot be read":   {1, func(s *session) { s.link.tail().Content = &pb.Envelope_Snapshot{Snapshot: []byte("x")} }, 1, true},
		"none was there yet":  {1, func(s *session) { s.link.queue, s.link.held = nil, 0 }, 1, false},
		"room, and not first": {held + next, func(s *session) { s.link.pop() }, 2, false},
	} {
		s := echoing(t, new(time.Duration))
		s.cfg.Spool = c.spool
		var running measure.Totals
		require.NoError(t, s.keep(interval(1, &running)))
		require.Len(t, s.wake, 1, "whoever sends is woken")
		<-s.wake
		c.change(s)
		err := s.keep(interval(2, &running))
		require.Equal(t, c.err, err != nil, "%s: %v", name, err)
		require.Len(t, s.link.queue, c.queued, name)
		require.Len(t, s.wake, 1, name)
	}
	s := echoing(t, new(time.Duration))
	counted := measure.NewTotals(0, 1)
	counted.Ack(driver.Put, measure.MaxAcks+1, 1)
	require.ErrorContains(t, s.keep(&measure.Snapshot{Delta: *counted}), "acks of an op")
	require.Empty(t, s.link.queue)
}

// other is a snapshot of another step.
func other(t *testing.T) *pb.Envelope_Snapshot {
	snap := interval(1, &measure.Totals{})
	snap.Step = 7
	e, err := encodeSnapshot(snap)
	require.NoError(t, err)
	return e.GetContent().(*pb.Envelope_Snapshot)
}

// wire is a worker's stream: what comes on it, and what was sent.
type wire struct {
	letters
	grpc.BidiStreamingClient[pb.FromWorker, pb.FromCoordinator]
	ctx  context.Context
	come chan *pb.FromCoordinator
}

func (w *wire) Send(m *pb.FromWorker) error { return w.letters.Send(m) }
func (w *wire) CloseSend() error            { return w.letters.CloseSend() }

func (w *wire) Recv() (*pb.FromCoordinator, error) {
	select {
	case m := <-w.come:
		if m == nil {
			return nil, io.EOF
		}
		return m, nil
	case <-w.ctx.Done():
		return nil, w.ctx.Err()
	}
}

// A stream is served until the coordinator says goodbye, breaks the protocol or is silent for three heartbeats; or until the stream ends or cannot be
// sent on.
func TestHowAStreamEnds(t *testing.T) {
	stored := &pb.FromCoordinator{Message: &pb.FromCoordinator_Stored{}}
	goodbye := &pb.FromCoordinator{Message: &pb.FromCoordinator_Goodbye{Goodbye: &pb.Goodbye{Reason: "it is over"}}}
	why := errors.New("why")
	for name, c := range map[string]struct {
		come   *pb.FromCoordinator // after 2.5 s
		ends   time.Duration       // the stream
		leaves time.Duration       // the worker
		refuse error
		after  time.Duration
		bye    bool
		err    string
		sent   []any
	}{
		"silence":      {ends: time.Hour, after: 3 * time.Second, err: "context canceled"}, // its third heartbeat comes at the same time
		"and a word":   {come: stored, ends: time.Hour, after: 5500 * time.Millisecond, err: "context canceled", sent: []any{"heartbeat", "heartbeat", "heartbeat", "heartbeat", "heartbeat", "heartbeat"}},
		"goodbye":      {come: goodbye, ends: time.Hour, after: 2500 * time.Millisecond, bye: true, sent: []any{"heartbeat", "heartbeat", "heartbeat"}},
		"nonsense":     {come: &pb.FromCoordinator{}, ends: time.Hour, after: 2500 * time.Millisecond, err: "the coordinator broke the protocol: a message that has no place there", sent: []any{"heartbeat", "heartbeat", "heartbeat"}},
		"the end":      {ends: 1500 * time.Millisecond, after: 1500 * time.Millisecond, err: "EOF", sent: []any{"heartbeat", "heartbeat"}},
		"nothing goes": {ends: time.Hour, refuse: why, after: 0, err: "context canceled", sent: []any{"heartbeat"}},
		"it is left": {
			ends: 1700 * time.Millisecond, leaves: 1500 * time.Millisecond, after: 1700 * time.Millisecond, err: "EOF",
			sent: []any{"heartbeat", "heartbeat", "it was stopped on its own machine", ""},
		},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			s := newSession(JoinConfig{Logger: slog.New(slog.DiscardHandler), Suspended: func() time.Duration { return 0 }}, nil)
			defer s.end()
			s.stream.beat = true
			parent, leave := context.WithCancel(t.Context())
			defer leave()
			if c.leaves > 0 {
				time.AfterFunc(c.leaves, leave)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := &wire{ctx: ctx, come: make(chan *pb.FromCoordinator, 1)}
			w.refuse = c.refuse
			if c.come != nil {
				time.AfterFunc(2500*time.Millisecond, func() { w.come <- c.come })
			}
			time.AfterFunc(c.ends, func() { close(w.come) })
			bye, err := s.serve(parent, &joined{stream: w, heartbeat: time.Second, lease: 10 * time.Second}, cancel)
			require.Equal(t, c.after, s.now(), name)
			require.Equal(t, c.bye, bye != nil, name)
			if c.err == "" {
				require.NoError(t, err, name)
			} else {
				require.EqualError(t, err, c.err, name)
			}
			if c.sent != nil {
				require.Equal(t, c.sent, w.sent, name)
			}
		})
	}
}
