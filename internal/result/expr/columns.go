package expr

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Wanted holds the tables and charts that a plan wants of its experiment.
type Wanted struct {
	Tables []plan.Table
	Charts []plan.Chart
}

// CheckTables returns all errors in the columns of tables, for a variant's plan: a name that is neither in the result nor an earlier column
// nor a variant, a value that is not a number, a unit that is unknown or does not fit. Subjects are as in Check.
func CheckTables(p *plan.Plan, tables []plan.Table, variants []plan.Variant) hcl.Diagnostics {
	var all hcl.Diagnostics
	phases := resultType(p).AttributeType("phase")
	for _, t := range tables {
		earlier := map[string]cty.Value{}
		for i, c := range t.Columns {
			ctx := columnContext(cty.UnknownVal(phases), earlier, earlier, earlier)
			rows := map[string]cty.Value{}
			for _, v := range variants {
				rows[v.Name] = cty.ObjectVal(earlier)
			}
			ctx.Variables["variant"] = cty.ObjectVal(rows)
			found := checkColumn(p, c, ctx)
			if d := checkRatio(t.Columns[:i+1]); d != nil {
				found = append(found, d)
			}
			for _, d := range found {
				all = append(all, placeAt(fmt.Sprintf("table %q, column %q", t.Name, c.Name), c.File, c.Line, d))
			}
			earlier[c.Name] = cty.UnknownVal(cty.DynamicPseudoType)
		}
	}
	return all
}

// CheckCompared returns an error for each metric that an experiment names and no op has.
func CheckCompared(p *plan.Plan, e *plan.Experiment) (all hcl.Diagnostics) {
	var names []string
	for _, m := range metric.Op(p.QuantileNames()...) {
		if m.Compared != metric.NotCompared {
			names = append(names, m.Name)
		}
	}
	for _, name := range e.Compare {
		if !slices.Contains(names, name) {
			instead := dialect.Instead(name, names, "%q")
			if m, known := metric.Named(name); known && m.Compared != metric.NotCompared {
				instead = "Name that quantile in the plan block: quantiles = [0.5, 0.95, 0.999]."
			}
			all = append(all, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "experiment: compare: unknown metric " + dialect.Quote(name), Detail: instead, Subject: e.CompareAt.Ptr(),
			})
		}
	}
	return all
}

func checkColumn(p *plan.Plan, c plan.Column, ctx *hcl.EvalContext) hcl.Diagnostics {
	u, known := unitNamed(c.Unit)
	v, expr, diags := checkValue(p, c, ctx, u)
	if diags.HasErrors() {
		return diags
	}
	if v.Type() == cty.String && c.Unit == "" && c.Confidence == 0 {
		return nil
	}
	if diags = notNumber(expr, v, "Write a figure, such as phase.NAME.op.get.rate."); diags == nil && !known {
		diags = hcl.Diagnostics{unknownUnit(c.Unit)}
	}
	return diags
}

// checkValue checks the names in an expression, and that its kind of quantity fits a unit.
func checkValue(p *plan.Plan, c plan.Column, ctx *hcl.EvalContext, u unit) (cty.Value, hclsyntax.Expression, hcl.Diagnostics) {
	expr, diags := parseColumn(c)
	if diags = checkPaths(expr, diags, ctx); diags.HasErrors() {
		return cty.NilVal, nil, diags
	}
	if of := kindOf(p, expr); u.kind != anything && of != anything && of != u.kind {
		return cty.NilVal, nil, fault(expr, fmt.Sprintf("%s cannot be shown in %q, which is for %s", of, u.name, u.kind), "Write another unit, or leave it out.")
	}
	v, diags := expr.Value(ctx)
	return v, expr, diags
}

// kindOf derives a figure's kind from its name in the result. For a computed value it is anything.
func kindOf(p *plan.Plan, expr hclsyntax.Expression) kind {
	x, ok := expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok || x.Traversal.RootName() != "phase" {
		return anything
	}
	path := stepsOf(x.Traversal)
	if k, observed := kindObserved(p, path); observed {
		return k
	}
	return kindNamed(path[len(path)-1])
}

// kindNamed derives a figure's kind from the last part of its name.
func kindNamed(name string) kind {
	switch {
	case name == "seconds", strings.HasSuffix(name, "_seconds"):
		return times
	case name == "busy":
		return shares
	case name == "bytes_per_second", strings.HasPrefix(name, "bytes_") && strings.HasSuffix(name, "_rate"):
		return speeds
	case strings.HasPrefix(name, "bytes_"), strings.HasSuffix(name, "_bytes"):
		return sizes
	}
	return map[string]kind{"/s": rates, "s": times, "share": shares}[listed(name)]
}

// listed returns the unit, without what is counted, of metrics whose names end in the given one; "" if there is none.
func listed(name string) (unit string) {
	of := func(path, of string) {
		if path[strings.LastIndexByte(path, '.')+1:] == name {
			unit = of[max(strings.LastIndexByte(of, '/'), 0):]
		}
	}
	for _, m := range metric.Op(name) {
		of(m.Name, m.Unit)
	}
	for _, m := range metric.Phase() {
		of(m.Name, m.Unit)
	}
	return unit
}

// kindObserved derives the kind of an observation's figure from its field's unit. Such figures are below phase.NAME.observe.OBSERVATION.FIELD
// or at phase.NAME.probes.OBSERVATION.series.value.FIELD.
func kindObserved(p *plan.Plan, steps []string) (k kind, observed bool) {
	if len(steps) < 6 || steps[2] != "observe" && (steps[2] != "probes" || len(steps) < 7) {
		return anything, false
	}
	field, kinds := steps[4], map[string]kind{"bytes": sizes, "s": times, "us": micros} // by the field's unit
	switch {
	case steps[2] == "probes":
		field = steps[6]
	case steps[5] == "rate":
		kinds = map[string]kind{"": rates, "s": shares}
	}
	if o := p.Observe(steps[3]); o != nil {
		for _, f := range o.Fields {
			if f.Name == field {
				return kinds[f.Unit], true
			}
		}
	}
	return anything, true
}

func parseColumn(c plan.Column) (hclsyntax.Expression, hcl.Diagnostics) {
	return hclsyntax.ParseExpression([]byte(c.Value), c.File, hcl.Pos{Line: c.Line, Column: 1})
}

// columnContext gives a column access to the phases of its variant, the columns before it, and those of the baseline and the variant's bound.
func columnContext(phases cty.Value, row, baseline, bound map[string]cty.Value) *hcl.EvalContext {
	variables := map[string]cty.Value{"phase": phases, "baseline": cty.ObjectVal(baseline), "bound": cty.ObjectVal(bound)}
	maps.Copy(variables, row)
	return &hcl.EvalContext{Variables: variables, Functions: dialect.Functions()}
}

// Variant holds the data of a row.
type Variant struct {
	Name string
	Plan *plan.Plan // may be nil without runs, if unknown
	Runs []*run.Run // the runs that count

	Bound     int       // index of its bound among the variants; negative for none
	Latencies Latencies // of all runs together; for quantiles in charts
}

// Fill makes a table: a row for each variant, and one for each expected row; base is the baseline's index. A figure of several runs is the
// mean of the runs' figures. A figure that is not available is blank, with the reason.
func Fill(t plan.Table, variants []Variant, base int) run.Table {
	out := run.Table{Title: t.Name, Transpose: t.Transpose, Notes: []string{}}
	rows := make([]map[string]cty.Value, len(variants))
	doubtful := make(doubts, len(variants))
	phases := make([]cty.Value, len(variants))
	for i, v := range variants {
		rows[i], phases[i], doubtful[i] = map[string]cty.Value{}, phasesOf(v), map[string]run.Validity{}
		out.Rows = append(out.Rows, run.TableRow{Name: v.Name})
	}
	for n, c := range t.Columns {
		out.Columns = append(out.Columns, run.Column{Name: c.Name, Title: headed(c), Unit: c.Unit})
		values := make([]cty.Value, len(variants))
		var ofEach []run.Cell
		if c.Ratio != "" {
			ofEach = ratios(t.Columns[:n+1], variants, rows, base)
		}
		doubtful.add(c, variants, base)
		for i, v := range variants {
			cell := run.Cell{Reason: "no run of this variant counts"}
			if len(v.Runs) > 0 {
				baseline, notBaseline := beside(variants, rows, i, base)
				bound, notBound := besideBound(variants, rows, i)
				ctx := columnContext(phases[i], rows[i], baseline, bound)
				others, notOthers := rowsByName(variants, rows, i)
				ctx.Variables["variant"] = others
				cell = fill(c, ctx, v.Runs[0])
				if ofEach != nil && cell.Value != nil {
					cell = ofEach[i]
				}
				excuse(&cell, c, "baseline", notBaseline)
				excuse(&cell, c, "bound", notBound)
				for name, why := range notOthers {
					excuse(&cell, c, "variant", why, name)
				}
				if c.Confidence > 0 && cell.Value != nil {
					cell.Text += interval(c, v, ctx, cell.Value)
				}
			}
			if cell.Text != "" {
				cell.Text += doubtful[i][c.Name].Mark()
			}
			values[i] = cty.NullVal(cty.Number)
			if cell.Value != nil {
				values[i] = cty.NumberFloatVal(*cell.Value)
			}
			out.Rows[i].Cells = append(out.Rows[i].Cells, cell)
		}
		for i := range rows { // only now, so that a column does not see itself in the baseline
			rows[i][c.Name] = values[i]
		}
	}
	if doubtful.any() {
		out.Notes = append(out.Notes, "? suspect, ! invalid")
	}
	out.Rows = slices.DeleteFunc(out.Rows, func(row run.TableRow) bool { return !t.Shows(row.Name) })
	for _, e := range t.Expected {
		out.Rows = append(out.Rows, expectedRow(t, e))
		if note := "* not measured here: " + e.Source; !slices.Contains(out.Notes, note) {
			out.Notes = append(out.Notes, note)
		}
	}
	return out
}

// doubts holds, for each variant and column so far, how far the figure can be trusted.
type doubts []map[string]run.Validity

// add adds a column: its figures can be trusted no further than the figures that they are computed from, in any of the runs.
func (d doubts) add(c plan.Column, variants []Variant, base int) {
	own := make([]run.Validity, len(variants))
	for i := range variants {
		own[i] = d.named(c, variants, i, base)
	}
	for i := range variants {
		d[i][c.Name] = own[i]
		other := map[string]int{"": -1, "baseline": base, "bound": variants[i].Bound}[c.Ratio]
		if other >= 0 {
			d[i][c.Name] = own[i].And(own[other])
		}
	}
}

// named returns how far the figures can be trusted that a column's expression names.
func (d doubts) named(c plan.Column, variants []Variant, i, base int) run.Validity {
	expr, _ := parseColumn(c)
	worst := run.Valid
	for _, traversal := range expr.Variables() {
		path := stepsOf(traversal)
		row, column := i, path[len(path)-1]
		switch {
		case path[0] == "phase" && len(path) > 1:
			for _, r := range variants[i].Runs {
				if ph := r.Phase[path[1]]; ph != nil {
					worst = worst.And(ph.ValidityOf(strings.Join(path[2:], ".")))
				}
			}
			continue
		case path[0] == "baseline":
			row = base
		case path[0] == "bound":
			row = variants[i].Bound
		case path[0] == "variant" && len(path) > 1:
			row = slices.IndexFunc(variants, func(v Variant) bool { return v.Name == path[1] })
		}
		if row >= 0 {
			if v, ok := d[row][column]; ok {
				worst = worst.And(v)
			}
		}
	}
	return worst
}

// any reports whether any figure is in doubt.
func (d doubts) any() bool {
	return slices.ContainsFunc(d, func(row map[string]run.Validity) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(row)), func(v run.Validity) bool { return v.Worse(run.Valid) })
	})
}

// beside returns the columns so far of another variant, for comparison with variant i. They are empty if there is no other, or if the two
// are not comparable because they wrote logs with different durability; why then says so.
func beside(variants []Variant, rows []map[string]cty.Value, i, other int) (row map[string]cty.Value, why string) {
	if other < 0 {
		return none(rows[i]), ""
	}
	if own, its := syncs(variants[i]), syncs(variants[other]); own != its && len(variants[other].Runs) > 0 {
		return none(rows[i]), fmt.Sprintf("not comparable, sync used is %s, and %s in %s", own, its, variants[other].Name)
	}
	return rows[other], ""
}

// besideBound is beside for the bound of variant i, whose logs must also have entries of the same size.
func besideBound(variants []Variant, rows []map[string]cty.Value, i int) (row map[string]cty.Value, why string) {
	other := variants[i].Bound
	row, why = beside(variants, rows, i, other)
	if other < 0 || why != "" {
		return row, why
	}
	if own, its := entrySizes(variants[i]), entrySizes(variants[other]); !slices.Equal(own, its) && len(variants[other].Runs) > 0 {
		return none(rows[i]), fmt.Sprintf("no bound, entries have %s, and %s in %s", strings.Join(own, " or "), strings.Join(its, " or "), variants[other].Name)
	}
	return row, ""
}

// entrySizes lists the sizes of the log entries of a variant's runs, each once.
func entrySizes(v Variant) []string {
	return ofLogs(v, func(p *run.Phase) string { return p.Log.EntrySize() })
}

// ofLogs lists a property of the logs of a variant's runs, each value once, sorted.
func ofLogs[T cmp.Ordered](v Variant, of func(p *run.Phase) T) (all []T) {
	for _, r := range v.Runs {
		for _, name := range r.PhaseOrder {
			if p := r.Phase[name]; p != nil && p.Log != nil && !slices.Contains(all, of(p)) {
				all = append(all, of(p))
			}
		}
	}
	slices.Sort(all)
	return all
}

// syncs lists the durabilities that the logs of a variant's runs used; "none at all" without logs.
func syncs(v Variant) string {
	used := ofLogs(v, func(p *run.Phase) string { return p.Log.SyncUsed })
	if used == nil {
		return "none at all"
	}
	return strings.Join(used, " or ")
}

// excuse sets an empty cell's reason to why, if the column refers to row, or to row.NAME….
func excuse(cell *run.Cell, c plan.Column, row, why string, name ...string) {
	if why == "" || cell.Value != nil || cell.Text != "" {
		return
	}
	expr, _ := parseColumn(c)
	names := append([]string{row}, name...)
	if slices.ContainsFunc(expr.Variables(), func(path hcl.Traversal) bool {
		return len(path) >= len(names) && slices.Equal(stepsOf(path[:len(names)]), names)
	}) {
		cell.Reason = why
	}
}

// rowsByName returns the columns so far of each variant that is comparable with variant i, and why the others are not.
func rowsByName(variants []Variant, rows []map[string]cty.Value, i int) (cty.Value, map[string]string) {
	all, not := map[string]cty.Value{}, map[string]string{}
	for n, v := range variants {
		row, why := beside(variants, rows, i, n)
		if why != "" {
			not[v.Name] = why
		}
		all[v.Name] = cty.ObjectVal(row)
	}
	return cty.ObjectVal(all), not
}

// none returns a row with the same names and no values.
func none(row map[string]cty.Value) map[string]cty.Value {
	all := map[string]cty.Value{}
	for name := range row {
		all[name] = cty.NullVal(cty.Number)
	}
	return all
}

// interval returns the confidence interval of a figure's mean over a variant's runs, by Student's t; "" if fewer than two have the figure. It
// writes half of the interval's width or, for a time whose interval would reach below 0, the interval from 0 on.
func interval(c plan.Column, v Variant, ctx *hcl.EvalContext, mean *float64) string {
	var values []float64
	for _, r := range v.Runs {
		of := &hcl.EvalContext{Variables: maps.Clone(ctx.Variables), Functions: ctx.Functions}
		of.Variables["phase"] = phasesOf(Variant{Plan: v.Plan, Runs: []*run.Run{r}})
		if cell := fill(c, of, r); cell.Value != nil {
			values = append(values, *cell.Value)
		}
	}
	if len(values) < 2 {
		return ""
	}
	_, half := stat.MeanWithin(values, 1-c.Confidence)
	if figure, diags := parseColumn(c); mean != nil && half > *mean && !diags.HasErrors() && v.Plan != nil && kindOf(v.Plan, figure) == times {
		return " (0 to " + Format(*mean+half, c.Unit) + ")"
	}
	return " ± " + Format(half, c.Unit)
}

// headed returns a column's title, with its unit and the kind of interval that follows its figures.
func headed(c plan.Column) string {
	switch {
	case c.Confidence > 0:
		return fmt.Sprintf("%s ± %.6g %%", titled(c), 100*c.Confidence)
	case c.Ratio != "":
		return titled(c) + " (95 %)"
	}
	return titled(c)
}

// titled returns a column's title with its unit, unless the title ends in it.
func titled(c plan.Column) string {
	unit := UnitText(c.Unit)
	if unit == "" || unit == "%" || unit == "x" || c.Title == unit {
		return c.Title
	}
	for _, end := range []string{unit, c.Unit} {
		if !strings.HasPrefix(end, "/") {
			end = " " + end // "hits" does not end in a unit
		}
		if strings.HasSuffix(c.Title, end) {
			return c.Title
		}
	}
	return c.Title + " " + unit
}

func expectedRow(t plan.Table, e plan.Expected) run.TableRow {
	row := run.TableRow{Name: e.Name, Elsewhere: true}
	for _, c := range t.Columns {
		cell := run.Cell{Reason: "not given"}
		if f, ok := e.Values[c.Name]; ok {
			cell = run.Cell{Value: &f, Text: shown(f, c.Unit)}
		}
		row.Cells = append(row.Cells, cell)
	}
	return row
}

// fill evaluates a column for one variant; r is one of its runs, to say why something is missing.
func fill(c plan.Column, ctx *hcl.EvalContext, r *run.Run) run.Cell {
	expr, diags := parseColumn(c)
	if diags.HasErrors() {
		return run.Cell{Reason: explain(diags)}
	}
	cell := valueAt(expr, ctx, r)
	if cell.Value != nil {
		cell.Text = shown(*cell.Value, c.Unit)
	}
	return cell
}

// valueAt evaluates an expression to a number, or gives the reason why there is none.
func valueAt(expr hclsyntax.Expression, ctx *hcl.EvalContext, r *run.Run) run.Cell {
	if _, null := look(expr, ctx, r); null.Reason != "" {
		return null
	}
	if zeroDivisor(expr, ctx) != nil {
		return run.Cell{Reason: "division by 0"}
	}
	v, diags := expr.Value(ctx)
	if diags.HasErrors() {
		return run.Cell{Reason: explain(diags)}
	}
	if v.Type() == cty.String && !v.IsNull() {
		return run.Cell{Text: v.AsString()}
	}
	if v.IsNull() && len(expr.Variables()) == 0 {
		return run.Cell{Reason: "the plan has only others' figures of this"}
	}
	if v.IsNull() || v.Type() != cty.Number {
		return run.Cell{Reason: "the value is " + article(v.Type().FriendlyName()) + ", not a number"}
	}
	f, _ := v.AsBigFloat().Float64()
	return run.Cell{Value: &f}
}

// phasesOf returns the phases of a variant's runs; each figure is the mean over the runs.
func phasesOf(v Variant) cty.Value {
	if v.Plan == nil { // the experiment was cut off before the variant ran
		return cty.NullVal(cty.DynamicPseudoType)
	}
	t := resultType(v.Plan).AttributeType("phase")
	var all []cty.Value
	for _, r := range v.Runs {
		one, err := valueOf(v.Plan, r)
		if err != nil {
			return cty.NullVal(t)
		}
		all = append(all, one.GetAttr("phase"))
	}
	if len(all) == 0 {
		return cty.NullVal(t)
	}
	return mean(all)
}

// mean merges values of the same type; each number is the mean over all. A number that one of them lacks is null. For anything that is not a
// number, the first value counts.
func mean(all []cty.Value) cty.Value {
	t := all[0].Type()
	if slices.ContainsFunc(all, cty.Value.IsNull) {
		return cty.NullVal(t)
	}
	switch {
	case t == cty.Number:
		sum := cty.Zero
		for _, v := range all {
			sum = sum.Add(v)
		}
		return sum.Divide(cty.NumberIntVal(int64(len(all))))
	case t.IsObjectType():
		attrs := map[string]cty.Value{}
		for name := range t.AttributeTypes() {
			var inner []cty.Value
			for _, v := range all {
				inner = append(inner, v.GetAttr(name))
			}
			attrs[name] = mean(inner)
		}
		return cty.ObjectVal(attrs)
	case t.IsListType():
		return meanList(all)
	}
	return all[0]
}

// meanList is mean for lists; it keeps only as many elements as all have.
func meanList(all []cty.Value) cty.Value {
	least := all[0].LengthInt()
	for _, v := range all {
		least = min(least, v.LengthInt())
	}
	if least == 0 {
		return cty.ListValEmpty(all[0].Type().ElementType())
	}
	var elements []cty.Value
	for i := range least {
		var inner []cty.Value
		for _, v := range all {
			inner = append(inner, v.Index(cty.NumberIntVal(int64(i))))
		}
		elements = append(elements, mean(inner))
	}
	return cty.ListVal(elements)
}
