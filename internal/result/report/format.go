package report

import (
	"strings"
	"unicode/utf8"
)

// columns returns the width of text on a terminal: no character here is wider than a letter.
func columns(text string) int { return utf8.RuneCountInString(text) }

// left and right pad text to a width.
func left(text string, width int) string  { return text + spaces(width-columns(text)) }
func right(text string, width int) string { return spaces(width-columns(text)) + text }

func spaces(n int) string { return strings.Repeat(" ", max(n, 0)) }

// Wrap breaks text between words into lines of that width, as far as words allow. A number and its unit count as one word.
func Wrap(text string, width int) []string {
	var words []string
	for _, word := range strings.Fields(text) {
		if n := len(words); n > 0 && isUnit(word) && strings.ContainsAny(words[n-1][len(words[n-1])-1:], "0123456789") {
			words[n-1] += " " + word
			continue
		}
		words = append(words, word)
	}
	return flow(words, " ", width)
}

// isUnit reports whether a word, without trailing punctuation, is a unit.
func isUnit(word string) bool {
	switch strings.TrimRight(word, ".,:;?!)") {
	case "%", "ns", "µs", "ms", "s", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB":
		return true
	}
	return false
}

// flow joins parts by sep into lines of that width, as far as parts allow, and breaks none of them.
func flow(parts []string, sep string, width int) []string {
	var lines []string
	line, end := "", strings.TrimRight(sep, " ") // at the end of a line before another
	for i, part := range parts {
		room := width
		if i < len(parts)-1 {
			room -= columns(end)
		}
		switch {
		case i == 0:
			line = part
		case columns(line)+columns(sep)+columns(part) <= room:
			line += sep + part
		default:
			lines, line = append(lines, line+end), part
		}
	}
	return append(lines, line)
}
