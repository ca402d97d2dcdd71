package judge

import (
	"fmt"
	"math"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/pace"
	"github.com/loadgen/loadgen/internal/reason"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
	"github.com/loadgen/loadgen/pkg/plan"
)

// window is a part of a step, in nanoseconds from its origin.
type window struct{ from, to int64 }

// plateau is the part of a step in which all of the load that was asked for was on: closed, from the latest first start to the
// earliest last end over sessions; open, from the end of the ramp to the end of the schedule, or of a step that was cut short to its last
// end. When there is none it says why.
func plateau(ph *plan.Phase, s pace.Shape, t *measure.Totals, cut bool) (w window, why string) {
	if t.Span.Sessions == 0 {
		return window{}, "no plateau: " + unbounded(t).Text
	}
	if ph.Schedule() != nil {
		if s.Duration == 0 {
			return window{}, "the rate differs from level to level"
		}
		w = window{s.Ramp.Nanoseconds(), s.Duration.Nanoseconds()}
		if cut {
			w.to = min(w.to, t.Span.Last-t.Origin)
		}
		if w.to <= w.from {
			return window{}, "no plateau: the ramp lasted to the end of the phase"
		}
		return w, ""
	}
	if c := ph.Closed; c != nil && c.Trace != nil { // which says when a session has work
		w = window{c.Ramp.Nanoseconds(), t.Span.Last - t.Origin}
		if w.to <= w.from {
			return window{}, "no plateau: the ramp lasted to the end of the phase"
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

// unbounded says why it is not known from when to when sessions were at work, which workers say in the end.
func unbounded(t *measure.Totals) reason.Why {
	for _, o := range t.Ops {
		if o != nil && o.Due > o.Outcomes[driver.Shed] {
			return because(reason.WorkerLost, "the sessions that loaded were those of lost workers")
		}
	}
	return because(reason.NoOps, "no op was started")
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
// Where a phase has scenarios it is they that arrive, and are counted here. Offered is the number of ops due, over the duration and with a
// ramp over the time in which the rate behind it would have brought as many: half of the ramp when it begins at 0. It is the realised
// rate: with Poisson arrivals it differs from the plan's by chance.
func (b *builder) openRates(ph *plan.Phase, s pace.Shape) {
	const offered, achieved = "offered_rate", "achieved_rate"
	code, why := reason.NoPlateau, b.noWindow
	if ph.Schedule() == nil {
		code, why = reason.NotApplicable, "a closed phase offers no rate: ops wait for each other"
	}
	if why != "" {
		b.null(offered, code, why)
		b.null(achieved, code, why)
		return
	}
	ops := b.totals.Ops[:]
	if len(ph.Scenarios) > 0 {
		ops = b.totals.Scenarios
	}
	a := arrived(ops)
	missing := (1 - s.From/s.Rate) / 2 // of the ramp
	full := seconds(b.window.to) - missing*s.Ramp.Seconds()
	b.phase.OfferedRate = number(float64(a.due) / full)
	rate, why := b.achieved(ph, s, &a, full)
	if why != "" {
		b.null(achieved, reason.NoPlateau, why)
		return
	}
	b.phase.AchievedRate = number(rate)
}

// hiccup is for how long a target, or its generator, may pause at the end of a load without having fallen short: who has to share a processor
// waits for a few of the scheduler's ticks.
const hiccup = 50 * time.Millisecond

// arrivals is what arrived in an open phase, and what became of it. Times are nanoseconds, 0 where nothing ended.
type arrivals struct {
	ops    []*measure.Op
	due    uint64
	median int64   // service time of ok and miss
	slow   int64   // p99 response time of all that ended
	varied float64 // standard deviation of these
}

func arrived(ops []*measure.Op) arrivals {
	a := arrivals{ops: ops}
	var services, responses hist.Hist
	for _, o := range ops {
		if o == nil {
			continue
		}
		a.due += o.Due
		answered := o.ServiceAll()
		services.Merge(&answered.Answered)
		for class := range o.Response {
			responses.Merge(&o.Response[class])
		}
	}
	a.median, a.slow, a.varied = services.Quantile(0.5), responses.Quantile(0.99), responses.SD() // 0 of none
	return a
}

// ends returns how many ended per second in a window, however but shed.
func (a *arrivals) ends(w window) (perSecond float64, why string) {
	return a.sum(func(*measure.Op) window { return w })
}

// endsOf returns it of those that were due in a window, as far as each took as long as half of its kind: their ends are counted in the window
// moved by that.
func (a *arrivals) endsOf(w window) (perSecond float64, why string) {
	return a.sum(func(o *measure.Op) window {
		answered := o.ServiceAll()
		median := answered.Answered.Quantile(0.5) // 0 of none
		return window{w.from + median, w.to + median}
	})
}

// madeUp returns how many ended per second where the end of w behind the window early was a pause that was made up for: of what was due in early,
// or, if that is less, of what was due in w and had ended by as long behind w as it is longer. Who fell short all the time did so in early.
func (a *arrivals) madeUp(early, w window) (perSecond float64) {
	kept, _ := a.endsOf(early)
	more := window{w.from, 2*w.to - early.to}
	all, _ := a.endsOf(more)
	return min(kept, all*seconds(more.to-more.from)/seconds(w.to-w.from))
}

// sum adds up the rates of ops of each kind in a window of theirs.
func (a *arrivals) sum(of func(*measure.Op) window) (perSecond float64, why string) {
	for _, o := range a.ops {
		if o == nil {
			continue
		}
		w := of(o)
		for outcome, bins := range o.Bins {
			if driver.Outcome(outcome) == driver.Shed {
				continue
			}
			rate, why := w.rate(bins)
			if why != "" {
				return 0, why
			}
			perSecond += rate
		}
	}
	return perSecond, ""
}

// keptUp is how many ops ended per second of a load whose ops take so long that the end of the slowest leaves less than half of it: what was due
// in w ended in as long, and in so much more as response times grew meanwhile. They are compared between its first and its last third; sd is what
// chance may make of that. It is 0 where ops were shed, and where a few took much longer than most and those at one end more so than chance
// explains: they waited for something that is no service, such as a target that stands still.
func (b *builder) keptUp(a *arrivals, w window, offered float64) (perSecond, sd float64) {
	shift, _ := binShift(a.ops, b.totals)
	third := (w.to - w.from) / 3
	mean := func(part window) (ns, n float64) {
		part = part.aligned(shift)
		took, _ := b.totals.Time.Between(part.from, part.to)
		count := float64(turns(a.ops, part))
		return float64(took) / count, count
	}
	early, before := mean(window{w.from, w.from + third})
	late, after := mean(window{w.to - third, w.to})
	for _, o := range a.ops {
		if o != nil && o.Outcomes[driver.Shed] > 0 {
			return 0, 0
		}
	}
	grown, noise := late-early, a.varied*math.Sqrt(1/before+1/after)
	if before == 0 || after == 0 || a.varied > 2*float64(a.median) && math.Abs(grown) > 3*noise {
		return 0, 0
	}
	lasts := float64(w.to - w.from)
	const thirds = 1.5 // between the middles of the two lie two thirds of w
	return offered / (1 + max(0, thirds*grown)/lasts), offered * thirds * noise / lasts
}

// achieved is how many ops ended per second, of a load that lasted full seconds at its full rate.
//
// An op due at x ends at about x + the median service time of its kind (verb, or scenario), so ends are counted in the plateau moved by that
// much; without it, every phase would seem to fall short by one service time. Where service times of a kind differ much, a part of what was due in the plateau ends outside of the moved
// one: of ops that take 50 ms on average and exponentially, as many as are due in 35 ms. Such a load is even once the slowest ops of its
// beginning have ended. What is then left of the plateau, if that is at least half, counts where more ended in it, up to what was offered. A
// pause in the middle is made up for in the plateau, and one at its end right behind it. The ops of a trace come at no even rate, and are
// counted from the first to a little behind the last.
//
// It also enters how far chance may have the two rates apart. Offered are all arrivals, of which those on the plateau are some: of Poisson's λ
// a second, they differ by a standard deviation of √(λ/plateau − λ/full). How many are under way at either end of the plateau varies, too,
// with a variance of λ∫F(1 − F), which is half of Gini's mean difference of the response times, at most their standard deviation / √3.
func (b *builder) achieved(ph *plan.Phase, s pace.Shape, a *arrivals, full float64) (rate float64, why string) {
	w, offered := b.window, *b.phase.OfferedRate
	if ph.Trace() != nil {
		const little = 200 // parts that its time has
		whole := window{0, w.to + max(a.median, w.to/little)}
		rate, why = a.ends(whole)
		b.phase.plateau = seconds(w.to)
		return rate * seconds(whole.to) / seconds(w.to), why
	}
	if rate, why = a.endsOf(w); why != "" {
		return 0, why
	}
	even, variance := w, 0.0
	if late := (window{max(w.from, s.Ramp.Nanoseconds()+a.slow), w.to}); late.to-late.from >= (w.to-w.from)/2 {
		if later, why := a.ends(late); why == "" {
			rate = max(rate, min(later, offered))
			even, variance = late, 2/math.Sqrt(3)*offered*a.varied/1e9
		}
	} else if kept, sd := b.keptUp(a, w, offered); kept > rate {
		b.phase.plateau, b.phase.chance = seconds(w.to-w.from), sd
		return kept, ""
	}
	if early := (window{w.from, w.to - min(hiccup.Nanoseconds(), (w.to-w.from)/20)}); rate < offered {
		if kept := min(a.madeUp(early, w), offered); kept > rate {
			rate, even = kept, early
		}
	}
	lasts := seconds(even.to - even.from)
	if ph.Schedule().Poisson() {
		variance += offered * lasts * (1 - lasts/full)
	}
	b.phase.plateau, b.phase.chance = lasts, math.Sqrt(max(0, variance))/lasts
	return rate, ""
}
