package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// finerOf is the phase of a load whose gets end at these times after its start, every third a miss, and whose puts fail at the same times.
func finerOf(seriesRows int, ends ...time.Duration) *run.Phase {
	const origin = int64(5e9)
	totals := measure.NewTotals(origin, 1)
	for i, end := range ends {
		outcome := driver.OK
		if i%3 == 0 {
			outcome = driver.Miss
		}
		at := origin + int64(end)
		totals.Record(&measure.Sample{Verb: driver.Get, Outcome: outcome, Due: at, Start: at, End: at})
		totals.Record(&measure.Sample{Verb: driver.Put, Outcome: driver.Timeout, Due: at, Start: at, End: at})
		totals.Span.Last = max(totals.Span.Last, at)
	}
	p := phase{Phase: new(run.Phase)}
	p.finer(totals, seriesRows)
	return p.Phase
}

// TestShortLoadsHaveFinerRows: at least 20, which add up, whatever the length of the load.
func TestShortLoadsHaveFinerRows(t *testing.T) {
	for _, last := range []time.Duration{3 * time.Millisecond, 1<<30 - 1, 1 << 30, 1<<30 + 1, 2 * time.Second, 19500 * time.Millisecond} {
		var ends []time.Duration
		for i := range 300 {
			ends = append(ends, last*time.Duration(i+1)/300)
		}
		var ok, miss, bad uint64
		before, first := 0.0, 0.0
		rows := finerOf(2, ends...).Finer
		for i, row := range rows {
			ok, miss, bad = ok+row.OK, miss+row.Miss, bad+row.Bad
			require.Greater(t, row.T, before)
			if i == 0 {
				first = row.T
			} else if i < len(rows)-1 {
				require.InDelta(t, first, row.T-before, 1e-9)
			}
			before = row.T
		}
		require.Equal(t, []uint64{200, 100, 300}, []uint64{ok, miss, bad}, "%v", last)
		require.InDelta(t, last.Seconds(), before, 1e-8)
		require.GreaterOrEqual(t, len(rows), 20, "%v", last)
		require.LessOrEqual(t, len(rows), 41, "%v", last)
	}
	require.Empty(t, finerOf(20, time.Second).Finer, "seconds will do")
	require.Empty(t, finerOf(1).Finer, "no ops")
	require.Empty(t, finerOf(1, 1).Finer, "it ended at once")
	require.Empty(t, finerOf(1, fewRows-1).Finer, "not a nanosecond for each row")
	require.Len(t, finerOf(1, fewRows).Finer, 1, "bins are no narrower")
	require.Empty(t, finerOf(fewRows, time.Second).Finer, "a series as long as that")
	require.NotEmpty(t, finerOf(fewRows-1, time.Second).Finer)
}

// A load of one step has finer rows.
func TestALoadHasFinerRows(t *testing.T) {
	require.NotEmpty(t, newPhase(closedPhase(), closedLoad(1000, ms, 0, always(driver.OK))).Finer)
}
