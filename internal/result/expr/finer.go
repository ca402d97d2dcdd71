package expr

import (
	"math"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// inFiner lists the fields of a series' rows that a short phase's finer rows have.
var inFiner = []string{"t", "ok", "miss", "bad", "rate"}

// finerThanSeconds returns the length, in seconds, of the finer rows to draw a line over time with, instead of the rows of the phase's series.
// The finer rows of all runs of the variant can be joined to that length. It is 0 if a run has none, or if the line needs fields that they lack.
func finerThanSeconds(expr hclsyntax.Expression, v Variant, over plan.Over) (length float64) {
	steps := seriesOf(expr)[0]
	if over != plan.OverTime || len(steps) != 2 || steps[1] != "series" || !slices.ContainsFunc(v.Runs, isShort(steps[0])) {
		return 0
	}
	for _, traversal := range expr.Variables() {
		field, named := "", false
		if len(traversal) == 4 {
			field, named = nameOf(traversal[3])
		}
		if !named || !slices.Contains(inFiner, field) {
			return 0
		}
	}
	for _, r := range v.Runs {
		if !isShort(steps[0])(r) {
			return 0
		}
		length = max(length, r.Phase[steps[0]].Finer[0].T)
	}
	return length
}

func isShort(phase string) func(r *run.Run) bool {
	return func(r *run.Run) bool { return r.Phase[phase] != nil && len(r.Phase[phase].Finer) > 1 }
}

// finerRows returns a phase's finer rows, joined to the given length, which is a power of two times their own.
func finerRows(ph *run.Phase, length float64) (rows []cty.Value) {
	joined := min(length/ph.Finer[0].T, float64(len(ph.Finer))) // an imported result may have rows of any length
	for some := range slices.Chunk(ph.Finer, int(math.Round(joined))) {
		var ok, miss, bad uint64
		for _, row := range some {
			ok, miss, bad = ok+row.OK, miss+row.Miss, bad+row.Bad
		}
		rows = append(rows, cty.ObjectVal(map[string]cty.Value{
			"t": cty.NumberFloatVal(some[len(some)-1].T), "ok": cty.NumberUIntVal(ok), "miss": cty.NumberUIntVal(miss), "bad": cty.NumberUIntVal(bad),
		}))
	}
	return rows
}
