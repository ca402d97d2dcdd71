package judge

import (
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// window is a part of a step, in nanoseconds from its origin.
type window struct{ from, to int64 }

// plateau returns the part of a step in which the whole load was on, or why there is none. In a closed load it goes from the latest first start of a
// session to the earliest last end of one; in an open load from the end of the ramp to the end of the schedule, or to where the step was cut short.
func plateau(ph *plan.Phase, s pace.Shape, t *measure.Totals, cut bool) (w window, why string) {
	if t.Span.Sessions == 0 {
		return window{}, "no plateau: " + unbounded(t).Text
	}
	c := ph.Closed
	switch {
	case ph.Schedule() != nil && s.Duration == 0:
		return window{}, "the rate differs from level to level"
	case ph.Schedule() != nil:
		w, why = window{s.Ramp.Nanoseconds(), s.Duration.Nanoseconds()}, "the ramp lasted to the end of the phase"
		if cut {
			w.to = min(w.to, cutAt(ph, t))
		}
	case c != nil && c.Trace != nil: // the trace decides when a session has work
		w, why = window{c.Ramp.Nanoseconds(), t.Span.Last - t.Origin}, "the ramp lasted to the end of the phase"
	default:
		w, why = window{t.Span.LastFirst - t.Origin, t.Span.FirstLast - t.Origin}, "the first session was done before the last one began"
		if c == nil {
			break
		}
		if _, goes := c.Whole(); goes > 0 { // sessions that have gone may come again
			w.to = min(w.to, int64(goes))
		}
		if c.Ramp > 0 {
			why = "the ramp is longer than the work of a session"
		}
	}
	if w.to <= w.from {
		return window{}, "no plateau: " + why
	}
	return w, ""
}

// cutAt returns when a schedule was cut short: when its workers stopped, or when the last op that ended was due if that was later.
func cutAt(ph *plan.Phase, t *measure.Totals) int64 {
	_, last := binShift(slots(ph, t), t)
	return max(t.Span.FirstOut-t.Origin, last)
}

// unbounded says why it is unknown when sessions were at work, which workers report at the end.
func unbounded(t *measure.Totals) reason.Why {
	for _, o := range t.Ops {
		if o != nil && o.Due > o.Outcomes[driver.Shed] {
			return because(reason.WorkerLost, "the sessions that loaded were those of lost workers")
		}
	}
	return because(reason.NoOps, "no op was started")
}
