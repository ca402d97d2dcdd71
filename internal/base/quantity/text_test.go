package quantity

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"a\tb\nc":               "a\tb\nc",
		"größer als 5 µs → 7 %": "größer als 5 µs → 7 %",
		"👩\u200d🚀":              "👩\u200d🚀",
		"\x1b]0;x\a":            "\ufffd]0;x\ufffd",
		"a\rb\x00c\x7fd":        "a\ufffdb\ufffdc\ufffdd",
		"a\u0085b\u009b2J":      "a\ufffdb\ufffd2J",
		"\u202etxt.exe":         "\ufffdtxt.exe",
		"a\u2028b\u2029c":       "a\ufffdb\ufffdc",
		"a\xffb":                "a\ufffdb",
	} {
		require.Equal(t, want, Plain(text), "%q", text)
	}
}

// Every character that changes writing direction is obeyed, whatever Unicode version defines it.
func TestObeyedTurns(t *testing.T) {
	for _, r := range "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" {
		require.True(t, Obeyed(r), "%U", r)
	}
	for r := rune(' '); r <= unicode.MaxRune; r++ {
		if unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs) {
			require.False(t, Obeyed(r), "%U", r)
		}
	}
}

// FuzzPlain checks that Plain leaves nothing to obey, and does not change plain text.
func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[2J\u202eb\xff")
	f.Fuzz(func(t *testing.T, text string) {
		got := Plain(text)
		require.False(t, strings.ContainsFunc(got, Obeyed))
		require.Equal(t, got, Plain(got))
	})
}
