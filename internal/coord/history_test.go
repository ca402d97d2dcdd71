package coord

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TestHistory counts an op a second for three hours, and leaves beginnings out: what is left is exact, and kept small.
func TestHistory(t *testing.T) {
	const origin, end = int64(7e9), 10_000
	h := history{after: origin}
	for i := range int64(end) {
		from := origin + i*int64(time.Second)
		delta := measure.NewTotals(origin, 1)
		delta.AddDue(driver.Get)
		delta.Record(&measure.Sample{Verb: driver.Get, Due: from, Start: from, End: from + 1000 + i})
		h.add(&measure.Interval{From: from, To: from + int64(time.Second), Delta: delta})
	}
	require.Less(t, len(h.stretches), mostStretches)
	size := 0
	for _, s := range h.stretches {
		size += len(s.counts)
	}
	require.Less(t, size, 4<<20)
	for _, cut := range []int64{0, 1, 1000, 4000, 9800} {
		sum, from, err := h.since(origin + cut*int64(time.Second))
		require.NoError(t, err)
		first := (from - origin) / int64(time.Second)
		require.GreaterOrEqual(t, first, cut)
		require.Less(t, first, cut+128, "a stretch is a minute or two")
		require.EqualValues(t, end-first, sum.Ops[driver.Get].Due)
		require.Equal(t, 1000+first, sum.Ops[driver.Get].Service[measure.ClassOK].Min(), "the least is known to the nanosecond")
	}
	sum, _, err := h.since(origin + end*int64(time.Second))
	require.NoError(t, err)
	require.Nil(t, sum)
}

// TestHistoryBeginsWhereThePlanSays leaves out what began before.
func TestHistoryBeginsWhereThePlanSays(t *testing.T) {
	h := history{after: 25}
	for from := int64(0); from < 100; from += 10 {
		h.add(&measure.Interval{From: from, To: from + 10, Delta: measure.NewTotals(1, 1)})
	}
	_, from, err := h.since(0)
	require.NoError(t, err)
	require.EqualValues(t, 30, from)
}

// TestHistoryLeavesNoGarbage counts for minutes with the collector at rest: what is allocated is what is kept, and not the histograms it is joined in.
func TestHistoryLeavesNoGarbage(t *testing.T) {
	h := history{}
	delta := measure.NewTotals(1, 1)
	delta.AddDue(driver.Get)
	delta.Record(&measure.Sample{Verb: driver.Get, Due: 1, Start: 2, End: int64(time.Minute)})
	minutes := func() {
		for i := range int64(4 * mostStretches) {
			h.add(&measure.Interval{From: i, To: i + 1, Delta: delta})
		}
		require.NoError(t, h.err)
	}
	minutes()
	h.stretches, h.length = nil, 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	minutes()
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*mostStretches<<10), "1 KiB an interval")
}
