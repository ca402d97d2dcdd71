// Package hist is a log-linear histogram of non-negative integers, made for latencies in nanoseconds.
//
// # Buckets
//
// Values below 256 have a bucket each. Above that, every power of two is divided into 128 buckets of equal width: bucket i ≥ 128 holds the values v
// with v>>e = s, where e = i/128 − 1 and s = 128 + i mod 128, and so runs from s·2^e to (s+1)·2^e − 1. The upper bound of a bucket exceeds the values
// in it by less than 1/128 = 0.78 %. All of int64 takes 7,296 buckets (57 KiB); a histogram holds those up to its largest value, rounded up to the
// next power of two.
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
// All numbers are unsigned varints (encoding/binary) in the fewest bytes, except the version byte:
//
//	+------------+-------+-----+-----------+------------+-----------------+-----------+
//	| version 1B | count | min | max − min | sum lo, hi | squares lo…, hi | buckets … |
//	+------------+-------+-----+-----------+------------+-----------------+-----------+
//
// If count is 0, the form ends there. Buckets are
//
//	+---------+-----------+----------------+------------------+----
//	| skipped | count − 1 | [skipped − 15] | [count − 1 − 15] | …
//	|  4 bits |    4 bits |         varint |           varint |
//	+---------+-----------+----------------+------------------+----
//
// The version is 2. Sum and squares are split into two and three 64-bit words, low word first. Only buckets with values are written, in ascending
// order. Each is the number of empty buckets skipped before it and its count less 1, in the high and the low half of a byte; for a number of 15 or
// more the half holds 15, and the excess over 15 follows. The first is the bucket of min and skips none, the last is the bucket of max. There is no
// end mark: the form ends where the counts add up to count. One second of a loaded worker's latencies, a thousand values in about a hundred buckets,
// takes one byte for most of them.
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

// Hist counts values. The zero value is empty and ready. One goroutine at a time may use it. A copy shares memory with its original: use only one of
// the two.
//
// It counts up to 2^64 − 1 values, one per nanosecond for 584 years. Beyond that counts wrap, and mean, deviation and quantiles are meaningless.
//
// Most values are neither a new minimum nor a new maximum and do not overflow the sums. They take a fast path, which adds to a bucket of inner and to
// two words, and checks nothing else.
type Hist struct {
	inner    []uint64 // the part of n for values on the fast path: they are below shortLimit and change neither min nor max
	first    uint     // bucket of inner[0]
	sum      uint64   // sum of the values below shortLimit since the last carry
	squares  uint64   // sum of their squares; below 2^63, and sum is no larger
	n        []uint64 // counts up to the bucket of max; zero between len and cap
	min, max uint64
	carried  moments // the sums of all other values
}

// Values below shortLimit, recorded at most shortTimes at once, add less than 2^62 to the sum of squares.
const (
	shortLimit = 1 << 28
	shortTimes = 64
)

// moments are a sum and a sum of squares, low word first.
type moments struct {
	sum     [2]uint64
	squares [3]uint64
}

func (m *moments) add(o *moments) {
	var c uint64
	m.sum[0], c = bits.Add64(m.sum[0], o.sum[0], 0)
	m.sum[1] += o.sum[1] + c
	m.squares[0], c = bits.Add64(m.squares[0], o.squares[0], 0)
	m.squares[1], c = bits.Add64(m.squares[1], o.squares[1], c)
	m.squares[2] += o.squares[2] + c
}

// index returns the bucket of v.
func index(v uint64) uint {
	e := uint(bits.Len64(v|subBuckets)) - subBits - 1
	return e<<subBits + uint(v>>(e&63))
}

// bounds returns the least and the largest value of a bucket.
func bounds(i int) (lower, upper uint64) {
	e := max(i>>subBits-1, 0)
	lower = uint64(i-e<<subBits) << e
	return lower, lower + 1<<e - 1
}

// Record counts v; a negative v counts as 0. It allocates only if v is in a higher power of two than any value since the Hist was made.
func (h *Hist) Record(v int64) { h.RecordN(v, 1) }

// RecordN counts v n ≥ 1 times, like n calls of Record.
func (h *Hist) RecordN(v int64, n uint64) {
	u, inner := uint64(v), h.inner
	i := index(u) - h.first
	if i >= uint(len(inner)) || n > shortTimes {
		h.record(uint64(max(v, 0)), n)
		return
	}
	inner[i] += n
	h.tally(u, n)
}

// tally adds a value below shortLimit, at most shortTimes times, to the sums.
func (h *Hist) tally(u, n uint64) {
	h.sum += u * n
	h.squares += u * u * n
	if int64(h.squares) < 0 {
		h.carry()
	}
}

// Record3 counts x in a, y in b and z in c, three different histograms. It is faster than three calls of Record: the processor looks up all three
// buckets in parallel.
func Record3(a, b, c *Hist, x, y, z int64) {
	u, v, w := uint64(x), uint64(y), uint64(z)
	as, bs, cs := a.inner, b.inner, c.inner
	i, j, k := index(u)-a.first, index(v)-b.first, index(w)-c.first
	if i >= uint(len(as)) || j >= uint(len(bs)) || k >= uint(len(cs)) {
		record3(a, b, c, x, y, z)
		return
	}
	as[i]++
	bs[j]++
	cs[k]++
	a.sum += u
	b.sum += v
	c.sum += w
	u = a.squares + u*u
	v = b.squares + v*v
	w = c.squares + w*w
	a.squares, b.squares, c.squares = u, v, w
	if int64(u|v|w) < 0 {
		carry3(a, b, c)
	}
}

//go:noinline
func record3(a, b, c *Hist, x, y, z int64) {
	a.Record(x)
	b.Record(y)
	c.Record(z)
}

//go:noinline
func carry3(a, b, c *Hist) {
	a.carry()
	b.carry()
	c.carry()
}

// record counts any value any number of times. It is kept out of the fast path, which is faster with nothing to keep across the call.
//
//go:noinline
func (h *Hist) record(u, n uint64) {
	h.extend(u, u)
	h.n[index(u)] += n
	if u < shortLimit && n <= shortTimes { // in the bucket of min or of max; so are all values if they are equal
		h.tally(u, n)
		return
	}
	m := moments{squares: squareTimes(u, n)}
	m.sum[1], m.sum[0] = bits.Mul64(u, n)
	h.carried.add(&m)
}

// carry moves the sums of the fast path into carried.
//
//go:noinline
func (h *Hist) carry() {
	h.carried = h.moments()
	h.sum, h.squares = 0, 0
}

// moments returns the sums of all values.
func (h *Hist) moments() moments {
	m := moments{sum: [2]uint64{h.sum}, squares: [3]uint64{h.squares}}
	m.add(&h.carried)
	return m
}

// extend makes room for values from lo to hi, updates min and max, and sets the bounds of the fast path accordingly.
func (h *Hist) extend(lo, hi uint64) {
	switch last := index(hi); {
	case len(h.n) == 0:
		h.grow(int(last))
		h.min, h.max = lo, hi
	case lo >= h.min && hi <= h.max:
		return
	default:
		if last >= uint(len(h.n)) {
			h.grow(int(last))
		}
		h.min, h.max = min(h.min, lo), max(h.max, hi)
	}
	// Another value in the bucket of min is below min, unless min is the bucket's lower bound; likewise above max.
	first, end := index(h.min), index(h.max)+1
	if lower, _ := bounds(int(first)); lower < h.min {
		first++
	}
	if _, upper := bounds(int(end - 1)); upper > h.max {
		end--
	}
	end = min(end, index(shortLimit))
	h.first, h.inner = first, h.n[first:max(first, end)]
}

// firstRoom is the least number of buckets first allocated: for values up to 2³⁰, such as nanoseconds of a second.
const firstRoom = (30-subBits+1)*subBuckets + 1

// grow extends the buckets to hold i. For the first allocation the kernel provides only the pages that are used. Later ones add at least a quarter,
// so that a maximum that rises again and again, as in a long run, leaves garbage of at most four times the memory held.
func (h *Hist) grow(i int) {
	if i >= cap(h.n) {
		most := min(max(i, cap(h.n)+cap(h.n)/4, firstRoom-1), int(index(math.MaxUint64)))
		n := make([]uint64, len(h.n), (most|(subBuckets-1))+1)
		copy(n, h.n)
		h.n = n
	}
	h.n = h.n[:i+1]
}

// Merge adds the values of o and leaves o alone.
func (h *Hist) Merge(o *Hist) {
	if len(o.n) == 0 {
		return
	}
	h.extend(o.min, o.max)
	first := index(o.min)
	to := h.n[first:len(o.n)]
	for i, c := range o.n[first:] {
		to[i] += c
	}
	m := o.moments()
	h.carried.add(&m)
}

// Reset empties the histogram and keeps its memory.
func (h *Hist) Reset() {
	clear(h.n)
	*h = Hist{n: h.n[:0]}
}

// Count returns the number of values.
func (h *Hist) Count() (count uint64) {
	for _, n := range h.used() {
		count += n
	}
	return count
}

// used returns the buckets from that of min to that of max.
func (h *Hist) used() []uint64 { return h.n[index(h.min):] }

// Bytes returns the memory of the buckets, used or not.
func (h *Hist) Bytes() int { return 8 * cap(h.n) }

// Min returns the least value, 0 if there is none.
func (h *Hist) Min() int64 { return int64(h.min) }

// Max returns the largest value, 0 if there is none.
func (h *Hist) Max() int64 { return int64(h.max) }

// Sum returns the exact sum of the recorded values, rounded to a float64. It never decreases with a Record or a Merge: rounding keeps the order.
func (h *Hist) Sum() float64 {
	m := h.moments()
	return float64(m.sum[1])*(1<<64) + float64(m.sum[0])
}

// Mean returns the arithmetic mean of the recorded values, not of their buckets; 0 if there is none.
func (h *Hist) Mean() float64 {
	count := h.Count()
	if count == 0 {
		return 0
	}
	m := h.moments()
	if m.sum[1] >= count { // the count has wrapped; otherwise the sum is at most count·max, and the quotient fits 64 bits
		return h.Sum() / float64(count)
	}
	q, r := bits.Div64(m.sum[1], m.sum[0], count)
	return float64(q) + float64(r)/float64(count)
}

// SD returns the sample standard deviation of the recorded values, not of their buckets; 0 for fewer than two:
//
//	sd² = (n·Σv² − (Σv)²) / (n·(n−1))
//
// Both differences are taken in integers, so nothing is lost to cancellation.
func (h *Hist) SD() float64 {
	count := h.Count()
	if count < 2 {
		return 0
	}
	m := h.moments()
	above, _ := m.spread(count)
	below := product([]uint64{count}, []uint64{count - 1})
	return math.Sqrt(above.float() / below.float())
}

// spread returns n·Σv² − (Σv)² of n values. No set of values makes it negative (Cauchy-Schwarz).
func (m *moments) spread(n uint64) (d wide, negative bool) {
	squares := product([]uint64{n}, m.squares[:])
	sum := product(m.sum[:], m.sum[:])
	return squares.minus(&sum)
}

// Quantile returns the value of nearest rank: the least recorded value v with at least the share q of all values ≤ v. It returns the upper bound of
// that value's bucket, but never more than Max, so the result is at most 0.78 % too large and never too small. q is clamped to the first and the last
// rank: q ≤ 0 means the smallest value, q ≥ 1 the largest. An empty Hist returns 0.
func (h *Hist) Quantile(q float64) int64 {
	if count := h.Count(); count > 0 {
		return h.At(Rank(q, count))
	}
	return 0
}

// At returns the value of a rank, from 1 to Count, with the precision of Quantile.
func (h *Hist) At(rank uint64) int64 {
	var below uint64
	for i := int(index(h.min)); i < len(h.n); i++ {
		if below += h.n[i]; below >= rank {
			_, upper := bounds(i)
			return int64(min(upper, h.max))
		}
	}
	return int64(h.max)
}

// Rank returns the nearest rank of q among n values: the least r in 1…n with r/n ≥ q; 0 if n is 0. The product q·n may be rounded across an integer
// (0.07·100 is above 7). The quotient r/n is rounded as q itself was, so it decides.
func Rank(q float64, n uint64) uint64 {
	if n == 0 {
		return 0
	}
	if !(q > 0) {
		return 1
	}
	if q >= 1 {
		return n
	}
	r := min(max(uint64(math.Ceil(q*float64(n))), 1), n)
	if float64(r-1)/float64(n) >= q {
		return r - 1
	}
	if float64(r)/float64(n) < q {
		return r + 1
	}
	return r
}

// Above returns how many values are above v, with the precision of Quantile: it takes a value for the upper bound of its bucket.
func (h *Hist) Above(v int64) (n uint64) {
	for upper, in := range h.Buckets() {
		if min(upper, h.Max()) > v {
			n += in
		}
	}
	return n
}

// Buckets returns the buckets that hold values, in ascending order: each bucket's upper bound and its count.
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
