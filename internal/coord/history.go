package coord

import (
	"slices"

	"github.com/loadgen/loadgen/internal/measure"
)

// mostStretches bounds what a history keeps. When there are more, every two neighbours are joined, and later ones are twice as long.
const mostStretches = 128

// history is what a step counted, stretch by stretch, so that its beginning can be left out once the end is known. However long the step, it
// takes a few megabytes: stretches are kept in their binary form, and grow with the step.
type history struct {
	after     int64 // what began before is not kept, run clock
	stretches measure.Halved[stretch]
	last      measure.Totals // of the stretch that is being filled
	decoded   measure.Totals // of the stretch that is being looked into
	sum       measure.Totals // of two stretches that become one
	lastFrom  int64
	buf       []byte // of one stretch, while it is encoded or decoded
	free      *block // of stretches that were joined
	err       error  // what could not be encoded or decoded, which is a defect
}

// stretch is a number of intervals that follow each other.
type stretch struct {
	from   int64 // run clock
	size   int   // bytes in its binary form, of which these are the pieces
	counts *block
}

// block is a piece of a stretch. All are of one size, so that those of stretches which were joined serve the longer ones that come later: the collector
// rests while a load is measured, and what is left behind stays.
type block struct {
	piece [1016]byte // a block is 1 KiB
	next  *block
}

// add takes in an interval that follows the last one.
func (h *history) add(joint *measure.Interval) {
	if joint.From < h.after || h.err != nil {
		return
	}
	if h.stretches.Opens() {
		h.last.Reset()
		h.last.Origin, h.last.Requests, h.lastFrom = 0, h.last.Requests[:0], joint.From
	}
	h.last.Merge(joint.Delta)
	h.stretches.Count()
	if !h.stretches.Opens() {
		return
	}
	h.stretches.Cells = append(h.stretches.Cells, h.encode(h.lastFrom, &h.last))
	if len(h.stretches.Cells) >= mostStretches {
		h.halve()
	}
}

// encode returns a stretch of what was counted from a time on.
func (h *history) encode(from int64, t *measure.Totals) stretch {
	counts, err := t.AppendBinary(h.buf[:0])
	if err != nil {
		h.err = err
		return stretch{from: from}
	}
	h.buf = counts
	s := stretch{from: from, size: len(counts)}
	last := &s.counts
	for piece := range slices.Chunk(counts, len(block{}.piece)) {
		b := h.block()
		copy(b.piece[:], piece)
		*last, last = b, &b.next
	}
	return s
}

// block returns one that is free, without a next.
func (h *history) block() *block {
	b := h.free
	if b == nil {
		return new(block)
	}
	h.free, b.next = b.next, nil
	return b
}

// release makes the blocks of a stretch free.
func (h *history) release(s *stretch) {
	for b := s.counts; b != nil; {
		next := b.next
		h.free, b.next = b, h.free
		b = next
	}
	*s = stretch{}
}

// halve joins every two neighbours.
func (h *history) halve() {
	h.stretches.Halve(func(into, from *stretch) {
		h.sum.Reset() // one for all: histograms of their own would be megabytes
		h.addTo(&h.sum, into)
		h.addTo(&h.sum, from)
		begin := into.from
		h.release(into)
		h.release(from)
		*into = h.encode(begin, &h.sum)
	})
}

// addTo adds a stretch to a sum.
func (h *history) addTo(sum *measure.Totals, s *stretch) {
	if h.err != nil {
		return
	}
	h.buf = h.buf[:0]
	for b := s.counts; b != nil; b = b.next {
		h.buf = append(h.buf, b.piece[:]...)
	}
	if _, err := h.decoded.Decode(h.buf[:s.size]); err != nil {
		h.err = err
		return
	}
	sum.Merge(&h.decoded)
}

// since returns what was counted from a time on, or from the next later one at which a stretch begins, and that time; nil when there is none.
func (h *history) since(cut int64) (*measure.Totals, int64, error) {
	var sum *measure.Totals
	var first int64
	begin := func(from int64) {
		if sum == nil {
			sum, first = &measure.Totals{}, from
		}
	}
	for i := range h.stretches.Cells {
		if s := &h.stretches.Cells[i]; s.from >= cut {
			begin(s.from)
			h.addTo(sum, s)
		}
	}
	if !h.stretches.Opens() && h.lastFrom >= cut {
		begin(h.lastFrom)
		sum.Merge(&h.last)
	}
	return sum, first, h.err
}
