package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Experiment writes how the variants of an experiment compare: what differs and by how much, whether that can be trusted, the tables, and how far
// each variant got.
func Experiment(w io.Writer, x *run.Experiment, opts Options) error {
	p := newPrinter(opts)
	for _, answer := range tables.Answers(x) {
		p.prose(answer)
	}
	p.experimentDoubts(x)
	p.line("")
	p.line("%s   %s", x.Plan, x.ID)
	p.facts(words.Experiment(x))
	all := x.Tables
	if len(x.Variants) > mostVariants {
		all = inBrief(x)
	}
	if !p.Full {
		all = p.varying(all)
	}
	for _, t := range all {
		p.table(t)
	}
	p.variants(x)
	p.end(x.ExitCode, "Experiment", opts.Dir)
	return p.to(w, "report")
}

// narrow removes the columns of a comparison that do not fit on a terminal; the findings contain most of their information.
func narrow(t run.Table) run.Table {
	if !tables.HasFindings(t) {
		return t
	}
	return tables.Without(t, func(i int) bool { return t.Columns[i].Name == "median" || t.Columns[i].Name == "mde" })
}

// minWords is the least width to which words in a table are wrapped.
const minWords = 24

// table writes a table. Names are left-aligned, as is the last column if it holds words.
func (p *printer) table(t run.Table) {
	p.line("")
	for i, line := range Wrap(t.Title, p.width-2) {
		p.line("%s%s", []string{"── ", "   "}[min(i, 1)], line)
	}
	rows := tables.Grid(narrow(t))
	wide, words := widths(rows), tables.HasFindings(t)
	if !t.Transpose && !words && breadth(wide, false) > leastWide {
		p.tight(t)
		p.notes(t)
		return
	}
	below := false
	if words && breadth(wide, true) > p.width {
		rows = concise(t)
		wide = widths(rows)
		below = breadth(wide, true) > p.width
	}
	for n, row := range rows {
		line := "  " + left(row[0].Text, wide[0])
		for i := 1; i < len(row)-1; i++ {
			line += "  " + right(row[i].Text, wide[i])
		}
		last := row[len(row)-1].Text
		switch {
		case !words:
			line += "  " + right(last, wide[len(row)-1])
		case !below:
			line += "  " + strings.Join(Wrap(last, max(p.width-columns(line)-2, minWords)), "\n"+spaces(columns(line)+2))
		case n > 0:
			line += "\n    " + strings.Join(Wrap(last, p.width-4), "\n    ")
		}
		p.line("%s", line)
	}
	p.notes(t)
}

// notes are the lines below a table.
func (p *printer) notes(t run.Table) {
	for _, note := range tables.Notes(t) {
		for _, line := range Wrap(note, p.width-2) {
			p.line("  %s", line)
		}
	}
}

// variants says how far each variant got. If many got equally far, it leaves out their names.
func (p *printer) variants(x *run.Experiment) {
	p.rule("variants", quantity.Count(len(x.Variants), "variant"))
	alike := map[string]int{} // how many got equally far
	wide := 0
	for _, v := range x.Variants {
		alike[tables.Became(v, x.Repeat)]++
		wide = max(wide, columns(v.Name))
	}
	said := map[string]bool{}
	for _, v := range x.Variants {
		became, name := tables.Became(v, x.Repeat), v.Name
		if n := alike[became]; n > mostVariants {
			if said[became] {
				continue
			}
			said[became], name = true, quantity.Count(n, "variant")
		}
		p.line("  %s  %s", left(name, wide), became)
	}
	if out := tables.Some(x.LeftOut, "variant"); out != "" {
		p.line("  left out by the plan: %s", out)
	}
}

// experimentDoubts says how far the runs got, whether they can be trusted, and then each reason once.
func (p *printer) experimentDoubts(x *run.Experiment) {
	p.prose(strings.Join(tables.Judgement(x), " "))
	own, all := tables.DoubtsOf(x)
	for _, why := range tables.ShownReasons(own) {
		p.bullet(0, why)
	}
	p.doubts(all)
}

// varying leaves out comparisons without information, that is, figures that an open load sets and those in which all runs are alike, and empty
// columns. It says which it left out.
func (p *printer) varying(all []run.Table) (kept []run.Table) {
	var out []string
	for _, t := range all {
		if !tables.HasFindings(t) {
			kept = append(kept, t)
			continue
		}
		if why := tables.Unvarying(t); why != "" {
			out = append(out, t.Title+" ("+why+")")
			continue
		}
		kept = append(kept, tables.WithoutEmpty(t))
	}
	if len(out) > 0 {
		p.line("")
		p.prose("Only with --full: " + strings.Join(out, "; "))
	}
	return kept
}

// experimentMarkdown writes what differs, whether that can be trusted, and the tables of an experiment as Markdown.
func experimentMarkdown(b *strings.Builder, x *run.Experiment) {
	own, doubts := tables.DoubtsOf(x)
	opening(b, x.Plan, append(words.Experiment(x), x.ID), tables.Answers(x), tables.Judgement(x), tables.ShownReasons(own), doubts)
	markdownTables(b, x.Tables)
}

// opening writes the opening of a report as Markdown: its subject, its answers, the verdict, and each reason for it once.
func opening(b *strings.Builder, plan string, facts, answers, verdict, reasons []string, doubts []tables.Doubt) {
	fmt.Fprintf(b, "## %s\n\n", markdown(plan))
	for _, answer := range answers {
		fmt.Fprintf(b, "%s\n\n", markdown(answer))
	}
	fmt.Fprintf(b, "**%s**\n", markdown(strings.Join(verdict, " ")))
	if len(reasons)+len(doubts) > 0 {
		b.WriteString("\n")
	}
	for _, why := range reasons {
		fmt.Fprintf(b, "- %s\n", markdown(why))
	}
	for _, d := range doubts {
		line, _ := d.Line(0)
		fmt.Fprintf(b, "- %s\n", markdown(line))
	}
	fmt.Fprintf(b, "\n%s\n", markdown(strings.Join(facts, " · ")))
}

func markdownTables(b *strings.Builder, all []run.Table) {
	for _, t := range all {
		fmt.Fprintf(b, "\n### %s\n\n", markdown(t.Title))
		for i, row := range tables.Grid(t) {
			for _, c := range row {
				b.WriteString("| " + markdown(c.Text) + " ")
			}
			b.WriteString("|\n")
			if i == 0 {
				b.WriteString("|---|" + strings.Repeat("---:|", len(row)-1) + "\n")
			}
		}
		for _, note := range tables.Notes(t) {
			b.WriteString("\n" + markdown(note) + "\n")
		}
	}
}

// markdown escapes text, so that neither Markdown nor HTML interprets it.
func markdown(text string) string {
	return strings.NewReplacer(
		`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "[", `\[`, "]", `\]`, "#", `\#`, "\n", " ",
	).Replace(quantity.Plain(text))
}
