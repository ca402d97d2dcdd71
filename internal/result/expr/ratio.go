package expr

import (
	"fmt"
	"math"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// checkRatio returns an error if the last of some columns shows a ratio, and its value is not the variant's own: it is evaluated in each run.
func checkRatio(columns []plan.Column) *hcl.Diagnostic {
	last := columns[len(columns)-1]
	if last.Ratio == "" {
		return nil
	}
	if other := ofOthers(columns); other != "" {
		return &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: fmt.Sprintf("the value of a ratio refers to %s", other),
			Detail: "Write the variant's own figure: ratio says which variant's it is divided by.",
		}
	}
	return nil
}

// ofOthers returns the first name in the value of the last of some columns, or in those that it refers to, that is not of the variant itself.
func ofOthers(columns []plan.Column) string {
	last := len(columns) - 1
	expr, diags := parseColumn(columns[last])
	if diags.HasErrors() {
		return ""
	}
	for _, path := range expr.Variables() {
		root := path.RootName()
		if slices.Contains([]string{"baseline", "bound", "variant"}, root) {
			return root
		}
		at := slices.IndexFunc(columns[:last], func(c plan.Column) bool { return c.Name == root })
		switch {
		case at < 0:
		case columns[at].Ratio != "":
			return root
		default:
			if other := ofOthers(columns[:at+1]); other != "" {
				return other
			}
		}
	}
	return ""
}

// inEachRun returns the figure of the last of some columns in each run of a variant that has it.
func inEachRun(columns []plan.Column, v Variant) (values []float64) {
	for _, r := range v.Runs {
		ctx := columnContext(phasesOf(Variant{Plan: v.Plan, Runs: []*run.Run{r}}), nil, nil, nil)
		var cell run.Cell
		for _, c := range columns {
			cell = fill(c, ctx, r)
			ctx.Variables[c.Name] = cty.NullVal(cty.Number)
			if cell.Value != nil {
				ctx.Variables[c.Name] = cty.NumberFloatVal(*cell.Value)
			}
		}
		if cell.Value != nil {
			values = append(values, *cell.Value)
		}
	}
	return values
}

// ratioOf returns the ratio of a variant's figure b to another's, a: that of the geometric means over the runs of each, with its 95 % confidence
// interval by Welch's t test on logarithms, from `least` runs of each.
func ratioOf(a, b []float64, least int) run.Cell {
	for _, values := range [...]*[]float64{&a, &b} {
		logs := make([]float64, len(*values))
		for i, v := range *values {
			if logs[i] = math.Log(v); !(v > 0) {
				return run.Cell{Reason: "a ratio needs values above 0"}
			}
		}
		*values = logs
	}
	at := math.Exp(stat.Mean(b) - stat.Mean(a))
	cell := run.Cell{Value: &at, Text: Format(at, "x")}
	if min(len(a), len(b)) < least {
		return cell
	}
	w := stat.NewWelch(a, b, 0)
	if w.SE() == 0 {
		return cell
	}
	lo, hi := w.Interval(0.05)
	lo, hi = math.Exp(lo), math.Exp(hi)
	cell.Lo, cell.Hi = &lo, &hi
	cell.Text += " (" + Format(lo, "x") + " to " + Format(hi, "x") + ")"
	return cell
}

// ratios fills a column of ratios, the last of some: a cell for each variant. base is the baseline's index, rows hold the columns before.
func ratios(columns []plan.Column, variants []Variant, rows []map[string]cty.Value, base int) (cells []run.Cell) {
	of := columns[len(columns)-1].Ratio
	figures := make([][]float64, len(variants))
	for i, v := range variants {
		figures[i] = inEachRun(columns, v)
	}
	for i, v := range variants {
		other := base
		_, not := beside(variants, rows, i, base)
		if of == plan.RatioToBound {
			other = v.Bound
			_, not = besideBound(variants, rows, i)
		}
		cell := run.Cell{Reason: "no run of this variant has the figure"}
		switch {
		case other < 0:
			cell.Reason = "this variant has no bound"
		case other == i:
			cell.Reason = "it is the " + of
		case not != "":
			cell.Reason = not
		case len(figures[other]) == 0:
			cell.Reason = fmt.Sprintf("no run of %s has the figure", variants[other].Name)
		case len(figures[i]) > 0:
			cell = ratioOf(figures[other], figures[i], stat.LeastRounds(len(variants)))
		}
		cells = append(cells, cell)
	}
	return cells
}
