package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/run"
)

// Experiment writes how the variants of an experiment compare: its tables, what became of each variant, and the verdict over its runs.
func Experiment(w io.Writer, x *run.Experiment, opts Options) error {
	p := newPage(opts.Width)
	p.line("%s   %s", x.Plan, x.ID)
	p.facts(experimentFacts(x))
	tables := x.Tables
	if len(x.Variants) > mostVariants {
		tables = inBrief(x)
	}
	for _, t := range tables {
		p.table(t)
	}
	p.variants(x)
	p.experimentVerdict(x, opts)
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func experimentFacts(x *run.Experiment) []string {
	return append([]string{
		"experiment of " + plural(len(x.Runs), "run"), x.StartedAt.UTC().Format("2006-01-02 15:04:05 UTC"), quantity.Duration(x.Seconds),
		"loadgen " + x.Loadgen, x.Order, "baseline " + x.Baseline,
	}, labelsOf(x.Labels)...)
}

// gridCell is what stands at a place of a table.
type gridCell struct{ Text, Reason string }

// grid is a table as it is shown: the heads, then the rows, the name of each first.
func grid(t run.Table) [][]gridCell {
	head := []gridCell{{}}
	for _, c := range t.Columns {
		head = append(head, gridCell{Text: c.Title})
	}
	all := [][]gridCell{head}
	for _, row := range t.Rows {
		line := []gridCell{{Text: row.Name}}
		if row.Elsewhere {
			line[0].Text += " *" // as the note that says where from
		}
		for _, c := range row.Cells {
			line = append(line, gridCell{cellText(c), c.Reason})
		}
		all = append(all, line)
	}
	if t.Transpose {
		return transposed(all)
	}
	return all
}

// cellText is what a cell shows; what has nothing to show says so.
func cellText(c run.Cell) string {
	if c.Text == "" {
		return "–"
	}
	return c.Text
}

func transposed(rows [][]gridCell) [][]gridCell {
	all := make([][]gridCell, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			all[i] = append(all[i], cell)
		}
	}
	return all
}

// hasFindings says that a table's last column holds words, which also say why a cell is empty.
func hasFindings(t run.Table) bool {
	return !t.Transpose && len(t.Columns) > 0 && t.Columns[len(t.Columns)-1].Name == "finding"
}

// notesOf are the lines below a table: its own, and why cells are empty.
func notesOf(t run.Table) []string {
	notes := slices.Clone(t.Notes)
	if hasFindings(t) {
		return notes
	}
	var places, reasons []string
	for _, row := range t.Rows {
		for i, c := range row.Cells {
			if c.Text == "" && c.Reason != "" && !row.Elsewhere {
				places, reasons = append(places, row.Name+" "+t.Columns[i].Title), append(reasons, c.Reason)
			}
		}
	}
	return append(notes, missingNotes(places, reasons)...)
}

// missingNotes say at which places something is missing, and why: one for each reason, or for several that differ in their numbers only.
func missingNotes(places, reasons []string) (notes []string) {
	alikes, in := joinAlike(reasons)
	for i, why := range alikes {
		var at []string
		for j, place := range places {
			if in[j] == i {
				at = append(at, place)
			}
		}
		text := strings.Join(at[:min(len(at), maxPlaces)], "; ")
		if more := len(at) - maxPlaces; more > 0 {
			text += " and " + count(more) + " more"
		}
		notes = append(notes, "– "+text+": "+why.String())
	}
	return notes
}

// maxPlaces bounds the cells that are named beside a reason.
const maxPlaces = 4

// narrow leaves the columns of a comparison out that there is no room for on a terminal; its findings say the most of them.
func narrow(t run.Table) run.Table {
	if !hasFindings(t) {
		return t
	}
	extra := func(c run.Column) bool { return c.Name == "spread" || c.Name == "mde" }
	rows := slices.Clone(t.Rows)
	for i, row := range rows {
		rows[i].Cells = nil
		for j, c := range row.Cells {
			if !extra(t.Columns[j]) {
				rows[i].Cells = append(rows[i].Cells, c)
			}
		}
	}
	t.Columns, t.Rows = slices.DeleteFunc(slices.Clone(t.Columns), extra), rows
	return t
}

// minWords is the least width that words in a table are broken into.
const minWords = 24

// table writes a table. Names stand to the left; so does the last column where it holds words.
func (p *page) table(t run.Table) {
	p.line("")
	for i, line := range Wrap(t.Title, p.width-2) {
		p.line("%s%s", []string{"── ", "   "}[min(i, 1)], line)
	}
	rows := grid(narrow(t))
	wide, words := widths(rows), hasFindings(t)
	if !t.Transpose && !words && breadth(wide, false) > leastWide {
		p.tight(t)
		p.notes(t)
		return
	}
	below := false
	if words && breadth(wide, true) > p.width {
		rows = concise(narrow(t))
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
func (p *page) notes(t run.Table) {
	for _, note := range notesOf(t) {
		for _, line := range Wrap(note, p.width-2) {
			p.line("  %s", line)
		}
	}
}

// variants says how far each got. Where many got equally far their names are left out.
func (p *page) variants(x *run.Experiment) {
	p.rule("variants", plural(len(x.Variants), "variant"))
	alike := map[string]int{} // how many became the same
	wide := 0
	for _, v := range x.Variants {
		alike[becameOf(v, x.Repeat)]++
		wide = max(wide, columns(v.Name))
	}
	said := map[string]bool{}
	for _, v := range x.Variants {
		became, name := becameOf(v, x.Repeat), v.Name
		if n := alike[became]; n > mostVariants {
			if said[became] {
				continue
			}
			said[became], name = true, plural(n, "variant")
		}
		p.line("  %s  %s", left(name, wide), became)
	}
}

// becameOf says how far the runs of a variant got.
func becameOf(v run.Variant, repeat int) string {
	how := map[run.Stop]string{
		run.StopFinished: "finished", run.StopCap: "ended by its CAP, and counts as far as it got",
		run.StopAborted: "ABORTED: by the user, --timeout or on_error", run.StopFailed: "FAILED in part",
	}[v.Stopped]
	return count(v.Runs) + " of " + plural(repeat, "run") + " that count, " + how
}

// maxReasons bounds the lines that say why.
const maxReasons = 12

// shownReasons are the first of them.
func shownReasons(reasons []string) []string {
	shown := slices.Clone(reasons[:min(len(reasons), maxReasons)])
	if more := len(reasons) - maxReasons; more > 0 {
		shown = append(shown, "and "+plural(more, "other reason")+", in the runs' own results")
	}
	return shown
}

// judgementOf is the verdict over an experiment's runs in sentences.
func judgementOf(x *run.Experiment) []string {
	sentences := []string{map[run.Completeness]string{
		run.Complete: "All runs are complete.",
		run.Capped:   "All runs are complete, but for those that the plan's CAP has ended or left out.",
		run.Degraded: "The experiment is DEGRADED: a part of a run was lost.",
		run.Aborted:  "A run was ABORTED: it is not all that was planned.",
		run.Failed:   "A run FAILED: something could not be run.",
	}[x.Verdict.Completeness]}
	if !x.Finished {
		sentences = []string{"The experiment is UNFINISHED: it is going on, or was cut off."}
	}
	sentences = append(sentences, map[run.Validity]string{
		run.Valid:   "All figures are valid.",
		run.Suspect: "Some figures are SUSPECT: quote none of those without the reasons. What to do about them: docs/truth.md.",
		run.Invalid: "Some figures are INVALID: use none of those. What to do about the reasons: docs/truth.md.",
	}[x.Verdict.Validity])
	if x.Verdict.Assertions == run.Fail {
		sentences = append(sentences, "Asserts FAILED.")
	}
	if len(x.Logs) > 0 {
		sentences = append(sentences, "Logs: "+strings.Join(x.Logs, "; ")+".")
	}
	return sentences
}

func (p *page) experimentVerdict(x *run.Experiment, opts Options) {
	p.rule("verdict", fmt.Sprintf("exit code %d", x.ExitCode))
	for _, line := range Wrap(strings.Join(judgementOf(x), " "), p.width-2) {
		p.line("  %s", line)
	}
	for _, why := range shownReasons(reasonsByText(x)) {
		for i, line := range Wrap(why, p.width-4) {
			p.line("  %s%s", []string{"- ", "  "}[min(i, 1)], line)
		}
	}
	if opts.Dir != "" {
		p.line("  Experiment directory: %s", opts.Dir)
	}
}

// experimentMarkdown writes the tables of an experiment as Markdown.
func experimentMarkdown(b *strings.Builder, x *run.Experiment) {
	fmt.Fprintf(b, "## %s\n\n%s · %s\n\n**%s**\n", markdown(x.Plan), markdown(strings.Join(experimentFacts(x), " · ")), markdown(x.ID), strings.Join(judgementOf(x), " "))
	for i, why := range shownReasons(reasonsByText(x)) {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "- %s\n", markdown(why))
	}
	markdownTables(b, x.Tables)
}

func markdownTables(b *strings.Builder, tables []run.Table) {
	for _, t := range tables {
		fmt.Fprintf(b, "\n### %s\n\n", markdown(t.Title))
		for i, row := range grid(t) {
			for _, c := range row {
				b.WriteString("| " + markdown(c.Text) + " ")
			}
			b.WriteString("|\n")
			if i == 0 {
				b.WriteString("|---|" + strings.Repeat("---:|", len(row)-1) + "\n")
			}
		}
		for _, note := range notesOf(t) {
			b.WriteString("\n" + markdown(note) + "\n")
		}
	}
}

// markdown writes text as itself: what Markdown or HTML would take for more is escaped.
func markdown(text string) string {
	return strings.NewReplacer(
		`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "[", `\[`, "]", `\]`, "#", `\#`, "\n", " ",
	).Replace(text)
}
