package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
)

// named is a count with its name.
type named struct {
	name string
	n    uint64
}

// list lists the counts that are not zero.
func list(counts ...named) string {
	var parts []string
	for _, c := range counts {
		if c.n > 0 {
			parts = append(parts, quantity.Number(float64(c.n))+" "+c.name)
		}
	}
	return strings.Join(parts, ", ")
}

// errorTexts lists the texts by frequency. Counts of texts that were not kept come last, as one entry.
func errorTexts(e *measure.Errors) []run.ErrorText {
	texts, others := []run.ErrorText{}, e.Total()
	for text, n := range e.All() {
		texts = append(texts, run.ErrorText{Text: text, Count: n})
		others -= n
	}
	slices.SortStableFunc(texts, func(a, b run.ErrorText) int { return cmp.Compare(b.Count, a.Count) })
	if others > 0 {
		texts = append(texts, run.ErrorText{Text: "(other texts)", Count: others})
	}
	return texts
}

// quote quotes the first two texts, each after a semicolon.
func quote(texts []run.ErrorText) string {
	const shown = 2
	var b strings.Builder
	for _, e := range texts[:min(shown, len(texts))] {
		fmt.Fprintf(&b, "; %q × %s", e.Text, quantity.Number(float64(e.Count)))
	}
	return b.String()
}

// because makes a reason from its code and formatted words.
func because(code reason.Code, format string, args ...any) reason.Why {
	return reason.Why{Code: code, Text: fmt.Sprintf(format, args...)}
}

func number(f float64) *float64 { return &f }

func seconds[T int64 | float64](ns T) float64 { return float64(ns) / 1e9 }
