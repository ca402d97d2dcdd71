package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/report/words"
	"github.com/loadgen/loadgen/internal/run"
)

// Columns of the widest line: the most that are of use, and the fewest, which any terminal has.
const (
	mostWide  = 100
	leastWide = 80
)

// Options say what else to show, and where.
type Options struct {
	Dir   string // the run's directory; "" for none
	Width int    // columns of the terminal; 0: it is not known, or there is none
}

// Text writes the summary of a run: each phase with its figures and how far they may be believed, then the workers where
// there are several, the asserts, and the verdict in words.
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

// printer is a text in the making.
type printer struct {
	b     strings.Builder
	width int // columns that lines are kept to, as far as words allow
}

// roomy says whether tables can have all of their columns: those of latencies want 97.
func (p *printer) roomy() bool {
	return p.width >= 2+labelWidth+len(words.LatencyHeads)*words.CellWidth+3
}

// newPrinter returns an empty one for a terminal of so many columns.
func newPrinter(terminal int) *printer {
	if terminal == 0 {
		terminal = mostWide
	}
	return &printer{width: min(max(terminal, leastWide), mostWide)}
}

// line adds a line, without spaces at its end.
func (p *printer) line(format string, args ...any) {
	p.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

// to writes the page. A terminal obeys nothing of it.
func (p *printer) to(w io.Writer) error {
	_, err := io.WriteString(w, quantity.Plain(p.b.String()))
	return err
}

// item adds text after a label, broken into lines that keep to the right of it.
func (p *printer) item(label, text string) { p.items(label, " ", strings.Fields(text)...) }

// items adds parts after a label, joined by sep and broken between parts only.
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

// labelWidth is that of what stands to the left of figures.
const labelWidth = 12

// rule adds a line across, with a title at its left and a word at its right.
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

// facts adds parts between dots, broken between parts only.
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

// verdict says in words what the run is worth, and why.
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

// reasons are why the verdict is no better: all that kept the run from being complete, the first of the worst for each phase, and the
// asserts that failed.
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
