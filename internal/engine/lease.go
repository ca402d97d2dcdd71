package engine

import (
	"sync/atomic"
	"time"
)

// lookEvery is how often the lease asks for how long the machine has been suspended, at most. A machine that wakes takes longer than that to run
// processes again, in which the run clock goes on: the first time that anybody takes afterwards is one to ask at.
const lookEvery = int64(time.Millisecond)

// lease is until when a worker may load its targets. The run clock stands still while the machine is suspended, and the coordinator's goes on, so
// what the machine has slept counts, too. It may be used from any goroutine, and never waits.
type lease struct {
	suspended func() time.Duration // the machine, since it started

	until atomic.Int64 // run clock and what the machine had slept by then, ns
	slept atomic.Int64 // as it was seen last, ns; it never falls
	look  atomic.Int64 // run clock, from when on to look again
}

// set says until when, on the run clock and with what the machine has been suspended since it started.
func (le *lease) set(until time.Duration) { le.until.Store(int64(until)) }

// over says whether the lease is over at a time on the run clock that was just taken.
func (le *lease) over(now int64) bool {
	until := le.until.Load()
	if until == never {
		return false
	}
	if now >= le.look.Load() {
		le.see(int64(le.suspended()))
		le.look.Store(now + lookEvery)
	}
	return now >= until-le.slept.Load()
}

func (le *lease) see(slept int64) {
	for before := le.slept.Load(); slept > before && !le.slept.CompareAndSwap(before, slept); {
		before = le.slept.Load()
	}
}
