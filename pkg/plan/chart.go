package plan

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/loadgen/loadgen/internal/lang"
)

// Chart is a chart of an experiment's variants that the plan describes.
type Chart struct {
	Name  string
	Title string // Name when nothing is said
	Over  Over   // what is drawn from left to right
	Unit  string // of what is drawn upwards; "" for none
	Log   bool   // upwards by the logarithm
	Lines []Column
	File  string
	Line  int
}

// Over is what a chart draws from left to right.
type Over string

// What charts go over.
const (
	OverTime     Over = "time"     // seconds since the phase's start
	OverOps      Over = "ops"      // how many ops have ended: the number of the op
	OverQuantile Over = "quantile" // the share of ops that took no longer
)

// Charts reads the plan's chart blocks. Whether their expressions can be meant is found by package table.
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
	where := "chart " + lang.Quote(c.Name)
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
	b.Expect([]string{"title", "over", "unit", "log"}, []string{"line"})
	b.Text("title", &c.Title)
	over := string(c.Over)
	b.Text("over", &over)
	b.Text("unit", &c.Unit)
	b.Flag("log", &c.Log)
	c.Line = body.DefRange().Start.Line
	if unit := outer.Attributes["unit"]; unit != nil {
		c.Line = unit.NameRange.Start.Line
	}
	switch c.Over = Over(over); {
	case !slices.Contains([]Over{OverTime, OverOps, OverQuantile}, c.Over):
		b.Bad("over", "charts do not go over "+lang.Quote(over), `Write "time", "ops" or "quantile".`)
	case c.Over == OverQuantile && outer.Attributes["log"] != nil:
		b.Bad("log", "quantiles are always drawn by the logarithm", "Leave it out.")
	}
	c.Log = c.Log || c.Over == OverQuantile
	if len(c.Lines) == 0 {
		r.Fault(body.DefRange(), where+": no lines", "Write line \"NAME\" { value = phase.NAME.series.rate }.")
	}
	return c
}

// line reads a line block of a chart, in which others stand before it.
func (r *resolver) line(body *hclsyntax.Block, c Chart) Column {
	l := Column{File: c.File}
	where := "chart " + lang.Quote(c.Name) + ", line"
	if len(body.Labels) != 1 || body.Labels[0] == "" || lang.Printable(body.Labels[0]) != body.Labels[0] {
		r.Fault(body.DefRange(), where+" without a proper name", `Write line "NAME" { … }: it stands in the chart's key.`)
		return l
	}
	l.Name = body.Labels[0]
	l.Title = l.Name
	if slices.ContainsFunc(c.Lines, func(other Column) bool { return other.Name == l.Name }) {
		r.Fault(body.DefRange(), fmt.Sprintf("chart %s: a second line %s", lang.Quote(c.Name), lang.Quote(l.Name)), "Give it another name.")
	}
	b := r.block(body, "chart."+c.Name+"."+l.Name, where+" "+lang.Quote(l.Name))
	b.Expect([]string{"value"}, nil)
	if b.Require("value", "Write what is drawn, such as value = phase.NAME.series.rate.") {
		value := b.Body.Attributes["value"]
		l.Line = value.NameRange.Start.Line
		l.Value, _ = r.substitute(value, b.Scope())
	}
	return l
}
