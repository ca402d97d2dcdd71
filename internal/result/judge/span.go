package judge

import (
	"math"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Span estimates when the sessions of a lost worker were at work: from the start of the step, or the end of its ramp, up to the worker's last
// snapshot at upTo on the run clock or, if nothing was in flight then, up to the last end. All sessions have the mean turn.
func Span(ph *plan.Phase, t *measure.Totals, sessions int, upTo int64) measure.Span {
	last := min(upTo, t.Origin+lastEnd(t))
	s := measure.Span{Sessions: uint64(sessions), First: t.Origin, LastFirst: t.Origin, FirstLast: last, Last: last, FirstOut: last, Turn: int64(sessions) * (last - t.Origin)}
	if c := ph.Closed; c != nil {
		whole, _ := c.Whole()
		s.LastFirst += int64(whole)
		all := window{0, last - t.Origin}
		took, _ := t.Time.Between(all.from, all.to)
		if n := turns(slots(ph, t), all); n > 0 {
			s.Turn = int64(sessions) * (int64(took/n) + int64(c.Think))
		}
	}
	return s
}

// lastEnd returns when the last op ended, in nanoseconds from the step's origin, rounded up to the end of a time bin. If ops were in flight, it
// returns a time after any end.
func lastEnd(t *measure.Totals) (last int64) {
	for _, o := range present(t.Ops[:]) {
		if o.InFlight > 0 {
			return math.MaxInt64 / 2
		}
		for _, b := range o.Bins {
			if b == nil {
				continue
			}
			for i, n := range &b.N {
				if n > 0 {
					last = max(last, int64(i+1)<<b.Shift())
				}
			}
		}
	}
	return last
}
