package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/result/experiment/comparison"
	"github.com/loadgen/loadgen/internal/result/report/tables"
)

// Comparison writes how two sides of runs compare: first what differs in plan and environment, then the tables. Two experiments give a result for
// each variant.
func Comparison(w io.Writer, results []*comparison.Result, opts Options) error {
	p := newPrinter(opts)
	for i, c := range results {
		if i > 0 {
			p.line("")
		}
		p.comparison(c)
	}
	return p.to(w, "comparison")
}

func (p *printer) comparison(c *comparison.Result) {
	if c.Variant != "" {
		p.line("══ variant %s", c.Variant)
		p.line("")
	}
	for _, g := range c.Gates {
		p.prose(g.Text)
		for _, why := range tables.JoinAlike(g.Why) {
			p.bullet(0, why)
		}
	}
	for _, side := range c.Sides {
		for i, r := range side.Runs {
			p.line("%s  %s  %s, %s", left([]string{side.Name, ""}[min(i, 1)], 1), r.ID, r.Verdict.Completeness, r.Verdict.Validity)
		}
	}
	p.differences(c)
	for _, note := range notesOf(c) {
		p.line("")
		p.prose(note)
	}
	if len(c.Tables) == 0 {
		p.line("")
		p.line("The runs have no phase and op in common that could be compared.")
	}
	for _, t := range c.Tables {
		p.table(t)
	}
}

// notesOf returns the comparison's notes, and why it is unknown whether figures differ.
func notesOf(c *comparison.Result) []string {
	return slices.Concat(c.Notes, tables.Untold(c.Figures))
}

// kinds are the kinds of differences, in the order shown.
var kinds = [...]string{"plan", "environment"}

// differences writes a block for the plan and one for the environment.
func (p *printer) differences(c *comparison.Result) {
	for _, kind := range kinds {
		p.line("")
		of := differencesOf(c, kind)
		if len(of) == 0 {
			p.line("── %s: the same", kind)
			continue
		}
		p.line("── %s: not the same", kind)
		rows := [][]string{{"", c.Sides[0].Name, c.Sides[1].Name}}
		for _, d := range of {
			rows = append(rows, []string{d.Path, cut(d.Values[0]), cut(d.Values[1])})
		}
		wide := []int{0, 0}
		for _, row := range rows {
			wide[0], wide[1] = max(wide[0], columns(row[0])), max(wide[1], columns(row[1]))
		}
		for _, row := range rows {
			p.line("  %s  %s  %s", left(row[0], wide[0]), left(row[1], wide[1]), row[2])
		}
	}
}

func differencesOf(c *comparison.Result, kind string) (list []comparison.Difference) {
	for _, d := range c.Differences {
		if d.Of == kind {
			list = append(list, d)
		}
	}
	return list
}

// cut shortens a text for a cell.
func cut(text string) string {
	const most = 32
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// ComparisonMarkdown writes what Comparison does as Markdown (GitHub Flavored), with the same texts, whole.
func ComparisonMarkdown(w io.Writer, results []*comparison.Result) error {
	var b strings.Builder
	for i, c := range results {
		if i > 0 {
			b.WriteString("\n")
		}
		comparisonMarkdown(&b, c)
	}
	return written(w, "Markdown", b.String())
}

func comparisonMarkdown(b *strings.Builder, c *comparison.Result) {
	b.WriteString("# Runs compared")
	if c.Variant != "" {
		b.WriteString(": " + markdown(c.Variant))
	}
	b.WriteString("\n")
	for _, side := range c.Sides {
		fmt.Fprintf(b, "\n%s:\n\n", markdown(side.Name))
		for _, r := range side.Runs {
			fmt.Fprintf(b, "- %s %s, %s\n", markdown(r.ID), markdown(string(r.Verdict.Completeness)), markdown(string(r.Verdict.Validity)))
		}
	}
	for _, kind := range kinds {
		of := differencesOf(c, kind)
		if len(of) == 0 {
			fmt.Fprintf(b, "\nThe %s is the same.\n", kind)
			continue
		}
		fmt.Fprintf(b, "\n## Not the same: %s\n\n| | %s | %s |\n|---|---|---|\n", kind, markdown(c.Sides[0].Name), markdown(c.Sides[1].Name))
		for _, d := range of {
			fmt.Fprintf(b, "| %s | %s | %s |\n", markdown(d.Path), markdown(d.Values[0]), markdown(d.Values[1]))
		}
	}
	for _, note := range notesOf(c) {
		fmt.Fprintf(b, "\n%s\n", markdown(note))
	}
	markdownTables(b, c.Tables)
}

// ComparisonJSON writes a comparison as docs/result.md describes it: an object or, for two experiments, an array with one for each variant.
func ComparisonJSON(w io.Writer, results []*comparison.Result) error {
	var value any = results
	if len(results) == 1 && results[0].Variant == "" {
		value = results[0]
	}
	return safefile.JSON(value)(w)
}
