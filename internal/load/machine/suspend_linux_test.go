package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSuspended reads the clocks of this machine, which is not suspended meanwhile.
func TestSuspended(t *testing.T) {
	before := Suspended()
	require.Greater(t, before, -time.Second)
	time.Sleep(20 * time.Millisecond)
	require.Less(t, Suspended()-before, time.Second)
	require.Zero(t, testing.AllocsPerRun(100, func() { Suspended() }))
}
