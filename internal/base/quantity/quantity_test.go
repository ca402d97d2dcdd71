package quantity

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuantities(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Duration(0), "0 s"},
		{Duration(12e-9), "12.0 ns"},
		{Duration(999e-9), "999 ns"},
		{Duration(999.6e-9), "1.00 µs"},
		{Duration(0.0012345), "1.23 ms"},
		{Duration(0.99999), "1.00 s"},
		{Duration(12.345), "12.3 s"},
		{Duration(59.9), "59.9 s"},
		{Duration(59.96), "1m 0s"},
		{Duration(3725), "1h 2m 5s"},
		{Percent(0), "0 %"},
		{Percent(0.00004), "0.004 %"},
		{Percent(0.01), "1 %"},
		{Percent(0.125), "12.5 %"},
		{Percent(0.231), "23.1 %"},
		{Percent(0.93), "93 %"},
		{Percent(0.9996), "99.96 %"},
		{Percent(1), "100 %"},
		{Digits(0), "0"},
		{Digits(9.996), "10.0"},
		{Digits(99.96), "100"},
		{Number(0), "0"},
		{Number(1.5), "1.5"},
		{Number(99.99), "99.99"},
		{Number(100.4), "100"},
		{Number(999.6), "1,000"},
		{Number(1234567), "1,234,567"},
		{Thousands(0), "0"},
		{Thousands(999), "999"},
		{Thousands(1000), "1,000"},
		{Thousands(-1234567), "-1,234,567"},
		{Thousands(-999), "-999"},
		{Whole(0), "0"},
		{Whole(1.234), "1.23"},
		{Whole(99.96), "100"},
		{Whole(83213.6), "83,214"},
		{SI(0), "0"},
		{SI(9.996), "10.0"},
		{SI(99.96), "100"},
		{SI(999.6), "1.00k"},
		{SI(83_214), "83.2k"},
		{SI(1e9), "1.00G"},
		{SI(5e15), "5000T"},
		{Bytes(uint64(999)), "999 B"},
		{Bytes(int64(1000)), "1.00 kB"},
		{Bytes(uint64(2_311_000)), "2.31 MB"},
		{Blocks(0), "0 B"},
		{Blocks(200), "200 B"},
		{Blocks(4096), "4 KiB"},
		{Blocks(3 << 20), "3 MiB"},
		{Blocks(1801), "1.80 kB"},
		{Count(0, "node"), "0 nodes"},
		{Count(1, "op"), "1 op"},
		{Count(1234, "op"), "1,234 ops"},
	} {
		require.Equal(t, tt.want, tt.got)
	}
}
