package measure

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestErrorTexts(t *testing.T) {
	long := strings.Repeat("x", maxText-1)
	for _, c := range []struct{ name, text, want string }{
		{"plain", "ERR unknown command", "ERR unknown command"},
		{"empty", "", ""},
		{"control characters", "a\r\n\tb\x00\x1b[31m\x7f", `a\r\n\tb\x00\x1b[31m\x7f`},
		{"unprintable runes", "a\u0085\u202e\U000e0001", `a\u0085\u202e\U000e0001`},
		{"invalid UTF-8", "a\xff\xc3", `a\xff\xc3`},
		{"the rune for invalid UTF-8", "a\ufffdb", "a\ufffdb"},
		{"printable runes", "größe ≤ 日本", "größe ≤ 日本"},
		{"just fits", long + "y", long + "y"},
		{"cut", long + "yz", long + "y"},
		{"cut before a rune", long + "ß", long},
		{"cut before an escape", long + "\n", long},
		{"nothing after the cut", long + "ßy", long},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e Errors
			e.Add([]byte(c.text))
			require.Equal(t, map[string]uint64{c.want: 1}, maps.Collect(e.All()))
			require.EqualValues(t, 1, e.Total())
		})
	}
}

func TestAllCanBeLeft(t *testing.T) {
	var e Errors
	e.Add([]byte("a"))
	e.Add([]byte("b"))
	for text := range e.All() {
		require.Equal(t, "a", text, "the loop goes on after a break")
		break
	}
}

// The first eight texts are kept with exact counts, in whatever order and parts they came.
func TestErrorsAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(anyText, 0, 60).Draw(t, "texts")
		parts := make([]Errors, 4)
		counts := map[string]uint64{}
		for _, s := range texts {
			parts[rapid.IntRange(0, 3).Draw(t, "part")].Add([]byte(s))
			printable := string(appendPrintable(make([]byte, 0, maxText), []byte(s)))
			require.True(t, utf8.ValidString(printable))
			require.LessOrEqual(t, len(printable), maxText)
			counts[printable]++
		}
		var sum Errors
		for _, i := range rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "order") {
			sum.Merge(&parts[i])
		}
		want := slices.Sorted(maps.Keys(counts))
		want = want[:min(len(want), maxTexts)]
		var got []string
		for text, n := range sum.All() {
			got = append(got, text)
			require.Equal(t, counts[text], n, "%q", text)
		}
		require.Equal(t, len(want), len(got))
		require.True(t, slices.Equal(want, got))
		require.EqualValues(t, len(texts), sum.Total())
	})
}
