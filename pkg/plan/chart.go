package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Charts reads the plan's chart blocks. Package expr checks their expressions.
func (f *File) Charts() ([]Chart, hcl.Diagnostics) {
	r := f.resolver()
	var charts []Chart
	for _, body := range f.blocks["chart"] {
		if f.experiment == nil {
			r.Fault(body.DefRange(), "a chart without an experiment", "Write experiment { … }: a chart has lines for each of its variants.")
		}
		charts = append(charts, r.chart(body))
	}
	if r.Failed() {
		return nil, r.Result()
	}
	return charts, nil
}

// chart reads a chart block.
func (r *resolver) chart(body *hclsyntax.Block) Chart {
	c := Chart{Name: body.Labels[0], Title: body.Labels[0], Over: OverTime, File: filepath.Base(r.file.name)}
	where := "chart " + dialect.Quote(c.Name)
	outer := *body.Body
	outer.Blocks = nil
	for _, in := range body.Body.Blocks {
		if in.Type == "line" {
			c.Lines = append(c.Lines, r.line(in, c))
		} else {
			outer.Blocks = append(outer.Blocks, in)
		}
	}
	b := r.block(&hclsyntax.Block{Body: &outer, TypeRange: body.TypeRange, LabelRanges: body.LabelRanges}, "chart."+c.Name, where)
	b.Expect([]string{"title", "of", "variants", "over", "unit", "log"}, []string{"line"})
	b.Text("title", &c.Title)
	over := string(c.Over)
	b.Text("over", &over)
	b.Text("unit", &c.Unit)
	b.Flag("log", &c.Log)
	r.selects(b, &c)
	c.Line = body.DefRange().Start.Line
	if unit := outer.Attributes["unit"]; unit != nil {
		c.Line = unit.NameRange.Start.Line
	}
	switch c.Over = Over(over); {
	case c.Over.Variable() != "":
		r.varies(b, c.Over.Variable())
	case !slices.Contains([]Over{OverTime, OverOps, OverQuantile}, c.Over):
		b.Bad("over", "charts do not go over "+dialect.Quote(over), `Write "time", "ops", "quantile", or a variable that variants set, such as "var.count".`)
	case c.Over == OverQuantile && outer.Attributes["log"] != nil:
		b.Bad("log", "quantiles are always drawn by the logarithm", "Leave it out.")
	}
	c.Log = c.Log || c.Over == OverQuantile
	if len(c.Lines) == 0 {
		r.Fault(body.DefRange(), where+": no lines", "Write line \"NAME\" { value = phase.NAME.series.rate }.")
	}
	return c
}

// selects reads which variants a chart shows, and checks that there is one.
func (r *resolver) selects(b *block, c *Chart) {
	c.Of = b.valuesOf("of", `of = { layout = "raw" }`)
	c.Variants = r.listed(b)
	e := r.compared()
	if len(c.Of) == 0 || e == nil {
		return
	}
	if !slices.ContainsFunc(e.Variants, func(v Variant) bool { return c.Draws(v.Name, v.Values) }) {
		b.Bad("of", "no variant has these values", "Write values that a variant sets, or leave it out for a chart of all.")
	}
}

// listed reads which variants a table or chart shows, by name; it returns none for all.
func (r *resolver) listed(b *block) (names []string) {
	b.Texts("variants", &names)
	e := r.compared()
	if !b.Has("variants") || e == nil {
		return nil
	}
	known := e.names()
	if len(names) == 0 {
		b.Bad("variants", "nothing to show", "Write the names of variants, or leave it out for all.")
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			b.Bad("variants", "unknown variant "+dialect.Quote(name), dialect.Instead(name, known, "%q"))
		}
	}
	return names
}

// compared returns the plan's experiment; nil if it is missing or has mistakes, which are reported elsewhere.
func (r *resolver) compared() *Experiment {
	if r.file.experiment == nil {
		return nil
	}
	e, diags := r.file.Experiment()
	if diags.HasErrors() {
		return nil
	}
	return e
}

// varies checks that a variant sets the variable that a chart goes over.
func (r *resolver) varies(b *block, name string) {
	e := r.compared()
	if e == nil {
		return
	}
	for _, v := range e.Variants {
		if _, err := strconv.ParseFloat(v.Values[name], 64); err == nil {
			return
		}
	}
	b.Bad("over", "no variant sets "+dialect.Quote(name)+" to a number", "Write a variable that the experiment's variants or its matrix set to numbers.")
}

// line reads a line block; c holds the chart's lines before it.
func (r *resolver) line(body *hclsyntax.Block, c Chart) Column {
	l := Column{File: c.File}
	where := "chart " + dialect.Quote(c.Name) + ", line"
	if len(body.Labels) != 1 || body.Labels[0] == "" || dialect.Printable(body.Labels[0]) != body.Labels[0] {
		r.Fault(body.DefRange(), where+" without a proper name", `Write line "NAME" { … }: it appears in the chart's key.`)
		return l
	}
	l.Name = body.Labels[0]
	l.Title = l.Name
	if slices.ContainsFunc(c.Lines, func(other Column) bool { return other.Name == l.Name }) {
		r.Fault(body.DefRange(), fmt.Sprintf("chart %s: a second line %s", dialect.Quote(c.Name), dialect.Quote(l.Name)), "Give it another name.")
	}
	b := r.block(body, "chart."+c.Name+"."+l.Name, where+" "+dialect.Quote(l.Name))
	b.Expect([]string{"value"}, nil)
	if b.Require("value", "Write what is drawn, such as value = phase.NAME.series.rate.") {
		value := b.Body.Attributes["value"]
		l.Line = value.NameRange.Start.Line
		l.Value, _ = r.substitute(value, b.Scope())
	}
	return l
}

// Chart is a plan's chart of an experiment's variants.
type Chart struct {
	Name  string
	Title string            // Name by default
	Over  Over              // the x axis
	Unit  string            // of the y axis; "" for none
	Log   bool              // logarithmic y axis
	Of    map[string]string // values of variables, as HCL literals: only variants with these are drawn; empty for all
	Lines []Column
	File  string `json:"-"`
	Line  int    `json:"-"`

	Variants []string // only these are drawn; empty for all
}

// Over says what a chart's x axis shows.
type Over string

// The x axes of charts, besides variables.
const (
	OverTime     Over = "time"     // seconds since the phase's start
	OverOps      Over = "ops"      // number of ops that have ended
	OverQuantile Over = "quantile" // share of ops that took no longer
)

// overVariable is the prefix of a variable on the x axis.
const overVariable = "var."

// Variable returns the variable on the x axis; "" for none.
func (o Over) Variable() string {
	name, is := strings.CutPrefix(string(o), overVariable)
	if !is {
		return ""
	}
	return name
}

// Draws reports whether the chart shows a variant that sets variables to these values, as HCL literals.
func (c *Chart) Draws(variant string, values map[string]string) bool {
	for name, value := range c.Of {
		if values[name] != value {
			return false
		}
	}
	return shows(c.Variants, variant)
}
