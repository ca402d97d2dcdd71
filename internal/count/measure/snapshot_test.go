package measure

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Whichever neighbours are joined before they are sent, the deltas add up to the step.
func TestJoinedSnapshotsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t, 40)
		sealed := make([]*Snapshot, rapid.IntRange(1, 6).Draw(t, "intervals"))
		var running Counters
		left := events
		for i := range sealed {
			n := len(left)
			if i < len(sealed)-1 {
				n = rapid.IntRange(0, len(left)).Draw(t, "events of an interval")
			}
			seq := uint64(i) + 1
			s := &Snapshot{Step: 4, SeqFirst: seq, SeqLast: seq, From: int64(i) * 1e9, To: int64(i+1) * 1e9, Final: i == len(sealed)-1}
			s.Delta = *count(left[:n]...)
			running.Add(&s.Delta)
			s.Running.Merge(&running)
			require.NoError(t, s.CheckValid())
			sealed[i], left = s, left[n:]
		}
		intervals := len(sealed)
		for len(sealed) > 1 && rapid.Bool().Draw(t, "join more") {
			i := rapid.IntRange(1, len(sealed)-1).Draw(t, "join")
			require.NoError(t, sealed[i-1].Merge(sealed[i]))
			require.NoError(t, sealed[i-1].CheckValid())
			sealed = append(sealed[:i], sealed[i+1:]...)
		}
		var sum Totals
		next, at := uint64(1), int64(0)
		for _, s := range sealed {
			require.Equal(t, next, s.SeqFirst)
			require.Equal(t, at, s.From)
			next, at = s.SeqLast+1, s.To
			sum.Merge(&s.Delta)
			soFar := sum.Counters()
			require.True(t, soFar.Equal(&s.Running), "running totals are the deltas up to here")
		}
		require.EqualValues(t, intervals+1, next)
		require.True(t, sealed[len(sealed)-1].Final)
		require.Equal(t, bytesOf(t, count(events...)), bytesOf(t, &sum))
	})
}

// The samples of joined snapshots are those of both.
func TestJoinedSnapshotsHaveTheSamplesOfBoth(t *testing.T) {
	first, next := Snapshot{SeqFirst: 1, SeqLast: 1}, Snapshot{SeqFirst: 2, SeqLast: 2}
	first.Samples.Add(5, []DrawnOp{{Start: 1}})
	next.Samples.Add(5, []DrawnOp{{Start: 2}, {Start: 3}})
	require.NoError(t, first.Merge(&next))
	require.Equal(t, []DrawnOp{{Start: 1}, {Start: 2}, {Start: 3}}, first.Samples.Ops())
}

func TestJoinOfStrangersIsRefused(t *testing.T) {
	first := Snapshot{Step: 1, SeqFirst: 3, SeqLast: 4, From: 10, To: 20}
	for _, c := range []struct {
		name string
		to   Snapshot
		next Snapshot
	}{
		{"another step", first, Snapshot{Step: 2, SeqFirst: 5, SeqLast: 5, From: 20, To: 30}},
		{"a gap in the sequence", first, Snapshot{Step: 1, SeqFirst: 6, SeqLast: 6, From: 20, To: 30}},
		{"the same again", first, first},
		{"a gap in time", first, Snapshot{Step: 1, SeqFirst: 5, SeqLast: 5, From: 21, To: 30}},
		{
			"after the final one",
			Snapshot{Step: 1, SeqFirst: 3, SeqLast: 4, From: 10, To: 20, Final: true},
			Snapshot{Step: 1, SeqFirst: 5, SeqLast: 5, From: 20, To: 30},
		},
	} {
		before := bytesOf(t, &c.to)
		require.ErrorContains(t, c.to.Merge(&c.next), "to snapshot 3–4 of step 1", c.name)
		require.Equal(t, before, bytesOf(t, &c.to), c.name)
	}
}

func TestSnapshotCheckValid(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(s *Snapshot)
		want  string
	}{
		{"sequence", func(s *Snapshot) { s.SeqFirst = 19 }, "snapshot 19–18 runs"},
		{"time", func(s *Snapshot) { s.To = s.From - 1 }, "runs from 5000000000 ns to 4999999999 ns"},
		{"delta", func(s *Snapshot) { s.Delta.AddDue(driver.Put) }, "snapshot 17–18: put: due 8, but"},
		{"running op", func(s *Snapshot) { s.Running.Ops[driver.Get].Due-- }, "snapshot 17–18, step so far: get: due 13, but"},
		{"running request", func(s *Snapshot) { s.Running.Requests[0].Sent++ }, "step so far: endpoint 0, get: sent 31, but"},
	} {
		s := sampleSnapshot()
		c.plant(s)
		require.ErrorContains(t, s.CheckValid(), c.want, c.name)
	}
}
