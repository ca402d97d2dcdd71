package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestShortSleepsAreNotMilliseconds pins that a loop with nothing but timers wakes when they are due. The best of many counts: a busy machine wakes
// threads late.
func TestShortSleepsAreNotMilliseconds(t *testing.T) {
	release, err := ownThread(nil, false)
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

// The last part of a wait is left to the caller, which watches the clock; so is all of a wait no longer than that part.
func TestTheLastPartOfAWaitIsNotSlept(t *testing.T) {
	for _, tt := range []struct{ spin, wait, want time.Duration }{
		{0, 100, 100}, {0, 0, -1}, {30, 100, 70}, {30, 31, 1}, {30, 30, -1}, {30, 29, -1},
	} {
		napped := time.Duration(-1)
		c := &wallClock{spin: tt.spin, nap: func(d time.Duration) { napped = d }}
		c.sleep(tt.wait)
		require.Equal(t, tt.want, napped, "%+v", tt)
	}
	for executor, want := range map[string]time.Duration{"event loop": 850 * time.Microsecond, "blocking": time.Millisecond} {
		var napped time.Duration
		e := assigned(t, Config{Sleep: func(d time.Duration) { napped = d }}, nullPlan(t, 1, "executor = \""+executor+"\"", "ops = { get = 1 }\nclosed {\n iterations = 1\n}"))
		e.clock.sleep(time.Millisecond)
		require.Equal(t, want, napped, executor)
	}
}
