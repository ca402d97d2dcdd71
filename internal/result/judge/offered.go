package judge

import (
	"fmt"
	"math"
	"time"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// rate returns the ends per second in the bins that lie wholly in the window, or why there is no such bin.
func (w window) rate(b *measure.Bins) (perSecond float64, why string) {
	n, covered := b.Between(w.from, w.to)
	if covered == 0 {
		return 0, fmt.Sprintf("no plateau: it lasted %v, less than a time bin", time.Duration(w.to-w.from))
	}
	return float64(n) / covered, ""
}

// offer is the rate at which an open phase's ops, or its scenarios, were due, and that at which they ended.
type offer struct {
	offered, achieved     *float64
	noOffered, noAchieved reason.Why // why the rates are nil
	kept                  sustained
}

// sustained is an achieved rate, and the part of the load that it covers.
type sustained struct {
	rate    float64
	plateau float64 // seconds of the plateau that it covers
	chance  float64 // ops/s by which offered and achieved may differ by chance: one standard deviation
}

// newOffer compares the rate that an open phase offered with the one it achieved.
//
// In a phase with scenarios, these arrive and are counted. Offered is the number of ops due divided by the duration, where a ramp counts as the time
// in which its final rate would have brought as many: half of the ramp if it begins at 0. It is the realised rate: with Poisson arrivals it differs
// from the plan's by chance.
func newOffer(c *counts) (o offer) {
	s, code, why := c.Shape, reason.NoPlateau, c.noWindow
	switch {
	case c.phase.Schedule() == nil:
		code, why = reason.NotApplicable, "a closed phase offers no rate: ops wait for each other"
	case why == "" && s.Rate == 0:
		why = "no rate was asked for"
	}
	if why != "" {
		o.noOffered = reason.Why{Code: code, Text: why}
		o.noAchieved = o.noOffered
		return o
	}
	a := arrived(slots(c.phase, c.Load))
	missing := (1 - s.From/s.Rate) / 2 // of the ramp
	full := seconds(c.window.to) - missing*s.Ramp.Seconds()
	o.offered = number(float64(a.due) / full)
	k, why := c.achieved(&a, *o.offered, full)
	if why != "" {
		o.noAchieved = reason.Why{Code: reason.NoPlateau, Text: why}
		return o
	}
	o.achieved, o.kept = number(k.rate), k
	return o
}

// hiccup is how long a target, or its generator, may pause at the end of a load without having fallen short: a process that shares a processor waits
// for a few scheduler ticks.
const hiccup = 50 * time.Millisecond

// arrivals holds the ops that arrived in an open phase. Times are nanoseconds, 0 if no op ended.
type arrivals struct {
	ops    []*measure.Op
	due    uint64
	median int64   // median service time of ops that ended ok or miss
	slow   int64   // p99 response time of all ops that ended
	varied float64 // standard deviation of the response times
}

func arrived(ops []*measure.Op) arrivals {
	a := arrivals{ops: ops}
	var services hist.Hist
	responses := responses(ops)
	for _, o := range ops {
		a.due += o.Due
		answered := o.ServiceAll()
		services.Merge(&answered.Answered)
	}
	a.median, a.slow, a.varied = services.Quantile(0.5), responses.Quantile(0.99), responses.SD() // 0 if there are none
	return a
}

// ends returns how many ops per second ended in a window, with any outcome but shed.
func (a *arrivals) ends(w window) (perSecond float64, why string) {
	return a.sum(func(*measure.Op) window { return w })
}

// endsOf estimates how many ops per second ended of those that were due in a window: it counts each kind's ends in the window moved by that kind's
// median service time.
func (a *arrivals) endsOf(w window) (perSecond float64, why string) {
	return a.sum(func(o *measure.Op) window {
		answered := o.ServiceAll()
		median := answered.Answered.Quantile(0.5) // 0 if there is none
		return window{w.from + median, w.to + median}
	})
}

// madeUp returns how many ops per second ended if the target paused in the part of w after early and made up for it afterwards. It is the smaller of
// two rates: of the ops due in early, since a target that always fell short also did so there; and of the ops due in w, counting ends until as long
// after w as the pause lasted.
func (a *arrivals) madeUp(early, w window) (perSecond float64) {
	kept, _ := a.endsOf(early)
	more := window{w.from, 2*w.to - early.to}
	all, _ := a.endsOf(more)
	return min(kept, all*seconds(more.to-more.from)/seconds(w.to-w.from))
}

// sum adds up the rates of each kind of op, each in its own window.
func (a *arrivals) sum(of func(*measure.Op) window) (perSecond float64, why string) {
	for _, o := range a.ops {
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

// keptUp returns how many ops per second ended in a load whose slowest ops take more than half of its duration. Ops due in w took as long as w to
// end, plus the growth of response times meanwhile, which it estimates from the first and the last third; sd is the standard deviation of the result
// by chance. keptUp returns 0 if ops were shed, or if a few took much longer than most and one end has more of these than chance explains: they
// waited for something that is not service, such as a target that stands still.
func (c *counts) keptUp(a *arrivals, w window, offered float64) (perSecond, sd float64) {
	shift, _ := binShift(a.ops, c.Load)
	third := (w.to - w.from) / 3
	mean := func(part window) (ns, n float64) {
		part = part.aligned(shift)
		took, _ := c.Load.Time.Between(part.from, part.to)
		count := float64(turns(a.ops, part))
		return float64(took) / count, count
	}
	early, before := mean(window{w.from, w.from + third})
	late, after := mean(window{w.to - third, w.to})
	for _, o := range a.ops {
		if o.Outcomes[driver.Shed] > 0 {
			return 0, 0
		}
	}
	grown, noise := late-early, a.varied*math.Sqrt(1/before+1/after)
	if before == 0 || after == 0 || a.varied > 2*float64(a.median) && math.Abs(grown) > 3*noise {
		return 0, 0
	}
	lasts := float64(w.to - w.from)
	const thirds = 1.5 // the middles of the two are two thirds of w apart
	return offered / (1 + max(0, thirds*grown)/lasts), offered * thirds * noise / lasts
}

// achieved returns how many ops per second ended, of a load that lasted full seconds at its full rate.
//
// An op due at x ends at about x + the median service time of its kind (verb, or scenario), so ends are counted in the plateau moved by that much;
// without it, every phase would seem to fall short by one service time. If the service times of a kind vary much, part of what was due in the plateau
// ends outside the moved one: with exponential times of 50 ms on average, as many ops as are due in 35 ms. Such a load is even once the slowest ops
// of its beginning have ended. If at least half of the plateau is left then, and more ended in it, that counts, up to what was offered. A pause in
// the middle is made up for within the plateau, and one at its end just after it. The ops of a trace do not come at an even rate; they are counted
// from the first to a little after the last.
//
// It also records how far the two rates may differ by chance. Offered counts all arrivals, and those on the plateau are a part of them: with Poisson
// arrivals at λ per second, the two differ by a standard deviation of √(λ/plateau − λ/full). The number in flight at either end of the plateau
// varies, too, with a variance of λ∫F(1 − F), which is half of Gini's mean difference of the response times, at most their standard deviation / √3.
func (c *counts) achieved(a *arrivals, offered, full float64) (k sustained, why string) {
	w, s := c.window, c.Shape
	if c.phase.Trace() != nil {
		const little = 200 // parts of the load's time
		whole := window{0, w.to + max(a.median, w.to/little)}
		rate, why := a.ends(whole)
		return sustained{rate: rate * seconds(whole.to) / seconds(w.to), plateau: seconds(w.to)}, why
	}
	rate, why := a.endsOf(w)
	if why != "" {
		return sustained{}, why
	}
	even, variance := w, 0.0
	if late := (window{max(w.from, s.Ramp.Nanoseconds()+a.slow), w.to}); late.to-late.from >= (w.to-w.from)/2 {
		if later, why := a.ends(late); why == "" {
			rate = max(rate, min(later, offered))
			even, variance = late, 2/math.Sqrt(3)*offered*a.varied/1e9
		}
	} else if up, sd := c.keptUp(a, w, offered); up > rate {
		return sustained{rate: up, plateau: seconds(w.to - w.from), chance: sd}, ""
	}
	if early := (window{w.from, w.to - min(hiccup.Nanoseconds(), (w.to-w.from)/20)}); rate < offered {
		if up := min(a.madeUp(early, w), offered); up > rate {
			rate, even = up, early
		}
	}
	lasts := seconds(even.to - even.from)
	if c.phase.Schedule().Poisson() {
		variance += offered * lasts * (1 - lasts/full)
	}
	return sustained{rate: rate, plateau: lasts, chance: math.Sqrt(max(0, variance)) / lasts}, ""
}

// suspectAchieved is the share of the offered rate below which the achieved one falls short.
const suspectAchieved = 0.995

// short says whether the achieved rate is less than the offered one by more than chance explains.
func (o *offer) short() bool {
	if o.offered == nil || o.achieved == nil {
		return false
	}
	const (
		edge     = 2 // ops that may fall on either side of the window's ends
		unlikely = 4 // standard deviations; three in 100,000 phases deviate that far to one side
	)
	return *o.offered-*o.achieved > max(edge/o.kept.plateau, unlikely*o.kept.chance) && *o.achieved < suspectAchieved**o.offered
}
