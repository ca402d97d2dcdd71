package rpc

import (
	"sync"
	"time"
)

// awake is a clock that stands still with this process. One that is stopped, or not scheduled, reads nothing: whether its workers were
// silent meanwhile it does not know, and may not hold against them. Somebody reads the coordinator's clock every beat; of a longer
// time between two readings only two beats count. It may be used from any goroutine.
type awake struct {
	now  func() time.Duration // coordinator's clock
	beat time.Duration

	mu      sync.Mutex
	last    time.Duration // coordinator's clock, when it was read last
	counted time.Duration // until then
}

// read returns for how long this process has been awake.
func (a *awake) read() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.counted += min(now-a.last, 2*a.beat)
	a.last = now
	return a.counted
}

// keep reads the clock every beat until done is closed.
func (a *awake) keep(done <-chan struct{}) {
	tick := time.Tick(a.beat)
	for {
		select {
		case <-tick:
			a.read()
		case <-done:
			return
		}
	}
}

// alarm calls a function once, on a goroutine of its own, when it was not set for a while in which this process was awake. It waits for no more
// than spare beyond that, however long the process stood still. It may be used from any goroutine.
type alarm struct {
	clock *awake
	after time.Duration
	spare time.Duration
	call  func()

	mu    sync.Mutex
	timer *time.Timer   // nil while it is not set
	awake time.Duration // when it was set, on the clock
	at    time.Duration // the same on the coordinator's clock
}

// set begins the while anew.
func (a *alarm) set() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.awake, a.at = a.clock.read(), a.clock.now()
	if a.timer == nil { // one that runs finds how much is left when it fires
		a.timer = time.AfterFunc(a.after, a.ring)
	}
}

// stop takes the while back. A call that has begun is not waited for.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

// ring is called when the while may be over. It is not when the alarm was set again just now, or when the process slept.
func (a *alarm) ring() {
	if a.due() {
		a.call()
	}
}

func (a *alarm) due() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer == nil {
		return false
	}
	rest := min(a.after-(a.clock.read()-a.awake), a.after+a.spare-(a.clock.now()-a.at))
	if rest > 0 {
		a.timer.Reset(rest)
		return false
	}
	a.timer = nil
	return true
}
