package report

import (
	"fmt"
	"io"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/result/report/words"
)

// Explain writes what codes of reasons mean, when they arise and what to do, and what figures are, by their paths; without any, a line for each code.
// It returns an error for one that does not exist.
func Explain(w io.Writer, codes []string, opts Options) error {
	p := newPrinter(opts)
	if len(codes) == 0 {
		p.codes()
	}
	for i, code := range codes {
		e, ok := words.Explain(code)
		if !ok {
			e, ok = words.Figure(code)
		}
		if !ok {
			var known []string
			for _, e := range words.Explanations() {
				known = append(known, e.Code)
			}
			near := dialect.DidYouMean(code, known)
			if near != "" {
				near = " Did you mean " + near + "?"
			}
			return fmt.Errorf("no reason has the code %q, and no figure that path.%s loadgen explain lists all codes", code, near)
		}
		if i > 0 {
			p.line("")
		}
		for _, part := range append([]string{code + ": " + e.Means}, e.More...) {
			for _, line := range Wrap(part, p.width) {
				p.line("%s", line)
			}
		}
	}
	if err := p.to(w); err != nil {
		return fmt.Errorf("write explanation: %w", err)
	}
	return nil
}

// codes adds what each code means.
func (p *printer) codes() {
	all, wide := words.Explanations(), 0
	for _, e := range all {
		wide = max(wide, columns(e.Code))
	}
	for _, e := range all {
		code := e.Code
		for _, line := range Wrap(e.Means, p.width-wide-2) {
			p.line("%s  %s", left(code, wide), line)
			code = ""
		}
	}
}
