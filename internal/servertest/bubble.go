package servertest

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// bubbles counts the bubbles that go on, and how many processors the tests outside of them had.
var bubbles struct {
	sync.Mutex
	n, processors int
}

// Bubble is [synctest.Test]. With the race detector it runs on one processor: Go 1.26 gives all timers of a bubble one context of the detector
// (runtime/time.go, unlockAndRun), and a timer on a channel that nobody waited on when it was due runs on the goroutine that looks at the channel next.
// Two goroutines that do so at once enter and leave functions in that context at once, and the detector dies of what comes of it: SIGSEGV in SlotLock
// or StackDepotBase::Put. Races are found all the same, as goroutines still take turns.
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
