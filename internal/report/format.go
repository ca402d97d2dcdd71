package report

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loadgen/loadgen/internal/quantity"
)

// count writes a whole number with thousands separators.
func count[T int | int64 | uint32 | uint64](n T) string {
	return thousands(strconv.FormatInt(int64(n), 10))
}

func thousands(digits string) string {
	first := 0
	if strings.HasPrefix(digits, "-") {
		first = 1
	}
	for i := len(digits) - 3; i > first; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// whole writes a rate to the unit, or with three digits where that is less.
func whole(f float64) string {
	if f >= 100 {
		return thousands(strconv.FormatFloat(math.Round(f), 'f', 0, 64))
	}
	return quantity.Digits(f)
}

// si writes a quantity with three digits and a decimal prefix: 83.2k.
func si(f float64) string {
	for _, prefix := range []string{"", "k", "M", "G"} {
		if f < 999.5 {
			return quantity.Digits(f) + prefix
		}
		f /= 1000
	}
	return quantity.Digits(f) + "T"
}

// size writes bytes: 2.31 MB.
func size[T int64 | uint64](bytes T) string {
	if bytes < 1000 {
		return count(bytes) + " B"
	}
	text := si(float64(bytes))
	return text[:len(text)-1] + " " + text[len(text)-1:] + "B"
}

// blocks writes bytes as plans do where they are a whole number of KiB or MiB, else as size.
func blocks(bytes int) string {
	switch {
	case bytes > 0 && bytes%(1<<20) == 0:
		return count(bytes>>20) + " MiB"
	case bytes > 0 && bytes%(1<<10) == 0:
		return count(bytes>>10) + " KiB"
	}
	return size(int64(bytes))
}

// plural writes a count of things.
func plural[T int | int64 | uint32 | uint64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// columns is the width of text on a terminal: nothing here is wider than a letter.
func columns(text string) int { return utf8.RuneCountInString(text) }

// left and right pad text to a width.
func left(text string, width int) string  { return text + spaces(width-columns(text)) }
func right(text string, width int) string { return spaces(width-columns(text)) + text }

func spaces(n int) string { return strings.Repeat(" ", max(n, 0)) }

// Wrap breaks text between words into lines of a width, where words allow. A quantity is one word with its unit.
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

// isUnit reports whether a word, with what may stand behind it, is a unit.
func isUnit(word string) bool {
	switch strings.TrimRight(word, ".,:;)") {
	case "%", "ns", "µs", "ms", "s", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB":
		return true
	}
	return false
}

// flow joins parts by sep into lines of a width, where parts allow, and breaks none of them.
func flow(parts []string, sep string, width int) []string {
	var lines []string
	line := ""
	for i, part := range parts {
		switch {
		case i == 0:
			line = part
		case columns(line)+columns(sep)+columns(part) <= width:
			line += sep + part
		default:
			lines, line = append(lines, line+strings.TrimRight(sep, " ")), part
		}
	}
	return append(lines, line)
}
