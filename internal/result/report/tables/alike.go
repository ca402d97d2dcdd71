package tables

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// number matches a number in a text, with commas between thousands.
var number = regexp.MustCompile(`\d[\d,]*(\.\d+)?`)

// gap stands for a number: no text for people contains it.
const gap = "\x00"

// Alike is a set of things whose texts differ only in their numbers.
type Alike[T any] struct {
	Members []T
	pattern string     // the text with gap in place of each number
	slots   [][]string // the different texts of each number, in order of appearance
}

// Alikes groups things whose texts differ only in their numbers, in order of appearance.
func Alikes[T any](things []T, textOf func(T) string) (all []*Alike[T]) {
	for _, thing := range things {
		text := strings.ReplaceAll(textOf(thing), gap, "")
		numbers := number.FindAllString(text, -1)
		pattern := number.ReplaceAllString(text, gap)
		i := slices.IndexFunc(all, func(a *Alike[T]) bool { return a.pattern == pattern && len(a.slots) == len(numbers) })
		if i < 0 {
			i = len(all)
			all = append(all, &Alike[T]{pattern: pattern, slots: make([][]string, len(numbers))})
		}
		for j, n := range numbers {
			if !slices.Contains(all[i].slots[j], n) {
				all[i].slots[j] = append(all[i].slots[j], n)
			}
		}
		all[i].Members = append(all[i].Members, thing)
	}
	return all
}

// JoinAlike returns the texts, with those joined that differ only in their numbers.
func JoinAlike(texts []string) (all []string) {
	for _, one := range Alikes(texts, func(text string) string { return text }) {
		all = append(all, one.String())
	}
	return all
}

// String returns the text with the values of each number: up to three, or their range.
func (a *Alike[T]) String() string {
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
		return cmp.Compare(valueOf(a), valueOf(b))
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

// valueOf parses a number that the pattern matched.
func valueOf(text string) float64 {
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		return 0 // text of digits always parses
	}
	return v
}
