package report

import (
	"math"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/run"
)

// mostVariants is the most variants that a terminal shows in full detail: more would fill a page with numbers for each metric.
const mostVariants = 12

// inBrief returns the tables of an experiment with many variants: its plan's as they are, and one for each op, in which a variant has one line for
// all metrics.
func inBrief(x *run.Experiment) []run.Table {
	tables, comparisons := tables.Comparisons(x)
	for len(comparisons) > 0 {
		n, first := 1, &comparisons[0].Figures[0]
		for n < len(comparisons) && comparisons[n].Figures[0].Phase == first.Phase && comparisons[n].Figures[0].Op == first.Op {
			n++
		}
		tables = append(tables[:len(tables):len(tables)], briefTable(x, comparisons[:n]))
		comparisons = comparisons[n:]
	}
	return tables
}

// briefTable has a row for each variant: its mean rate, and its ratio to the baseline in each metric of an op.
func briefTable(x *run.Experiment, metrics []tables.Comparison) run.Table {
	first := &metrics[0].Figures[0]
	t := run.Table{
		Title: "phase " + first.Phase + ", " + first.Op + ": means, and geometric × " + x.Baseline,
		Notes: append(scatter(metrics),
			"* a difference was shown; ? suspect, ! invalid. Confidence intervals, p and the rest: loadgen report "+x.ID+" -o report.html (or .md)"),
	}
	for _, v := range x.Variants {
		t.Rows = append(t.Rows, run.TableRow{Name: v.Name})
	}
	for i := range metrics {
		c := &metrics[i]
		name := strings.ReplaceAll(c.Figures[0].Metric, ".", " ")
		if name == "rate" {
			t.Columns = append(t.Columns, run.Column{Name: "rate", Title: "rate /s"})
			for j := range t.Rows {
				t.Rows[j].Cells = append(t.Rows[j].Cells, briefScore(&c.Figures[j]))
			}
		}
		t.Columns = append(t.Columns, run.Column{Name: c.Figures[0].Metric, Title: name + relation(&c.Figures[0])})
		for j := range t.Rows {
			t.Rows[j].Cells = append(t.Rows[j].Cells, briefRatio(c, j, x.Baseline))
		}
	}
	return t
}

func briefScore(f *run.Figure) run.Cell {
	if f.Score == nil {
		return run.Cell{Reason: f.Nulls["score"]}
	}
	return run.Cell{Value: f.Score, Text: quantity.Whole(*f.Score) + f.Validity.Mark()}
}

// briefRatio returns a variant's ratio to the baseline, with a star if it differs.
func briefRatio(c *tables.Comparison, variant int, baseline string) run.Cell {
	f := &c.Figures[variant]
	switch {
	case f.Variant == baseline && f.Score != nil && f.Share():
		return run.Cell{Text: "0"}
	case f.Variant == baseline && f.Score != nil:
		return run.Cell{Text: "1"}
	case math.IsNaN(f.Above()):
		return run.Cell{Reason: f.Nulls["ratio"]}
	}
	text := c.Text(variant, "ratio") + f.Validity.Mark()
	if f.Differs {
		text += "*"
	}
	return run.Cell{Value: f.Ratio, Text: text}
}

// relation says how a metric's cells relate to the baseline's.
func relation(f *run.Figure) string {
	if f.Share() {
		return " +points"
	}
	return " ×"
}

// scatter says how much the runs of a variant differ, over all metrics of an op; "" if that is unknown.
func scatter(metrics []tables.Comparison) []string {
	least, most := math.Inf(1), 0.0
	for _, c := range metrics {
		for i := range c.Figures {
			if f := &c.Figures[i]; f.Spread != nil && !f.Share() {
				least, most = min(least, *f.Spread), max(most, *f.Spread)
			}
		}
	}
	if least > most {
		return nil
	}
	return []string{"spread between runs, by metric: " + quantity.Percent(least) + " to " + quantity.Percent(most)}
}
