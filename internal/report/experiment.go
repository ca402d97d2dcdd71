package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/run"
)

// Experiment writes how the variants of an experiment compare: its tables, what became of each variant, and the verdict over its runs.
func Experiment(w io.Writer, x *run.Experiment, opts Options) error {
	p := &page{}
	p.line("%s   %s", x.Plan, x.ID)
	p.line("%s", strings.Join([]string{
		"experiment of " + plural(len(x.Runs), "run"), x.StartedAt.UTC().Format("2006-01-02 15:04:05 UTC"), duration(x.Seconds),
		"loadgen " + x.Loadgen, x.Order, "baseline " + x.Baseline,
	}, " · "))
	for _, t := range x.Tables {
		p.table(t)
	}
	p.variants(x)
	p.experimentVerdict(x, opts)
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// grid is a table's texts: the heads, then the rows, the name of each first.
func grid(t run.Table) [][]string {
	head := []string{""}
	for _, c := range t.Columns {
		head = append(head, c.Title)
	}
	all := [][]string{head}
	for _, row := range t.Rows {
		line := []string{row.Name}
		if row.Elsewhere {
			line[0] += " *" // as the note that says where from
		}
		for _, c := range row.Cells {
			line = append(line, cellText(c))
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

func transposed(rows [][]string) [][]string {
	all := make([][]string, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			all[i] = append(all[i], text)
		}
	}
	return all
}

// minWords is the least width that words in a table are broken into.
const minWords = 24

// table writes a table. Names stand to the left; so does the last column where it holds words.
func (p *page) table(t run.Table) {
	p.line("")
	for i, line := range wrap(t.Title, width-2) {
		p.line("%s%s", []string{"── ", "   "}[min(i, 1)], line)
	}
	rows := grid(t)
	wide := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			wide[i] = max(wide[i], columns(text))
		}
	}
	words := !t.Transpose && len(t.Columns) > 0 && t.Columns[len(t.Columns)-1].Name == "finding"
	for _, row := range rows {
		line := "  " + left(row[0], wide[0])
		for i := 1; i < len(row); i++ {
			if words && i == len(row)-1 {
				line += "  "
				line += strings.Join(wrap(row[i], max(width-columns(line), minWords)), "\n"+spaces(columns(line)))
			} else {
				line += "  " + right(row[i], wide[i])
			}
		}
		p.line("%s", line)
	}
	for _, note := range t.Notes {
		for _, line := range wrap(note, width-2) {
			p.line("  %s", line)
		}
	}
}

// variants says how far each got.
func (p *page) variants(x *run.Experiment) {
	p.rule("variants", plural(len(x.Variants), "variant"))
	wide := 0
	for _, v := range x.Variants {
		wide = max(wide, columns(v.Name))
	}
	for _, v := range x.Variants {
		how := map[run.Stop]string{
			run.StopFinished: "finished", run.StopCap: "ended by its CAP, and counts as far as it got",
			run.StopAborted: "ABORTED: stopped by the user", run.StopFailed: "FAILED in part",
		}[v.Stopped]
		p.line("  %s  %s of %s that count, %s", left(v.Name, wide), count(v.Runs), plural(x.Repeat, "run"), how)
	}
}

// maxReasons bounds the lines that say why.
const maxReasons = 12

func (p *page) experimentVerdict(x *run.Experiment, opts Options) {
	p.rule("verdict", fmt.Sprintf("exit code %d", x.ExitCode))
	sentences := []string{map[run.Completeness]string{
		run.Complete: "All runs are complete.",
		run.Degraded: "The experiment is DEGRADED: a part of a run was lost.",
		run.Aborted:  "A run was ABORTED: it is not all that was planned.",
		run.Failed:   "A run FAILED: something could not be run.",
	}[x.Verdict.Completeness]}
	if !x.Finished {
		sentences = []string{"The experiment is UNFINISHED: it is going on, or was cut off."}
	}
	sentences = append(sentences, map[run.Validity]string{
		run.Valid:   "All figures are valid.",
		run.Suspect: "Some figures are SUSPECT: quote none of those without the reasons.",
		run.Invalid: "Some figures are INVALID: use none of those.",
	}[x.Verdict.Validity])
	if x.Verdict.Assertions == run.Fail {
		sentences = append(sentences, "Asserts FAILED.")
	}
	for _, line := range wrap(strings.Join(sentences, " "), width-2) {
		p.line("  %s", line)
	}
	reasons := x.Verdict.Reasons
	shown := slices.Clone(reasons[:min(len(reasons), maxReasons)])
	if more := len(reasons) - maxReasons; more > 0 {
		shown = append(shown, "and "+plural(more, "other reason")+", in the runs' own results")
	}
	for _, why := range shown {
		for i, line := range wrap(why, width-4) {
			p.line("  %s%s", []string{"- ", "  "}[min(i, 1)], line)
		}
	}
	if opts.Dir != "" {
		p.line("  Experiment directory: %s", opts.Dir)
	}
}

// Markdown writes the tables of an experiment as Markdown, with the texts that Experiment writes.
func Markdown(w io.Writer, x *run.Experiment) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nExperiment `%s`, %s, baseline %s.\n", markdown(x.Plan), x.ID, plural(len(x.Runs), "run"), markdown(x.Baseline))
	for _, t := range x.Tables {
		fmt.Fprintf(&b, "\n## %s\n\n", markdown(t.Title))
		for i, row := range grid(t) {
			for _, text := range row {
				b.WriteString("| " + markdown(text) + " ")
			}
			b.WriteString("|\n")
			if i == 0 {
				b.WriteString("|---|" + strings.Repeat("---:|", len(row)-1) + "\n")
			}
		}
		for _, note := range t.Notes {
			b.WriteString("\n" + markdown(note) + "\n")
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write Markdown: %w", err)
	}
	return nil
}

// markdown writes text as itself: what Markdown or HTML would take for more is escaped.
func markdown(text string) string {
	return strings.NewReplacer(
		`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "[", `\[`, "]", `\]`, "#", `\#`, "\n", " ",
	).Replace(text)
}
