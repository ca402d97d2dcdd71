package prom

import (
	"math"
	"sort"
	"sync"

	dto "github.com/prometheus/client_model/go"

	"github.com/loadgen/loadgen/pkg/hist"
)

const (
	// nativeSchema says how finely native buckets divide a power of two: into 2^nativeSchema.
	nativeSchema     = 5
	nativePerDoubled = 1 << nativeSchema

	// nativeZero is the bound of the zero bucket. It equals client_golang's, so that histograms of both can be added without widening it. It is far
	// below a nanosecond: only 0 falls into the bucket.
	nativeZero = 0x1p-128
)

// classicBounds are in nanoseconds: from a fast cache on the same network to one in trouble.
var classicBounds = [...]int64{100e3, 500e3, 2e6, 10e6, 100e6, 1e9}

// fractions returns the bounds of native buckets within [0.5, 1).
var fractions = sync.OnceValue(func() (f [nativePerDoubled]float64) {
	for i := range f {
		f[i] = math.Exp2(float64(i)/nativePerDoubled - 1)
	}
	return f
})

// seconds converts nanoseconds. Dividing keeps powers of two exact if they are whole nanoseconds; multiplying by 1e-9 would not.
func seconds(ns float64) float64 { return ns / 1e9 }

// nativeIndex returns the index i of the native bucket (2^((i−1)/32), 2^(i/32)] that holds s > 0 seconds.
func nativeIndex(s float64) int32 {
	fraction, exponent := math.Frexp(s)
	f := fractions()
	return int32(sort.SearchFloat64s(f[:], fraction) + (exponent-1)*nativePerDoubled)
}

// convert returns h as a native histogram in seconds and, if there are bounds, also as a classic one. Bounds are nanoseconds and ascend.
func convert(h *hist.Hist, bounds []int64) *dto.Histogram {
	count, sum := h.Count(), seconds(h.Sum())
	schema, threshold, zeros := int32(nativeSchema), nativeZero, uint64(0)
	out := &dto.Histogram{
		SampleCount: &count, SampleSum: &sum,
		Schema: &schema, ZeroThreshold: &threshold, ZeroCount: &zeros,
	}
	native := spans{out: out}
	within := make([]uint64, len(bounds)+1)
	first := 0 // bound that the bucket does not exceed; buckets ascend
	for upper, n := range h.Buckets() {
		for first < len(bounds) && bounds[first] < upper {
			first++
		}
		within[first] += n
		if upper == 0 {
			zeros = n
			continue
		}
		native.add(nativeIndex(seconds(float64(upper))), n)
	}
	native.flush()
	out.Bucket = cumulative(bounds, within)
	return out
}

// cumulative returns classic buckets; the encoder adds +Inf.
func cumulative(bounds []int64, within []uint64) []*dto.Bucket {
	buckets := make([]*dto.Bucket, len(bounds))
	total := uint64(0)
	for i, b := range bounds {
		total += within[i]
		upTo, bound := total, seconds(float64(b))
		buckets[i] = &dto.Bucket{CumulativeCount: &upTo, UpperBound: &bound}
	}
	return buckets
}

// spans writes native buckets, in ascending order, into a histogram: runs of neighbours, each bucket as the difference from the one before.
type spans struct {
	out   *dto.Histogram
	next  int32  // index after the last bucket written
	index int32  // of the pending bucket
	n     uint64 // its count; 0 if none is pending
	last  int64  // count of the last bucket written
}

// add counts n values in bucket i.
func (s *spans) add(i int32, n uint64) {
	if s.n > 0 && i != s.index {
		s.flush()
	}
	s.index = i
	s.n += n
}

// flush writes the pending bucket. If there is none, it writes an empty span, which marks the histogram as native.
func (s *spans) flush() {
	if s.n == 0 {
		s.open(0, 0)
		return
	}
	if gap := s.index - s.next; gap != 0 || len(s.out.PositiveSpan) == 0 {
		s.open(gap, 0)
	}
	*s.out.PositiveSpan[len(s.out.PositiveSpan)-1].Length++
	s.out.PositiveDelta = append(s.out.PositiveDelta, int64(s.n)-s.last)
	s.last, s.next, s.n = int64(s.n), s.index+1, 0
}

func (s *spans) open(offset int32, length uint32) {
	s.out.PositiveSpan = append(s.out.PositiveSpan, &dto.BucketSpan{Offset: &offset, Length: &length})
}
