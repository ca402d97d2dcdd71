package quantity

import (
	"strings"
	"unicode"
)

// Obeyed reports whether a terminal or page would act on a character instead of showing it. Names and errors from a server, and results made by
// others, are shown on terminals and pages:
//
//	control characters except line feed and tab  terminals: colors, the cursor, the title, the clipboard
//	characters that change writing direction     browsers and terminals: "txt.exe" shows as "exe.txt" (Unicode Standard Annex 9)
//	line and paragraph separators                a line break where there is none
//
// Joiners, which emoji and some scripts need, are not among them.
func Obeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// Plain replaces each character that Obeyed reports with U+FFFD.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if Obeyed(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
