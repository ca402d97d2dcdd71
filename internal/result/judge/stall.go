package judge

import (
	"github.com/loadgen/loadgen/internal/count/measure"
)

// While a target stands still, a closed load waits: it offers no ops, and records only one slow op per slot.
const (
	suspectSilence = 0.1  // share of the plateau in which nothing ended
	usualGaps      = 10   // that time is at least so many times the usual time between ends
	usualTurns     = 2    // and so many times longer than nine in ten turns, since sessions that begin together also end together
	usualSlow      = 3    // with more ops a slot that took about as long, it was no stall: quantiles and the rate show them all
	suspectHung    = 0.01 // share of the rate by which the turns' time and their number may differ
)

// stall describes a time in which a closed load's target may have stood still.
type stall struct {
	silent         float64 // longest time in the plateau in which nothing ended, if it is unusual; seconds
	share          float64 // that time as a share of the plateau
	byTime, byEnds float64 // the rate of all outcomes by the turns' time, if that cannot be right, and by their ends
}

// silence looks for a stall in the window of a closed load's rate. Nine in ten turns take no longer than turn.
func (c *counts) silence(w window, turn int64) stall {
	ends := endsOf(present(c.Load.Ops[:]))
	longest, usual := silence(&ends, w)
	share := float64(longest) / float64(w.to-w.from)
	if share >= suspectSilence && longest >= usualGaps*usual && longest >= usualTurns*turn {
		return stall{silent: seconds(longest), share: share}
	}
	return stall{}
}

// silence returns the longest time within a window in which nothing ended, and the mean distance of bins with ends in the rest of the window;
// nanoseconds.
func silence(ends *measure.Bins, w window) (longest, usual int64) {
	w = w.aligned(ends.Shift())
	filled, run := int64(0), int64(0)
	for i := w.from >> ends.Shift(); i < w.to>>ends.Shift(); i++ {
		if run++; i < measure.NumBins && ends.N[i] > 0 {
			filled, run = filled+1, 0
		}
		longest = max(longest, run<<ends.Shift())
	}
	return longest, (w.to - w.from - longest) / max(filled, 1)
}
