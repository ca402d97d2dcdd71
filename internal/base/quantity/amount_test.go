package quantity

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAmounts(t *testing.T) {
	tests := []struct{ got, want string }{
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
		{Count(1, "node"), "1 node"},
		{Count(0, "node"), "0 nodes"},
		{Count(1000, "node"), "1,000 nodes"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, tt.got)
	}
}
