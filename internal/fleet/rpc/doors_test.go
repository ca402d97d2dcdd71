package rpc

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
)

// echoing is a worker's session whose machine has slept for the given time.
func echoing(t *testing.T, slept *time.Duration) *session {
	s := newSession(JoinConfig{Logger: slog.New(slog.DiscardHandler), Suspended: func() time.Duration { return *slept }}, nil)
	t.Cleanup(func() { s.end() })
	return s
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
