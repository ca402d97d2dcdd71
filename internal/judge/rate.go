package judge

import (
	"math"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/reason"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Counting the ends of ops between two instants is low by latency ÷ duration when no op was under way at the first of them: the time of the
// first ops counts, and those under way at the last do not. Rates are therefore made of turns. A turn is what a slot does from one due time to
// the next: an op, or a scenario, and the think time behind it.

// throughput makes rates of counts: of those that fell into a window, times a scale.
type throughput struct {
	window window
	ends   bool       // counts are of ends, not of turns
	scale  float64    // per second
	why    reason.Why // there are no rates
}

// of returns how many per second ended in these outcomes. Bins are by end and by turn.
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

// slots returns the ops that have had a slot each: those of the verbs, or scenarios where a phase has some.
func slots(ph *plan.Phase, t *measure.Totals) []*measure.Op {
	if len(ph.Scenarios) > 0 {
		return t.Scenarios
	}
	return t.Ops[:]
}

// turns counts those that began in a window. All of the window's bins are whole: see aligned.
func turns(ops []*measure.Op, w window) (n uint64) {
	for _, o := range ops {
		if o == nil {
			continue
		}
		for _, bins := range o.Turns {
			some, _ := bins.Between(w.from, w.to)
			n += some
		}
	}
	return n
}

// binShift returns the width of the widest bins of turns and of their time, as a power of two, and where the last of them that is not empty
// begins.
func binShift(ops []*measure.Op, t *measure.Totals) (shift uint8, last int64) {
	of := func(b *measure.Bins) {
		if b.Total() == 0 {
			return
		}
		shift = max(shift, b.Shift)
		for i := range b.N {
			if b.N[i] > 0 {
				last = max(last, int64(i)<<b.Shift)
			}
		}
	}
	of(t.Time)
	for _, o := range ops {
		if o == nil {
			continue
		}
		for _, bins := range o.Turns {
			of(bins)
		}
	}
	return shift, last >> shift << shift
}

// aligned returns the part of the window that whole bins of a width cover.
func (w window) aligned(shift uint8) window {
	width := int64(1) << shift
	return window{(max(w.from, 0) + width - 1) &^ (width - 1), w.to &^ (width - 1)}
}

// rater finds out how counts become rates. It comes after openRates.
func (b *builder) rater(ph *plan.Phase, m Measured) {
	switch {
	case b.noWindow != "":
		b.through = throughput{why: because(reason.NoPlateau, "%s", b.noWindow)}
	case ph.Schedule() != nil:
		b.through = b.ofSchedule(ph, m)
	default:
		b.through = b.ofSlots(ph)
	}
}

// ofSchedule makes rates of what was due in the plateau, whenever it ended. If the target fell short, what it ended took longer than that: it
// is then as many a second as was achieved.
//
// Constant arrivals are a lattice, and the plateau may begin anywhere between two of its points, so it counts as long as its arrivals take.
func (b *builder) ofSchedule(ph *plan.Phase, m Measured) throughput {
	ops := slots(ph, b.totals)
	shift, last := binShift(ops, b.totals)
	w := window{b.window.from, b.window.to}.aligned(shift)
	if w.to = math.MaxInt64; m.cut() && last > w.from {
		w.to = last // where it was cut is not known better
	}
	until := min(w.to, b.window.to)
	lasts := seconds(until - w.from)
	if ph.Trace() == nil && !ph.Schedule().Poisson() {
		lasts = float64(m.Shape.Until(until)-m.Shape.Until(w.from)) / m.Shape.Rate
	}
	ended := float64(turns(ops, w))
	if lasts <= 0 || ended == 0 {
		return throughput{why: because(reason.NoPlateau, "no plateau: it lasted %v, less than a time bin", time.Duration(b.window.to-b.window.from))}
	}
	scale := 1 / lasts
	if b.phase.short() {
		scale = min(scale, *b.phase.AchievedRate/ended)
	}
	return throughput{window: w, scale: scale}
}

// ofSlots makes rates of the turns that began in the plateau, and of the time that these took. With s slots and a window that is w long, n turns
// that took t in all are
//
//	(n − (t − s·w)/m) / w
//
// per second, with m the mean turn: of the turns under way at an end of the window it takes the part that lies in it. Whether a turn begins in
// the window is decided before it begins, so t is n mean turns on average however the load is ended (Wald's identity; Cox, Renewal Theory,
// 1962, §8.2), and the rate has no bias but that of a quotient. Of ends in a window the same does not hold. Where sessions are of different
// speed, t − s·w is made by the slow ones, so m is the mean over sessions of the mean turn of each.
//
// The first turns are left out, where enough are left: sessions that begin together find no queue. If slots had less to do than that (a
// trace has no line for them, or they paused because nothing could be sent), turns are counted as they are.
func (b *builder) ofSlots(ph *plan.Phase) throughput {
	ops := slots(ph, b.totals)
	mean := float64(b.totals.Span.Turn) / float64(b.totals.Span.Sessions)
	spread := spreadOf(ops) / mean
	shift, _ := binShift(ops, b.totals)
	w := window{b.window.from, b.out(ph)}
	if from := w.from + int64(mean); w.to-from >= (w.to-w.from)/2 {
		w.from = from
	}
	w = w.aligned(shift)
	n, ended := float64(turns(ops, w)), float64(turns(ops, window{0, math.MaxInt64}))
	slots := float64(b.totals.Span.Sessions) * float64(ph.Pipeline())
	if n == 0 {
		return b.withoutTurns(ph)
	}
	took, _ := b.totals.Time.Between(w.from, w.to)
	lasts := float64(w.to - w.from)
	beyond := float64(took) - slots*lasts // of the turns at the end, less those at the beginning
	if c := ph.Closed; c != nil {
		beyond += n * float64(c.Think)
	}
	edge := beyond / mean
	switch {
	case edge < -slots && ph.Trace() != nil:
		return throughput{window: b.window, ends: true, scale: 1 / seconds(b.window.to-b.window.from)}
	case edge < -slots:
		edge = 0
	case ended < 2*slots:
		return throughput{why: because(reason.NoPlateau, "no plateau: sessions had an op each, and no second one behind it")}
	case spread*spread <= sameTurns*n: // few will do
	case ended < leastTurns*slots:
		return throughput{why: because(reason.TooFew, "%s, fewer than 10 a slot: they took different times, and what a rate of so few is off by is not known", quantity.Count(uint64(ended), "op"))}
	case n < leastWithin:
		return throughput{why: because(reason.NoPlateau, "no plateau: sessions were at work together for %v only, in which %s began",
			time.Duration(lasts).Round(time.Microsecond), quantity.Count(uint64(n), "op"))}
	}
	rate := (n - edge) / seconds(lasts)
	if c := ph.Closed; c == nil || c.Duration == 0 {
		rate /= 1 + spread*spread/n // for a time that is itself a sum of n turns
	}
	return throughput{window: w, scale: rate / n}
}

// out returns until when all slots had work: to the end of the load's duration, or else to the first session that had nothing more to start. Both
// are known before what begins behind them does, which the last end before some time is not.
func (b *builder) out(ph *plan.Phase) int64 {
	s, origin := b.totals.Span, b.totals.Origin
	c := ph.Closed
	if c == nil || c.Duration == 0 {
		return s.FirstOut - origin
	}
	lasts := int64(c.Duration)
	switch {
	case s.FirstLast-origin >= lasts-int64(c.Think):
		return lasts
	case c.Iterations > 0 || c.Trace != nil:
		return s.FirstOut - origin
	default: // it was ended early
		return s.FirstLast - origin
	}
}

const (
	leastTurns  = 10    // of a slot on average, if they differ in length, and
	leastWithin = 5     // of all of them in the window
	sameTurns   = 0.002 // share by which a rate of fewer may be off for that
)

// withoutTurns says what is wrong when none has begun in the window.
func (b *builder) withoutTurns(ph *plan.Phase) throughput {
	w := b.window
	if c := ph.Closed; c != nil && c.Trace != nil {
		return throughput{window: w, ends: true, scale: 1 / seconds(w.to-w.from)}
	}
	return throughput{why: because(reason.NoPlateau, "no plateau: it lasted %v, in which no session began another op", time.Duration(w.to-w.from))}
}

// spreadOf returns the standard deviation of the time that ops took, in nanoseconds.
func spreadOf(ops []*measure.Op) float64 {
	var all hist.Hist
	for _, o := range ops {
		if o == nil {
			continue
		}
		for class := range o.Response {
			all.Merge(&o.Response[class])
		}
	}
	return all.SD()
}

// perSecond returns the rates of ok, and of ok and miss.
func (b *builder) perSecond(bins, turns *[driver.NumOutcomes]*measure.Bins) (ok, answered *float64) {
	if b.through.why.Text != "" {
		return nil, nil
	}
	return number(b.through.of(bins, turns, driver.OK)), number(b.through.of(bins, turns, driver.OK, driver.Miss))
}
