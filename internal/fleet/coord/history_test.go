package coord

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TestHistory counts an op a second for three quarters of an hour, and drops beginnings: the rest is exact, and small.
func TestHistory(t *testing.T) {
	const origin, end = int64(7e9), 2_500
	h := history{after: origin}
	for i := range int64(end) {
		from := origin + i*int64(time.Second)
		delta := measure.NewTotals(origin, 1)
		delta.AddDue(driver.Get)
		delta.Record(&measure.Sample{Verb: driver.Get, Due: from, Start: from, End: from + 1000 + i})
		h.add(&measure.Interval{From: from, To: from + int64(time.Second), Delta: delta})
	}
	require.Less(t, len(h.stretches.Cells), mostStretches)
	size := 0
	for _, s := range h.stretches.Cells {
		size += s.size
	}
	require.Less(t, size, 1<<20)
	for _, cut := range []int64{0, 1, 300, 1000, 2450} {
		sum, from, err := h.since(origin + cut*int64(time.Second))
		require.NoError(t, err)
		first := (from - origin) / int64(time.Second)
		require.GreaterOrEqual(t, first, cut)
		require.Less(t, first, cut+32, "a stretch is half a minute")
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

// TestHistoryLeavesNoGarbage counts for minutes with the garbage collector off: only what is kept gets allocated, not the histograms used for merging.
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
	h.stretches = measure.Halved[stretch]{}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	minutes()
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*mostStretches<<10), "1 KiB an interval")
}

// TestHistoryOfHoursTakesNoMoreThanOfMinutes: the blocks of two merged stretches serve later ones, however much longer. Otherwise, with the garbage
// collector off, every merge would leave a minute's history behind.
func TestHistoryOfHoursTakesNoMoreThanOfMinutes(t *testing.T) {
	h := history{}
	delta := measure.NewTotals(1, 1)
	intervals := func(from, to int64) {
		for i := from; i < to; i++ {
			delta.Reset()
			for k := range int64(100) {
				delta.Record(&measure.Sample{Verb: driver.Get, Due: 1, Start: 2, End: 1e6 + (i*7919+k*104_729)%1_000_000_000})
			}
			h.add(&measure.Interval{From: i, To: i + 1, Delta: delta})
		}
		require.NoError(t, h.err)
	}
	intervals(0, 8*mostStretches)
	size := h.stretches.Cells[0].size
	require.Greater(t, size, 1000, "long enough to be worth it")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	intervals(8*mostStretches, 16*mostStretches)
	runtime.ReadMemStats(&after)
	require.Len(t, h.stretches.Cells, mostStretches/2, "they were joined meanwhile")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(mostStretches/4*size), "those before and those after the joining would be as many as there may be")
}

// TestDamagedHistoryIsNoFigure: what is left of a damaged history never passes for all of it, however often it is read and merged.
func TestDamagedHistoryIsNoFigure(t *testing.T) {
	h := history{}
	for i := range int64(10) {
		h.add(&measure.Interval{From: i, To: i + 1, Delta: measure.NewTotals(1, 1)})
	}
	h.stretches.Cells[3].size = 1
	_, _, err := h.since(4)
	require.NoError(t, err)
	_, _, err = h.since(3)
	require.Error(t, err)
	_, _, err = h.since(4)
	require.Error(t, err)

	first := h.err
	h.stretches.Cells[4].counts.piece[0] = 0xff // of another version
	_, _, err = h.since(0)
	require.Equal(t, first, err, "the first damage is the one to tell")

	h.err = nil
	h.halve()
	require.Error(t, h.err)
	n := len(h.stretches.Cells)
	h.add(&measure.Interval{From: 10, To: 11, Delta: measure.NewTotals(1, 1)})
	require.Len(t, h.stretches.Cells, n, "nothing more is kept of it")

	s := stepOf(t, "closed {\n sessions = 10\n duration = \"30s\"\n warmup = \"5s\"\n}", 1)
	s.history = h
	for second := range 7 {
		s.series.Add(float64(second+1), measure.NewTotals(1, 1))
	}
	p := activePhase{c: s.c, ph: s.ph}
	require.ErrorContains(t, p.settle(s, s.totals), "leave the warm-up out: ")
}

// TestHistoryThatCannotBeKept says so.
func TestHistoryThatCannotBeKept(t *testing.T) {
	h := history{}
	delta := measure.NewTotals(1, 1)
	delta.Ack(driver.Put, measure.MaxAcks+1, 1)
	h.add(&measure.Interval{From: 0, To: 1, Delta: delta})
	_, _, err := h.since(0)
	require.ErrorContains(t, err, "256 acks")
}
