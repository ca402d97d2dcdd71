package engine

import (
	"runtime"
	_ "unsafe" // for go:linkname

	"github.com/loadgen/loadgen/internal/sockets"
)

// hold keeps the runtime from preempting a loop that is at work.
//
// A goroutine that runs for 10 ms is made to give way. One that is tied to its thread is then handed to another thread, which hands it
// back: two wake-ups, the first of them on a processor where that other thread may run, such as the busy one of the target. This takes 30 µs as a
// rule, and once in a while as long as the target's slice of time lasts, which is milliseconds; fifty times a second that is the p99.9 of the
// lag. A loop that is held goes on instead.
//
// Whoever wants to stop the world waits for the loop meanwhile, and all others wait with it. While a load is measured nobody does, unless memory
// runs out; and a loop is let go before each wait that may be long, and at least every [heldMost].
//
// A held goroutine must not park, nor panic: the runtime ends the process. So there is no send, receive or lock that may wait in what a held loop does; a rule
// of internal/lint follows its calls. What may wait, such as package fmt, whose pools share a lock, comes after release, and what a driver brings between lend
// and resume.
type hold struct {
	may   bool // the loop has a thread of its own and nothing in it parks
	held  bool
	since int64 // run clock
}

// heldMost is how long a loop that always has work is held at a stretch, in nanoseconds: with a tenth of it, the few times a second at which it is
// let go would still be seen in the p99.9 of a lag.
const heldMost = 1e9

// The runtime keeps these for packages outside of it, and has promised not to change them (proc.go there).

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// before is called before the loop waits for so long, and decides whether it is held from then on.
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

// lend lets the runtime have its way until resume, if the loop is held.
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

// lost ends the hold that was lent and is not resumed.
func (h *hold) lost() { h.held = false }

// release lets the runtime have its way. It may be called again.
func (h *hold) release() {
	if h.held {
		procUnpin()
		h.held = false
	}
}
