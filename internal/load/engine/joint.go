package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/pkg/driver"
)

// joint is a transport made of several, for a loop whose phase has several targets: one wait serves them all. Its wires share a poller, in which each connection has its own token.
type joint struct {
	l     *loop
	wires []*wire
	timed []*timed
	own   []*inside
}

// clients is a joint of which some transports use blocking clients. Its loop is never held.
type clients struct {
	*joint
	calls []*blocking
	bell  chan struct{} // signalled when a call comes back, if there are no pipes to notify; buffers one signal
	timer *time.Timer
	pipes *sockets.Pipes // of the wires; nil if there are none
}

// newJoint joins the transports of a loop's lanes.
func newJoint(l *loop) transport {
	j := &joint{l: l}
	c := &clients{joint: j, bell: make(chan struct{}, 1), timer: time.NewTimer(0)}
	c.pipes, _ = l.poll.(*sockets.Pipes)
	var base int32
	for _, la := range l.lanes {
		switch tr := la.tr.(type) {
		case *wire:
			tr.base = base
			base += int32(len(tr.conns))
			j.wires = append(j.wires, tr)
		case *blocking:
			tr.ring = c.ring
			c.calls = append(c.calls, tr)
		case *inside:
			j.own = append(j.own, tr)
		case *timed:
			tr.number = int32(len(j.timed))
			j.timed = append(j.timed, tr)
		}
	}
	if len(c.calls) > 0 {
		return c
	}
	return j
}

// open opens one transport after another. Losing an open connection while another target's are being made also ends it.
func (j *joint) open(deadline int64) error {
	defer func() {
		for _, w := range j.wires {
			w.opening = false
		}
	}()
	for _, la := range j.l.lanes {
		if err := la.tr.open(deadline); err != nil {
			return la.named(err)
		}
		if w, ok := la.tr.(*wire); ok {
			w.opening = true
		}
	}
	for _, w := range j.wires {
		if w.err != nil {
			return w.lane.named(w.err)
		}
	}
	return nil
}

// send is never called: programs send in the lane of a request's target.
func (j *joint) send(*session, *opState, *driver.Request) bool { return false }

func (j *joint) flush() {
	for _, la := range j.l.lanes {
		la.tr.flush()
	}
}

func (j *joint) recall() {
	for _, la := range j.l.lanes {
		la.tr.recall()
	}
}

func (j *joint) wait(d time.Duration) bool {
	happened := j.answer()
	if happened {
		d = 0
	}
	if len(j.wires) == 0 {
		if d > 0 {
			j.l.clock.sleep(d)
		}
		return happened
	}
	n, err := j.wires[0].out.wait(d)
	if err != nil {
		panic(err) // only for a bad descriptor, and this one is the poller's own
	}
	j.handle(j.wires[0].ready[:n])
	return n > 0 || happened
}

// answer delivers the answers of targets inside the loop, and reports whether there were any.
func (j *joint) answer() (some bool) {
	for _, t := range j.own {
		some = t.answer() || some
	}
	if some {
		j.flush()
	}
	return some
}

// handle handles events of connections. Resulting requests, to any target, leave at once, but only after all events of the same session on the same
// wire: see wire.handleAll.
func (j *joint) handle(ready []sockets.Readiness) {
	slices.SortFunc(ready, func(a, b sockets.Readiness) int { return cmp.Compare(a.Token, b.Token) })
	var last *session
	for _, r := range ready {
		w := j.l.wireOf(r.Token)
		c := w.conns[r.Token-w.base]
		if s := w.session(c); s != last {
			j.flush()
			last = s
		}
		w.handle(c, r)
	}
	j.flush()
}

func (j *joint) fire(t timer, now int64) {
	if t.kind == complete {
		j.timed[t.n].fire(t, now)
		return
	}
	j.l.wireOf(t.arg).fire(t, now)
}

func (j *joint) sweep(now int64) int64 {
	next := int64(never)
	for _, la := range j.l.lanes {
		next = min(next, la.tr.sweep(now))
	}
	return next
}

func (j *joint) outstanding(into []measure.Requests) {
	for _, la := range j.l.lanes {
		la.tr.outstanding(into)
	}
}

func (j *joint) close() {
	for _, la := range slices.Backward(j.l.lanes) { // the first wire also closes the poller, so it goes last
		la.tr.close()
	}
}

// ring ends a wait. Any goroutine may call it.
func (c *clients) ring() {
	if c.pipes != nil {
		c.pipes.Notify()
		return
	}
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

func (c *clients) wait(d time.Duration) bool {
	happened := c.returned()
	if happened = c.answer() || happened; happened {
		d = 0
	}
	began := c.l.clock.now()
	switch {
	case c.pipes != nil:
		happened = c.joint.wait(d) || happened
	case d > 0:
		c.timer.Reset(d)
		select {
		case <-c.bell:
		case <-c.timer.C:
		}
	}
	if d > 0 {
		for _, b := range c.calls {
			b.idle += c.l.clock.now() - began
		}
	}
	return c.returned() || happened
}

// returned takes the calls that have come back, and reports whether there were any.
func (c *clients) returned() (some bool) {
	for _, b := range c.calls {
		if b.collect(nil) {
			some = true
		}
	}
	if some {
		c.flush()
	}
	return some
}

// own is the largest own of the targets with blocking clients.
func (c *clients) own(wall int64) (own int64) {
	for _, b := range c.calls {
		own = max(own, b.own(wall))
	}
	return own
}
