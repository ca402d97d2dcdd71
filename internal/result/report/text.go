package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Bounds of the width in columns, and the width where there is no terminal. Lines of text that are wider are hard to read; every terminal has the
// narrowest.
const (
	mostWide  = 160
	usualWide = 100
	leastWide = 80
)

// Options say what to show, and how.
type Options struct {
	Dir    string // the run's directory; "" for none
	Width  int    // columns of the terminal; 0 if unknown, or not a terminal
	Colour bool   // whether the terminal shows colours, and the user wants them
	Full   bool   // also show parts without news: untimed phases, columns of a single value
}

// Text writes the summary of a run: its answer, whether it can be trusted and why not, then each phase with its figures, the workers if there are
// several, and the asserts.
func Text(w io.Writer, r *run.Run, opts Options) error {
	p := newPrinter(opts)
	p.Full = p.Full || tables.Loads(r) == 0 // untimed phases are then all there is
	for _, answer := range words.Answers(r) {
		p.prose(answer)
	}
	p.verdict(r)
	p.line("")
	p.head(r)
	for _, name := range r.PhaseOrder {
		p.phase(name, r.Phase[name])
	}
	p.workers(r)
	p.asserts(r.Asserts)
	p.end(r.ExitCode, "Run", opts.Dir)
	return p.to(w, "report")
}

// printer builds a text.
type printer struct {
	Options
	b     strings.Builder
	width int // columns that lines stay within, as far as words allow
}

// roomy says whether a table has room for so many columns of latencies.
func (p *printer) roomy(columns int) bool {
	return p.width >= 2+labelWidth+columns*words.CellWidth+3
}

// newPrinter returns an empty printer.
func newPrinter(opts Options) *printer {
	return &printer{Options: opts, width: min(max(cmp.Or(opts.Width, usualWide), leastWide), mostWide)}
}

// line adds a line, without trailing spaces.
func (p *printer) line(format string, args ...any) {
	p.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

// to writes the text, which is called what in an error, stripped of anything that a terminal would obey.
func (p *printer) to(w io.Writer, what string) error {
	text := quantity.Plain(p.b.String())
	if p.Colour {
		text = coloured(text)
	}
	return written(w, what, text)
}

// written writes a text.
func written(w io.Writer, what, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
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
		p.facts(words.Machine(r))
	}
	for _, text := range words.Unsaid(r) {
		p.prose(text)
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
	switch failed, undecided := words.Failures(all); {
	case failed > 0:
		word = "FAIL"
	case undecided > 0:
		word = "undecided"
	}
	p.rule("asserts", word)
	for _, a := range all {
		word, why := words.Outcome(a)
		p.item(word, a.Name)
		for _, text := range append([]string{a.That}, why...) {
			p.item("", text)
		}
	}
}

// verdict says how far the run got, whether its asserts hold and whether its figures can be trusted; then each reason once.
func (p *printer) verdict(r *run.Run) {
	p.prose(strings.Join(words.Verdict(r), " "))
	for _, why := range words.Shortcomings(r, false) {
		p.bullet(0, why)
	}
	p.doubts(tables.Doubts(r))
}

// doubts adds a line for each reason, as much of it as a terminal has room for, and names the commands that say the rest and what to do.
func (p *printer) doubts(all []tables.Doubt) {
	var codes []string
	room, complete := 0, true
	if p.Width > 0 && !p.Full {
		room = p.width - 4
	}
	for _, d := range all {
		line, whole := d.Line(room)
		p.line("  %s %s", cmp.Or(d.Validity.Mark(), "-"), line)
		if complete = complete && whole; d.Means != "" {
			codes = append(codes, d.Code)
		}
	}
	if !complete {
		p.prose("Lines that end in … go on in loadgen runs show --full")
	}
	if len(codes) > 0 {
		p.prose("What to do: loadgen explain " + strings.Join(codes, " "))
	}
}

// prose adds sentences.
func (p *printer) prose(text string) {
	for _, line := range Wrap(text, p.width) {
		p.line("%s", line)
	}
}

// bullet adds a sentence behind a dash, with so many more columns at its left than a verdict's reasons have.
func (p *printer) bullet(indent int, text string) {
	for i, line := range Wrap(text, p.width-indent-4) {
		p.line("  %s%s %s", spaces(indent), []string{"-", " "}[min(i, 1)], line)
	}
}

// end says where the run is kept, and with which code the program ends.
func (p *printer) end(code int, what, dir string) {
	p.line("")
	text := fmt.Sprintf("Exit code %d.", code)
	if dir != "" {
		text += " " + what + " directory: " + dir
	}
	p.line("%s", text)
}
