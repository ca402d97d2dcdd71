package coord

import (
	"bytes"

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
	buf       []byte // that a stretch is encoded in, to be kept in no more room than it takes
	err       error  // what could not be encoded or decoded, which is a defect
}

// stretch is a number of intervals that follow each other.
type stretch struct {
	from   int64 // run clock
	counts []byte
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
	h.stretches.Cells = append(h.stretches.Cells, stretch{h.lastFrom, h.encode(&h.last)})
	if len(h.stretches.Cells) >= mostStretches {
		h.halve()
	}
}

// encode returns the binary form of what was counted.
func (h *history) encode(t *measure.Totals) []byte {
	counts, err := t.AppendBinary(h.buf[:0])
	if err != nil {
		h.err = err
		return nil
	}
	h.buf = counts
	return bytes.Clone(counts)
}

// halve joins every two neighbours.
func (h *history) halve() {
	h.stretches.Halve(func(into, from *stretch) {
		h.sum.Reset() // one for all: histograms of their own would be megabytes
		h.addTo(&h.sum, into)
		h.addTo(&h.sum, from)
		into.counts, *from = h.encode(&h.sum), stretch{}
	})
}

// addTo adds a stretch to a sum.
func (h *history) addTo(sum *measure.Totals, s *stretch) {
	if h.err != nil {
		return
	}
	if _, err := h.decoded.Decode(s.counts); err != nil {
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
