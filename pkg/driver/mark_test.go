package driver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Values in stores hold marks, so these are written out: key, hash, number, mark, and the key field of a checked header.
func TestMarksStayWhatTheyAre(t *testing.T) {
	for _, tt := range []struct {
		key    string
		hash   uint64
		number uint64
		mark   string
	}{
		{"a", 0xf412debf8a59e1a7, 7, "HNYTFF6XHAAAAA3H"},
		{"key:000000000001", 0x864545551cdacc7c, 7, "4DTVNOUKHAAAAAWU"},
		{"key:000000000002", 0xb6dec26eef58c467, 7, "HDRRVX3NHAAAAAX7"},
		{"user:{42}:profile", 0x372e4001a98f71e5, 7, "FP46YUGAHAAAAAPH"},
	} {
		hash := KeyHash([]byte(tt.key))
		require.Equal(t, tt.hash, hash)
		v := Value{Size: 40, Key: hash, Seed: tt.number << 24}
		b := v.AppendTo(nil)
		require.Len(t, b, 40)
		require.Equal(t, tt.mark, string(b[:MarkSize]))
		require.False(t, Misnamed(b, hash))
		require.True(t, Misnamed(b, hash^1))
		for i := range MarkSize {
			b[i] ^= 1
			require.False(t, Misnamed(b, hash^1), "byte %d", i)
			b[i] ^= 1
		}
		for size := range MarkSize {
			v.Size = size
			short := v.AppendTo(nil)
			require.Equal(t, tt.mark[:(size+1)/2], string(short[:(size+1)/2]))
			require.Equal(t, "HAAAAAAA"[:size/2], string(short[(size+1)/2:]))
			require.False(t, Misnamed(short, hash^1))
		}
	}
}

func BenchmarkMark(b *testing.B) {
	for _, size := range []int{32, 200, 1024, 4096} {
		for _, key := range []uint64{0, 977} {
			for _, checked := range []bool{false, true} {
				v := Value{Size: size, Key: key, Checked: checked, Version: 1}
				dst := v.AppendTo(nil)
				b.Run(fmt.Sprintf("verb=write/size=%d/checked=%t/keyed=%t", size, checked, key != 0), func(b *testing.B) {
					for b.Loop() {
						v.Seed += 0x9E3779B97F4A7C15
						v.AppendTo(dst[:0])
					}
				})
				b.Run(fmt.Sprintf("verb=read/size=%d/checked=%t/keyed=%t", size, checked, key != 0), func(b *testing.B) {
					for b.Loop() {
						if checked {
							(&Reply{Value: dst}).Header()
						} else {
							Misnamed(dst, key)
						}
					}
				})
			}
		}
	}
}
