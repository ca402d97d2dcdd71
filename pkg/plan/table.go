package plan

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/lang"
	"github.com/loadgen/loadgen/pkg/plan/display"
)

// Tables reads the plan's table blocks. Package table checks their expressions.
func (f *File) Tables() ([]display.Table, hcl.Diagnostics) {
	r := f.resolver()
	var tables []display.Table
	for _, body := range f.blocks["table"] {
		if f.experiment == nil {
			r.Fault(body.DefRange(), "a table without an experiment", "Write experiment { … }: a table has a row for each of its variants.")
		}
		tables = append(tables, r.table(body))
	}
	if r.Failed() {
		return nil, r.Result()
	}
	return tables, nil
}

// table reads a table block.
func (r *resolver) table(body *hclsyntax.Block) display.Table {
	t := display.Table{Name: body.Labels[0]}
	outer := *body.Body
	outer.Blocks = nil
	var names []string
	for _, in := range body.Body.Blocks {
		switch in.Type {
		case "column":
			c := r.column(in, t.Name, names)
			names = append(names, c.Name)
			t.Columns = append(t.Columns, c)
		case "expected":
		default:
			outer.Blocks = append(outer.Blocks, in)
		}
	}
	for _, in := range body.Body.Blocks {
		if in.Type == "expected" {
			t.Expected = append(t.Expected, r.expected(in, t.Name, names))
		}
	}
	b := r.block(&hclsyntax.Block{Body: &outer, TypeRange: body.TypeRange, LabelRanges: body.LabelRanges}, "table."+t.Name, "table "+lang.Quote(t.Name))
	b.Expect([]string{"transpose"}, []string{"column", "expected"})
	b.Flag("transpose", &t.Transpose)
	if len(t.Columns) == 0 {
		r.Fault(body.DefRange(), "table "+lang.Quote(t.Name)+": no columns", "Write column \"NAME\" { value = phase.NAME.op.get.rate }.")
	}
	return t
}

// column reads a column block; others are the names of the columns before it.
func (r *resolver) column(body *hclsyntax.Block, table string, others []string) display.Column {
	c := display.Column{File: filepath.Base(r.file.name)}
	where := "table " + lang.Quote(table) + ", column"
	if len(body.Labels) != 1 || !hclsyntax.ValidIdentifier(body.Labels[0]) || slices.Contains([]string{"phase", "baseline", "bound", "variant"}, body.Labels[0]) {
		r.Fault(body.DefRange(), where+" without a proper name", `Write column "NAME" { … }; NAME stands in later columns, and is not phase, baseline, bound or variant.`)
		return c
	}
	c.Name = body.Labels[0]
	c.Title = c.Name
	where += " " + lang.Quote(c.Name)
	if slices.Contains(others, c.Name) {
		r.Fault(body.DefRange(), fmt.Sprintf("table %s: a second column %s", lang.Quote(table), lang.Quote(c.Name)), "Give it another name.")
	}
	b := r.block(body, "table."+table+"."+c.Name, where)
	b.Expect([]string{"title", "unit", "value", "error"}, nil)
	b.Text("title", &c.Title)
	b.Text("unit", &c.Unit)
	b.Flag("error", &c.Error)
	if b.Require("value", "Write a figure of each variant, such as value = phase.NAME.op.get.rate.") {
		value := b.Body.Attributes["value"]
		c.Line = value.NameRange.Start.Line
		c.Value, _ = r.substitute(value, b.Scope())
	}
	return c
}

// expected reads an expected block, whose attributes are columns.
func (r *resolver) expected(body *hclsyntax.Block, table string, columns []string) display.Expected {
	e := display.Expected{Values: map[string]float64{}}
	where := "table " + lang.Quote(table) + ", expected"
	if len(body.Labels) != 1 || body.Labels[0] == "" || lang.Printable(body.Labels[0]) != body.Labels[0] {
		r.Fault(body.DefRange(), where+" without a name", `Write expected "NAME" { source = "where the figures are from" … }.`)
		return e
	}
	e.Name = body.Labels[0]
	for _, in := range body.Body.Blocks {
		r.Fault(in.TypeRange, where+" holds no blocks", "Write COLUMN = NUMBER.")
	}
	for _, a := range lang.Attributes(body.Body) {
		value, ok := r.Literal(a.Expr, where)
		switch {
		case !ok:
		case a.Name == "source" && value.Type() == cty.String && !value.IsNull():
			e.Source = lang.Printable(value.AsString())
		case !slices.Contains(columns, a.Name):
			r.Fault(a.NameRange, fmt.Sprintf("%s: the table has no column %s", where, lang.Quote(a.Name)), lang.Instead(a.Name, columns, "%s = …"))
		case value.Type() != cty.Number || value.IsNull():
			r.Fault(a.Expr.Range(), fmt.Sprintf("%s: %s: %s", where, a.Name, lang.Describe(value)), "Write a number in base units: per second, seconds, bytes.")
		default:
			f, _ := value.AsBigFloat().Float64()
			if math.IsInf(f, 0) {
				r.Fault(a.Expr.Range(), fmt.Sprintf("%s: %s: too large", where, a.Name), "Write a smaller number.")
			}
			e.Values[a.Name] = f
		}
	}
	if e.Source == "" {
		r.Fault(body.DefRange(), where+": no source", `Write source = "where the figures are from".`)
	}
	return e
}
