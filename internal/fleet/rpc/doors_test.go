package rpc

import (
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
)

// visitor is a connection that says whether it was closed.
type visitor struct {
	net.Conn
	closed   bool
	deadline time.Time
}

func (v *visitor) Close() error { v.closed = true; return nil }

func (v *visitor) SetDeadline(t time.Time) error { v.deadline = t; return nil }

// street is where connections come from, one after another.
type street struct {
	net.Listener
	come []*visitor
}

func (*street) Addr() net.Addr { return &net.UnixAddr{Name: "street"} }

var errEmpty = errors.New("nobody comes")

func (s *street) Accept() (net.Conn, error) {
	if len(s.come) == 0 {
		return nil, errEmpty
	}
	next := s.come[0]
	s.come = s.come[1:]
	return next, nil
}

// letIn opens that many connections at a gate.
func letIn(t *testing.T, g *gate, n int) (come []*visitor, in []net.Conn) {
	for range n {
		v := &visitor{}
		g.Listener = &street{come: []*visitor{v}}
		conn, err := g.Accept()
		require.NoError(t, err)
		come, in = append(come, v), append(in, conn)
	}
	return come, in
}

func closed(come []*visitor) (n int) {
	for _, v := range come {
		if v.closed {
			n++
		}
	}
	return n
}

// The gate has room for a fixed number of unproved connections; each further one closes the oldest, and no other.
func TestOneMoreClosesTheOldest(t *testing.T) {
	g := &gate{}
	come, in := letIn(t, g, maxUnproved)
	require.Zero(t, closed(come))
	more, _ := letIn(t, g, 3)
	require.Equal(t, 3, closed(come))
	require.Equal(t, 3, closed(come[:3]))
	require.Zero(t, closed(more))
	require.Len(t, g.unproved, maxUnproved)
	require.NoError(t, in[3].SetDeadline(time.Time{}), "it has proved itself")
	letIn(t, g, 1)
	require.Equal(t, 3, closed(come), "there was room")
	g.Listener = &street{}
	_, err := g.Accept()
	require.Equal(t, errEmpty, err)
}

// A connection that has proved itself, or is gone, no longer counts, wherever it was in line; the others do. A deadline alone is no proof.
func TestTheDoorForgetsWhoHasComeIn(t *testing.T) {
	for leaves := range 3 {
		for name, leave := range map[string]func(net.Conn) error{
			"proved": func(c net.Conn) error { return c.SetDeadline(time.Time{}) },
			"gone":   func(c net.Conn) error { return c.Close() },
		} {
			g := &gate{}
			come, in := letIn(t, g, 3)
			for i, conn := range in {
				require.NoError(t, conn.SetDeadline(time.Unix(5, 0)))
				require.Equal(t, time.Unix(5, 0), come[i].deadline)
			}
			require.Len(t, g.unproved, 3)
			for range 2 { // the second time says nothing new
				require.NoError(t, leave(in[leaves]))
				require.Len(t, g.unproved, 2, "%s: %d", name, leaves)
				require.NotContains(t, g.unproved, in[leaves])
			}
			g.close()
			for i, v := range come {
				require.Equal(t, i != leaves || name == "gone", v.closed, "%s: %d of %d", name, i, leaves)
			}
			require.Empty(t, g.unproved)
			late, _ := letIn(t, g, 1)
			require.Equal(t, 1, closed(late), "who comes when it is shut")
			require.Empty(t, g.unproved)
		}
	}
}

// echoing is a worker's session whose machine has slept for the given time.
func echoing(t *testing.T, slept *time.Duration) *session {
	s := newSession(JoinConfig{Logger: slog.New(slog.DiscardHandler), Suspended: func() time.Duration { return *slept }}, nil)
	t.Cleanup(func() { s.end() })
	return s
}

// An echo must be for a heartbeat that was sent, not in the future, and with plausible times.
func TestEchoesThatCannotBe(t *testing.T) {
	const at = 10 * time.Second
	for name, c := range map[string]struct {
		sent, received, echoed time.Duration
		good                   bool
	}{
		"at once":             {at, 5, 5, true},
		"the first":           {0, 5, 5, true},
		"before the first":    {-1, 5, 5, false},
		"after it has come":   {at + 1, 5, 5, false},
		"received before":     {at, -maxRunTime, 5, false},
		"echoed before":       {at, 5, -maxRunTime, false},
		"received far behind": {at, maxRunTime, 5, false},
		"echoed far behind":   {at, 5, maxRunTime, false},
	} {
		s := echoing(t, new(time.Duration))
		err := s.echoed(&pb.Echo{SentNs: int64(c.sent), ReceivedNs: int64(c.received), EchoedNs: int64(c.echoed)}, at, time.Second)
		require.Equal(t, c.good, err == nil, "%s: %v", name, err)
		require.Equal(t, c.good, s.offsets.n == 1, name)
		require.Equal(t, c.good, s.lease > 0, name)
	}
}

// The clocks count as compared after the first plausible echo. Until there have been firstBeats of them, each is followed by a heartbeat at once.
func TestClocksAreComparedBeforeARun(t *testing.T) {
	s := echoing(t, new(time.Duration))
	echo := func(sent, received, echoed time.Duration) {
		s.stream.beat = false
		require.NoError(t, s.echoed(&pb.Echo{SentNs: int64(sent), ReceivedNs: int64(received), EchoedNs: int64(echoed)}, 100*time.Second, time.Second))
	}
	compared := func() bool {
		select {
		case <-s.synced:
			return true
		default:
			return false
		}
	}
	echo(time.Second, 7, 5) // echoed before it was received: it cannot be
	require.False(t, compared())
	require.True(t, s.stream.beat)
	for n := range firstBeats + 2 {
		echo(time.Second, 5, 7)
		require.True(t, compared())
		require.Equal(t, n+1, s.offsets.n)
		require.Equal(t, n+1 < firstBeats, s.stream.beat, "%d", n)
	}
}

// A lease lasts as long as the latest heartbeat allows, and never becomes shorter. Sleep of the machine does not extend it.
func TestALeaseIsNeverTakenBack(t *testing.T) {
	slept := time.Duration(0)
	s := echoing(t, &slept)
	leases := &leased{}
	s.local, s.zero = leases, 3*time.Second
	echo := func(sent, lease time.Duration) {
		require.NoError(t, s.echoed(&pb.Echo{SentNs: int64(sent), ReceivedNs: 1, EchoedNs: 1}, time.Hour, lease))
	}
	echo(20*time.Second, 10*time.Second)
	echo(20*time.Second, 10*time.Second)
	echo(5*time.Second, 10*time.Second)
	echo(22*time.Second, 10*time.Second)
	require.Equal(t, []time.Duration{27 * time.Second, 29 * time.Second}, leases.until, "on the run clock")
	s.local = nil
	echo(30*time.Second, 10*time.Second)
	require.Equal(t, 40*time.Second, s.lease)
	require.Len(t, leases.until, 2)

	slept = shortSleep - 1
	echo(31*time.Second, 10*time.Second)
	require.Equal(t, []any{41 * time.Second, false, time.Duration(0)}, []any{s.lease, s.moved, s.slept}, "the clocks are read one after the other")
	slept, s.epoch = 5*time.Second, time.Now().Add(-50*time.Second)
	n := s.offsets.n
	echo(32*time.Second, 10*time.Second)
	require.Equal(t, []any{41 * time.Second, true, n}, []any{s.lease, s.moved, s.offsets.n}, "it was sent before")
	echo(55*time.Second, 10*time.Second)
	require.Equal(t, []any{70 * time.Second, false, 1}, []any{s.lease, s.moved, s.offsets.n})
}

// leased is a worker that keeps what it was told of its lease.
type leased struct {
	Local
	until []time.Duration
}

func (l *leased) SetLease(until time.Duration) { l.until = append(l.until, until) }
