package workload

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeyFormatPrintsAsFmtDoes(t *testing.T) {
	formats := []string{"key:%012d", "key:%08d.x", "%016d", "long:key:%08d", "%017d", "key:%010d", "%d", "%x", "%08x", "a%%b%01dc%%", "%064d", "%%%d%%", "ключ:%03x"}
	for _, text := range formats {
		f, err := parseKeyFormat(text)
		require.NoError(t, err)
		for _, n := range []uint64{0, 7, 10, 255, 12_345_678, 99_999_999, 100_000_000, 9_999_999_999_999_999, 10_000_000_000_000_000, 999_999_999_999, math.MaxInt64, math.MaxUint64} {
			require.Equal(t, fmt.Sprintf(text, n), string(f.Append(nil, n)))
		}
	}
	f, err := parseKeyFormat("key:%03d")
	require.NoError(t, err)
	require.Equal(t, "before key:007", string(f.Append([]byte("before "), 7)))
}

// The divisions by multiplication are correct for every possible half.
func TestEightDigits(t *testing.T) {
	for i := range uint64(1e4) {
		for _, n := range []uint64{i, i * 1e4, i*1e4 + (9999 - i)} {
			require.Equal(t, fmt.Sprintf("%08d", n), string(binary.LittleEndian.AppendUint64(nil, eightDigits(n))))
		}
	}
}

func TestParseKeyFormatRefuses(t *testing.T) {
	tests := []struct{ format, says string }{
		{"", "no verb"},
		{"key", "no verb"},
		{"100%%", "no verb"},
		{"%d:%d", "a second verb"},
		{"%d%x", "a second verb"},
		{"key:%", "may be in it"},
		{"key:%s", "may be in it"},
		{"key:%12d", "may be in it"},
		{"key:%-12d", "may be in it"},
		{"key:%X", "may be in it"},
		{"%d 5%", "a second verb"},
		{"%0d", `width "" of %0d`},
		{"%00d", `width "0" of %00d`},
		{"%0012d", `width "012" of %0012d`},
		{"%065d", `width "65" of %065d`},
		{"%0999999999999999999999d", "not a number from 1 to 64"},
		{"%0+5x", `width "+5" of %0+5x`},
	}
	for _, tt := range tests {
		_, err := parseKeyFormat(tt.format)
		require.ErrorContains(t, err, tt.says, tt.format)
		require.ErrorContains(t, err, fmt.Sprintf("key format %q", tt.format))
	}
}

// Every accepted format prints as fmt prints it.
func FuzzParseKeyFormat(f *testing.F) {
	for _, s := range []string{"key:%012d", "%%%x", "%0", "%d%", "a%%%05xb", "%0064d"} {
		f.Add(s, uint64(12345))
	}
	f.Fuzz(func(t *testing.T, text string, n uint64) {
		format, err := parseKeyFormat(text)
		if err != nil {
			return
		}
		require.Equal(t, fmt.Sprintf(text, n), string(format.Append(nil, n)))
	})
}
