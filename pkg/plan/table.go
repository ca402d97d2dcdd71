package plan

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Table is a table of an experiment's variants that the plan describes.
type Table struct {
	Name      string
	Transpose bool // variants are columns
	Columns   []Column
	Expected  []Expected // rows below the variants'
}

// Column is a figure of each variant.
type Column struct {
	Name  string
	Title string // Name when nothing is said
	Unit  string // "" for none
	Value string // an expression over the result, as an assert's
	Error bool   // beside the mean of several runs, half of its 99.9 % confidence interval
	File  string
	Line  int
}

// Expected is figures that were not measured here, to be shown beside those that were.
type Expected struct {
	Name   string
	Source string             // where they are from
	Values map[string]float64 // in base units, by column
}

// Tables reads the plan's table blocks. Whether their expressions can be meant is found by package table.
func (f *File) Tables() ([]Table, hcl.Diagnostics) {
	r := f.resolver()
	var tables []Table
	for _, body := range f.blocks["table"] {
		if f.experiment == nil {
			r.fault(body.DefRange(), "a table without an experiment", "Write experiment { … }: a table has a row for each of its variants.")
		}
		tables = append(tables, r.table(body))
	}
	if r.failed() {
		return nil, r.result()
	}
	return tables, nil
}

// table reads a table block.
func (r *resolver) table(body *hclsyntax.Block) Table {
	t := Table{Name: body.Labels[0]}
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
	b := r.block(&hclsyntax.Block{Body: &outer, TypeRange: body.TypeRange, LabelRanges: body.LabelRanges}, "table."+t.Name, "table "+quote(t.Name))
	b.expect([]string{"transpose"}, []string{"column", "expected"})
	b.flag("transpose", &t.Transpose)
	if len(t.Columns) == 0 {
		r.fault(body.DefRange(), "table "+quote(t.Name)+": no columns", "Write column \"NAME\" { value = phase.NAME.op.get.rate }.")
	}
	return t
}

// column reads a column block. Others are the columns before it.
func (r *resolver) column(body *hclsyntax.Block, table string, others []string) Column {
	c := Column{File: filepath.Base(r.file.name)}
	where := "table " + quote(table) + ", column"
	if len(body.Labels) != 1 || !hclsyntax.ValidIdentifier(body.Labels[0]) || slices.Contains([]string{"phase", "baseline", "bound", "variant"}, body.Labels[0]) {
		r.fault(body.DefRange(), where+" without a proper name", `Write column "NAME" { … }; NAME stands in later columns, and is not phase, baseline, bound or variant.`)
		return c
	}
	c.Name = body.Labels[0]
	c.Title = c.Name
	where += " " + quote(c.Name)
	if slices.Contains(others, c.Name) {
		r.fault(body.DefRange(), fmt.Sprintf("table %s: a second column %s", quote(table), quote(c.Name)), "Give it another name.")
	}
	b := r.block(body, "table."+table+"."+c.Name, where)
	b.expect([]string{"title", "unit", "value", "error"}, nil)
	b.text("title", &c.Title)
	b.text("unit", &c.Unit)
	b.flag("error", &c.Error)
	if b.require("value", "Write a figure of each variant, such as value = phase.NAME.op.get.rate.") {
		value := b.body.Attributes["value"]
		c.Line = value.NameRange.Start.Line
		c.Value, _ = r.substitute(value, b.scope())
	}
	return c
}

// expected reads an expected block: attributes are columns.
func (r *resolver) expected(body *hclsyntax.Block, table string, columns []string) Expected {
	e := Expected{Values: map[string]float64{}}
	where := "table " + quote(table) + ", expected"
	if len(body.Labels) != 1 || body.Labels[0] == "" || printable(body.Labels[0]) != body.Labels[0] {
		r.fault(body.DefRange(), where+" without a name", `Write expected "NAME" { source = "where the figures are from" … }.`)
		return e
	}
	e.Name = body.Labels[0]
	for _, in := range body.Body.Blocks {
		r.fault(in.TypeRange, where+" holds no blocks", "Write COLUMN = NUMBER.")
	}
	for _, a := range attributes(body.Body) {
		value, ok := r.literal(a.Expr, where)
		switch {
		case !ok:
		case a.Name == "source" && value.Type() == cty.String && !value.IsNull():
			e.Source = printable(value.AsString())
		case !slices.Contains(columns, a.Name):
			r.fault(a.NameRange, fmt.Sprintf("%s: the table has no column %s", where, quote(a.Name)), instead(a.Name, columns, "%s = …"))
		case value.Type() != cty.Number || value.IsNull():
			r.fault(a.Expr.Range(), fmt.Sprintf("%s: %s: %s", where, a.Name, describe(value)), "Write a number in base units: per second, seconds, bytes.")
		default:
			f, _ := value.AsBigFloat().Float64()
			if math.IsInf(f, 0) {
				r.fault(a.Expr.Range(), fmt.Sprintf("%s: %s: too large", where, a.Name), "Write a smaller number.")
			}
			e.Values[a.Name] = f
		}
	}
	if e.Source == "" {
		r.fault(body.DefRange(), where+": no source", `Write source = "where the figures are from".`)
	}
	return e
}
