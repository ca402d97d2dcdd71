package measure

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/driver"
)

// grown counts ops with ordinals; op n takes n microseconds, and every seventh fails.
func grown(ordinals ...uint64) *Totals {
	t := NewTotals(testOrigin, testEndpoints)
	for _, n := range ordinals {
		s := Sample{Verb: driver.Put, Cause: 1, Due: testOrigin, Start: testOrigin, End: testOrigin + int64(n%1e6)*1000}
		if n%7 == 0 {
			s.Outcome = driver.Error
		}
		t.AddDue(driver.Put)
		t.Record(&s)
		t.Grow(&s, n)
	}
	return t
}

func TestGrowthCoarsens(t *testing.T) {
	var all []uint64
	for n := range uint64(1000) {
		all = append(all, n+1)
	}
	g := grown(all...).Ops[driver.Put].Growth
	require.EqualValues(t, 3, g.Shift)
	require.Len(t, g.Used(), 125)
	require.EqualValues(t, 1000, g.Ended())
	for i, b := range g.Used() {
		require.EqualValues(t, 8, b.Ended())
		largest := uint64(i+1) * 8
		if largest%7 == 0 {
			largest--
		}
		require.EqualValues(t, largest*1000, b.Answered.Max())
	}
	g = grown(1, 128).Ops[driver.Put].Growth
	require.Zero(t, g.Shift, "128 ordinals fit")
	g = grown(1, 129).Ops[driver.Put].Growth
	require.EqualValues(t, 1, g.Shift)
	g = grown(math.MaxUint64).Ops[driver.Put].Growth
	require.EqualValues(t, maxOrdinalShift, g.Shift)
	require.Len(t, g.Used(), NumOrdinals)
}

// TestOrdinalsBeginAtOne: an op without an ordinal counts as the first.
func TestOrdinalsBeginAtOne(t *testing.T) {
	for _, n := range []uint64{0, 1} {
		g := grown(n).Ops[driver.Put].Growth
		require.Zero(t, g.Shift)
		require.Len(t, g.Used(), 1)
		require.EqualValues(t, 1, g.Ended())
	}
	require.Len(t, grown(2).Ops[driver.Put].Growth.Used(), 2)
}

// TestGrowthBeginsFineAgain once it was emptied.
func TestGrowthBeginsFineAgain(t *testing.T) {
	totals := grown(1, 1000)
	require.NotZero(t, totals.Ops[driver.Put].Growth.Shift)
	totals.Reset()
	totals.Grow(&Sample{Verb: driver.Put}, 1)
	totals.Grow(&Sample{Verb: driver.Put}, 128)
	require.Zero(t, totals.Ops[driver.Put].Growth.Shift)
	require.Len(t, totals.Ops[driver.Put].Growth.Used(), 128)
}

// Ordinals that stand alone, as in a snapshot of another version, are not lost.
func TestGrowthAloneIsKept(t *testing.T) {
	for _, outcome := range []driver.Outcome{driver.OK, driver.Error} {
		whole := NewTotals(testOrigin, testEndpoints)
		whole.Grow(&Sample{Verb: driver.Put, Outcome: outcome, Cause: 1, Due: testOrigin, Start: testOrigin, End: testOrigin + 1}, 3)
		into := NewTotals(testOrigin, testEndpoints)
		_, err := into.Decode(bytesOf(t, whole))
		require.NoError(t, err)
		require.EqualValues(t, 1, into.Ops[driver.Put].Growth.Ended())
	}
}

// TestGrowthOfAnyPartition encodes to the same bytes, whichever part counted which op, and decodes.
func TestGrowthOfAnyPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ordinals := rapid.SliceOfN(rapid.Map(anyTime, func(n int64) uint64 { return uint64(n) + 1 }), 1, 40).Draw(t, "ordinals")
		whole := grown(ordinals...)
		parts := make([]*Totals, rapid.IntRange(1, 4).Draw(t, "parts"))
		dealt := make([][]uint64, len(parts))
		for _, n := range ordinals {
			i := rapid.IntRange(0, len(parts)-1).Draw(t, "part")
			dealt[i] = append(dealt[i], n)
		}
		for i := range parts {
			parts[i] = grown(dealt[i]...)
		}
		sum := merged(rapid.Permutation(parts).Draw(t, "order")...)
		require.Equal(t, bytesOf(t, whole), bytesOf(t, sum))
		require.NoError(t, sum.CheckValid())
		require.True(t, accountOf(whole).Equal(accountOf(parts...)))

		into := grown(rapid.SliceOfN(rapid.Uint64Range(1, 5000), 0, 9).Draw(t, "before")...)
		_, err := into.Decode(bytesOf(t, sum))
		require.NoError(t, err)
		require.Equal(t, bytesOf(t, whole), bytesOf(t, into))
	})
}

func TestGrowthOfOtherOpsIsInvalid(t *testing.T) {
	totals := grown(1, 2, 3)
	totals.Grow(&Sample{Verb: driver.Put}, 4)
	require.ErrorContains(t, totals.CheckValid(), "put: ends by ordinal 4, but ended 3")
}

func TestGrowthAllocatesNothingOnceUsed(t *testing.T) {
	totals := grown(1, 500, 1000)
	s := Sample{Verb: driver.Put, Due: testOrigin, Start: testOrigin, End: testOrigin + 400_000}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		totals.Grow(&s, 1000)
		totals.Reset()
		totals.Grow(&s, 900)
	}))
}

func TestAccountTellsGrowthApart(t *testing.T) {
	require.False(t, accountOf(grown(1, 2)).Equal(accountOf(grown(1, 3))))
}
