package hist

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func of(values ...int64) *Hist {
	h := new(Hist)
	for _, v := range values {
		h.Record(v)
	}
	return h
}

func TestBucketsTileTheNumbers(t *testing.T) {
	next := uint64(0)
	last := int(index(math.MaxInt64))
	require.Equal(t, 7295, last)
	for i := 0; i <= last; i++ {
		lower, upper := bounds(i)
		require.Equal(t, next, lower)
		require.EqualValues(t, i, index(lower))
		require.EqualValues(t, i, index(upper))
		if lower < 256 {
			require.Equal(t, lower, upper)
		}
		require.LessOrEqual(t, (upper-lower)*128, lower, "bucket %d", i)
		next = upper + 1
	}
	require.Equal(t, uint64(1)<<63, next)
}

func TestMoments(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct {
		name     string
		values   []int64
		min, max int64
		mean, sd float64
	}{
		{"one", []int64{42}, 42, 42, 42, 0},
		{"two", []int64{2, 4}, 2, 4, 3, math.Sqrt2},
		{"sample of Wikipedia's example", []int64{2, 4, 4, 4, 5, 5, 7, 9}, 2, 9, 5, math.Sqrt(32.0 / 7)},
		{"negative counts as 0", []int64{-5, 0, 3}, 0, 3, 1, math.Sqrt(3)},
		{"far from zero", []int64{1e18, 1e18 + 2}, 1e18, 1e18 + 2, 1e18 + 1, math.Sqrt2},
		{"the largest, five times", []int64{most, most, most, most, most}, most, most, most, 0},
		{"both ends", []int64{0, most}, 0, most, most / 2.0, most / math.Sqrt2},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := of(c.values...)
			require.EqualValues(t, len(c.values), h.Count())
			require.Equal(t, c.min, h.Min())
			require.Equal(t, c.max, h.Max())
			require.InEpsilon(t, c.mean, h.Mean(), 1e-15)
			require.InDelta(t, c.sd, h.SD(), c.sd*1e-15)
		})
	}
}

func TestSumNeverFalls(t *testing.T) {
	const most = math.MaxInt64
	require.Zero(t, new(Hist).Sum())
	require.Equal(t, 6.0, of(1, 2, 3).Sum())
	require.Equal(t, 4*0x1p63, of(most, most, most, most).Sum())
	// A mean times a count would sometimes decrease: each zero changes both, and their product by a rounding error.
	h := of(most/3, most/5, most/7, 1)
	for range 1000 {
		before := h.Sum()
		h.Record(0)
		require.Equal(t, before, h.Sum())
		h.Record(most / 11)
		require.Greater(t, h.Sum(), before)
	}
}

func TestRank(t *testing.T) {
	for _, c := range []struct {
		q    float64
		n    uint64
		want uint64
	}{
		{0.5, 1, 1},
		{0.5, 2, 1},
		{0.5, 3, 2},
		{0.07, 100, 7},                   // 0.07·100 = 7.000000000000001
		{math.Nextafter(2.0/3, 1), 3, 3}, // the product is 2, and 2/3 is less
		{0.29, 100, 29},
		{0.57, 100, 57},
		{0.99, 100, 99},
		{0.99, 101, 100},
		{0.999, 1000, 999},
		{0.999, 999, 999},
		{0.9999, 1_000_000, 999_900},
		{1e-300, 5, 1},
		{0.5, 1 << 53, 1 << 52},
		{math.Nextafter(1, 0), 1 << 53, 1<<53 - 1},
		{0, 10, 1},
		{-1, 10, 1},
		{math.NaN(), 10, 1},
		{1, 10, 10},
		{1, 1<<53 + 1, 1<<53 + 1}, // as a float64 it is 2^53
		{1, math.MaxUint64, math.MaxUint64},
		{2, 10, 10},
		{math.Inf(1), 10, 10},
	} {
		require.Equal(t, c.want, Rank(c.q, c.n), "q=%v n=%d", c.q, c.n)
	}
}

// distributions are shapes that latencies take.
var distributions = []struct {
	name string
	draw func(r *rand.Rand) int64
}{
	{"uniform below 256", func(r *rand.Rand) int64 { return r.Int64N(256) }},
	{"uniform", func(r *rand.Rand) int64 { return r.Int64N(1e7) }},
	{"log-normal", func(r *rand.Rand) int64 { return int64(3e5 * math.Exp(r.NormFloat64()*0.6)) }},
	{"pareto", func(r *rand.Rand) int64 { return int64(min(1e5/math.Pow(r.Float64(), 2), 1e15)) }},
	{"two modes", func(r *rand.Rand) int64 { return 1e5 + r.Int64N(1e4) + 1e9*(r.Int64N(50)/49) }},
	{"constant", func(*rand.Rand) int64 { return 123_457 }},
	{"all of int64", func(r *rand.Rand) int64 { return r.Int64() }},
}

var quantiles = []float64{0, 1e-6, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 1}

func TestAgainstSortedValues(t *testing.T) {
	for _, d := range distributions {
		for _, n := range []int{1, 2, 3, 100, 9_999} {
			r := rand.New(rand.NewPCG(uint64(n), 7))
			values := make([]int64, n)
			for i := range values {
				values[i] = d.draw(r)
			}
			h := of(values...)
			slices.Sort(values)
			for _, q := range quantiles {
				exact := values[Rank(q, uint64(n))-1]
				got := h.Quantile(q)
				require.GreaterOrEqual(t, got, exact, "%s: n=%d q=%v", d.name, n, q)
				require.LessOrEqual(t, got-exact, exact/128, "%s: n=%d q=%v", d.name, n, q)
				require.LessOrEqual(t, got, values[n-1], "%s: n=%d q=%v", d.name, n, q)
			}
			mean, sd := exactMoments(values)
			require.InDelta(t, mean, h.Mean(), mean*1e-15, "%s: n=%d", d.name, n)
			require.InDelta(t, sd, h.SD(), sd*1e-14, "%s: n=%d", d.name, n)
			require.Equal(t, values[0], h.Min())
			require.Equal(t, values[n-1], h.Max())
		}
	}
}

// exactMoments computes mean and sample deviation the long way, by the definition, in 300 bits.
func exactMoments(values []int64) (mean, sd float64) {
	wide := func() *big.Float { return new(big.Float).SetPrec(300) }
	sum := wide()
	for _, v := range values {
		sum.Add(sum, wide().SetInt64(v))
	}
	m := wide().Quo(sum, wide().SetInt64(int64(len(values))))
	mean, _ = m.Float64()
	if len(values) < 2 {
		return mean, 0
	}
	squares := wide()
	for _, v := range values {
		d := wide().Sub(wide().SetInt64(v), m)
		squares.Add(squares, d.Mul(d, d))
	}
	variance, _ := squares.Quo(squares, wide().SetInt64(int64(len(values)-1))).Float64()
	return mean, math.Sqrt(variance)
}

// HdrHistogram rounds the rank where this package takes the next one up, so quantiles are compared where neighbouring ranks are close: with many
// values, and none of the shapes with gaps.
func TestAgainstHdrHistogram(t *testing.T) {
	for _, d := range distributions[:3] {
		t.Run(d.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			var h Hist
			peer := hdrhistogram.New(1, math.MaxInt64/2, 3)
			for range 200_000 {
				v := d.draw(r)
				h.Record(v)
				require.NoError(t, peer.RecordValue(v))
			}
			require.EqualValues(t, peer.TotalCount(), h.Count())
			for _, q := range []float64{0.01, 0.1, 0.5, 0.9, 0.99, 0.999} {
				require.InEpsilon(t, peer.ValueAtQuantile(100*q), h.Quantile(q), 0.01, "q=%v", q)
			}
			require.InEpsilon(t, peer.Max(), h.Max(), 0.001)
			require.InEpsilon(t, peer.Mean(), h.Mean(), 0.002)
			require.InEpsilon(t, peer.StdDev(), h.SD(), 0.002)
		})
	}
}

func TestBucketsIterator(t *testing.T) {
	h := of(0, 255, 255, 256, 257, 1000, math.MaxInt64)
	type bucket struct {
		upper int64
		count uint64
	}
	var got []bucket
	for upper, n := range h.Buckets() {
		got = append(got, bucket{upper, n})
	}
	require.Equal(t, []bucket{{0, 1}, {255, 2}, {257, 2}, {1003, 1}, {math.MaxInt64, 1}}, got)

	for upper := range h.Buckets() {
		require.Zero(t, upper, "the loop goes on after a break")
		break
	}
}

func TestMemoryGoesUpToTheLargestValue(t *testing.T) {
	for _, v := range []int64{0, 127, 128, 1e6, 1e9, math.MaxInt64} {
		h := of(v)
		require.EqualValues(t, index(uint64(v))+1, len(h.n))
		require.Less(t, cap(h.n)-max(firstRoom, len(h.n)), 128)
	}
}

// TestARisingMaximumLeavesLittleBehind raises the maximum bucket by bucket, as a long run may. All memory ever allocated is at most about four times
// what is held; allocating each bucket on its own would take 57 times. What is held is at most a quarter more than is used, or room for a second.
func TestARisingMaximumLeavesLittleBehind(t *testing.T) {
	var h Hist
	require.Zero(t, h.Bytes())
	taken, held := 0, 0
	for i := range int(index(math.MaxInt64)) {
		lower, _ := bounds(i)
		h.Record(int64(lower))
		require.Equal(t, 8*cap(h.n), h.Bytes())
		require.LessOrEqual(t, cap(h.n), max(firstRoom, i+i/4)+subBuckets, "for %d buckets", i+1)
		if h.Bytes() != held {
			held = h.Bytes()
			taken += held
		}
	}
	require.Less(t, taken, 4*held)
	require.EqualValues(t, firstRoom-1, index(1<<30))
}

func TestNoAllocationOnceGrown(t *testing.T) {
	h, o := of(1e9), of(5, 1e8)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		h.Record(12_345)
		h.Record(-1)
		h.Record(1e9)
	}))
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Merge(o) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Quantile(0.99); h.Mean() }))

	b := bytesOf(t, h)
	room := make([]byte, 0, 2*len(b))
	require.Zero(t, testing.AllocsPerRun(100, func() { room, _ = h.AppendBinary(room[:0]) }))
	var into Hist
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = into.Decode(b) }), "a warmed-up decode")
	require.Equal(t, b, bytesOf(t, &into))
}

// TestShortWayIsTheLongWay compares every way to count with record, which checks everything. Values are often equal, so that most take the fast path,
// and many are at its limits: bounds of buckets, the limits of values and times, and sums that carry.
func TestShortWayIsTheLongWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edges := []int64{0, 1, 127, 128, 255, 256, 257, 258, 1e6, shortLimit - 1, shortLimit, shortLimit + 1, math.MaxInt64, -1, math.MinInt64}
		drawn := rapid.OneOf(rapid.SampledFrom(edges), value, rapid.Int64Range(1000, 1100))
		var short, long [3]Hist
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			v := [3]int64{drawn.Draw(t, "x"), drawn.Draw(t, "y"), drawn.Draw(t, "z")}
			n := rapid.SampledFrom([]uint64{1, 1, 1, 2, shortTimes, shortTimes + 1, math.MaxUint32}).Draw(t, "n")
			switch {
			case n > 1:
				for i := range short {
					short[i].RecordN(v[i], n)
				}
			case rapid.Bool().Draw(t, "together"):
				Record3(&short[0], &short[1], &short[2], v[0], v[1], v[2])
			default:
				for i := range short {
					short[i].Record(v[i])
				}
			}
			for i := range long {
				long[i].record(uint64(max(v[i], 0)), n)
			}
		}
		for i := range short {
			require.Equal(t, bytesOf(t, &long[i]), bytesOf(t, &short[i]))
		}
	})
}

// TestEachSumCarries takes the sum of squares of one of three histograms past 2^63, whichever it is and however values are recorded, with values up
// to well above those of the fast path.
func TestEachSumCarries(t *testing.T) {
	for bits := 26; bits < 34; bits++ {
		large := int64(1)<<bits - 3
		begun := func() *Hist { return of(0, 4*large) }
		want := begun()
		want.record(uint64(large), 6400)
		inTurn := begun()
		for range 100 { // by more and by less at a time: nearly full sums meet the largest addends
			inTurn.RecordN(large, 31)
			inTurn.RecordN(large, 33)
		}
		require.Equal(t, bytesOf(t, want), bytesOf(t, inTurn), "2^%d", bits)
		inTurn = begun()
		for range 80 {
			inTurn.RecordN(large, 16)
			inTurn.RecordN(large, 64)
		}
		require.Equal(t, bytesOf(t, want), bytesOf(t, inTurn), "2^%d", bits)
		for which := range 3 {
			var h [3]*Hist
			values := [3]int64{1, 1, 1}
			values[which] = large
			for i := range h {
				h[i] = begun()
			}
			for range 6400 {
				Record3(h[0], h[1], h[2], values[0], values[1], values[2])
			}
			require.Equal(t, bytesOf(t, want), bytesOf(t, h[which]), "2^%d in number %d", bits, which)
		}
	}
}

// TestSumsCarryWhicheverWayFillsThem takes the sums of squares just below 2^63 with RecordN, and past it with Record3, for each of the three in turn.
func TestSumsCarryWhicheverWayFillsThem(t *testing.T) {
	const large = shortLimit - 1
	for which := range 3 {
		h := [3]*Hist{of(0, 4*large), of(0, 4*large), of(0, 4*large)}
		want := of(0, 4*large)
		for range 4 {
			h[which].RecordN(large, shortTimes)
			h[which].RecordN(large, shortTimes)
			values := [3]int64{1, 1, 1}
			values[which] = large
			for range 300 {
				Record3(h[0], h[1], h[2], values[0], values[1], values[2])
			}
			want.record(large, 2*shortTimes+300)
		}
		require.Equal(t, bytesOf(t, want), bytesOf(t, h[which]), "number %d", which)
	}
}

// TestTheLargestSums: the squares of values add up to more than 2^128, recorded separately and merged. For two values, equally often and n in all,
// the deviation is half of their difference times √(n / (n − 1)).
func TestTheLargestSums(t *testing.T) {
	const low, high = 1 << 62, 1<<63 - 1
	var h, other Hist
	h.RecordN(low, 100)
	other.RecordN(high, 60)
	h.Merge(&other)
	h.RecordN(high, 40)
	require.InEpsilon(t, (high-low)/2.0*math.Sqrt(200.0/199), h.SD(), 1e-12)
	require.InEpsilon(t, (float64(low)+float64(high))/2, h.Mean(), 1e-12)
	_, err := new(Hist).Decode(bytesOf(t, &h))
	require.NoError(t, err)
}

// TestMeanIsExact takes values whose sum, if rounded, would change the quotient.
func TestMeanIsExact(t *testing.T) {
	require.Equal(t, 7.872161265139058e+17, of(787216126513905753, 787216126513905736, 787216126513905724).Mean())
}

// TestMostValuesTakeTheShortWay: what makes recording cheap is that only the minimum and the maximum so far, and values in their buckets, take the
// slow path. If all values are equal and below 256, they do not.
func TestMostValuesTakeTheShortWay(t *testing.T) {
	h := of(latencies(100_000, 1)...)
	require.NotEmpty(t, h.inner)
	_, above := bounds(int(h.first) + len(h.inner) - 1)
	long := uint64(0)
	for upper, n := range h.Buckets() {
		if uint64(upper) > above || index(uint64(upper)) < h.first {
			long += n
		}
	}
	require.Less(t, long, uint64(10), "in the buckets of the least and the largest")
	for _, v := range []int64{0, 255} {
		h := of(v)
		before := h.carried
		h.Record(v)
		require.Equal(t, before, h.carried, "%d again", v)
	}
}

// TestRecordNOfVeryMany adds up n values by doubling, so that every word of the sums is reached.
func TestRecordNOfVeryMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := value.Draw(t, "value")
		n := rapid.Uint64Range(1, math.MaxUint64>>rapid.IntRange(0, 63).Draw(t, "shift")).Draw(t, "n")
		doubled, added := of(v), new(Hist)
		for left := n; left > 0; left >>= 1 {
			if left&1 != 0 {
				added.Merge(doubled)
			}
			doubled.Merge(doubled)
		}
		var many Hist
		many.RecordN(v, n)
		require.Equal(t, bytesOf(t, added), bytesOf(t, &many))
	})
}

// TestCountThatWrapsIsNoPanic merges two false counts, each in a form that Decode accepts.
func TestCountThatWrapsIsNoPanic(t *testing.T) {
	var h, half Hist
	half.RecordN(math.MaxInt64, 1<<63+1)
	b, err := half.AppendBinary(nil)
	require.NoError(t, err)
	_, err = half.Decode(b)
	require.NoError(t, err)
	h.Merge(&half)
	h.Merge(&half)
	require.EqualValues(t, 2, h.Count())
	h.carried.sum[1] = 2 // less than two values can add up to
	require.Equal(t, h.Sum()/2, h.Mean())
	require.NotPanics(t, func() {
		h.Mean()
		h.SD()
		h.Quantile(0.5)
	})
}
