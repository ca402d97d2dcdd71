package run

import (
	"fmt"
	"math"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/pace"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
	"github.com/loadgen/loadgen/pkg/plan"
)

// window is a part of a step, in nanoseconds from its origin.
type window struct{ from, to int64 }

// plateau is the part of a step in which all of the load that was asked for was on: closed, from the latest first start to the
// earliest last end over sessions; open, from the end of the ramp to the last due op. When there is none it says why.
func plateau(ph *plan.Phase, s pace.Shape, t *measure.Totals) (w window, why string) {
	if t.Span.Sessions == 0 {
		return window{}, "no plateau: no op was started"
	}
	if ph.Schedule() != nil {
		if s.Duration == 0 {
			return window{}, "the rate differs from level to level"
		}
		w = window{s.Ramp.Nanoseconds(), min(s.Duration.Nanoseconds(), t.Span.Last-t.Origin)}
		if w.to <= w.from {
			return window{}, "no plateau: the phase ended before its ramp did"
		}
		return w, ""
	}
	if c := ph.Closed; c != nil && c.Trace != nil { // which says when a session has work
		w = window{c.Ramp.Nanoseconds(), t.Span.Last - t.Origin}
		if w.to <= w.from {
			return window{}, "no plateau: the phase ended before its ramp did"
		}
		return w, ""
	}
	w = window{t.Span.LastFirst - t.Origin, t.Span.FirstLast - t.Origin}
	switch {
	case w.to > w.from:
		return w, ""
	case ph.Closed != nil && ph.Closed.Ramp > 0:
		return window{}, "no plateau: the ramp is longer than the work of a session"
	default:
		return window{}, "no plateau: the first session was done before the last one began"
	}
}

// rate returns the ends per second in the bins that lie wholly in the window. It says why when there is no such bin.
func (w window) rate(b *measure.Bins) (perSecond float64, why string) {
	n, covered := b.Between(w.from, w.to)
	if covered == 0 {
		return 0, fmt.Sprintf("no plateau: it lasted %v, less than a time bin", time.Duration(w.to-w.from))
	}
	return float64(n) / covered, ""
}

// openRates compares what an open phase offered with what it achieved.
//
// Where a phase has scenarios it is they that arrive, and are counted here. Offered is the number of ops due, over the duration (of a load
// that was ended early up to its last end), and with a ramp over the time in which the rate behind it would have brought as many: half of
// the ramp when it begins at 0. It is the realised
// rate: with Poisson arrivals it differs from the plan's by chance, and also from that of the plateau, which a ramp and a warm-up shorten and
// whose arrivals are only some of those counted: of λ arrivals a second, by a standard deviation of √(λ/plateau − λ/time). Achieved
// counts ends of any outcome but shed. An op due at x ends at about x + the median service time, so ends are counted in the plateau moved
// by that much; without it, every phase would seem to fall short by one service time.
func (b *builder) openRates(ph *plan.Phase, m Measured) {
	const offered, achieved = "offered_rate", "achieved_rate"
	why := b.noWindow
	if ph.Schedule() == nil {
		why = "a closed phase offers no rate: ops wait for each other"
	}
	if why != "" {
		b.null(offered, why)
		b.null(achieved, why)
		return
	}
	var due uint64
	var service hist.Hist
	arrivals := b.totals.Ops[:]
	if len(ph.Scenarios) > 0 {
		arrivals = b.totals.Scenarios
	}
	for _, o := range arrivals {
		if o != nil {
			due += o.Due
			all := o.ServiceAll()
			service.Merge(&all)
		}
	}
	s := m.Shape
	end := s.Duration.Seconds()
	if m.Aborted {
		end = seconds(b.window.to)
	}
	missing := (1 - s.From/s.Rate) / 2 // of the ramp
	full := end - missing*s.Ramp.Seconds()
	b.phase.OfferedRate = number(float64(due) / full)
	if ph.Schedule().Arrivals == "poisson" {
		b.phase.chance = math.Sqrt(*b.phase.OfferedRate * (1/seconds(b.window.to-b.window.from) - 1/full))
	}

	var median int64
	if service.Count() > 0 {
		median = service.Quantile(0.5)
	}
	moved := window{b.window.from + median, b.window.to + median}
	var sum float64
	for _, o := range arrivals {
		if o == nil {
			continue
		}
		for outcome, bins := range o.Bins {
			if driver.Outcome(outcome) == driver.Shed {
				continue
			}
			rate, why := moved.rate(bins)
			if why != "" {
				b.null(achieved, why)
				return
			}
			sum += rate
		}
	}
	b.phase.AchievedRate = number(sum)
}
