// Package hist is a log-linear histogram of non-negative integers, made for latencies in nanoseconds.
//
// # Buckets
//
// Values below 256 have a bucket each. From there on every power of two is cut into 128 buckets of equal width: bucket i ≥ 128 holds
// the values v with v>>e = s, where e = i/128 − 1 and s = 128 + i mod 128, and so runs from s·2^e to (s+1)·2^e − 1. The upper bound
// of a bucket exceeds the values in it by less than 1/128 = 0.78 %. All of int64 takes 7,296 buckets (57 KiB); a histogram holds
// those up to its largest value, rounded up to the next power of two.
//
// # Exactness
//
// The state is integers only: bucket counts, minimum, maximum, the sum in 128 bits and the sum of squares in 192 bits. With fewer
// than 2^64 values below 2^63, the sum stays below 2^127 and the sum of squares below 2^190, so neither can overflow. Every part
// merges by sum, minimum or maximum: any partition of the same values, merged in any order, encodes to the same bytes and gives
// the same mean, deviation and quantiles.
//
// # Binary form
//
// All numbers are unsigned varints (encoding/binary) of the fewest bytes, but for the version byte:
//
//	+------------+-------+-----+-----------+------------+-----------------+-----------+
//	| version 1B | count | min | max − min | sum lo, hi | squares lo…, hi | buckets … |
//	+------------+-------+-----+-----------+------------+-----------------+-----------+
//
// where a count of 0 ends the form, and buckets are
//
//	+---------+-----------+----------------+------------------+----
//	| skipped | count − 1 | [skipped − 15] | [count − 1 − 15] | …
//	|  4 bits |    4 bits |         varint |           varint |
//	+---------+-----------+----------------+------------------+----
//
// The version is 2. Sum and squares are cut into two and three words of 64 bits, low word first. Only buckets with values are written, in
// ascending order, each as the number of empty buckets skipped before it and its count less 1, in the high and the low half of a
// byte; of a number of 15 or more the half holds 15, and what exceeds 15 follows. The first is the bucket of min and skips
// none, the last is the bucket of max. There is no end mark: the form ends where the counts add up to count. A second of a loaded worker's
// latencies, a thousand values in some hundred buckets, takes a byte for most of them.
package hist

import (
	"iter"
	"math"
	"math/bits"
)

const (
	subBits    = 7 // 128 buckets to a power of two
	subBuckets = 1 << subBits
)

// Hist counts values. The zero value is empty and ready. It is used by one goroutine at a time. A copy shares memory with its
// original: use one of the two only.
//
// It counts up to 2^64 − 1 values, one a nanosecond for 584 years; beyond, counts wrap.
type Hist struct {
	n        []uint64 // counts up to the bucket of max; zero between len and cap
	count    uint64
	min, max uint64
	sum      [2]uint64 // low word first
	squares  [3]uint64
}

// index returns the bucket of v.
func index(v uint64) uint {
	e := uint(bits.Len64(v|subBuckets)-subBits-1) & 63
	return e<<subBits + uint(v>>e)
}

// bounds returns the least and the largest value of a bucket.
func bounds(i int) (lower, upper uint64) {
	e := max(i>>subBits-1, 0)
	lower = uint64(i-e<<subBits) << e
	return lower, lower + 1<<e - 1
}

// Record counts v; a negative v counts as 0. It allocates only when v is in a higher power of two than any value since the Hist
// was made.
func (h *Hist) Record(v int64) {
	u := uint64(max(v, 0))
	i := index(u)
	if i >= uint(len(h.n)) || u > math.MaxUint32 {
		h.record(u, 1)
		return
	}
	h.n[i]++
	h.count++
	if u < h.min {
		h.min = u
	}
	if u > h.max {
		h.max = u
	}
	// Carries are rare, so they are branches: most values write one word of each sum.
	if h.sum[0] += u; h.sum[0] < u {
		h.sum[1]++
	}
	square := u * u
	if h.squares[0] += square; h.squares[0] < square {
		h.carrySquares()
	}
}

// RecordN counts v n ≥ 1 times, as n calls of Record do.
func (h *Hist) RecordN(v int64, n uint64) {
	if n == 1 {
		h.Record(v)
		return
	}
	h.record(uint64(max(v, 0)), n)
}

// record counts any value any number of times. It stays out of Record, which is the faster for having nothing to keep across the call.
//
//go:noinline
func (h *Hist) record(u, n uint64) {
	i := index(u)
	if i >= uint(len(h.n)) {
		h.grow(int(i))
	}
	h.n[i] += n
	h.count += n
	h.min = min(h.min, u)
	h.max = max(h.max, u)
	hi, lo := bits.Mul64(u, n)
	squares := squareTimes(u, n)
	h.add(&[2]uint64{lo, hi}, &squares)
}

// add adds to the sum and to the sum of squares.
func (h *Hist) add(sum *[2]uint64, squares *[3]uint64) {
	var c uint64
	h.sum[0], c = bits.Add64(h.sum[0], sum[0], 0)
	h.sum[1] += sum[1] + c
	h.squares[0], c = bits.Add64(h.squares[0], squares[0], 0)
	h.squares[1], c = bits.Add64(h.squares[1], squares[1], c)
	h.squares[2] += squares[2] + c
}

//go:noinline
func (h *Hist) carrySquares() {
	if h.squares[1]++; h.squares[1] == 0 {
		h.squares[2]++
	}
}

// grow extends the buckets to hold i. An empty histogram has no buckets, so its first value comes by here and finds min ready
// to be lowered.
func (h *Hist) grow(i int) {
	if len(h.n) == 0 {
		h.min = math.MaxUint64
	}
	if i >= cap(h.n) {
		n := make([]uint64, len(h.n), (i|(subBuckets-1))+1)
		copy(n, h.n)
		h.n = n
	}
	h.n = h.n[:i+1]
}

// Merge adds the values of o, which it leaves alone.
func (h *Hist) Merge(o *Hist) {
	if o.count == 0 {
		return
	}
	if len(o.n) > len(h.n) {
		h.grow(len(o.n) - 1)
	}
	first := index(o.min)
	to := h.n[first:len(o.n)]
	for i, c := range o.n[first:] {
		to[i] += c
	}
	h.count += o.count
	h.min = min(h.min, o.min)
	h.max = max(h.max, o.max)
	h.add(&o.sum, &o.squares)
}

// Reset empties the histogram and keeps its memory.
func (h *Hist) Reset() {
	clear(h.n)
	*h = Hist{n: h.n[:0]}
}

// Count returns the number of values.
func (h *Hist) Count() uint64 { return h.count }

// Min returns the least value, 0 of none.
func (h *Hist) Min() int64 { return int64(h.min) }

// Max returns the largest value, 0 of none.
func (h *Hist) Max() int64 { return int64(h.max) }

// Sum returns the sum of the values as they were recorded, rounded to a float64. It is never smaller than before a Record or a
// Merge: rounding keeps the order.
func (h *Hist) Sum() float64 { return float64(h.sum[1])*(1<<64) + float64(h.sum[0]) }

// Mean returns the arithmetic mean of the values as they were recorded, not as bucketed; 0 of none.
func (h *Hist) Mean() float64 {
	if h.count == 0 {
		return 0
	}
	// The sum is at most count·max, so the quotient fits 64 bits.
	q, r := bits.Div64(h.sum[1], h.sum[0], h.count)
	return float64(q) + float64(r)/float64(h.count)
}

// SD returns the sample standard deviation of the values as they were recorded, 0 of fewer than two:
//
//	sd² = (n·Σv² − (Σv)²) / (n·(n−1))
//
// Both differences are taken in integers, so nothing is lost to cancellation.
func (h *Hist) SD() float64 {
	if h.count < 2 {
		return 0
	}
	above, _ := h.spread()
	below := product([]uint64{h.count}, []uint64{h.count - 1})
	return math.Sqrt(above.float() / below.float())
}

// spread returns n·Σv² − (Σv)², which is negative for no set of values (Cauchy-Schwarz).
func (h *Hist) spread() (d wide, negative bool) {
	squares := product([]uint64{h.count}, h.squares[:])
	sum := product(h.sum[:], h.sum[:])
	return squares.minus(&sum)
}

// Quantile returns the value of nearest rank: the least recorded value that at least the share q of all values does not exceed.
// What is returned is the upper bound of its bucket, but never above Max, so it is at most 0.78 % too large and never too small.
// q is clamped to the first and the last rank, so q ≤ 0 stands for the smallest value and q ≥ 1 for the largest. A Hist of none
// returns 0.
func (h *Hist) Quantile(q float64) int64 {
	if h.count == 0 {
		return 0
	}
	rank := rank(q, h.count)
	var below uint64
	for i := int(index(h.min)); i < len(h.n); i++ {
		if below += h.n[i]; below >= rank {
			_, upper := bounds(i)
			return int64(min(upper, h.max))
		}
	}
	return int64(h.max)
}

// rank returns the least r in 1…n with r/n ≥ q. The product q·n may be rounded across an integer (0.07·100 is above 7); the
// quotient of two integers is rounded as q itself was, so it decides.
func rank(q float64, n uint64) uint64 {
	if !(q > 0) {
		return 1
	}
	if q >= 1 {
		return n
	}
	r := min(max(uint64(math.Ceil(q*float64(n))), 1), n)
	if r > 1 && float64(r-1)/float64(n) >= q {
		return r - 1
	}
	if r < n && float64(r)/float64(n) < q {
		return r + 1
	}
	return r
}

// Buckets returns the buckets that hold values in ascending order: the largest value the bucket can hold, and how many it does.
func (h *Hist) Buckets() iter.Seq2[int64, uint64] {
	return func(yield func(upper int64, count uint64) bool) {
		for i, n := range h.n {
			if n == 0 {
				continue
			}
			if _, upper := bounds(i); !yield(int64(upper), n) {
				return
			}
		}
	}
}
