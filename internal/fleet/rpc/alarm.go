package rpc

import (
	"sync"
	"time"
)

// awake is a clock that stops while this process is stopped or not scheduled. Such a process reads nothing, so it cannot know whether its workers
// were silent meanwhile, and must not hold that against them. A goroutine reads the coordinator's clock every beat. If the gap between two readings
// is longer than two beats, only two beats count. Safe for concurrent use.
type awake struct {
	now  func() time.Duration // coordinator's clock
	beat time.Duration

	mu      sync.Mutex
	last    time.Duration // last reading of the coordinator's clock
	counted time.Duration // time awake up to that reading
}

// read returns how long this process has been awake.
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

// alarm calls a function once, in its own goroutine, when it has not been set for the period after, counted in time this process was awake. However
// long the process stood still, the alarm waits at most spare longer than that. Safe for concurrent use.
type alarm struct {
	clock *awake
	after time.Duration
	spare time.Duration
	call  func()

	mu    sync.Mutex
	timer *time.Timer   // nil while the alarm is not set
	awake time.Duration // when it was set, by the awake clock
	at    time.Duration // when it was set, by the coordinator's clock
}

// set restarts the period.
func (a *alarm) set() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.awake, a.at = a.clock.read(), a.clock.now()
	if a.timer == nil { // a running timer computes the rest of the period when it fires
		a.timer = time.AfterFunc(a.after, a.ring)
	}
}

// stop unsets the alarm. It does not wait for a call that has begun.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

// ring is called when the period may be over. It is not over if the alarm was set again, or if the process slept.
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
