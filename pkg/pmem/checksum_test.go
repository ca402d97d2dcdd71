package pmem

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChecksumIsThatOfTheStandardLibrary compares at all lengths around those that are computed at once, in one piece and in two.
func TestChecksumIsThatOfTheStandardLibrary(t *testing.T) {
	random := rand.NewChaCha8([32]byte{})
	p := make([]byte, 1<<20)
	_, _ = random.Read(p)
	for n := range 3000 {
		from := int(random.Uint64() % 100)
		p := p[from : from+n]
		require.Equal(t, crc32.Checksum(p, castagnoli), checksum(0, p), n)
		if n > 0 {
			first := int(random.Uint64() % uint64(n))
			require.Equal(t, crc32.Checksum(p, castagnoli), checksum(checksum(0, p[:first]), p[first:]), "%d and %d", first, n-first)
		}
	}
	require.Equal(t, crc32.Checksum(p, castagnoli), checksum(0, p))
}

func BenchmarkChecksum(b *testing.B) {
	for _, size := range []int{24, 100, 1024, 1801, 1 << 20} {
		p := make([]byte, size)
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				checksum(0, p)
			}
		})
	}
}
