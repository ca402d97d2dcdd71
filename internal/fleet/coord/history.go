package coord

import (
	"slices"

	"github.com/loadgen/loadgen/internal/count/measure"
)

// mostStretches bounds what a history keeps. At this number, neighbours are merged in pairs, and later stretches cover twice the time.
const mostStretches = 128

// history holds what a step counted, stretch by stretch, so that the beginning can be dropped once the end is known. It takes a few megabytes however
// long the step is: stretches are kept in binary form, and each covers more time as the step goes on.
type history struct {
	after     int64 // on the run clock; intervals that begin earlier are dropped
	stretches measure.Halved[stretch]
	last      measure.Totals // the stretch being filled
	decoded   measure.Totals // the stretch being read
	sum       measure.Totals // two stretches being merged
	lastFrom  int64
	buf       []byte // one stretch, while it is encoded or decoded
	free      *block // blocks of merged stretches
	err       error  // an encoding or decoding error, which is a bug
}

// stretch is a run of consecutive intervals.
type stretch struct {
	from   int64 // on the run clock
	size   int   // bytes in its binary form, held in the blocks
	counts *block
}

// block is a piece of a stretch. All blocks have the same size, so that the blocks of merged stretches serve later, longer ones. The garbage
// collector is off while a load is measured, so garbage would pile up.
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

// encode returns a stretch with what was counted from the given time on.
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

// block returns a free block with no next.
func (h *history) block() *block {
	b := h.free
	if b == nil {
		return new(block)
	}
	h.free, b.next = b.next, nil
	return b
}

// release frees the blocks of a stretch.
func (h *history) release(s *stretch) {
	for b := s.counts; b != nil; {
		next := b.next
		h.free, b.next = b, h.free
		b = next
	}
	*s = stretch{}
}

// halve merges neighbours in pairs.
func (h *history) halve() {
	h.stretches.Halve(func(into, from *stretch) {
		h.sum.Reset() // shared: separate histograms would take megabytes
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

// since returns what was counted from cut on, starting at the first stretch that begins no earlier, and that stretch's start; nil if there is none.
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
