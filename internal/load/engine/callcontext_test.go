package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// over reports whether a context is over, in every way that one can ask.
func over(t *testing.T, ctx context.Context) bool {
	t.Helper()
	synctest.Wait()
	select {
	case <-ctx.Done():
		require.Error(t, ctx.Err())
		return true
	default:
		require.NoError(t, ctx.Err())
		return false
	}
}

// TestCallContext goes through the ways in which a call's context ends, again and again on the same context.
func TestCallContext(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(context.WithValue(t.Context(), t, "value"))
		defer cancel()
		c, release := newCallContext(parent)
		defer release()
		require.Equal(t, "value", c.Value(t))
		for range 3 {
			c.begin(time.Second)
			derived, drop := context.WithCancel(c)
			called := false
			context.AfterFunc(c, func() { called = true })
			stopped := context.AfterFunc(c, func() { t.Error("it was stopped") })
			require.True(t, stopped())
			require.False(t, stopped())
			deadline, ok := c.Deadline()
			require.True(t, ok)
			require.Equal(t, time.Second, time.Until(deadline))
			time.Sleep(900 * time.Millisecond)
			require.False(t, over(t, c))
			c.end()
			require.True(t, over(t, derived), "the call has ended")
			require.True(t, called)
			drop()

			c.begin(time.Second) // while the timer of the one before is set
			time.Sleep(900 * time.Millisecond)
			require.False(t, over(t, c))
			time.Sleep(100 * time.Millisecond)
			require.True(t, over(t, c))
			require.Equal(t, context.DeadlineExceeded, c.Err())
			late := make(chan bool, 1)
			require.False(t, context.AfterFunc(c, func() { late <- true })())
			require.True(t, <-late)
			c.end()
			require.Equal(t, context.DeadlineExceeded, c.Err())
			time.Sleep(time.Minute)
		}
		c.begin(time.Second)
		require.False(t, over(t, c))
		called := make(chan bool, 2)
		stop := c.AfterFunc(func() { called <- true })
		cancel()
		require.True(t, over(t, c), "its parent has ended")
		require.Equal(t, context.Canceled, c.Err())
		require.True(t, <-called)
		require.False(t, stop(), "it has been called")
		require.False(t, c.AfterFunc(func() { called <- true })(), "it is called at once")
		require.True(t, <-called)
		c.end()
		c.begin(time.Second)
		require.True(t, over(t, c))
		c.end()
	})
}

// A function that waits for the end of a call can be taken back, once, and the others are still called.
func TestCallContextCallsWhoStillWaits(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		c, release := newCallContext(t.Context())
		defer release()
		c.begin(time.Second)
		var called [4]int
		var stop [4]func() bool
		for i := range stop {
			stop[i] = c.AfterFunc(func() { called[i]++ })
		}
		for _, i := range []int{1, 0} { // in the midst, and at the front
			require.True(t, stop[i]())
			require.False(t, stop[i]())
		}
		c.end()
		synctest.Wait()
		require.Equal(t, [4]int{0, 0, 1, 1}, called)
	})
}

// A call is not over before its deadline, however close to it the timer of an earlier call goes off.
func TestCallContextEndsToTheNanosecond(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		c, release := newCallContext(t.Context())
		defer release()
		c.begin(time.Second)
		c.end()
		time.Sleep(time.Nanosecond)
		c.begin(time.Second)
		time.Sleep(time.Second - time.Nanosecond)
		require.False(t, over(t, c))
		time.Sleep(time.Nanosecond)
		require.True(t, over(t, c))
	})
}

// A context that was released does not end any more, neither by its deadline nor with its parent.
func TestReleasedCallContext(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		_, release := newCallContext(parent)
		release() // it was never used
		c, release := newCallContext(parent)
		c.begin(time.Second)
		release()
		time.Sleep(time.Minute)
		cancel()
		require.False(t, over(t, c))
	})
}

func TestCallContextAllocatesNothing(t *testing.T) {
	c, release := newCallContext(t.Context())
	defer release()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c.begin(time.Minute)
		if _, ok := c.Deadline(); !ok || c.Err() != nil {
			t.Fail()
		}
		c.end()
	}))
}
