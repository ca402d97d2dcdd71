package measure

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const binWidth = int64(1) << minShift

func binsOf(offsets ...int64) *Bins {
	b := new(Bins)
	for _, at := range offsets {
		b.AddN(at, 1)
	}
	return b
}

func TestBinsCoarsenForTheLatestEnd(t *testing.T) {
	for _, c := range []struct {
		latest int64
		shift  uint8
	}{
		{-7, 16},
		{0, 16},
		{NumBins*binWidth - 1, 16},
		{NumBins * binWidth, 17},
		{2*NumBins*binWidth - 1, 17},
		{2 * NumBins * binWidth, 18},
		{60e9, 26},
		{math.MaxInt64, maxShift},
	} {
		for _, offsets := range [][]int64{{0, c.latest}, {c.latest, 0}} {
			b := binsOf(offsets...)
			require.Equal(t, c.shift, b.Shift(), "latest end %d", c.latest)
			require.EqualValues(t, 2, b.Total())
			var want [NumBins]uint64
			want[0]++
			want[max(c.latest, 0)>>c.shift]++
			require.Equal(t, want, b.N)
		}
	}
}

func TestBetween(t *testing.T) {
	w := binWidth
	b := binsOf(0, w-1, w, 3*w+5, NumBins*w-1)
	for _, c := range []struct {
		name     string
		b        *Bins
		from, to int64
		n        uint64
		bins     int64
	}{
		{"the first", b, 0, w, 2, 1},
		{"from before the origin", b, -5, w, 2, 1},
		{"from bins before the origin", b, -9 * w, w, 2, 1},
		{"from the beginning of time", b, math.MinInt64, 2 * w, 3, 2},
		{"wholly before the origin", b, -5, 0, 0, 0},
		{"bins before the origin", b, -9 * w, -3 * w, 0, 0},
		{"cut on the left", b, 1, 2 * w, 1, 1},
		{"cut on the right", b, 0, 2*w - 1, 2, 1},
		{"cut on both sides", b, 1, 2*w - 1, 0, 0},
		{"inside one", b, 5, 10, 0, 0},
		{"none", b, w, w, 0, 0},
		{"backwards", b, 2 * w, w, 0, 0},
		{"all", b, 0, NumBins * w, 5, NumBins},
		{"beyond the last end", b, 0, 3 * NumBins * w, 5, 3 * NumBins},
		{"after the last end", b, 2 * NumBins * w, 3 * NumBins * w, 0, NumBins},
		{"to the end of time", b, 0, math.MaxInt64, 5, math.MaxInt64 >> minShift},
		{"no bins", nil, 0, 7 * w, 0, 7},
		{"empty bins", new(Bins), 0, 7 * w, 0, 7},
	} {
		n, seconds := c.b.Between(c.from, c.to)
		require.Equal(t, c.n, n, c.name)
		require.InDelta(t, float64(c.bins)*65536e-9, seconds, seconds*1e-15, c.name)
	}
}

func TestBinsAgainstTheEndsThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ends := rapid.SliceOfN(anyTime, 1, 50).Draw(t, "ends")
		cut := rapid.IntRange(0, len(ends)).Draw(t, "cut")
		b, rest := binsOf(ends[:cut]...), binsOf(ends[cut:]...)
		b.Merge(rest)
		require.Equal(t, binsOf(ends...).N, b.N)
		require.Less(t, slices.Max(ends)>>b.Shift(), int64(NumBins), "the last fits")
		require.True(t, b.Shift() == minShift || slices.Max(ends)>>(b.Shift()-1) >= NumBins, "and no narrower")
		require.EqualValues(t, len(ends), b.Total())

		from, to := anyTime.Draw(t, "from"), anyTime.Draw(t, "to")
		want, covered := uint64(0), int64(0)
		for i := range int64(NumBins) {
			lower := i << b.Shift()
			upper := lower + 1<<b.Shift()
			if lower < from || upper > to || upper < 0 {
				continue
			}
			covered += upper - lower
			for _, e := range ends {
				if lower <= e && e < upper {
					want++
				}
			}
		}
		n, seconds := b.Between(from, to)
		require.Equal(t, want, n)
		if to <= NumBins<<b.Shift() {
			require.InDelta(t, float64(covered)/1e9, seconds, seconds*1e-12)
		}
	})
}

// A stretch of time counts alike in however many parts it comes, and to the nanosecond.
func TestSpreadOverBins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(0, 1e11).Draw(t, "from")
		to := from + rapid.Int64Range(1, 1e11).Draw(t, "lasts")
		cut := rapid.Int64Range(from, to).Draw(t, "cut")
		whole, parts := NewTotals(0, 0), NewTotals(0, 0)
		whole.AddLost(3, from, to)
		parts.AddLost(3, cut, to)
		parts.AddLost(3, from, cut)
		require.Equal(t, whole.Lost, parts.Lost)
		require.EqualValues(t, 3*(to-from), whole.Lost.Total())
		width := int64(1) << whole.Lost.Shift()
		n, _ := whole.Lost.Between(from, to)
		require.GreaterOrEqual(t, int64(n), 3*(to-from-2*width))
	})
}
