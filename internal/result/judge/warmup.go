package judge

import (
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	leastForWarmUp = 50   // whole seconds of load needed to look for a warm-up: ten batches of MSER-5
	mostWarmUp     = 0.30 // share of the load's seconds; a load with a longer warm-up does not settle
	warmUpOfRate   = 0.02 // least difference of a warm-up, as a share of the rate
	warmUpOfP99    = 0.10 // the same, as a share of the p99 response
)

// FindWarmUp decides how much of a load's beginning its figures leave out: what the plan says or else, if the load is long enough, what MSER-5 finds
// in the rate or the p99 response of each second. The cut falls on the end of a row of the series.
func FindWarmUp(ph *plan.Phase, t *measure.Totals, series []run.Row) run.WarmUp {
	if asked := ph.WarmUp(); asked > 0 {
		i := slices.IndexFunc(series, func(r run.Row) bool { return r.T >= asked.Seconds() })
		if i < 0 || i == len(series)-1 {
			return run.WarmUp{By: "none", Code: reason.CutShort, Reason: fmt.Sprintf("the load ended before its warm-up of %v did", asked)}
		}
		return run.WarmUp{Seconds: series[i].T, By: "plan", Reason: fmt.Sprintf("warmup = %v, up to the end of that second", asked)}
	}
	if ph.Growth != nil {
		return run.WarmUp{By: "none", Code: reason.Growing, Reason: "growth is about what changes over time"}
	}
	if len(ph.Events) > 0 || ph.Closed != nil && len(ph.Closed.Stages) > 0 {
		return run.WarmUp{By: "none", Code: reason.Growing, Reason: "its events or stages are about what changes over time"}
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
	cut := stat.WarmUp(ratesOf(rows), warmUpOfRate, mostWarmUp)
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

func ratesOf(rows []second) (x []float64) {
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
