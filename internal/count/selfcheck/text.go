package selfcheck

import (
	"fmt"
	"io"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
)

// Text writes the result for people.
func (r *Result) Text(w io.Writer) error {
	var b strings.Builder
	m, l := &r.Machine, &r.Lags
	if r.OK {
		b.WriteString("known answers came out right\n")
	} else {
		b.WriteString("known answers did NOT come out right: figures from this machine, as it is now, are not to be believed\n")
	}
	fmt.Fprintf(&b, "\n%s, processors: %d, Linux %s\n", m.CPUModel, m.CPUs, m.Kernel)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("clock", "%.0f ns to read, from %s", l.ClockNS, m.ClockSource)
	line("timer", "a sleep of 100 µs lasts %s longer (p50), %s (p99)", quantity.Duration(l.TimerP50), quantity.Duration(l.TimerP99))
	line("scheduler", "kept a computing thread waiting for %.2f %% of the time, up to %s at a stretch", 100*l.Taken, quantity.Duration(l.LongestTaken))
	line("generator", "%.0f ns of processor time for an op on no target", r.Floors.GeneratorNS)
	line("floor", "%s from an op's start to its end on a built-in node (p50), %s (p99)", quantity.Duration(r.Floors.P50), quantity.Duration(r.Floors.P99))
	b.WriteString("\nknown answers\n")
	for i := range r.Answers {
		r.Answers[i].text(&b)
	}
	b.WriteString("\nwhat disturbs measurements here\n")
	for _, d := range r.Doubts {
		fmt.Fprintf(&b, "  - %s\n    remedy: %s\n", d.What, d.Remedy)
	}
	switch {
	case len(r.Doubts) > 0:
	case r.OK:
		b.WriteString("  nothing was found\n")
	default:
		b.WriteString("  nothing was found: try again; if it comes out wrong each time, it is a defect of loadgen\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Check) text(b *strings.Builder) {
	word := "right"
	if !c.OK {
		word = "WRONG"
	}
	again := ""
	if c.Attempt > 1 {
		again = fmt.Sprintf(" (attempt %d)", c.Attempt)
	}
	fmt.Fprintf(b, "  %s  %s%s\n        ", word, c.Name, again)
	for i := range c.Figures {
		f := &c.Figures[i]
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(b, "%s %s of %s", f.Name, f.text(f.Measured), f.text(f.Expected))
		if !f.OK() {
			fmt.Fprintf(b, " (±%s!)", f.text(f.Within))
		}
	}
	b.WriteString("\n")
}

func (f *Figure) text(v float64) string {
	if f.Time {
		return quantity.Duration(v)
	}
	return fmt.Sprintf("%.0f", v)
}
