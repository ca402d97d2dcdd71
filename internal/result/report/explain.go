package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/result/report/words"
)

// Explain writes what codes of reasons mean, when they arise and what to do, what figures are, by their paths, and what metrics are, by their names;
// for "metrics" a line for each metric, and without any name one for each code. It returns an error for one that does not exist.
func Explain(w io.Writer, names []string, opts Options) error {
	p := newPrinter(opts)
	codes := slices.Concat(words.Explanations(), metrics())
	if len(names) == 0 {
		p.explanations(words.Explanations())
	}
	for i, name := range names {
		if i > 0 {
			p.line("")
		}
		if name == "metrics" {
			p.explanations(metrics())
			continue
		}
		e, ok := explained(codes, name)
		if !ok {
			var known []string
			for _, e := range codes {
				known = append(known, e.Code)
			}
			near := dialect.DidYouMean(name, known)
			if near != "" {
				near = " Did you mean " + near + "?"
			}
			return fmt.Errorf("no reason has the code %q, and no figure that path.%s loadgen explain lists all codes, with \"result\" or \"metrics\" the figures", name, near)
		}
		for _, part := range append([]string{name + ": " + e.Means}, e.More...) {
			p.prose(part)
		}
	}
	return p.to(w, "explanation")
}

func explained(codes []words.Explanation, name string) (words.Explanation, bool) {
	if i := slices.IndexFunc(codes, func(e words.Explanation) bool { return e.Code == name }); i >= 0 {
		return codes[i], true
	}
	return words.Figure(name)
}

// metrics explains those of /metrics.
func metrics() (all []words.Explanation) {
	for _, m := range prom.Metrics() {
		all = append(all, words.Explanation{Code: m.Name, Means: strings.TrimSuffix(m.Help, ".") + ".", More: []string{
			"It is a " + m.Type + ", with the labels " + strings.Join(m.Labels, ", ") + ".", "Query: " + m.Query(),
		}})
	}
	return all
}

// explanations adds what each of them means.
func (p *printer) explanations(all []words.Explanation) {
	wide := 0
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
