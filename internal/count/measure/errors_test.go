package measure

import (
	"fmt"
	"maps"
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

// Whatever the order and the partition of texts: up to 32 are counted exactly, and with more no count is off by more than documented.
func TestErrorsAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.OneOf(anyText, rapid.StringMatching("[a-z]{1,2}")), 0, 300).Draw(t, "texts")
		parts := make([]Errors, 4)
		counts := map[string]uint64{}
		for _, s := range texts {
			parts[rapid.IntRange(0, 3).Draw(t, "part")].Add([]byte(s))
			var one Errors
			one.Add([]byte(s))
			for printable := range one.All() {
				require.True(t, utf8.ValidString(printable))
				require.LessOrEqual(t, len(printable), maxText)
				counts[printable]++
			}
		}
		var sum Errors
		for _, i := range rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "order") {
			sum.Merge(&parts[i])
		}
		got := maps.Collect(sum.All())
		require.EqualValues(t, len(texts), sum.Total())
		if len(counts) <= maxTexts {
			require.Equal(t, counts, got)
			return
		}
		off := sum.Total()
		for _, n := range got {
			off -= n
		}
		off /= maxTexts + 1
		for text, n := range counts {
			require.LessOrEqual(t, got[text], n, "%q", text)
			require.LessOrEqual(t, n, got[text]+off, "%q", text)
		}
	})
}

// Sixteen rare texts that come first in byte order do not hide the one that came a million times.
func TestTheMostFrequentErrorIsKept(t *testing.T) {
	var e Errors
	for i := range 1_000_000 {
		e.Add([]byte("OOM command not allowed"))
		if i < 16_000 {
			e.Add(fmt.Appendf(nil, "A rare text, number %d", i%16))
		}
		if i%10 == 0 {
			e.Add(fmt.Appendf(nil, "B text of its own, number %d", i))
		}
	}
	got := maps.Collect(e.All())
	require.InDelta(t, 1_000_000, got["OOM command not allowed"], 1_116_000/(maxTexts+1))
}

// What is left of many texts is still what the decoder takes.
func TestManyErrorTextsTravel(t *testing.T) {
	totals := sampleTotals()
	for i := range 40_000 {
		totals.Errors.Add(fmt.Appendf(nil, "number %d", i%(i/100+1)))
	}
	var got Totals
	_, err := got.Decode(bytesOf(t, totals))
	require.NoError(t, err)
	require.Equal(t, bytesOf(t, totals), bytesOf(t, &got))
}

// Texts that displace others lose as many as those do: a count is at least what is left, and never more than there were.
func TestRoomForATextCostsAllOthers(t *testing.T) {
	var e Errors
	for i := range maxTexts {
		for range 10 + i {
			e.Add(fmt.Appendf(nil, "text %02d", i))
		}
	}
	for range 3 {
		e.Add([]byte("another"))
	}
	kept := maps.Collect(e.All())
	for i := range maxTexts {
		require.EqualValues(t, 10+i-3, kept[fmt.Sprintf("text %02d", i)], "text %d", i)
	}
	require.NotContains(t, kept, "another")
}

// A text more frequent than the rarest ones displaces these, with the difference as its count.
func TestAFrequentTextTakesThePlaceOfRareOnes(t *testing.T) {
	var all, more Errors
	for i := range maxTexts {
		for range 1 + i%2 {
			all.Add(fmt.Appendf(nil, "text %02d", i))
		}
	}
	for range 5 {
		more.Add([]byte("another"))
	}
	all.Merge(&more)
	want := map[string]uint64{"another": 4}
	for i := 1; i < maxTexts; i += 2 {
		want[fmt.Sprintf("text %02d", i)] = 1
	}
	require.Equal(t, want, maps.Collect(all.All()))
	require.EqualValues(t, 48+5, all.Total())
}
