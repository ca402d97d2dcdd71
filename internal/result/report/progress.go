package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
)

const (
	redrawEvery = 200 * time.Millisecond // a terminal
	lineEvery   = 950 * time.Millisecond // anything else; updates come every second, sometimes a little early
	unknownWide = 80                     // columns, if the terminal does not report its width
)

// Progress shows updates during a run: on a terminal as two lines that are redrawn, elsewhere as a line each second and one at the end of each step;
// JSONLines gets these as JSON. After a failed write it writes no more: nothing depends on it. One goroutine at a time may use it.
type Progress struct {
	w       io.Writer
	columns func() int // width of the terminal; nil if there is none
	run     string
	last    run.Update // the last one written
	drawn   []int      // columns of each line on the terminal
	err     error
}

// NewProgress returns a Progress that writes to w, for the run with that name. columns returns the current width of the terminal w, or 0 if unknown;
// nil if w is no terminal.
func NewProgress(w io.Writer, columns func() int, run string) *Progress {
	return &Progress{w: w, columns: columns, run: run}
}

// Show takes an update. It skips it if another of the same step was written just before, but always writes a step's final update.
func (p *Progress) Show(u run.Update) {
	every := lineEvery
	if p.columns != nil {
		every = redrawEvery
	}
	since := u.Elapsed - p.last.Elapsed
	if same := u.Doing == p.last.Doing && u.Phase == p.last.Phase && u.Kind == p.last.Kind && u.Level == p.last.Level; same && !u.Final && since < every {
		return
	}
	p.last = u
	if lines, ok := p.w.(*JSONLines); ok {
		lines.progress(p.run, u)
		return
	}
	p.show(&u)
}

func (p *Progress) show(u *run.Update) {
	if p.columns == nil {
		p.write(strings.Join(append([]string{words.StepOf(u), words.TimeOf(u)}, figuresOf(u)...), "  ") + "\n")
		return
	}
	wide := p.width()
	lines := []string{
		fit(wide, words.StepOf(u), words.TimeOf(u), barOf(u)),
		fit(wide, figuresOf(u)...),
	}
	text := p.erase(wide)
	p.drawn = p.drawn[:0]
	for _, line := range lines {
		text += line + "\n"
		p.drawn = append(p.drawn, columns(line))
	}
	p.write(text)
}

// Clear removes what is drawn on a terminal.
func (p *Progress) Clear() {
	if len(p.drawn) > 0 {
		p.write(p.erase(p.width()))
		p.drawn = nil
	}
}

// erase moves to the start of the first line and clears everything below (ECMA-48: CUU, ED). Lines drawn when the terminal was wider now take several
// rows each.
func (p *Progress) erase(wide int) string {
	rows := 0
	for _, n := range p.drawn {
		rows += max(1, (n+wide-1)/wide)
	}
	if rows == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", rows)
}

func (p *Progress) width() int {
	if n := p.columns(); n > 0 {
		return n
	}
	return unknownWide
}

func (p *Progress) write(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text)
	}
}

// fit joins parts up to the first that is empty or does not fit into the line. The last column stays free: some terminals wrap after it.
func fit(wide int, parts ...string) string {
	line := ""
	for _, part := range parts {
		next := line + "  " + part
		if line == "" {
			next = part
		}
		if part == "" || columns(next) > wide-1 {
			break
		}
		line = next
	}
	return line
}

// barOf draws how much is done, by ops if their number is known and otherwise by time.
func barOf(u *run.Update) string {
	const cells = 30
	share, known := words.DoneOf(u)
	if !known {
		return ""
	}
	full := int(share * cells)
	return fmt.Sprintf("%s%s %3.0f %%", strings.Repeat("█", full), strings.Repeat("░", cells-full), 100*share)
}

// figuresOf lists an update's figures in order of importance.
func figuresOf(u *run.Update) []string {
	if u.Doing != "" {
		return []string{u.Doing}
	}
	var parts []string
	if len(u.Awaited) > 0 {
		parts = append(parts, "without "+named(u.Awaited))
	}
	if k := u.Search; k != nil {
		parts = append(parts, "limit "+words.Limit(k), words.Clock(k.Spent)+" spent", words.Clock(k.Left)+" left")
	}
	if u.Offered > 0 {
		parts = append(parts, "offered "+quantity.SI(u.Offered)+"/s")
	}
	parts = append(parts, "ended "+quantity.SI(u.Achieved)+"/s")
	if u.P50 > 0 || u.P99 > 0 {
		parts = append(parts, "p50 "+words.Latency(unlessZero(u.P50.Seconds())), "p99 "+words.Latency(unlessZero(u.P99.Seconds())))
	}
	parts = append(parts, "bad "+quantity.Thousands(u.Bad))
	done := quantity.Thousands(u.Done)
	if u.Total > 0 {
		done += " of " + quantity.Thousands(u.Total)
	}
	return append(parts, "done "+done)
}

// named names workers, or counts them if there are many.
func named(workers []string) string {
	const most = 3
	if more := len(workers) - most; more > 1 {
		return strings.Join(workers[:most], ", ") + " and " + quantity.Thousands(more) + " more"
	}
	return strings.Join(workers, ", ")
}
