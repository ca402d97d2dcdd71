package memcached

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// ttlSize is the length of what appendTTL appends, at each number of digits.
func TestSizeOfALifetime(t *testing.T) {
	for _, ms := range []uint32{0, 1000, 9_999, 10_000, 99_999, 100_000, 999_000, 1_000_000, 99_999_000, 100_000_000, 999_999_999, 1_000_000_000, math.MaxUint32} {
		require.Len(t, appendTTL(nil, ms), ttlSize(ms), "%d ms", ms)
	}
	require.Equal(t, " T90", string(appendTTL(nil, 90_000)))
	for n, want := range map[int]int{0: 1, 1: 1, 9: 1, 10: 2, 99: 2, 100: 3, 999: 3, 1000: 4, 1 << 20: 7} {
		require.Equal(t, want, digits(n), "%d", n)
	}
}
