package rpc

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/fleet/worker"
)

// assigned is a Local that notes what it is told of the run's clock.
type assigned struct {
	idle
	is     worker.Assignment
	lease  time.Duration
	closed int
	err    error
}

func (a *assigned) Assign(_ context.Context, is worker.Assignment) error {
	a.is = is
	return a.err
}
func (a *assigned) SetLease(until time.Duration) { a.lease = until }
func (a *assigned) Close()                       { a.closed++ }

// TestClockOfARun: it is the coordinator's clock, on a worker whose own is ahead or behind, both for the run's zero and for the end of the lease.
func TestClockOfARun(t *testing.T) {
	for _, ahead := range []time.Duration{7 * time.Second, -7 * time.Second, 0} {
		local := new(assigned)
		s := newSession(JoinConfig{New: func() Local { return local }, Logger: slog.New(slog.DiscardHandler)}, nil)
		s.offsets.add(9*time.Second, 9*time.Second-ahead, 9*time.Second-ahead, 9*time.Second)
		s.lease = 30 * time.Second
		close(s.synced)
		require.NoError(t, s.assign(&pb.Assignment{Workers: 1, ZeroNs: int64(3 * time.Second)}))
		zero := 3*time.Second + ahead // on the worker's clock
		require.Equal(t, s.epoch.Add(zero), local.is.Zero, ahead)
		require.Equal(t, 30*time.Second-zero, local.lease, ahead)
		require.True(t, s.end())
		require.Equal(t, 1, local.closed)
	}
}

// TestAssignmentThatFails is reported, and counts as a run only if it is the first.
func TestAssignmentThatFails(t *testing.T) {
	why := errors.New("why")
	var all []*assigned
	s := newSession(JoinConfig{New: func() Local { all = append(all, &assigned{err: why}); return all[len(all)-1] }, Logger: slog.New(slog.DiscardHandler)}, nil)
	s.offsets.add(0, 0, 0, 0)
	require.ErrorContains(t, s.assign(&pb.Assignment{}), "assignment to worker 0 of 0")
	require.ErrorContains(t, s.assign(&pb.Assignment{Workers: 1, ZeroNs: int64(maxRunTime)}), "a time of")
	require.Empty(t, all)
	close(s.synced)
	require.Equal(t, why, s.assign(&pb.Assignment{Workers: 1}))
	require.ErrorContains(t, s.assign(&pb.Assignment{Workers: 1}), "a second assignment")
	require.Equal(t, []int{0, 1}, []int{all[0].closed, all[1].closed}, "the second is of no use")
	require.True(t, s.end())
	require.Equal(t, []int{1, 1}, []int{all[0].closed, all[1].closed})

	s = newSession(JoinConfig{New: func() Local { return new(assigned) }, Logger: slog.New(slog.DiscardHandler)}, nil)
	s.abandon()
	require.ErrorIs(t, s.assign(&pb.Assignment{Workers: 1}), context.Canceled, "clocks that are never compared")
	require.False(t, s.end(), "there was no run")
}

// TestOrdersBeforeAnAssignment are answered, each in its own way, and so is an empty one.
func TestOrdersBeforeAnAssignment(t *testing.T) {
	s := newSession(JoinConfig{Logger: slog.New(slog.DiscardHandler)}, nil)
	defer s.end()
	require.Equal(t, errUnassigned.Error(), s.prepare(&pb.Step{Seq: 4, Kind: "load"}).GetReady().GetError())
	require.EqualValues(t, 4, s.prepare(&pb.Step{Seq: 4, Kind: "load"}).GetReady().GetStep())
	require.Contains(t, s.prepare(&pb.Step{Kind: "walk"}).GetReady().GetError(), "unknown kind")
	require.Equal(t, errUnassigned.Error(), s.start(&pb.Start{}).GetFinal().GetError())
	require.Contains(t, s.start(&pb.Start{AtNs: int64(maxRunTime)}).GetFinal().GetError(), "a time of")
	require.Contains(t, s.do(&pb.Envelope{Content: &pb.Envelope_Drain{}}).GetAssigned().GetError(), "an order that is a")
}

// TestRefusalsAreCounted: a burst is logged at once, then one a second, with the number of those not logged.
func TestRefusalsAreCounted(t *testing.T) {
	var r refusals
	now := time.Unix(1000, 0)
	tell := func() (told, untold int) {
		for range 100 {
			is, others := r.tell(now)
			if is {
				told++
			} else {
				require.Zero(t, others)
			}
			untold += others
		}
		return told, untold
	}
	told, untold := tell()
	require.Equal(t, []int{20, 0}, []int{told, untold})
	now = now.Add(time.Second - 1)
	told, _ = tell()
	require.Zero(t, told)
	now = now.Add(1)
	told, untold = tell()
	require.Equal(t, []int{1, 180}, []int{told, untold})
	now = now.Add(5 * time.Second)
	told, untold = tell()
	require.Equal(t, []int{5, 99}, []int{told, untold})
	now = now.Add(time.Hour)
	told, untold = tell()
	require.Equal(t, []int{20, 95}, []int{told, untold}, "a quiet hour saves up no more than that")
}

// TestAlarmRingsWhenItIsDue, and a nanosecond earlier waits for the rest: of its period when awake, and of its spare time when not.
func TestAlarmRingsWhenItIsDue(t *testing.T) {
	const after, spare = 10 * time.Second, 15 * time.Second
	for name, c := range map[string]struct {
		awake, gone time.Duration // since it was set, on the two clocks
		due         bool
	}{
		"awake for not so long":      {after - 1, after - 1, false},
		"awake for so long":          {after, after, true},
		"asleep for not so long":     {0, after + spare - 1, false},
		"asleep for so long":         {0, after + spare, true},
		"some of both":               {after - 1, after + spare - 1, false},
		"a little awake, long since": {1, after + spare, true},
	} {
		now := time.Hour
		clock := &awake{now: func() time.Duration { return now }, beat: time.Hour, last: now}
		a := &alarm{clock: clock, after: after, spare: spare, call: func() {}}
		a.set()
		clock.counted += c.awake - c.gone // of the time gone by, so much was asleep
		now += c.gone
		require.Equal(t, c.due, a.due(), name)
		if c.due {
			require.False(t, a.due(), "%s: it rings once", name)
		}
		a.stop()
		require.False(t, a.due(), "%s: taken back", name)
	}
}
