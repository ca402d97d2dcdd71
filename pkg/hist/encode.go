package hist

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/loadgen/loadgen/internal/base/varint"
)

const version = 2

// long in one half of a bucket's first byte means that the number is 15 or more: the excess follows as a varint.
const long = 15

// AppendBinary appends the binary form. The error is always nil; encoding.BinaryAppender requires it.
func (h *Hist) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, version)
	count := h.Count()
	b = binary.AppendUvarint(b, count)
	if count == 0 {
		return b, nil
	}
	m := h.moments()
	b = binary.AppendUvarint(b, h.min)
	b = binary.AppendUvarint(b, h.max-h.min)
	for _, w := range m.sum {
		b = binary.AppendUvarint(b, w)
	}
	for _, w := range m.squares {
		b = binary.AppendUvarint(b, w)
	}
	skipped := uint64(0)
	for _, n := range h.used() {
		if n == 0 {
			skipped++
			continue
		}
		b = appendBucket(b, skipped, n-1)
		skipped = 0
	}
	return b, nil
}

func appendBucket(b []byte, skipped, more uint64) []byte {
	b = append(b, byte(min(skipped, long)<<4|min(more, long)))
	if skipped >= long {
		b = binary.AppendUvarint(b, skipped-long)
	}
	if more >= long {
		b = binary.AppendUvarint(b, more-long)
	}
	return b
}

// Decode replaces the histogram by the one at the front of b and returns what follows it. It accepts exactly what AppendBinary writes for some set of
// values, as far as the form can tell: the buckets match count, minimum and maximum, and sum and sum of squares are within what the buckets allow. It
// allocates at most 57 KiB, whatever b says. After an error the histogram is empty.
func (h *Hist) Decode(b []byte) (rest []byte, err error) {
	h.Reset()
	r := reader{varint.Reader{Rest: b}}
	h.decode(&r)
	if r.Err != nil {
		h.Reset()
		return nil, fmt.Errorf("decode histogram: %w", r.Err)
	}
	return r.Rest, nil
}

func (h *Hist) decode(r *reader) {
	if v := r.Byte(); v != version {
		r.Fail("version %d, want %d", v, version)
		return
	}
	count := r.Uvarint()
	if count == 0 {
		return
	}
	lo, width := r.Uvarint(), r.Uvarint()
	if lo > math.MaxInt64 || width > math.MaxInt64-lo {
		r.Fail("values from %d and %d up, above 2^63 − 1", lo, width)
	}
	m := &h.carried
	for i := range m.sum {
		m.sum[i] = r.Uvarint()
	}
	for i := range m.squares {
		m.squares[i] = r.Uvarint()
	}
	if r.Err != nil {
		return
	}
	h.extend(lo, lo+width)
	h.decodeBuckets(r, count)
}

// decodeBuckets reads buckets until they hold count values, and checks that the sums are possible for them.
func (h *Hist) decodeBuckets(r *reader, count uint64) {
	allowed := limits{narrow: 2*bits.Len64(h.max)+bits.Len64(count) <= 64}
	last := len(h.n) - 1
	next := int(index(h.min))
	for left := count; left > 0; {
		skipped, more := r.bucket()
		n := more + 1
		switch {
		case skipped > 0 && left == count:
			r.Fail("the bucket of the minimum %d is empty", h.min)
		case next > last || skipped > uint64(last-next):
			r.Fail("a bucket above that of the maximum %d", h.max)
		case n == 0 || n > left:
			r.Fail("a bucket of %d values, want 1 to %d", n, left)
		}
		if r.Err != nil {
			return
		}
		i := next + int(skipped)
		h.n[i] = n
		left -= n
		next = i + 1
		lower, upper := bounds(i)
		allowed.add(n, max(lower, h.min), min(upper, h.max))
	}
	if next != last+1 {
		r.Fail("the bucket of the maximum %d is empty", h.max)
	}
	m := &h.carried
	if sum := (wide{m.sum[0], m.sum[1]}); sum.less(&allowed.least) || allowed.most.less(&sum) {
		r.Fail("a sum that its buckets do not allow")
	}
	if squares := (wide{m.squares[0], m.squares[1], m.squares[2]}); squares.less(&allowed.leastSquares) || allowed.mostSquares.less(&squares) {
		r.Fail("a sum of squares that its buckets do not allow")
	}
	if _, negative := m.spread(count); negative {
		r.Fail("a sum of squares that its sum does not allow")
	}
}

// limits bound the sum of values, and of their squares, when only their buckets are known.
type limits struct {
	narrow                                 bool // no sum of squares exceeds 64 bits, so no other sum does
	least, most, leastSquares, mostSquares wide
}

// add adds n values from lower to upper.
func (l *limits) add(n, lower, upper uint64) {
	if l.narrow {
		l.least[0] += n * lower
		l.most[0] += n * upper
		l.leastSquares[0] += n * lower * lower
		l.mostSquares[0] += n * upper * upper
		return
	}
	l.least.addProduct(n, 0, lower)
	l.most.addProduct(n, 0, upper)
	hi, lo := bits.Mul64(lower, lower)
	l.leastSquares.addProduct(n, hi, lo)
	hi, lo = bits.Mul64(upper, upper)
	l.mostSquares.addProduct(n, hi, lo)
}

// reader decodes the binary form.
type reader struct{ varint.Reader }

// bucket reads what appendBucket writes.
func (r *reader) bucket() (skipped, more uint64) {
	c := uint64(r.Byte())
	if skipped, more = c>>4, c&long; skipped != long && more != long {
		return skipped, more
	}
	for _, half := range [...]*uint64{&skipped, &more} {
		if *half != long {
			continue
		}
		rest := r.Uvarint()
		if rest > math.MaxUint64-long {
			r.Fail("a number above 2^64 − 1")
		}
		*half += rest
	}
	return skipped, more
}
