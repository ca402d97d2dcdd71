package servertest_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// TestTimersOfABubble has goroutines find at once that their timers are due, which the race detector does not survive where they have more than one
// processor.
func TestTimersOfABubble(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	for range 5 {
		servertest.Bubble(t, func(*testing.T) {
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 500 {
						due := time.NewTimer(time.Millisecond)
						time.AfterFunc(time.Millisecond, func() {})
						time.Sleep(time.Millisecond)
						<-due.C
					}
				})
			}
			all.Wait()
		})
	}
	require.Equal(t, before, runtime.GOMAXPROCS(0))
}
