package rundir

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/loadgen/loadgen/internal/base/quantity"
)

// plainJSON escapes the characters in encoded JSON that a terminal or a page would obey, since results quote servers. The encoder has already escaped
// those that JSON requires.
func plainJSON(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == '\\' {
			r, n = unescaped(b)
		}
		if quantity.Obeyed(r) {
			out = utf8.AppendRune(out, utf8.RuneError)
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

// unescaped returns the character that an escape at the start of b stands for, and the escape's bytes.
func unescaped(b []byte) (rune, int) {
	const wide = len(`\u0000`)
	switch {
	case len(b) >= wide && b[1] == 'u':
		n, err := strconv.ParseUint(string(b[2:wide]), 16, 16)
		if err == nil {
			return rune(n), wide
		}
	case len(b) > 1:
		if i := bytes.IndexByte([]byte("bfrnt"), b[1]); i >= 0 {
			return rune("\b\f\r\n\t"[i]), 2
		}
		return rune(b[1]), 2
	}
	return rune(b[0]), 1
}
