package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/report/words"
	"github.com/loadgen/loadgen/internal/run"
)

const (
	redrawEvery = 200 * time.Millisecond // a terminal
	lineEvery   = 950 * time.Millisecond // anything else; updates come each second, and may come a bit early
	unknownWide = 80                     // columns, of a terminal that does not say
)

// Progress shows updates while a run goes on: on a terminal as two lines that are drawn again and again, elsewhere as a line each
// second and one at the end of each step, which is JSON for JSONLines. Once a write has failed it writes no more: nothing hangs on it. It is used by one
// goroutine at a time.
type Progress struct {
	w       io.Writer
	columns func() int // nil: not a terminal
	run     string
	last    run.Update // that was written
	drawn   []int      // columns of each line on the terminal
	err     error
}

// NewProgress returns a Progress for the run of a name that writes to w. columns returns the present width of the terminal that w is, 0
// when that is not known; nil says that w is none.
func NewProgress(w io.Writer, columns func() int, run string) *Progress {
	return &Progress{w: w, columns: columns, run: run}
}

// Show takes an update. It is written unless another of the same step was written just before; a step's final one always is.
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
	p.show(frame{u})
}

func (p *Progress) show(u frame) {
	if p.columns == nil {
		p.write(strings.Join(append([]string{u.name(), u.time()}, u.figures()...), "  ") + "\n")
		return
	}
	wide := p.width()
	lines := []string{
		fit(wide, u.name(), u.time(), u.bar()),
		fit(wide, u.figures()...),
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

// erase moves to where the first line begins and clears all below (ECMA-48: CUU, ED). Lines drawn when the terminal was wider take
// several rows each now.
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

// fit joins the parts up to the first that is empty or does not fit into a line any more. The last column stays free: some terminals break the line
// after it.
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

// frame is an update as it is drawn.
type frame struct{ run.Update }

func (u frame) name() string {
	switch {
	case !u.Kind.Timed():
		return u.Phase + " (" + string(u.Kind) + ")"
	case u.Levels > 0:
		return u.Phase + " " + quantity.Thousands(u.Level) + " of " + quantity.Thousands(u.Levels)
	case u.Level > 0:
		return u.Phase + " " + quantity.Thousands(u.Level)
	}
	return u.Phase
}

func (u frame) time() string {
	text := clock(u.Elapsed)
	if u.Doing != "" {
		return text
	}
	if u.Expected > 0 {
		text += " of " + clock(u.Expected)
	}
	return text
}

// clock writes a duration to the tenth of a second while that matters.
func clock(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// bar draws how much is done, by ops where their number is known and by time otherwise.
func (u frame) bar() string {
	const cells = 30
	var share float64
	switch {
	case u.Total > 0:
		share = float64(u.Done) / float64(u.Total)
	case u.Expected > 0:
		share = u.Elapsed.Seconds() / u.Expected.Seconds()
	default:
		return ""
	}
	share = min(share, 1)
	full := int(share * cells)
	return fmt.Sprintf("%s%s %3.0f %%", strings.Repeat("█", full), strings.Repeat("░", cells-full), 100*share)
}

// figures are in the order in which they are wanted most.
func (u frame) figures() []string {
	if u.Doing != "" {
		return []string{u.Doing}
	}
	var parts []string
	if len(u.Awaited) > 0 {
		parts = append(parts, "without "+u.awaited())
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

// awaited names workers, and counts them where they are many.
func (u frame) awaited() string {
	const named = 3
	if more := len(u.Awaited) - named; more > 1 {
		return strings.Join(u.Awaited[:named], ", ") + " and " + quantity.Thousands(more) + " more"
	}
	return strings.Join(u.Awaited, ", ")
}
