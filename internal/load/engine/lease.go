package engine

import (
	"sync/atomic"
	"time"
)

// lookEvery is the least time between two checks of how long the machine has been suspended. After waking, a machine takes longer than that to run
// processes again, so the first timestamp afterwards triggers a check.
const lookEvery = int64(time.Millisecond)

// lease holds the time until which a worker may load its targets. While the machine is suspended the run clock stands still and the coordinator's
// does not, so suspended time is added. Any goroutine may use it; it never waits.
type lease struct {
	suspended func() time.Duration // how long the machine was suspended since it booted

	until atomic.Int64 // on the run clock plus the suspended time, ns
	slept atomic.Int64 // the suspended time as last read, ns; it never falls
	look  atomic.Int64 // on the run clock: when to check again
}

// set sets the end, on the run clock plus the time suspended since the machine booted.
func (le *lease) set(until time.Duration) { le.until.Store(int64(until)) }

// over reports whether the lease is over at a time just read from the run clock.
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
	for {
		if before := le.slept.Load(); slept <= before || le.slept.CompareAndSwap(before, slept) {
			return
		}
	}
}
