package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock is the run clock: nanoseconds since the run's start, monotonic, readable from any goroutine.
type clock interface {
	now() int64
	// sleep returns after d, or earlier.
	sleep(d time.Duration)
}

// wallClock is the machine's clock.
type wallClock struct {
	zero time.Time
	spin time.Duration // how long before the end of a wait to stop sleeping and watch the clock
	nap  func(time.Duration)
}

// oversleep is how late a sleeping thread commonly wakes. An event loop watches the clock for the last part of a wait. The blocking executor does
// not: its sessions wake late anyway.
const oversleep = 150 * time.Microsecond

func (c *wallClock) now() int64 { return int64(time.Since(c.zero)) }

func (c *wallClock) sleep(d time.Duration) {
	if d > c.spin {
		c.nap(d - c.spin)
	}
}

// napThread puts the thread to sleep, not the goroutine: if nothing else is going on, the runtime waits for its timers in whole milliseconds. It may
// return early.
func napThread(d time.Duration) {
	nap := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&nap, nil) // a signal that ends it early does no harm
}
