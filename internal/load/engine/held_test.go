//go:build !race

package engine

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Live bytes count towards a policy's memory, on the heap and outside of it, and garbage does not. The race detector keeps memory of its own for each byte
// that was ever used.
func TestGarbageIsNotHeld(t *testing.T) {
	const size = 64 << 20
	most := heldBytes(0) + size/2
	garbage := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		garbage[i] = 1
	}
	require.Greater(t, heldBytes(most), most, "it is in use: %d", len(garbage))
	runtime.KeepAlive(garbage)
	require.LessOrEqual(t, heldBytes(most), most)
	outside, err := resized(nil, false, size)
	require.NoError(t, err)
	outside = outside[:size]
	for i := 0; i < size; i += 4096 {
		outside[i] = 1
	}
	require.Greater(t, heldBytes(most), most)
	unmap(outside)
	require.LessOrEqual(t, heldBytes(most), most)
}
