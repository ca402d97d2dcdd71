package experiment

import (
	"fmt"
	"strings"

	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/result/run"
)

// tables makes a table for each phase, op and metric, with a row for each variant.
func tables(x *run.Experiment) []run.Table {
	var all []run.Table
	n := len(x.Variants)
	for i := 0; i+n <= len(x.Figures); i += n {
		all = append(all, tableOf(x, x.Figures[i:i+n]))
	}
	return all
}

// tableOf makes the table of one metric.
func tableOf(x *run.Experiment, figures []run.Figure) run.Table {
	first := figures[0]
	unit := first.Unit
	switch {
	case first.Share():
		unit = "%"
	case unit == "s":
		unit = timeUnit(figures)
	case unit == "B/s":
		unit = "MB/s"
	}
	against := run.Column{Name: "ratio", Title: "geometric × " + x.Baseline, Unit: "x"}
	if first.Share() {
		against = run.Column{Name: "ratio", Title: "points above " + x.Baseline}
	}
	t := run.Table{
		Title: fmt.Sprintf("phase %s, %s: %s, %s", first.Phase, first.Op, first.Metric, expr.UnitText(unit)),
		Columns: []run.Column{
			{Name: "score", Title: "mean ± 95 %", Unit: unit},
			{Name: "median", Title: "median", Unit: unit},
			against,
			{Name: "spread", Title: "spread"},
			{Name: "interval", Title: "95 % unadjusted"},
			{Name: "mde", Title: "MDE"},
			{Name: "p", Title: "p (Holm)"},
			{Name: "finding", Title: "finding"},
		},
		Notes: []string{},
	}
	for i := range figures {
		f := &figures[i]
		t.Rows = append(t.Rows, run.TableRow{Name: f.Variant, Cells: []run.Cell{
			score(f, unit),
			cell(f.Median, f.Nulls["median"], unit),
			atCell(f),
			relativeCell(f, f.Spread, f.Nulls["spread"]),
			interval95(f),
			mdeCell(f),
			cell(f.PHolm, f.Nulls["p_holm"], ""),
			{Text: f.Finding, Reason: f.Nulls["p"]},
		}})
	}
	return t
}

// timeUnit returns the unit that suits the first score.
func timeUnit(figures []run.Figure) string {
	for _, f := range figures {
		if f.Score != nil {
			return expr.UnitOf(*f.Score)
		}
	}
	return "s"
}

func cell(v *float64, why, unit string) run.Cell {
	if v == nil {
		return run.Cell{Reason: why}
	}
	return run.Cell{Value: v, Text: expr.Format(*v, unit)}
}

func score(f *run.Figure, unit string) run.Cell {
	c := cell(f.Score, f.Nulls["score"], unit)
	switch {
	case f.Score == nil || f.Error == nil:
	case f.Share() || *f.Error <= *f.Score:
		c.Text += " ± " + expr.Format(*f.Error, unit)
	default: // a time is not negative
		c.Text += " (0 to " + expr.Format(*f.Score+*f.Error, unit) + ")"
	}
	return c
}

// atCell returns the ratio to the baseline, or the difference of shares.
func atCell(f *run.Figure) run.Cell {
	if f.Difference != nil {
		return run.Cell{Value: f.Difference, Text: points(*f.Difference)}
	}
	return cell(f.Ratio, f.Nulls["ratio"], "x")
}

func interval95(f *run.Figure) run.Cell {
	switch {
	case f.DifferenceLo != nil && f.DifferenceHi != nil:
		return run.Cell{Text: points(*f.DifferenceLo) + " to " + points(*f.DifferenceHi)}
	case f.RatioLo == nil || f.RatioHi == nil:
		return run.Cell{Reason: f.Nulls["ratio_lo"]}
	}
	return run.Cell{Text: expr.Format(*f.RatioLo, "x") + " to " + expr.Format(*f.RatioHi, "x")}
}

// points formats a difference of shares, in percentage points.
func points(f float64) string { return expr.Format(100*f, "") }

// relativeCell returns a figure relative to the baseline: as a share of it or, of shares, in points.
func relativeCell(f *run.Figure, v *float64, why string) run.Cell {
	if v != nil && f.Difference != nil {
		return run.Cell{Value: v, Text: points(*v) + " points"}
	}
	return cell(v, why, "%")
}

// mdeCell returns the smallest difference that would be found. A value above mostMDE is shown as a bound only, as in findings.
func mdeCell(f *run.Figure) run.Cell {
	if f.MDE != nil && *f.MDE > mostMDE {
		return run.Cell{Value: f.MDE, Text: "> " + expr.Format(mostMDE, "%")}
	}
	return relativeCell(f, f.MDE, f.Nulls["mde"])
}

// mde returns the text of the smallest difference that would be found.
func mde(f *run.Figure) string { return strings.Replace(mdeCell(f).Text, "> ", "above ", 1) }
