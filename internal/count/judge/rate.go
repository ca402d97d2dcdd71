package judge

import (
	"math"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/result/quantity"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
	"github.com/loadgen/loadgen/pkg/plan"
)

// If no op is in flight when a window opens, counting the ops that end in it is biased low by latency ÷ duration: the first ops' time counts, but ops
// in flight at the close do not. Rates are therefore computed from turns. A turn is what a slot does from one due time to the next: an op, or a
// scenario, and the think time after it.

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

// slots returns the ops that each occupied a slot: those of the verbs, or scenarios if the phase has any.
func slots(ph *plan.Phase, t *measure.Totals) []*measure.Op {
	if len(ph.Scenarios) > 0 {
		return t.Scenarios
	}
	return t.Ops[:]
}

// turns counts the turns that began in a window, which must cover only whole bins: see aligned.
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

// binShift returns the width of the widest bins of turns and of their time, as a power of two, and where the last bin that is not empty begins.
func binShift(ops []*measure.Op, t *measure.Totals) (shift uint8, last int64) {
	of := func(b *measure.Bins) {
		if b.Total() == 0 {
			return
		}
		shift = max(shift, b.Shift())
		for i := range b.N {
			if b.N[i] > 0 {
				last = max(last, int64(i)<<b.Shift())
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

// rater decides how counts become rates. Call it after openRates.
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

// ofSchedule makes rates of the ops that were due in the plateau, whenever they ended. If the target fell short, they took longer than the plateau to
// end; the rate is then limited to the achieved one.
//
// Constant arrivals are evenly spaced, and the plateau may begin anywhere between two of them, so its length is taken as the time its arrivals take.
func (b *builder) ofSchedule(ph *plan.Phase, m Measured) throughput {
	ops := slots(ph, b.totals)
	shift, _ := binShift(ops, b.totals)
	w := window{b.window.from, b.window.to}.aligned(shift)
	if !m.cut() || w.to <= w.from {
		w.to = math.MaxInt64
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

// ofSlots makes rates of the turns that began in the plateau, and of the time that these took. With s slots and a window of length w, n turns that
// took t in all give
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
func (b *builder) ofSlots(ph *plan.Phase) throughput {
	ops := slots(ph, b.totals)
	mean := float64(b.totals.Span.Turn) / float64(b.totals.Span.Sessions)
	times, think := responses(ops), int64(0)
	if ph.Closed != nil {
		think = int64(ph.Closed.Think)
	}
	spread, usual := times.SD()/mean, times.Quantile(0.9)+think
	shift, _ := binShift(ops, b.totals)
	w := window{b.window.from, b.out(ph)}
	if from := w.from + min(int64(mean), usual); w.to-from >= (w.to-w.from)/2 {
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
	beyond := float64(took) + n*float64(think) - slots*lasts // of the turns at the end, less that of those at the beginning
	edge := beyond / mean
	switch {
	case edge < -slots && ph.Trace() != nil:
		return throughput{window: b.window, ends: true, scale: 1 / seconds(b.window.to-b.window.from)}
	case ended < 2*slots:
		return throughput{why: because(reason.NoPlateau, "no plateau: sessions had an op each, and no second one behind it")}
	case spread*spread <= sameTurns*n: // few are enough
	case ended < leastTurns*slots:
		return throughput{why: because(reason.TooFew, "%s, fewer than 10 a slot: they took different times, and what a rate of so few is off by is not known", quantity.Count(uint64(ended), "op"))}
	case n < leastWithin:
		return throughput{why: because(reason.NoPlateau, "no plateau: sessions were at work together for %v only, in which %s began",
			time.Duration(lasts).Round(time.Microsecond), quantity.Count(uint64(n), "op"))}
	}
	byTime := n - edge
	if c := ph.Closed; c == nil || c.Duration == 0 {
		byTime /= 1 + spread*spread/n // for a time that is itself a sum of n turns
	}
	b.silence(w, usual)
	if math.Abs(byTime-n) > slots {
		if ends := b.ofEnds(ops, w, byTime/seconds(lasts)); n >= leastBounded {
			return ends
		}
	}
	return throughput{window: w, scale: max(byTime, 0) / n / seconds(lasts)}
}

// ofEnds makes rates of what ended in the window of a closed load. It keeps the rate by time for comparison.
func (b *builder) ofEnds(ops []*measure.Op, w window, byTime float64) throughput {
	ends := endsOf(ops)
	n, lasts := ends.Between(w.from, w.to)
	if lasts == 0 {
		return throughput{why: because(reason.NoPlateau, "no plateau: it lasted %v, less than a time bin", time.Duration(w.to-w.from))}
	}
	b.phase.stall.byTime, b.phase.stall.byEnds = max(byTime, 0), float64(n)/lasts
	return throughput{window: w.aligned(ends.Shift()), ends: true, scale: 1 / lasts}
}

// endsOf returns when ops ended, whatever their outcome.
func endsOf(ops []*measure.Op) (all measure.Bins) {
	for _, o := range ops {
		if o == nil {
			continue
		}
		for _, bins := range o.Bins {
			if bins != nil {
				all.Merge(bins)
			}
		}
	}
	return all
}

// out returns until when all slots had work: to the end of the load's duration, or else to the first session that had nothing more to start. Both are
// known before any later turn begins; the last end before some time is not.
func (b *builder) out(ph *plan.Phase) int64 {
	s, origin := b.totals.Span, b.totals.Origin
	c := ph.Closed
	if c == nil || c.Duration == 0 {
		return s.FirstOut - origin
	}
	lasts, last := int64(c.Duration), s.FirstLast-origin
	if !b.aborted { // its sessions may end in a pause
		last += int64(c.Think)
	}
	switch {
	case last >= lasts:
		return lasts
	case c.Iterations > 0 || c.Trace != nil || b.aborted:
		return s.FirstOut - origin
	default: // it was ended early
		return s.FirstLast - origin
	}
}

const (
	leastTurns   = 10    // per slot on average, if they differ in length
	leastWithin  = 5     // in the window, over all slots
	leastBounded = 20    // likewise; if fewer differ in length, that does not mean that some hung
	sameTurns    = 0.002 // share by which a rate from fewer may be off
)

// withoutTurns says what is wrong if no turn began in the window.
func (b *builder) withoutTurns(ph *plan.Phase) throughput {
	w := b.window
	if c := ph.Closed; c != nil && c.Trace != nil {
		return throughput{window: w, ends: true, scale: 1 / seconds(w.to-w.from)}
	}
	return throughput{why: because(reason.NoPlateau, "no plateau: it lasted %v, in which no session began another op", time.Duration(w.to-w.from))}
}

// responses returns the response times of all that ended.
func responses(ops []*measure.Op) (all hist.Hist) {
	for _, o := range ops {
		if o == nil {
			continue
		}
		for class := range o.Response {
			all.Merge(&o.Response[class])
		}
	}
	return all
}

// perSecond returns the rates of ok, and of ok and miss together.
func (b *builder) perSecond(bins, turns *[driver.NumOutcomes]*measure.Bins) (ok, answered *float64) {
	if b.through.why.Text != "" {
		return nil, nil
	}
	return number(b.through.of(bins, turns, driver.OK)), number(b.through.of(bins, turns, driver.OK, driver.Miss))
}
