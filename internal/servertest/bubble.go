package servertest

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// bubbles counts the running bubbles, and keeps GOMAXPROCS as it was before the first of them.
var bubbles struct {
	sync.Mutex
	n, processors int
}

// Bubble is [synctest.Test]. With the race detector it runs on one processor. Go 1.26 shares one race context between all timers of a bubble
// (runtime/time.go, unlockAndRun), and a channel timer that nobody was blocked on when it expired runs on whichever goroutine looks at the channel next.
// If two goroutines do so at once, they corrupt that context, and the detector crashes with SIGSEGV in SlotLock or StackDepotBase::Put. On one processor
// goroutines still take turns, so races are still found.
func Bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if raced {
		oneProcessor()
		defer allProcessors()
	}
	synctest.Test(t, f)
}

func oneProcessor() {
	bubbles.Lock()
	defer bubbles.Unlock()
	if bubbles.n++; bubbles.n == 1 {
		bubbles.processors = runtime.GOMAXPROCS(1)
	}
}

func allProcessors() {
	bubbles.Lock()
	defer bubbles.Unlock()
	if bubbles.n--; bubbles.n == 0 {
		runtime.GOMAXPROCS(max(bubbles.processors, runtime.GOMAXPROCS(0)))
	}
}
