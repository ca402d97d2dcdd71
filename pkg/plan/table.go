package plan

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Tables reads the plan's table blocks. Package expr checks their expressions.
func (f *File) Tables() ([]Table, hcl.Diagnostics) {
	r := f.resolver()
	var tables []Table
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
	b := r.block(&hclsyntax.Block{Body: &outer, TypeRange: body.TypeRange, LabelRanges: body.LabelRanges}, "table."+t.Name, "table "+dialect.Quote(t.Name))
	b.Expect([]string{"transpose", "variants"}, []string{"column", "expected"})
	b.Flag("transpose", &t.Transpose)
	t.Variants = r.listed(b)
	if len(t.Columns) == 0 {
		r.Fault(body.DefRange(), "table "+dialect.Quote(t.Name)+": no columns", "Write column \"NAME\" { value = phase.NAME.op.get.rate }.")
	}
	return t
}

// column reads a column block; others are the names of the columns before it.
func (r *resolver) column(body *hclsyntax.Block, table string, others []string) Column {
	c := Column{File: filepath.Base(r.file.name)}
	where := "table " + dialect.Quote(table) + ", column"
	if len(body.Labels) != 1 || !hclsyntax.ValidIdentifier(body.Labels[0]) || slices.Contains([]string{"phase", "baseline", "bound", "variant"}, body.Labels[0]) {
		r.Fault(body.DefRange(), where+" without a proper name", `Write column "NAME" { … }; later columns refer to NAME, which is not phase, baseline, bound or variant.`)
		return c
	}
	c.Name = body.Labels[0]
	c.Title = c.Name
	where += " " + dialect.Quote(c.Name)
	if slices.Contains(others, c.Name) {
		r.Fault(body.DefRange(), fmt.Sprintf("table %s: a second column %s", dialect.Quote(table), dialect.Quote(c.Name)), "Give it another name.")
	}
	b := r.block(body, "table."+table+"."+c.Name, where)
	b.Expect([]string{"title", "unit", "value", "error", "ratio"}, nil)
	b.Text("title", &c.Title)
	b.Text("unit", &c.Unit)
	c.Confidence = confidence(b)
	if b.Text("ratio", &c.Ratio); b.Has("ratio") {
		r.ratio(b, &c)
	}
	if b.Require("value", "Write a figure of each variant, such as value = phase.NAME.op.get.rate.") {
		value := b.Body.Attributes["value"]
		c.Line = value.NameRange.Start.Line
		c.Value, _ = r.substitute(value, b.Scope())
	}
	return c
}

// confidence reads which interval a column shows beside its mean; 0 for none.
func confidence(b *block) (share float64) {
	const write = `Write a share from 0.5 to 0.9999, such as 0.95, or true for 0.999.`
	v, ok := b.Value("error")
	if !ok {
		return 0
	}
	if on, err := convert.Convert(v, cty.Bool); err == nil {
		if on.True() {
			return 0.999
		}
		return 0
	}
	if v.Type() != cty.Number {
		b.Bad("error", dialect.Describe(v), write)
		return 0
	}
	share, _ = v.AsBigFloat().Float64()
	if share < 0.5 || share > 0.9999 {
		b.Bad("error", fmt.Sprintf("%g is no confidence", share), write)
		return 0
	}
	return share
}

// ratio checks a column that shows a ratio.
func (r *resolver) ratio(b *block, c *Column) {
	e := r.compared()
	switch {
	case c.Ratio != RatioToBaseline && c.Ratio != RatioToBound:
		b.Bad("ratio", "unknown variant "+dialect.Quote(c.Ratio), `Write "baseline", or "bound" for the variant's own bound.`)
	case c.Ratio == RatioToBound && e != nil && len(e.Bound) == 0:
		b.Bad("ratio", "the experiment has no bound", `Write bound = { VARIABLE = VALUE } in it, or ratio = "baseline".`)
	case c.Confidence > 0:
		b.Bad("error", "a ratio has an interval of its own", "Leave it out.")
	case c.Unit != "" && c.Unit != "x":
		b.Bad("unit", dialect.Quote(c.Unit)+" of a ratio", "Leave it out.")
	}
	c.Unit = "x"
}

// expected reads an expected block, whose attributes are columns.
func (r *resolver) expected(body *hclsyntax.Block, table string, columns []string) Expected {
	e := Expected{Values: map[string]float64{}}
	where := "table " + dialect.Quote(table) + ", expected"
	if len(body.Labels) != 1 || body.Labels[0] == "" || dialect.Printable(body.Labels[0]) != body.Labels[0] {
		r.Fault(body.DefRange(), where+" without a name", `Write expected "NAME" { source = "where the figures are from" … }.`)
		return e
	}
	e.Name = body.Labels[0]
	for _, in := range body.Body.Blocks {
		r.Fault(in.TypeRange, where+" holds no blocks", "Write COLUMN = NUMBER.")
	}
	for _, a := range dialect.Attributes(body.Body) {
		value, ok := r.Literal(a.Expr, where)
		switch {
		case !ok:
		case a.Name == "source" && value.Type() == cty.String && !value.IsNull():
			e.Source = dialect.Printable(value.AsString())
		case !slices.Contains(columns, a.Name):
			r.Fault(a.NameRange, fmt.Sprintf("%s: the table has no column %s", where, dialect.Quote(a.Name)), dialect.Instead(a.Name, columns, "%s = …"))
		case value.Type() != cty.Number || value.IsNull():
			r.Fault(a.Expr.Range(), fmt.Sprintf("%s: %s: %s", where, a.Name, dialect.Describe(value)), "Write a number in base units: per second, seconds, bytes.")
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

// Table is a plan's table of an experiment's variants.
type Table struct {
	Name      string
	Transpose bool     // variants are columns
	Variants  []string // the variants that have a row; empty for all
	Columns   []Column
	Expected  []Expected // rows below those of variants
}

// Column is a figure of each variant.
type Column struct {
	Name       string
	Title      string  // Name by default
	Unit       string  // "" for none
	Value      string  // an expression over the result, like an assert's
	Confidence float64 // show half of the interval of this confidence beside the mean of several runs: 0.95; 0 for none
	Ratio      string  // RatioToBaseline or RatioToBound shows the figure as a multiple of that variant's; "" shows the figure itself
	File       string  `json:"-"`
	Line       int     `json:"-"`
}

// The variants that a column's ratio may refer to.
const (
	RatioToBaseline = "baseline"
	RatioToBound    = "bound"
)

// Shows reports whether a variant has a row.
func (t *Table) Shows(variant string) bool { return shows(t.Variants, variant) }

// Shown returns the tables that show a variant: only their figures need to be in its result.
func Shown(tables []Table, variant string) []Table {
	return slices.DeleteFunc(slices.Clone(tables), func(t Table) bool { return !t.Shows(variant) })
}

// shows reports whether a table or chart with a list of variants, which may be empty, shows one of them.
func shows(listed []string, variant string) bool {
	return len(listed) == 0 || slices.Contains(listed, variant)
}

// Expected is a row of figures from elsewhere, shown beside the measured ones.
type Expected struct {
	Name   string
	Source string             // where the figures are from
	Values map[string]float64 // in base units, by column
}
