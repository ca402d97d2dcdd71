package coord

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestShareIsExact gives every session to exactly one worker.
func TestShareIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sessions, workers := rapid.IntRange(0, 1_000_000).Draw(t, "sessions"), rapid.IntRange(1, 1000).Draw(t, "workers")
		next := 0
		for i := range workers {
			from, to := share(sessions, i, workers)
			require.Equal(t, next, from)
			require.LessOrEqual(t, to-from, sessions/workers+1)
			next = to
		}
		require.Equal(t, sessions, next)
	})
}
