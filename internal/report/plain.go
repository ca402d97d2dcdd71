package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain replaces what a terminal would obey: control characters but line breaks and tabs, and those that turn the direction of writing.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return utf8.RuneError
		}
		return r
	}, text)
}
