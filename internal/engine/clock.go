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

// wallClock is the real one.
type wallClock struct {
	zero time.Time
	spin time.Duration // the last part of a wait that is spent looking at the clock
	nap  func(time.Duration)
}

// oversleep is by how much a sleeping thread commonly wakes late. An event loop looks at the clock for the last part of a wait. On the
// blocking executor, whose sessions wake late anyway, it does not.
const oversleep = 150 * time.Microsecond

func (c *wallClock) now() int64 { return int64(time.Since(c.zero)) }

func (c *wallClock) sleep(d time.Duration) {
	if d > c.spin {
		c.nap(d - c.spin)
	}
}

// napThread puts the thread to sleep, not the goroutine: the runtime waits for its own timers in whole milliseconds where nothing else goes
// on. It may return early.
func napThread(d time.Duration) {
	nap := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&nap, nil) // a signal that ends it early does no harm
}
