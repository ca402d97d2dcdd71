package judge

import (
	"math"
	"time"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// If no op is in flight when a window opens, counting the ops that end in it is biased low by latency ÷ duration: the first ops' time counts, but ops
// in flight at the close do not. Rates are therefore computed from turns. A turn is what a slot does from one due time to the next: an op, or a
// scenario, and the think time after it.

// rates are how fast ops were due and ended, computed from the counts alone.
type rates struct {
	offer
	through throughput
	stall   stall
}

func newRates(c *counts) rates {
	r := rates{offer: newOffer(c)}
	r.through, r.stall = c.throughput(&r.offer)
	return r
}

// throughput turns counts into rates: counts in a window, times a scale.
type throughput struct {
	window window
	ends   bool       // counts are of ends, not of turns
	scale  float64    // per second
	why    reason.Why // why there are no rates
}

// of returns how many ops per second ended with these outcomes. Bins are by end and by turn.
func (t *throughput) of(bins, turns *[driver.NumOutcomes]*measure.Bins, outcomes ...driver.Outcome) (perSecond float64) {
	if t.ends {
		turns = bins
	}
	for _, o := range outcomes {
		n, _ := turns[o].Between(t.window.from, t.window.to)
		perSecond += float64(n) * t.scale
	}
	return perSecond
}

// throughput decides how counts become rates.
func (c *counts) throughput(o *offer) (throughput, stall) {
	switch {
	case c.noWindow != "":
		return throughput{why: because(reason.NoPlateau, "%s", c.noWindow)}, stall{}
	case c.phase.Schedule() != nil:
		return c.ofSchedule(o), stall{}
	}
	return c.ofSlots()
}

// ofSchedule makes rates from the ops that were due in the plateau, whenever they ended. If the target fell short, these ops took longer than the
// plateau to end, and the rate is limited to the achieved one.
//
// Constant arrivals are evenly spaced, and the plateau may begin anywhere between two of them, so its length is taken to be its number of arrivals
// times their spacing.
func (c *counts) ofSchedule(o *offer) throughput {
	ph := c.phase
	ops := slots(ph, c.Load)
	shift, _ := binShift(ops, c.Load)
	w := window{c.window.from, c.window.to}.aligned(shift)
	if !c.cut() || w.to <= w.from {
		w.to = math.MaxInt64
	}
	until := min(w.to, c.window.to)
	lasts := seconds(until - w.from)
	if ph.Trace() == nil && !ph.Schedule().Poisson() {
		lasts = float64(c.Shape.Until(until)-c.Shape.Until(w.from)) / c.Shape.Rate
	}
	ended := float64(turns(ops, w))
	if lasts <= 0 || ended == 0 {
		return throughput{why: because(reason.NoPlateau, "no plateau: it lasted %v, less than a time bin", time.Duration(c.window.to-c.window.from))}
	}
	scale := 1 / lasts
	if o.short() {
		scale = min(scale, *o.achieved/ended)
	}
	return throughput{window: w, scale: scale}
}

// ofSlots makes rates from the turns that began in the plateau and the time that they took. With s slots and a window of length w, n turns that took
// t in all give
//
//	(n − (t − s·w)/m) / w
//
// per second, where m is the mean turn: a turn in progress at an end of the window counts by the part inside. Whether a turn begins in the window is
// decided before it begins, so t is on average n mean turns, however the load ends (Wald's identity; Cox, Renewal Theory, 1962, §8.2), and the rate
// has only the bias of a quotient. That does not hold for ends in a window. If sessions differ in speed, the slow ones dominate t − s·w, so m is the
// mean over sessions of each session's mean turn.
//
// At each end of the window, a slot has one turn in progress at most, however long that takes, so no more than s can be missing from n or be too many.
// If t says otherwise, because some turns took far longer than others, or slots had none, the rate is of what ended in the window: that, too, differs
// from n by s at most.
//
// The first turns are left out if enough remain: sessions that begin together find no queue. If a trace had no lines for the slots, ends are counted.
func (c *counts) ofSlots() (throughput, stall) {
	ph := c.phase
	ops := slots(ph, c.Load)
	mean := float64(c.Load.Span.Turn) / float64(c.Load.Span.Sessions)
	times, think := responses(ops), int64(0)
	if ph.Closed != nil {
		think = int64(ph.Closed.Think)
	}
	spread, usual := times.SD()/mean, times.Quantile(0.9)+think
	shift, _ := binShift(ops, c.Load)
	w := window{c.window.from, c.out()}
	if from := w.from + min(int64(mean), usual); w.to-from >= (w.to-w.from)/2 {
		w.from = from
	}
	w = w.aligned(shift)
	n, ended := float64(turns(ops, w)), float64(turns(ops, window{0, math.MaxInt64}))
	slots := float64(c.Load.Span.Sessions) * float64(ph.Pipeline())
	if n == 0 {
		return c.withoutTurns(), stall{}
	}
	took, _ := c.Load.Time.Between(w.from, w.to)
	lasts := float64(w.to - w.from)
	beyond := float64(took) + n*float64(think) - slots*lasts // the part of the last turns beyond the window, less that of the first turns before it
	edge := beyond / mean
	switch {
	case edge < -slots && ph.Trace() != nil:
		return throughput{window: c.window, ends: true, scale: 1 / seconds(c.window.to-c.window.from)}, stall{}
	case ended < 2*slots:
		return throughput{why: because(reason.NoPlateau, "no plateau: each session had only one op")}, stall{}
	case spread*spread <= sameTurns*n: // a few turns are enough
	case ended < leastTurns*slots:
		return throughput{why: because(reason.TooFew, "%s, fewer than 10 a slot, took different times: how far off a rate of so few may be is not known", quantity.Count(uint64(ended), "op"))}, stall{}
	case n < leastWithin:
		return throughput{why: because(reason.NoPlateau, "no plateau: sessions were at work together for %v only, in which %s began",
			time.Duration(lasts).Round(time.Microsecond), quantity.Count(uint64(n), "op"))}, stall{}
	}
	byTime := n - edge
	if l := ph.Closed; l == nil || l.Duration == 0 {
		byTime /= 1 + spread*spread/n // corrects for a time that is itself a sum of n turns
	}
	still := c.silence(w, usual)
	habit := func(ns float64) bool { return float64(times.Above(int64(ns/usualTurns))) > usualSlow*slots }
	if habit(still.silent * 1e9) {
		still = stall{} // now and then all slots wait for such an op
	}
	if math.Abs(byTime-n) > slots {
		ends, perSecond := ofEnds(ops, w)
		if ends.why.Text == "" && !habit(math.Abs(byTime-n)*mean/math.Sqrt(slots)) {
			still.byTime, still.byEnds = max(byTime/seconds(lasts), 0), perSecond
		}
		if n >= leastBounded {
			return ends, still
		}
	}
	return throughput{window: w, scale: max(byTime, 0) / n / seconds(lasts)}, still
}

// ofEnds makes rates from the ends in the window of a closed load; perSecond is the rate of all outcomes.
func ofEnds(ops []*measure.Op, w window) (t throughput, perSecond float64) {
	ends := endsOf(ops)
	n, lasts := ends.Between(w.from, w.to)
	if lasts == 0 {
		return throughput{why: because(reason.NoPlateau, "no plateau: it lasted %v, less than a time bin", time.Duration(w.to-w.from))}, 0
	}
	return throughput{window: w.aligned(ends.Shift()), ends: true, scale: 1 / lasts}, float64(n) / lasts
}

// peakEvery is the number of ends after which the average since the start is computed again, to find its peak.
const peakEvery = 1000

// peak returns the largest average of ends per second since the load's first start, computed after every peakEvery ends; 0 if there are fewer. The
// ends of a time bin, of which there are at least 512 up to the last end, are taken to be evenly spread, so that the largest average in it is at its
// first or its last look.
func peak(ends *measure.Bins, load *measure.Totals) (most float64) {
	if ends == nil {
		return 0
	}
	first, last := load.Span.First-load.Origin, load.Span.Last-load.Origin
	before := uint64(0)
	for i, n := range &ends.N {
		from, to := max(int64(i)<<ends.Shift(), first), min(int64(i+1)<<ends.Shift(), last)
		for _, look := range []uint64{(before/peakEvery + 1) * peakEvery, (before + n) / peakEvery * peakEvery} {
			if look <= before || look > before+n {
				continue
			}
			at := float64(from-first) + float64(look-before)/float64(n)*float64(to-from)
			if at > 0 {
				most = max(most, float64(look)/at*1e9)
			}
		}
		before += n
	}
	return most
}

// endsOf returns when ops ended, whatever their outcome.
func endsOf(ops []*measure.Op) (all measure.Bins) {
	for _, o := range ops {
		for _, bins := range o.Bins {
			if bins != nil {
				all.Merge(bins)
			}
		}
	}
	return all
}

// out returns the time until which all slots had work: the end of the load's duration, or else the time at which the first session had nothing more
// to start. Neither depends on how long later turns take, as the last end before a given time would.
func (c *counts) out() int64 {
	s, origin := c.Load.Span, c.Load.Origin
	l := c.phase.Closed
	if l == nil || l.Duration == 0 {
		return s.FirstOut - origin
	}
	lasts, last := int64(l.Duration), s.FirstLast-origin
	if _, goes := l.Whole(); goes > 0 {
		lasts = int64(goes)
	}
	if !c.Aborted { // its sessions may end in think time
		last += int64(l.Think)
	}
	switch {
	case last >= lasts:
		return lasts
	case l.Iterations > 0 || l.Trace != nil || c.Aborted:
		return s.FirstOut - origin
	default: // the load was ended early
		return s.FirstLast - origin
	}
}

const (
	leastTurns   = 10    // turns per slot on average, if turns differ in length
	leastWithin  = 5     // turns in the window, over all slots
	leastBounded = 20    // the same; if fewer turns differ in length, that does not mean that some hung
	sameTurns    = 0.002 // error, as a share, that a rate from fewer turns may have
)

// withoutTurns says what is wrong if no turn began in the window.
func (c *counts) withoutTurns() throughput {
	w := c.window
	if l := c.phase.Closed; l != nil && l.Trace != nil {
		return throughput{window: w, ends: true, scale: 1 / seconds(w.to-w.from)}
	}
	return throughput{why: because(reason.NoPlateau, "no plateau: it lasted %v, in which no session began another op", time.Duration(w.to-w.from))}
}

// responses returns the response times of all ops that ended.
func responses(ops []*measure.Op) (all hist.Hist) {
	for _, o := range ops {
		for class := range o.Response {
			all.Merge(&o.Response[class])
		}
	}
	return all
}
