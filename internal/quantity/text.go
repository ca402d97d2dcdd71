package quantity

import (
	"strings"
	"unicode"
)

// Obeyed reports whether a character would be obeyed where a text is shown, instead of shown. Names of a server, errors that it answers with and results that
// somebody else has made end up on terminals and pages:
//
//	control characters, but line feed and tab    terminals: colors, the cursor, the title, the clipboard
//	those that turn the direction of writing     browsers and terminals: "txt.exe" shows as "exe.txt" (Unicode Standard Annex 9)
//	line and paragraph separators                a new line where there is none
//
// Joiners, which emoji and some scripts are written with, are not among them.
func Obeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// Plain replaces each character that would be obeyed with U+FFFD.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if Obeyed(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
