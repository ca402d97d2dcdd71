package engine

import (
	"context"
	"slices"
	"sync"
	"time"
)

// callContext bounds the calls of a connection's client, one after another: begin, the call, end. Like a standard context made for each call, it is
// done when the call's time is over, when its parent is done, and when the call has ended. Unlike one, it allocates nothing if only its deadline is
// used, and sets a timer about once per timeout instead of once per call.
type callContext struct {
	parent context.Context

	mu       sync.Mutex
	deadline time.Time
	err      error
	done     chan struct{} // made on demand; closed once err is set
	waiting  []*func()     // called once err is set
	set      bool          // the timer is set
	timer    *time.Timer
}

// newCallContext returns a context that watches its parent until release is called.
func newCallContext(parent context.Context) (c *callContext, release func()) {
	c = &callContext{parent: parent, err: context.Canceled}
	stop := context.AfterFunc(parent, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.finish(parent.Err())
	})
	return c, func() {
		stop()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.timer != nil {
			c.timer.Stop()
		}
	}
}

// begin starts a call that may take up to most.
func (c *callContext) begin(most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline, c.err, c.done = time.Now().Add(most), c.parent.Err(), nil
	switch { // a timer set for an earlier call fires before this call's deadline
	case c.timer == nil:
		c.timer, c.set = time.AfterFunc(most, c.expire), true
	case !c.set:
		c.timer.Reset(most)
		c.set = true
	}
}

// end ends the call.
func (c *callContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finish(context.Canceled)
}

// expire is called by the timer.
func (c *callContext) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = false
	if c.err != nil { // no call is in progress, or it was told to end
		return
	}
	if left := time.Until(c.deadline); left > 0 {
		c.timer.Reset(left)
		c.set = true
		return
	}
	c.finish(context.DeadlineExceeded)
}

// finish ends the context, unless it has ended. The caller holds mu.
func (c *callContext) finish(why error) {
	if c.err != nil {
		return
	}
	c.err = why
	if c.done != nil {
		close(c.done)
	}
	for _, f := range c.waiting {
		go (*f)()
	}
	c.waiting = nil
}

func (c *callContext) Deadline() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deadline, true
}

func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *callContext) Value(key any) any { return c.parent.Value(key) }

// AfterFunc is the method that [context.AfterFunc] and contexts derived from this one use to avoid a goroutine.
func (c *callContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	mine := &f
	c.waiting = append(c.waiting, mine)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		at := slices.Index(c.waiting, mine)
		if at < 0 {
			return false
		}
		c.waiting = slices.Delete(c.waiting, at, at+1)
		return true
	}
}
