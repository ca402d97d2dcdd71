package judge

import (
	"github.com/loadgen/loadgen/internal/count/measure"
)

// A closed load waits for a target that stands still: it offers nothing meanwhile, and has one slow op a slot to show for it.
const (
	suspectSilence = 0.1  // of the plateau, in which nothing ended
	usualGaps      = 10   // as many times longer than the usual time between ends
	usualTurns     = 2    // and than nine in ten turns: sessions that begin together also end together
	suspectHung    = 0.01 // of the rate, by which what the turns took differs from their number
)

// stall is what a closed load's target may have done between its answers.
type stall struct {
	silent         float64 // longest time in the plateau in which nothing ended, if it is unusual; seconds
	share          float64 // of the plateau
	byTime, byEnds float64 // the rate of all outcomes by the time of turns, if it cannot be right, and by their ends
}

// silence looks for a stall in the window of a closed load's rate, nine in ten of whose turns take no longer than a time.
func (c *counts) silence(w window, turn int64) stall {
	ends := endsOf(c.Load.Ops[:])
	longest, usual := silence(&ends, w)
	share := float64(longest) / float64(w.to-w.from)
	if share >= suspectSilence && longest >= usualGaps*usual && longest >= usualTurns*turn {
		return stall{silent: seconds(longest), share: share}
	}
	return stall{}
}

// silence returns the longest time within a window in which nothing ended, and how far those bins are apart on average in which something did, but for
// that time; nanoseconds.
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
