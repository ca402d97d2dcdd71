package rundir

import (
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
			escape := string(b[:min(len(b), len(`\u0000`))])
			if c, _, rest, err := strconv.UnquoteChar(escape, '"'); err == nil {
				r, n = c, len(escape)-len(rest)
			}
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
