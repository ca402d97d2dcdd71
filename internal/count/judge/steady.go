package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	leastForTrend  = 10   // whole seconds of load needed to look for a drift
	leastForWarmUp = 50   // and for a warm-up: ten batches of MSER-5
	mostWarmUp     = 0.30 // of the seconds; a load with a longer warm-up does not settle
	warmUpOfRate   = 0.02 // least difference of a warm-up, as a share of the rate
	warmUpOfP99    = 0.10 // and of the p99 response
)

// FindWarmUp decides how much of a load's beginning its figures leave out: what the plan says, or else what MSER-5 finds in the rate or the p99
// response per second, if the load is long enough. The cut falls on the end of a row of the series.
func FindWarmUp(ph *plan.Phase, t *measure.Totals, series []run.Row) run.WarmUp {
	if asked := ph.WarmUp(); asked > 0 {
		i := slices.IndexFunc(series, func(r run.Row) bool { return r.T >= asked.Seconds() })
		if i < 0 || i == len(series)-1 {
			return run.WarmUp{By: "none", Code: reason.CutShort, Reason: fmt.Sprintf("the load ended before its warm-up of %v did", asked)}
		}
		return run.WarmUp{Seconds: series[i].T, By: "plan", Reason: fmt.Sprintf("warmup = %v, up to the end of that second", asked)}
	}
	if ph.Growth != nil {
		return run.WarmUp{By: "none", Code: reason.Growing, Reason: "what changes over time is what growth is of"}
	}
	if len(ph.Events) > 0 {
		return run.WarmUp{By: "none", Code: reason.Growing, Reason: "what changes over time is what its events are about"}
	}
	var shape pace.Shape
	if ph.Open != nil {
		shape = pace.Shape(ph.Open.Shape())
	}
	w, why := plateau(ph, shape, t, true)
	if why != "" {
		return run.WarmUp{By: "none", Code: reason.NoPlateau, Reason: why}
	}
	rows := w.seconds(series)
	if len(rows) < leastForWarmUp {
		return run.WarmUp{By: "none", Code: reason.TooShort, Reason: fmt.Sprintf("shorter than %d whole seconds", leastForWarmUp)}
	}
	length := int(stat.Spacing(series, run.Row.End))
	cut := stat.WarmUp(rates(rows), warmUpOfRate, mostWarmUp)
	if p99 := p99s(rows); p99 != nil {
		cut = max(cut, stat.WarmUp(p99, warmUpOfP99, mostWarmUp))
	}
	switch {
	case cut == 0:
		return run.WarmUp{By: "none", Code: reason.AlreadySteady, Reason: "MSER-5 finds nothing to cut"}
	case float64(cut) > mostWarmUp*float64(len(rows)):
		return run.WarmUp{By: "none", Code: reason.NeverSettled, Reason: fmt.Sprintf("never settled: MSER-5 would cut %d s of %d s", cut*length, len(rows)*length)}
	}
	return run.WarmUp{Seconds: rows[cut-1].T, By: "mser-5", Reason: fmt.Sprintf("MSER-5 cuts %d s of %d s", cut*length, len(rows)*length)}
}

// second is a row that lies wholly in the plateau, with its length in seconds.
type second struct {
	run.Row
	length float64
}

// seconds returns the rows that lie in the window and are about as long as most, usually a second.
func (w window) seconds(series []run.Row) (list []second) {
	from, least := 0.0, stat.Spacing(series, run.Row.End)/2
	for _, r := range series {
		length := r.T - from
		if from >= seconds(w.from) && r.T <= seconds(w.to) && length > least {
			list = append(list, second{r, length})
		}
		from = r.T
	}
	return list
}

func rates(rows []second) (x []float64) {
	for _, r := range rows {
		x = append(x, float64(r.OK+r.Miss)/r.length)
	}
	return x
}

// p99s returns the p99 responses, or nil if a second has none.
func p99s(rows []second) (x []float64) {
	for _, r := range rows {
		if r.Response.P99 == nil {
			return nil
		}
		x = append(x, *r.Response.P99)
	}
	return x
}

// warmUp leaves the warm-up out of rates and latencies.
func (b *builder) warmUp(m Measured) {
	b.phase.WarmUp = m.WarmUp
	if m.WarmUp.By == "" {
		b.phase.WarmUp = run.WarmUp{By: "none", Code: reason.NotLookedFor, Reason: "not looked for"}
	}
	if m.Settled == nil {
		return
	}
	b.settled = m.Settled
	for v, o := range b.settled.Ops { // in_flight at the end is that of the whole load
		if all := b.totals.Ops[v]; o != nil && all != nil {
			o.InFlight = all.InFlight
		}
	}
	for i, o := range b.settled.Scenarios {
		o.InFlight = b.totals.Scenarios[i].InFlight
		for j, step := range o.Steps {
			step.InFlight = stepOf(b.totals.Scenarios[i], j).InFlight
		}
	}
	if b.window.from = max(b.window.from, int64(m.WarmUp.Seconds*1e9)); b.noWindow == "" && b.window.to <= b.window.from {
		b.noWindow = "no plateau: the warm-up did not end before it"
	}
}

// steady describes the seconds after the warm-up.
func (b *builder) steady(series []run.Row) {
	var rows []second
	if b.noWindow == "" {
		w := b.window
		w.to = min(w.to, b.totals.Span.Last-b.totals.Origin)
		rows = w.seconds(series)
	}
	st := &b.phase.Steady
	st.Seconds = len(rows) * int(stat.Spacing(series, run.Row.End))
	if len(rows) < leastForTrend {
		b.null("steady", reason.TooFew, fmt.Sprintf("%s of even load; it takes %d", quantity.Count(uint64(len(rows)), "whole second"), leastForTrend))
		return
	}
	st.Rate = b.trend("steady.rate", rates(rows))
	var means []float64
	for _, r := range rows {
		if r.Response.Mean != nil {
			means = append(means, *r.Response.Mean)
		}
	}
	if len(means) < len(rows) {
		b.null("steady.response", reason.OpsFailed, "in some seconds no op ended ok or miss, or some failed")
		return
	}
	st.Response = b.trend("steady.response", means)
}

func (b *builder) trend(at string, series []float64) run.Trend {
	d := stat.Describe(series)
	if d.Mean == 0 {
		b.null(at, reason.NoOps, "its mean is 0")
		return run.Trend{}
	}
	t := run.Trend{Effective: number(d.Effective), CI95: number(d.HalfWidth / d.Mean), Drift: number(d.Drift / d.Mean), DriftP: number(d.P)}
	if math.IsNaN(d.Effective) {
		why := fmt.Sprintf("%s are so much alike that they are worth fewer than 3 independent ones", quantity.Count(len(series), "neighbouring second"))
		if len(series) < stat.LeastForMean {
			why = fmt.Sprintf("%s do not tell how much neighbours are alike; it takes %d", quantity.Count(len(series), "second"), stat.LeastForMean)
		}
		t.Effective, t.CI95 = nil, nil
		b.null(at+".effective", reason.TooFew, why)
		b.null(at+".ci95", reason.TooFew, why)
	}
	return t
}

// queue says what an op cost the loops, and the lag that an M/D/1 queue with that service time would have had: arrivals of independent streams at one
// server, with the busiest loop's share of time as its load.
func (b *builder) queue() {
	const cost, lag = "op_cost_seconds", "expected_lag_p99"
	g, p := &b.phase.Generator, b.phase
	var ended uint64
	for _, o := range b.totals.Ops {
		if o != nil {
			ended += o.Due - o.Outcomes[driver.Shed] - uint64(o.InFlight)
		}
	}
	switch {
	case g.ProductiveSeconds == 0 || ended == 0:
		b.null(cost, reason.NoOps, "no op ended, or no loop had a thread of its own")
		b.null(lag, p.NullCodes[cost], p.Nulls[cost])
		return
	case p.Closed():
		b.null(lag, reason.NotApplicable, "a closed phase has no schedule")
	}
	p.OpCostSeconds = number(g.ProductiveSeconds / float64(ended))
	if !p.Closed() {
		const full = 0.99 // beyond it, a queue grows without end
		p.ExpectedLagP99 = number(*p.OpCostSeconds * stat.MD1Wait(math.Min(g.Busy, full), 0.99))
	}
}
