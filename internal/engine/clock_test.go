package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestShortSleepsAreNotMilliseconds pins that a loop with nothing but timers wakes when they are due. The best of many counts: a machine that is
// busy wakes threads late.
func TestShortSleepsAreNotMilliseconds(t *testing.T) {
	release, err := ownThread(-1)
	require.NoError(t, err)
	defer release()
	c := &wallClock{zero: time.Now(), nap: napThread}
	best := time.Hour
	for range 200 {
		before := c.now()
		c.sleep(200 * time.Microsecond)
		best = min(best, time.Duration(c.now()-before))
	}
	require.Less(t, best, 900*time.Microsecond)
}
