package run

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/measure"
)

// decimal writes a count or a rate with thousands separators; below 100 with up to two decimals.
func decimal(f float64) string {
	if f < 100 {
		return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64)
	}
	digits := strconv.FormatFloat(math.Round(f), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func plural(n uint64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return decimal(float64(n)) + " " + noun
}

// named is a count with its name.
type named struct {
	name string
	n    uint64
}

// list writes the counts that are not zero.
func list(counts ...named) string {
	var parts []string
	for _, c := range counts {
		if c.n > 0 {
			parts = append(parts, decimal(float64(c.n))+" "+c.name)
		}
	}
	return strings.Join(parts, ", ")
}

// errorTexts lists the texts by frequency. Those that were counted and not kept come last, as one.
func errorTexts(e *measure.Errors) []ErrorText {
	texts, others := []ErrorText{}, e.Total()
	for text, n := range e.All() {
		texts = append(texts, ErrorText{Text: text, Count: n})
		others -= n
	}
	slices.SortStableFunc(texts, func(a, b ErrorText) int {
		if a.Count > b.Count {
			return -1
		}
		if a.Count < b.Count {
			return 1
		}
		return 0
	})
	if others > 0 {
		texts = append(texts, ErrorText{Text: "(other texts)", Count: others})
	}
	return texts
}

// quote cites the first texts, each after a semicolon.
func quote(texts []ErrorText) string {
	const shown = 2
	var b strings.Builder
	for _, e := range texts[:min(shown, len(texts))] {
		fmt.Fprintf(&b, "; %q × %s", e.Text, decimal(float64(e.Count)))
	}
	return b.String()
}
