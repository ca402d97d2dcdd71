package experiment

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/table"
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
	switch unit {
	case "s":
		unit = timeUnit(figures)
	case "":
		unit = "%"
	}
	of := fmt.Sprintf("one value per repetition, %d at most", x.Repeat)
	if first.PerSecond {
		of = "values of single seconds"
	}
	t := run.Table{
		Title: fmt.Sprintf("phase %s, %s: %s, %s; %s", first.Phase, first.Op, first.Metric, table.UnitText(unit), of),
		Columns: []run.Column{
			{Name: "score", Title: "mean ± 99.9 %", Unit: unit},
			{Name: "median", Title: "median", Unit: unit},
			{Name: "ratio", Title: "× " + x.Baseline, Unit: "x"},
			{Name: "interval", Title: "95 % CI"},
			{Name: "spread", Title: "spread", Unit: "%"},
			{Name: "mde", Title: "MDE", Unit: "%"},
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
			cell(f.Ratio, f.Nulls["ratio"], "x"),
			interval95(f),
			cell(f.Spread, f.Nulls["spread"], "%"),
			mdeCell(f),
			cell(f.PHolm, f.Nulls["p_holm"], ""),
			{Text: f.Finding},
		}})
	}
	return t
}

// timeUnit returns the unit that suits the first score.
func timeUnit(figures []run.Figure) string {
	for _, f := range figures {
		if f.Score != nil {
			return table.UnitOf(*f.Score)
		}
	}
	return "s"
}

func cell(v *float64, why, unit string) run.Cell {
	if v == nil {
		return run.Cell{Reason: why}
	}
	return run.Cell{Value: v, Text: table.Format(*v, unit)}
}

func score(f *run.Figure, unit string) run.Cell {
	c := cell(f.Score, f.Nulls["score"], unit)
	if f.Score != nil && f.Error != nil {
		c.Text += " ± " + table.Format(*f.Error, unit)
	}
	return c
}

func interval95(f *run.Figure) run.Cell {
	if f.RatioLo == nil || f.RatioHi == nil {
		return run.Cell{Reason: f.Nulls["ratio_lo"]}
	}
	return run.Cell{Text: table.Format(*f.RatioLo, "x") + " to " + table.Format(*f.RatioHi, "x")}
}

// mdeCell returns the smallest difference that would be shown. A value above mostMDE is only said to be large, as in findings.
func mdeCell(f *run.Figure) run.Cell {
	if f.MDE != nil && *f.MDE > mostMDE {
		return run.Cell{Value: f.MDE, Text: "> " + share(mostMDE)}
	}
	return cell(f.MDE, f.Nulls["mde"], "%")
}

// share formats a share.
func share(f float64) string { return table.Format(f, "%") }
