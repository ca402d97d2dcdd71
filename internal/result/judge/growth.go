package judge

import (
	"math"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/result/run"
)

const (
	leastForGrowth = 100       // the fewest ops: 5 in each twentieth, 50 in the second half
	farthest       = 3         // a prediction goes up to this many times the ops that were run
	resolution     = 1.0 / 128 // of a quantile: a bucket's width relative to its values
)

// grow reports what ops cost by ordinal, if the phase counts that.
func (b *builder) grow(at string, r *run.Figures, t *measure.Op) {
	at += ".growth"
	switch {
	case b.growth == nil:
		b.null(at, reason.NotApplicable, "the phase has no growth block")
		return
	case at == "total.growth":
		b.null(at, reason.NotApplicable, "each op has its own")
		return
	case b.scenic && (strings.HasPrefix(at, "op.") || strings.Contains(at, ".step.")):
		b.null(at, reason.NotApplicable, "growth is measured for the scenarios of the phase")
		return
	}
	g := &run.Growth{Ops: t.Growth.Ended(), To: b.growth.To, Course: []run.GrowthRow{}}
	r.Growth = g
	bins := course(t.Growth)
	for i, c := range t.Growth.Used() {
		g.Course = append(g.Course, rowOf(uint64(bins[i].To), &c))
	}
	if slices.ContainsFunc(g.Course, func(row run.GrowthRow) bool { return row.Mean == nil || row.P99 == nil }) {
		b.null(at+".course", reason.TooFew, "no op of these ordinals ended ok or miss, or fewer than 10 lie beyond that quantile; or some failed, which count as slower than any that did not")
	}
	b.drift(at+".drift", g, bins)
	fit, why := b.fit(g, bins)
	if why.Text != "" {
		b.explain(at, why, ".order", ".order_lo", ".order_hi")
	} else {
		g.Order, g.OrderLo, g.OrderHi = number(fit.Order.Value), number(fit.Order.Low), number(fit.Order.High)
		g.Judge()
	}
	if why := b.secondsTo(g, bins, fit, why); why.Text != "" {
		b.explain(at, why, ".seconds_to", ".seconds_to_lo", ".seconds_to_hi")
	}
}

// course makes bins from the counts. The last bin ends with the last op, which the number of ops gives if sessions kept pace with each other.
func course(g *measure.Growth) (bins []stat.Bin) {
	ended := float64(g.Ended())
	for i := range g.Used() {
		b := &g.Bins[i]
		width := math.Ldexp(1, int(g.Shift))
		bin := stat.Bin{From: float64(i) * width, To: float64(i+1) * width, Count: float64(b.Answered.Count()), Time: seconds(b.Answered.Sum()), Median: math.NaN()}
		if ended > bin.From {
			bin.To = min(bin.To, ended)
		}
		times := measure.Times{Answered: b.Answered, Failed: b.Failed}
		if ns, known := times.Quantile(0.5); known {
			bin.Median = seconds(max(ns, 1))
		}
		bins = append(bins, bin)
	}
	return bins
}

func rowOf(n uint64, b *measure.GrowthBin) run.GrowthRow {
	row := run.GrowthRow{N: n, Ended: b.Ended(), Failed: b.Failed}
	if b.Failed == 0 && b.Answered.Count() > 0 {
		row.Mean = number(seconds(b.Answered.Mean()))
	}
	times := measure.Times{Answered: b.Answered, Failed: b.Failed}
	row.P50, row.P99 = quantileOf(&times, 0.5), quantileOf(&times, 0.99)
	return row
}

// failures returns the reason why ops that failed, whose times are unknown, prevent a fit; none if no op failed.
func failures(g *run.Growth) (why reason.Why) {
	var failed uint64
	for _, row := range g.Course {
		failed += row.Failed
	}
	if failed == 0 {
		return reason.Why{}
	}
	return because(reason.OpsFailed, "%s of %s failed, and how long they would have taken is not known", quantity.Thousands(failed), quantity.Count(g.Ops, "op"))
}

// few returns the reason why there are too few ops for a fit; none if there are enough.
func few(g *run.Growth) (why reason.Why) {
	if g.Ops < leastForGrowth {
		return because(reason.TooFew, "%s; at least %d are needed", quantity.Count(g.Ops, "op"), leastForGrowth)
	}
	return reason.Why{}
}

func (b *builder) drift(at string, g *run.Growth, bins []stat.Bin) {
	for _, why := range []reason.Why{few(g), failures(g)} {
		if why.Text != "" {
			b.explain(at, why)
			return
		}
	}
	d := stat.Drift(bins)
	if math.IsNaN(d) || math.IsInf(d, 0) {
		b.null(at, reason.NoTime, "no op of the first or of the last twentieth took any time")
		return
	}
	g.Drift = number(d)
}

// fit finds the order of growth, or says why it cannot.
func (b *builder) fit(g *run.Growth, bins []stat.Bin) (fit stat.Growth, why reason.Why) {
	if why := few(g); why.Text != "" {
		return fit, why
	}
	fit, ok := stat.FitGrowth(bins, resolution)
	if !ok {
		return fit, because(reason.TooFew, "fewer than %d groups of the second half of the ops have a median that did not fail", stat.LeastForOrder)
	}
	return fit, reason.Why{}
}

// secondsTo fills in how long the number of ops that the plan asks about took or would take, or returns why that is unknown. Sessions work
// concurrently and think between ops, so the sum of the ops' own times is scaled to the duration of the phase.
func (b *builder) secondsTo(g *run.Growth, bins []stat.Bin, fit stat.Growth, unfit reason.Why) (why reason.Why) {
	spent := 0.0
	for _, bin := range bins {
		spent += bin.Time
	}
	wall, to := b.phase.Seconds/spent, float64(g.To)
	switch {
	case g.To == 0:
		return because(reason.NotApplicable, "growth has no attribute to")
	case b.kinds > 1:
		return because(reason.SharedTime, "several kinds of op share the phase's time")
	case failures(g).Text != "":
		return failures(g)
	case spent == 0:
		return because(reason.NoTime, "no op took any time")
	case to <= float64(g.Ops):
		took := number(wall * stat.Spent(bins, to))
		g.SecondsTo, g.SecondsToLo, g.SecondsToHi = took, took, took
		return reason.Why{}
	case unfit.Text != "":
		return unfit
	case to > farthest*float64(g.Ops):
		return because(reason.TooFar, "%s ops are more than %d times the %s that were run", quantity.Thousands(g.To), farthest, quantity.Thousands(g.Ops))
	}
	e := fit.SecondsTo(to)
	g.SecondsTo, g.SecondsToLo, g.SecondsToHi = number(wall*e.Value), number(wall*e.Low), number(wall*e.High)
	return reason.Why{}
}
