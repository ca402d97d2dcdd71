package expr

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Latencies returns the histogram, in nanoseconds, of an op's latency over all runs of a variant; nil if there is none. path is the latency's
// path below the op: response, latency.ok.service, acks.0.
type Latencies func(variant, phase, verb string, path ...string) *measure.Times

const (
	maxPoints  = 360 // points per line over time or ops
	curveNines = 4   // quantile curves go to p99.99
	curveSize  = 120 // points per quantile curve

	leastBeyond = 10 // samples that must lie beyond a drawn quantile, as in results
)

// CheckCharts returns all errors in the lines of charts, for a variant's plan, as CheckTables does for columns.
func CheckCharts(p *plan.Plan, charts []plan.Chart) hcl.Diagnostics {
	var all hcl.Diagnostics
	for _, c := range charts {
		u, ok := unitNamed(c.Unit)
		if !ok {
			all = append(all, placeAt(fmt.Sprintf("chart %q", c.Name), c.File, c.Line, unknownUnit(c.Unit)))
		}
		for _, l := range c.Lines {
			check := checkSeries
			switch {
			case c.Over == plan.OverQuantile:
				check = checkCurve
			case c.Over.Variable() != "":
				check = checkFigure
			case c.Over == plan.OverTime:
				check = checkTimed
			}
			for _, d := range check(p, l, u) {
				all = append(all, placeAt(fmt.Sprintf("chart %q, line %q", c.Name, l.Name), l.File, l.Line, d))
			}
		}
	}
	return all
}

func unknownUnit(name string) *hcl.Diagnostic {
	var names []string
	for _, u := range units[1:] {
		names = append(names, fmt.Sprintf("%q", u.name))
	}
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: fmt.Sprintf("unknown unit %q", name), Detail: "There are " + strings.Join(names, ", ") + "."}
}

// checkSeries checks a line over time or ops: a number from one row of one series.
func checkSeries(p *plan.Plan, l plan.Column, u unit) hcl.Diagnostics {
	rows := rowType(resultType(p).AttributeType("phase"))
	v, expr, diags := checkValue(p, l, columnContext(cty.UnknownVal(rows), nil, nil, nil), u)
	if diags.HasErrors() {
		return diags
	}
	const write = "Write a figure of a second, such as phase.NAME.series.rate."
	if diags := notNumber(expr, v, write); diags != nil {
		return diags
	}
	switch n := len(seriesOf(expr)); {
	case n == 0:
		return fault(expr, "the value is the same all the time", write)
	case n > 1:
		return fault(expr, "a line of several series, which have different clocks", "Write a line for each.")
	}
	return nil
}

// checkTimed checks a line over time. Rows by op number have no time.
func checkTimed(p *plan.Plan, l plan.Column, u unit) hcl.Diagnostics {
	diags := checkSeries(p, l, u)
	if expr, failed := parseColumn(l); !failed.HasErrors() && !diags.HasErrors() {
		if steps := seriesOf(expr)[0]; steps[len(steps)-1] == byOrdinal {
			return fault(expr, "a course has no time", `Write over = "ops".`)
		}
	}
	return diags
}

// checkFigure checks a line over a variable: one figure per variant.
func checkFigure(p *plan.Plan, l plan.Column, u unit) hcl.Diagnostics {
	phases := resultType(p).AttributeType("phase")
	v, expr, diags := checkValue(p, l, columnContext(cty.UnknownVal(phases), nil, nil, nil), u)
	if diags.HasErrors() {
		return diags
	}
	return notNumber(expr, v, "Write a figure of the phase, such as phase.NAME.seconds.")
}

// checkCurve checks a quantile curve: the name of a latency of an op.
func checkCurve(p *plan.Plan, l plan.Column, u unit) hcl.Diagnostics {
	phases := resultType(p).AttributeType("phase")
	_, expr, diags := checkValue(p, l, columnContext(cty.UnknownVal(phases), nil, nil, nil), unit{})
	if diags.HasErrors() {
		return diags
	}
	if _, _, _, ok := latencyPath(expr); !ok || !isLatency(expr, phases) {
		return fault(expr, "the value is not a latency of an op",
			"Write the name of one: phase.NAME.op.get.response, or its service, lag, latency.ok.response or acks[0].")
	}
	if u.kind != anything && u.kind != times {
		return fault(expr, fmt.Sprintf("%s cannot be shown in %q, which is for %s", times, u.name, u.kind), `Write "s", "ms" or "us", or leave it out.`)
	}
	return nil
}

// rowType returns the type of a result as seen from one row: each series is replaced by a row of it, and rows of a load have a rate.
func rowType(t cty.Type) cty.Type {
	if !t.IsObjectType() {
		return t
	}
	attrs := map[string]cty.Type{}
	for name, of := range t.AttributeTypes() {
		if isSeries(name) && of.IsListType() && of.ElementType().IsObjectType() {
			row := maps.Clone(of.ElementType().AttributeTypes())
			if _, load := row["ok"]; load {
				row["rate"] = cty.Number
			}
			attrs[name] = cty.Object(row)
			continue
		}
		attrs[name] = rowType(of)
	}
	return cty.Object(attrs)
}

// byOrdinal is the name of rows by op number; rows of series are by time.
const byOrdinal = "course"

func isSeries(name string) bool { return name == "series" || name == byOrdinal }

// seriesOf lists the series that an expression names, each as its steps below phase.
func seriesOf(expr hclsyntax.Expression) (all [][]string) {
	for _, traversal := range expr.Variables() {
		steps := stepsOf(traversal)[1:]
		n := slices.IndexFunc(steps, isSeries) + 1
		if n > 0 && !slices.ContainsFunc(all, func(other []string) bool { return slices.Equal(other, steps[:n]) }) {
			all = append(all, steps[:n])
		}
	}
	return all
}

// latencyPath splits phase.NAME.op.VERB.PATH.
func latencyPath(expr hclsyntax.Expression) (phase, verb string, path []string, ok bool) {
	x, plain := expr.(*hclsyntax.ScopeTraversalExpr)
	if !plain || x.Traversal.RootName() != "phase" || len(x.Traversal) < 5 {
		return "", "", nil, false
	}
	steps := stepsOf(x.Traversal)
	return steps[1], steps[3], steps[4:], steps[2] == "op" && !slices.Contains(steps, "")
}

// isLatency reports whether an expression leads to the summary of a histogram.
func isLatency(expr hclsyntax.Expression, phases cty.Type) bool {
	t := cty.Object(map[string]cty.Type{"phase": phases})
	for _, step := range expr.(*hclsyntax.ScopeTraversalExpr).Traversal {
		name, _ := nameOf(step)
		switch {
		case t.IsObjectType() && t.HasAttribute(name):
			t = t.AttributeType(name)
		case t.IsListType():
			t = t.ElementType()
		default:
			return false
		}
	}
	return t.IsObjectType() && t.HasAttribute("p999") && t.HasAttribute("count")
}

// Draw adds a chart to an experiment, with the plan's lines for each variant. Over time and ops a line is the mean of several runs; quantiles
// are those of all their ops together. A line without points has the reason.
func Draw(x *run.Experiment, c plan.Chart, variants []Variant) {
	out := run.Chart{Title: c.Title, Over: string(c.Over), Unit: c.Unit, Log: c.Log, Lines: []run.ChartLine{}}
	variants = slices.DeleteFunc(slices.Clone(variants), func(v Variant) bool { return !c.Draws(v.Name, valuesOf(x, v.Name)) })
	draw := func(name, variant string) func([]point, run.Cell) {
		return func(points []point, why run.Cell) {
			line := run.ChartLine{Name: name, Variant: variant, X: []float64{}, Y: []*float64{}}
			if len(points) == 0 {
				line.Reason, line.Cause = why.Reason, why.Cause
			}
			for _, p := range points {
				line.X, line.Y = append(line.X, p.x), append(line.Y, p.y)
			}
			out.Lines = append(out.Lines, line)
		}
	}
	if c.Over.Variable() != "" {
		for _, l := range c.Lines {
			for _, g := range groupsBy(x, variants, c) {
				label := strings.TrimPrefix(g.name+" "+l.Name, " ")
				if len(c.Lines) == 1 && g.name != "" {
					label = g.name
				}
				draw(label, g.first)(g.points(l))
			}
		}
	} else {
		for _, v := range variants {
			for _, l := range c.Lines {
				draw(l.Name, v.Name)(pointsOf(l, v, c.Over))
			}
		}
	}
	x.Charts = append(x.Charts, out)
}

// point is a point of a line; a nil y interrupts the line.
type point struct {
	x float64
	y *float64
}

// pointsOf returns the points of a line, or an empty cell that says why there are none.
func pointsOf(l plan.Column, v Variant, over plan.Over) (points []point, why run.Cell) {
	expr, diags := parseColumn(l)
	switch {
	case diags.HasErrors():
		return nil, run.Cell{Reason: explain(diags)}
	case len(v.Runs) == 0:
		return nil, run.Cell{Reason: "no run of this variant counts"}
	case over == plan.OverQuantile:
		points, none := curve(expr, v)
		return points, run.Cell{Reason: none}
	}
	return meanSeries(expr, v, over)
}

// curve returns the points of a quantile curve, up to where too few ops lie beyond or failed ops begin.
func curve(expr hclsyntax.Expression, v Variant) (points []point, why string) {
	phase, verb, path, _ := latencyPath(expr)
	var t *measure.Times
	if v.Latencies != nil {
		t = v.Latencies(v.Name, phase, verb, path...)
	}
	if t == nil || t.Answered.Count() == 0 {
		if why := v.Runs[0].Why(append([]string{"phase", phase, "op", verb}, path...)...).Text; why != "" {
			return nil, why
		}
		return nil, "there are no samples of it in the runs' snapshots"
	}
	for i := range curveSize + 1 {
		q := 1 - math.Pow(10, -curveNines*float64(i)/curveSize)
		ns, known := t.Quantile(q)
		if !known || float64(t.Count())*(1-q) < leastBeyond {
			break
		}
		y := float64(ns) / 1e9
		points = append(points, point{q, &y})
	}
	if points == nil {
		return nil, fmt.Sprintf("fewer than %d samples", leastBeyond)
	}
	return points, ""
}

// meanSeries evaluates an expression in each row of its series and returns the means over a variant's runs.
func meanSeries(expr hclsyntax.Expression, v Variant, over plan.Over) (points []point, why run.Cell) {
	var all [][]point
	finer := finerThanSeconds(expr, v, over)
	for _, r := range v.Runs {
		some, missing := seriesPoints(expr, v.Plan, r, over, finer)
		if why.Reason == "" {
			why = missing
		}
		all = append(all, some)
	}
	return orWhy(thinned(meanPoints(all)), why, "the phase was too short: it has no such second")
}

// orWhy returns the points of a line or, if it has none, why: the reason of the first missing one, or otherwise that there was nothing to draw.
func orWhy(points []point, why run.Cell, otherwise string) ([]point, run.Cell) {
	if slices.ContainsFunc(points, func(p point) bool { return p.y != nil }) {
		return points, run.Cell{}
	}
	why.Reason = cmp.Or(why.Reason, otherwise)
	return nil, why
}

// seriesPoints evaluates an expression in each row of its series or, if finer is not 0, in the finer rows of that length. why is the reason of
// the first missing point.
func seriesPoints(expr hclsyntax.Expression, p *plan.Plan, r *run.Run, over plan.Over, finer float64) (points []point, why run.Cell) {
	result, err := valueOf(p, r)
	if err != nil {
		return nil, run.Cell{Reason: err.Error()}
	}
	phases := result.GetAttr("phase")
	steps := seriesOf(expr)[0]
	rows, none := rowsAt(phases, steps, r)
	if none != "" {
		return nil, run.Cell{Reason: none}
	}
	if finer > 0 {
		rows = finerRows(r.Phase[steps[0]], finer)
	}
	ended := endedBy(r.Phase[steps[0]])
	from, widest := 0.0, 0.0
	for _, row := range rows {
		fields := row.AsValueMap()
		place := "t"
		if steps[len(steps)-1] == byOrdinal {
			place = "n"
		}
		t, _ := fields[place].AsBigFloat().Float64()
		if ok, load := fields["ok"]; load {
			n, _ := ok.AsBigFloat().Float64()
			widest = max(widest, t-from)
			fields["rate"] = cty.NullVal(cty.Number)
			if t-from > widest/2 { // the last row may be a fraction of a second
				fields["rate"] = cty.NumberFloatVal(n / (t - from))
			}
			from = t
		}
		one := point{x: t}
		if over == plan.OverOps && place == "t" {
			one.x = ended(t)
		}
		cell := valueAt(expr, columnContext(withRow(phases, steps, cty.ObjectVal(fields)), nil, nil, nil), r)
		if one.y = cell.Value; cell.Value == nil && why.Reason == "" {
			why = cell
		}
		points = append(points, one)
	}
	return points, why
}

// rowsAt returns the rows of a series, or why there are none.
func rowsAt(phases cty.Value, steps []string, r *run.Run) (rows []cty.Value, why string) {
	v := phases
	for i, name := range steps {
		if v.IsNull() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
			if why = r.Why(append([]string{"phase"}, steps[:i]...)...).Text; why == "" {
				why = "the run did not get there"
			}
			return nil, why
		}
		v = v.GetAttr(name)
	}
	if v.IsNull() || v.LengthInt() == 0 {
		return nil, "there are no seconds of it"
	}
	return v.AsValueSlice(), ""
}

// withRow replaces a series by one of its rows.
func withRow(v cty.Value, steps []string, row cty.Value) cty.Value {
	if len(steps) == 0 {
		return row
	}
	attrs := v.AsValueMap()
	attrs[steps[0]] = withRow(attrs[steps[0]], steps[1:], row)
	return cty.ObjectVal(attrs)
}

// endedBy returns a function that tells how many ops of a phase had ended by a time. Call it with increasing times.
func endedBy(ph *run.Phase) func(t float64) float64 {
	rest, n := ph.Series, 0.0
	return func(t float64) float64 {
		for len(rest) > 0 && rest[0].T <= t {
			n += float64(rest[0].OK + rest[0].Miss + rest[0].Bad)
			rest = rest[1:]
		}
		return n
	}
}

// meanPoints returns the mean of each point over the lines that have it.
func meanPoints(all [][]point) (points []point) {
	for i := 0; ; i++ {
		var some []point
		for _, of := range all {
			if i < len(of) {
				some = append(some, of[i])
			}
		}
		if some == nil {
			return points
		}
		points = append(points, meanPoint(some))
	}
}

func meanPoint(some []point) (mean point) {
	y, n := 0.0, 0
	for _, p := range some {
		mean.x += p.x / float64(len(some))
		if p.y != nil {
			y += *p.y
			n++
		}
	}
	if n > 0 {
		y /= float64(n)
		mean.y = &y
	}
	return mean
}

// thinned replaces neighbours by their mean, so that at most maxPoints are left.
func thinned(points []point) []point {
	each := (len(points) + maxPoints - 1) / maxPoints
	if each <= 1 {
		return points
	}
	var few []point
	for some := range slices.Chunk(points, each) {
		few = append(few, meanPoint(some))
	}
	return few
}
