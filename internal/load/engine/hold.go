package engine

import (
	"runtime"
	_ "unsafe" // for go:linkname

	"github.com/loadgen/loadgen/internal/load/sockets"
)

// hold keeps the runtime from preempting a busy loop.
//
// The runtime makes a goroutine that runs for 10 ms yield. If the goroutine is locked to its thread, it is handed to another thread, which hands it
// back: two wake-ups, the first on a processor where that other thread may run, such as the target's busy one. This usually takes 30 µs, but
// sometimes as long as the target's time slice, which is milliseconds. At fifty times a second, that makes the p99.9 of the lag. A held loop keeps
// going instead.
//
// Meanwhile, stopping the world waits for the loop, and everyone else waits too. While a load is measured nothing stops the world, unless memory runs
// out. A loop is released before each wait that may be long, and at least every [heldMost].
//
// A held goroutine must not park or panic: the runtime ends the process. So a held loop does no send, receive or lock that may block; a rule of
// internal/lint follows its calls. Calls that may block, such as those of package fmt, whose pools share a lock, come after release, and calls of a
// driver between lend and resume.
type hold struct {
	may   bool // the loop has its own thread and nothing in it parks
	held  bool
	since int64 // on the run clock
}

// heldMost is the longest a loop is held at a stretch, in nanoseconds. With a tenth of this, the ten releases a second would still show in the p99.9
// of the lag.
const heldMost = 1e9

// The runtime keeps these for outside packages and promises not to change them (its proc.go).

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// before decides whether the loop is held from now on. wait is how long it is about to wait.
func (h *hold) before(now, wait int64) {
	switch {
	case !h.may:
	case wait > int64(sockets.RawWait):
		h.release()
	case !h.held:
		procPin()
		h.held, h.since = true, now
	case now-h.since > heldMost:
		h.release()
		runtime.Gosched()
	}
}

// lend lets the runtime preempt until resume, if the loop is held.
func (h *hold) lend() {
	if h.held {
		procUnpin()
	}
}

func (h *hold) resume() {
	if h.held {
		procPin()
	}
}

// lost ends a hold that was lent and will not be resumed.
func (h *hold) lost() { h.held = false }

// release ends the hold, if there is one.
func (h *hold) release() {
	if h.held {
		procUnpin()
		h.held = false
	}
}
