package prom

import (
	"math"
	"math/big"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/hist"
)

// native returns the counts of native buckets by index, as a reader of the format gets them.
func native(t require.TestingT, h *dto.Histogram) map[int32]uint64 {
	counts := map[int32]uint64{}
	index, deltas, count := int32(0), h.GetPositiveDelta(), int64(0)
	for i, span := range h.GetPositiveSpan() {
		if i > 0 {
			require.GreaterOrEqual(t, span.GetOffset(), int32(0))
		}
		index += span.GetOffset()
		for range span.GetLength() {
			count += deltas[0]
			deltas = deltas[1:]
			require.Positive(t, count)
			counts[index] = uint64(count)
			index++
		}
	}
	require.Empty(t, deltas)
	return counts
}

// anyHist has values of all scales, among them 0 and the bounds of classic buckets.
func anyHist(t *rapid.T, name string) *hist.Hist {
	ns := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) int64 {
			bits := rapid.IntRange(0, 62).Draw(t, "bits")
			return rapid.Int64Range(0, 1<<bits).Draw(t, "ns")
		}),
		rapid.SampledFrom(classicBounds[:]),
	)
	h := new(hist.Hist)
	for _, v := range rapid.SliceOf(ns).Draw(t, name) {
		h.Record(v)
	}
	return h
}

// TestConversionIsAdditive is the basis of "sums over workers equal the coordinator bucket by bucket".
func TestConversionIsAdditive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyHist(t, "a"), anyHist(t, "b")
		ca, cb := convert(a, classicBounds[:]), convert(b, classicBounds[:])
		a.Merge(b)
		both := convert(a, classicBounds[:])

		sum := native(t, ca)
		for i, n := range native(t, cb) {
			sum[i] += n
		}
		require.Equal(t, native(t, both), sum)
		require.Equal(t, both.GetZeroCount(), ca.GetZeroCount()+cb.GetZeroCount())
		require.Equal(t, both.GetSampleCount(), ca.GetSampleCount()+cb.GetSampleCount())
		require.InEpsilon(t, 1+both.GetSampleSum(), 1+ca.GetSampleSum()+cb.GetSampleSum(), 1e-12)
		for i, bucket := range both.GetBucket() {
			require.Equal(t, bucket.GetCumulativeCount(), ca.GetBucket()[i].GetCumulativeCount()+cb.GetBucket()[i].GetCumulativeCount())
		}
	})
}

func TestEveryValueIsInOneBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := anyHist(t, "h")
		c := convert(h, classicBounds[:])
		n := c.GetZeroCount()
		for _, count := range native(t, c) {
			n += count
		}
		require.Equal(t, h.Count(), n)
		require.Equal(t, h.Count(), c.GetSampleCount())
		last := uint64(0)
		for i, b := range c.GetBucket() {
			require.Equal(t, float64(classicBounds[i])/1e9, b.GetUpperBound())
			require.GreaterOrEqual(t, b.GetCumulativeCount(), last)
			last = b.GetCumulativeCount()
		}
		require.LessOrEqual(t, last, h.Count())
	})
}

// TestAgainstClientGolang observes the upper bounds of pkg/hist's buckets in client_golang's own histogram of either kind.
func TestAgainstClientGolang(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := anyHist(t, "h")
		bounds := make([]float64, len(classicBounds))
		for i, b := range classicBounds {
			bounds[i] = float64(b) / 1e9
		}
		own := prometheus.NewHistogram(prometheus.HistogramOpts{
			Buckets: bounds, NativeHistogramBucketFactor: math.Exp2(1.0 / nativePerDoubled), NativeHistogramZeroThreshold: nativeZero,
		})
		for upper, n := range h.Buckets() {
			for range n {
				own.Observe(float64(upper) / 1e9)
			}
		}
		var want dto.Metric
		require.NoError(t, own.Write(&want))
		got := convert(h, classicBounds[:])
		require.Equal(t, want.Histogram.GetSchema(), got.GetSchema())
		require.Equal(t, want.Histogram.GetZeroThreshold(), got.GetZeroThreshold())
		require.Equal(t, want.Histogram.GetZeroCount(), got.GetZeroCount())
		wanted := native(t, filled(want.Histogram))
		require.Equal(t, wanted, native(t, got))
		for i, b := range want.Histogram.GetBucket() {
			require.Equal(t, b.GetCumulativeCount(), got.GetBucket()[i].GetCumulativeCount())
		}
	})
}

// filled removes the empty buckets with which client_golang bridges small gaps.
func filled(h *dto.Histogram) *dto.Histogram {
	out := &dto.Histogram{}
	s := spans{out: out}
	index, at, count := int32(0), 0, int64(0)
	for _, span := range h.GetPositiveSpan() {
		index += span.GetOffset()
		for range span.GetLength() {
			count += h.GetPositiveDelta()[at]
			at++
			if count > 0 {
				s.add(index, uint64(count))
			}
			index++
		}
	}
	s.flush()
	return out
}

// TestNoBoundIsNearEnoughForRoundingToDecide compares all 7,296 upper bounds of pkg/hist with native bounds computed to 200 bits: the choice of a
// bucket is exact, whatever a machine's Exp2 does to the last bit.
func TestNoBoundIsNearEnoughForRoundingToDecide(t *testing.T) {
	const precision = 200
	roots := make([]*big.Float, nativePerDoubled+1) // 2^(i/32), from 2^(1/32) by five square roots
	root := big.NewFloat(2).SetPrec(precision)
	for range nativeSchema {
		root = new(big.Float).SetPrec(precision).Sqrt(root)
	}
	roots[0] = big.NewFloat(1).SetPrec(precision)
	for i := range nativePerDoubled {
		roots[i+1] = new(big.Float).SetPrec(precision).Mul(roots[i], root)
	}
	bound := func(i int32) *big.Float { // of native bucket i, in nanoseconds
		exponent := int(math.Floor(float64(i) / nativePerDoubled))
		b := new(big.Float).SetPrec(precision).Mul(roots[int(i)-exponent*nativePerDoubled], big.NewFloat(1e9))
		return b.SetMantExp(b, exponent)
	}
	checked := 0
	for _, upper := range uppers() {
		if upper == 0 {
			continue
		}
		i := nativeIndex(seconds(float64(upper)))
		u := new(big.Float).SetPrec(precision).SetInt64(upper)
		require.LessOrEqual(t, u.Cmp(bound(i)), 0, "%d ns is above the bound of bucket %d", upper, i)
		require.Positive(t, u.Cmp(bound(i-1)), "%d ns is in a bucket before %d", upper, i)
		for _, b := range []*big.Float{bound(i - 1), bound(i)} {
			distance := new(big.Float).SetPrec(precision).Sub(u, b)
			relative, _ := distance.Quo(distance, b).Float64()
			require.Greater(t, math.Abs(relative), 1e-12, "%d ns is all but the bound of bucket %d", upper, i)
		}
		checked++
	}
	require.Equal(t, 7295, checked)
}

// uppers returns the upper bounds of all buckets of pkg/hist.
func uppers() []int64 {
	var h hist.Hist
	var list []int64
	for next := int64(0); next >= 0; {
		h.Reset()
		h.Record(next)
		for upper := range h.Buckets() {
			list = append(list, upper)
			next = upper + 1 // wraps after the last
		}
	}
	return list
}

func TestClassicBoundsAreInclusive(t *testing.T) {
	h := new(hist.Hist)
	h.Record(0)
	h.Record(100_000) // its bucket ends above 100 µs, so it counts in the next: never too small
	h.Record(99_000)
	h.Record(5_000_000_000)
	c := convert(h, classicBounds[:])
	require.EqualValues(t, 2, c.GetBucket()[0].GetCumulativeCount())
	require.EqualValues(t, 3, c.GetBucket()[1].GetCumulativeCount())
	require.EqualValues(t, 3, c.GetBucket()[len(classicBounds)-1].GetCumulativeCount())
	require.EqualValues(t, 4, c.GetSampleCount())
	require.EqualValues(t, 1, c.GetZeroCount())
	require.Equal(t, 5.000199, c.GetSampleSum())

	exact := new(hist.Hist) // below 256 ns a bucket holds one value
	exact.Record(5)
	exact.Record(6)
	require.EqualValues(t, 1, convert(exact, []int64{5}).GetBucket()[0].GetCumulativeCount())
}

// TestEmptyIsNative: without a span, Prometheus would take the histogram for a classic one, and later for another kind.
func TestEmptyIsNative(t *testing.T) {
	c := convert(new(hist.Hist), nil)
	require.Len(t, c.GetPositiveSpan(), 1)
	require.Zero(t, c.GetPositiveSpan()[0].GetLength())
	require.Empty(t, c.GetBucket())
	require.Zero(t, c.GetSampleCount())
}
