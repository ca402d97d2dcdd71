package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/result/quantity"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Bounds of the width in columns: wider is of no use, and every terminal has the narrowest.
const (
	mostWide  = 100
	leastWide = 80
)

// Options say what else to show, and in which width.
type Options struct {
	Dir   string // the run's directory; "": none
	Width int    // columns of the terminal; 0: unknown, or none
}

// Text writes the summary of a run: each phase with its figures and how far they can be trusted, then the workers if there are several, the asserts,
// and the verdict in words.
func Text(w io.Writer, r *run.Run, opts Options) error {
	p := newPrinter(opts.Width)
	p.head(r)
	for _, name := range r.PhaseOrder {
		p.phase(name, r.Phase[name])
	}
	p.workers(r)
	p.asserts(r.Asserts)
	p.verdict(r, opts)
	if err := p.to(w); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// printer builds a text.
type printer struct {
	b     strings.Builder
	width int // columns that lines stay within, as far as words allow
}

// roomy says whether tables have room for all columns: those of latencies need 97.
func (p *printer) roomy() bool {
	return p.width >= 2+labelWidth+len(words.LatencyHeads)*words.CellWidth+3
}

// newPrinter returns an empty printer for a terminal of that many columns; 0: unknown.
func newPrinter(terminal int) *printer {
	if terminal == 0 {
		terminal = mostWide
	}
	return &printer{width: min(max(terminal, leastWide), mostWide)}
}

// line adds a line, without trailing spaces.
func (p *printer) line(format string, args ...any) {
	p.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

// to writes the text, stripped of anything that a terminal would obey.
func (p *printer) to(w io.Writer) error {
	_, err := io.WriteString(w, quantity.Plain(p.b.String()))
	return err
}

// item adds text after a label, wrapped into lines to the right of it.
func (p *printer) item(label, text string) { p.items(label, " ", strings.Fields(text)...) }

// items adds parts after a label, joined by sep and wrapped only between parts.
func (p *printer) items(label, sep string, parts ...string) {
	if len(parts) == 0 {
		return
	}
	for i, line := range flow(parts, sep, p.width-labelWidth-2) {
		if i > 0 {
			label = ""
		}
		p.line("  %s%s", left(label, labelWidth), line)
	}
}

// point adds text after a label and a bullet.
func (p *printer) point(label, bullet, text string) {
	for i, line := range Wrap(text, p.width-labelWidth-4) {
		p.line("  %s%s%s", left(label, labelWidth), []string{bullet + " ", "  "}[min(i, 1)], line)
		label = ""
	}
}

// labelWidth is the width of the labels to the left of figures.
const labelWidth = 12

// rule adds a horizontal rule, with a title at its left and a word at its right.
func (p *printer) rule(title, word string) {
	fill := p.width - columns(title) - columns(word) - 8
	p.line("")
	p.line("── %s %s %s ──", title, strings.Repeat("─", max(fill, 2)), word)
}

func (p *printer) head(r *run.Run) {
	p.line("%s   %s", r.Plan, r.ID)
	p.facts(words.Facts(r))
	if r.Environment.Hostname != "" {
		p.facts(words.Machine(&r.Environment))
	}
}

// facts adds parts separated by dots, wrapped only between parts.
func (p *printer) facts(parts []string) {
	for _, line := range flow(parts, " · ", p.width) {
		p.line("%s", line)
	}
}

func (p *printer) asserts(all []run.AssertResult) {
	if len(all) == 0 {
		return
	}
	word := "pass"
	if words.Failures(all) > 0 {
		word = "FAIL"
	}
	p.rule("asserts", word)
	for _, a := range all {
		switch {
		case words.Passed(a):
			p.item("pass", a.Name)
		case a.OK != nil:
			p.item("FAIL", a.Name)
		default:
			p.item("FAIL", a.Name+" (could not be decided)")
		}
		p.item("", a.That)
		for _, why := range []string{a.Value, a.Reason} {
			if why != "" {
				p.item("", why)
			}
		}
	}
}

// verdict says in words what the run's verdict is, and why.
func (p *printer) verdict(r *run.Run, opts Options) {
	p.rule("verdict", fmt.Sprintf("exit code %d", r.ExitCode))
	for _, line := range Wrap(strings.Join(words.Verdict(r), " "), p.width-2) {
		p.line("  %s", line)
	}
	for _, why := range reasons(r) {
		for i, line := range Wrap(why, p.width-4) {
			p.line("  %s%s", []string{"- ", "  "}[min(i, 1)], line)
		}
	}
	if opts.Dir != "" {
		p.line("  Run directory: %s", opts.Dir)
	}
}

// reasons returns why the verdict is no better: everything that kept the run from being complete, the first of the worst reasons for each phase, and
// the failed asserts.
func reasons(r *run.Run) []string {
	all, rest := r.Verdict.Reasons, words.Failures(r.Asserts)
	for _, ph := range r.Phase {
		rest += len(ph.Reasons)
	}
	some := slices.Clone(all[:max(len(all)-rest, 0)])
	for _, name := range r.PhaseOrder {
		ph := r.Phase[name]
		more := ph.Reasons
		if len(more) == 0 || r.EndedBy(&more[0]) {
			continue // it is said
		}
		first := max(0, slices.IndexFunc(more, func(why run.Reason) bool { return why.Validity == ph.Validity }))
		why := "phase " + name + ": " + more[first].Text
		if len(more) > 1 {
			why += ", and " + quantity.Count(len(more)-1, "other reason") + " above"
		}
		some = append(some, why)
	}
	for _, a := range r.Asserts {
		if !words.Passed(a) {
			some = append(some, "assert: "+a.Name)
		}
	}
	return some
}
