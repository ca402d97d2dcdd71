package judge

import (
	"fmt"
	"math"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

const leastForTrend = 10 // whole seconds of load needed to look for a drift

// steady describes the seconds after the warm-up.
func (p *phase) steady() {
	var rows []second
	series := p.counts.Series
	if p.counts.noWindow == "" {
		w, load := p.counts.window, p.counts.Load
		w.to = min(w.to, load.Span.Last-load.Origin)
		rows = w.seconds(series)
	}
	st := &p.Steady
	st.Seconds = len(rows) * int(stat.Spacing(series, run.Row.End))
	if len(rows) < leastForTrend {
		p.null("steady", reason.TooFew, fmt.Sprintf("%s of even load; at least %d are needed", quantity.Count(uint64(len(rows)), "whole second"), leastForTrend))
		return
	}
	st.Rate = p.trend("steady.rate", ratesOf(rows))
	var means []float64
	for _, r := range rows {
		if r.Response.Mean != nil {
			means = append(means, *r.Response.Mean)
		}
	}
	if len(means) < len(rows) {
		p.null("steady.response", reason.OpsFailed, "in some seconds no op ended ok or miss, or some failed")
		return
	}
	st.Response = p.trend("steady.response", means)
}

func (p *phase) trend(at string, series []float64) run.Trend {
	d := stat.Describe(series)
	if d.Mean == 0 {
		p.null(at, reason.NoOps, "its mean is 0")
		return run.Trend{}
	}
	t := run.Trend{Effective: number(d.Effective), CI95: number(d.HalfWidth / d.Mean), Drift: number(d.Drift / d.Mean), DriftP: number(d.P)}
	if math.IsNaN(d.Effective) {
		why := fmt.Sprintf("%s are so alike that they are worth fewer than 3 independent ones", quantity.Count(len(series), "neighbouring second"))
		if len(series) < stat.LeastForMean {
			why = fmt.Sprintf("%s are too few to have met rare stalls; at least %d are needed", quantity.Count(len(series), "second"), stat.LeastForMean)
		}
		t.Effective, t.CI95 = nil, nil
		p.null(at, reason.TooFew, why, ".effective", ".ci95")
	}
	return t
}

// queue computes the loops' time per op, and the lag that an M/D/1 queue with that service time would have: independent streams arrive at one server,
// whose load is the busiest loop's share of time.
func (p *phase) queue() {
	const cost, lag = "op_cost_seconds", "expected_lag_p99"
	g := &p.Generator
	var ended uint64
	for _, o := range p.counts.Load.Ops {
		if o != nil {
			ended += o.Due - o.Outcomes[driver.Shed] - uint64(o.InFlight)
		}
	}
	switch {
	case g.ProductiveSeconds == 0 || ended == 0:
		p.null(cost, reason.NoOps, "no op ended, or no loop had a thread of its own")
		p.null(lag, p.NullCodes[cost], p.Nulls[cost])
		return
	case p.Closed():
		p.null(lag, reason.NotApplicable, "a closed phase has no schedule")
	}
	p.OpCostSeconds = number(g.ProductiveSeconds / float64(ended))
	if !p.Closed() {
		const full = 0.99 // beyond it, a queue grows without end
		p.ExpectedLagP99 = number(*p.OpCostSeconds * stat.MD1Wait(math.Min(g.Busy, full), 0.99))
	}
}
