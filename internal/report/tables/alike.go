package tables

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// number is a figure in a text, with the commas of thousands.
var number = regexp.MustCompile(`\d[\d,]*(\.\d+)?`)

// gap stands where a number was: no text for people has it.
const gap = "\x00"

// alike are texts that differ in their numbers only.
type alike struct {
	pattern string     // the text with gap for each number
	slots   [][]string // the different texts of each number, in the order in which they came
}

// Alikes joins texts that differ in their numbers only, in the order in which they came. It returns for each text which one it is in.
func Alikes(texts []string) (all []*alike, in []int) {
	for _, text := range texts {
		text = strings.ReplaceAll(text, gap, "")
		numbers := number.FindAllString(text, -1)
		pattern := number.ReplaceAllString(text, gap)
		i := slices.IndexFunc(all, func(a *alike) bool { return a.pattern == pattern && len(a.slots) == len(numbers) })
		if i < 0 {
			i = len(all)
			all = append(all, &alike{pattern: pattern, slots: make([][]string, len(numbers))})
		}
		for j, n := range numbers {
			if !slices.Contains(all[i].slots[j], n) {
				all[i].slots[j] = append(all[i].slots[j], n)
			}
		}
		in = append(in, i)
	}
	return all, in
}

// JoinAlike are texts with those joined that differ in their numbers only.
func JoinAlike(texts []string) (all []string) {
	some, _ := Alikes(texts)
	for _, one := range some {
		all = append(all, one.String())
	}
	return all
}

// String is the text with what stood in the place of each number: up to three values, or from where to where they go.
func (a *alike) String() string {
	var b strings.Builder
	rest := a.pattern
	for _, slot := range a.slots {
		before, after, _ := strings.Cut(rest, gap)
		b.WriteString(before + between3(slot))
		rest = after
	}
	return b.String() + rest
}

func between3(slot []string) string {
	sorted := slices.SortedFunc(slices.Values(slot), func(a, b string) int {
		x, y := valueOf(a), valueOf(b)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	switch n := len(sorted); {
	case n == 1:
		return sorted[0]
	case n <= 3:
		return strings.Join(sorted[:n-1], ", ") + " or " + sorted[n-1]
	default:
		return sorted[0] + " to " + sorted[n-1]
	}
}

// valueOf reads a number that the pattern has found.
func valueOf(text string) float64 {
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		return 0 // digits alone are always read
	}
	return v
}
