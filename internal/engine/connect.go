package engine

import (
	"fmt"
	"time"

	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// open makes every connection that is down. It stops at the first that cannot be made.
func (w *wire) open(deadline int64) error {
	w.opening, w.err = true, nil
	w.waiting = w.wanted()
	all := len(w.waiting)
	defer func() { w.opening = false }()
	for w.err == nil && w.up < all {
		for w.inMaking < maxOpening && len(w.waiting) > 0 && w.err == nil {
			c := w.waiting[0]
			w.waiting = w.waiting[1:]
			w.dial(c)
		}
		now := w.l.clock.now()
		if now >= deadline || w.l.halt.Load() == abandon {
			return w.unanswered(all)
		}
		w.l.tr.wait(time.Duration(min(deadline-now, maxSleep)))
	}
	return w.err
}

// wanted lists the connections that a phase begins with: all, except those to cluster nodes without slots.
func (w *wire) wanted() (conns []*wireConn) {
	for _, c := range w.conns {
		if !w.lane.routes.idle(c.endpoint) {
			conns = append(conns, c)
		}
	}
	return conns
}

// unanswered returns an error that names a wanted connection that was not made in time; all is how many are wanted.
func (w *wire) unanswered(all int) error {
	for _, c := range w.wanted() {
		if c.state != isUp {
			return fmt.Errorf("connect to %v: no answer in time; %d of %d connections were made", w.lane.side.endpoint(c.endpoint), w.up, all)
		}
	}
	return nil
}

// dial begins to connect.
func (w *wire) dial(c *wireConn) {
	w.l.hold.release()
	end := w.lane.side.endpoint(c.endpoint)
	fd, err := -1, w.out.admits(end)
	if err == nil {
		fd, err = w.poll.Connect(end, w.token(c))
	}
	c.since = w.l.clock.now()
	c.state = isConnecting
	c.fd = fd
	w.inMaking++
	if err != nil {
		w.lose(c, end.Explain(err))
	}
}

// connected greets the endpoint once the connection is made.
func (w *wire) connected(c *wireConn) {
	w.l.hold.release()
	if err := w.poll.Connected(c.fd); err != nil {
		end := w.lane.side.endpoint(c.endpoint)
		w.lose(c, end.Explain(err))
		return
	}
	if err := w.poll.Watch(c.fd, w.token(c), false); err != nil {
		w.lose(c, err)
		return
	}
	c.state = isGreeting
	codec, err := w.codec.connection(w.lane.side.endpoint(c.endpoint).Text)
	if err != nil {
		w.lose(c, err)
		return
	}
	c.codec = codec
	hello, replies, err := codec.greet(w.buffer())
	if err != nil {
		w.lose(c, err)
		return
	}
	c.greets, c.greetAll = replies, replies
	if replies == 0 {
		w.recycle(hello)
		w.raise(c)
		return
	}
	c.out = hello
	w.write(c)
}

// raise opens the connection to requests.
func (w *wire) raise(c *wireConn) {
	c.state = isUp
	c.heard = w.l.clock.now()
	c.backoff = 0
	w.inMaking--
	w.up++
	if c.wasUp {
		w.l.rec.Reconnects++
	}
	c.wasUp = true
	if c.held != nil {
		c.out, c.held = c.held, nil
		c.dirty = true
		w.dirty = append(w.dirty, c)
	}
}

// lose closes a connection, ends what was outstanding on it, and schedules a reconnect.
func (w *wire) lose(c *wireConn, why error) {
	w.l.hold.release()
	now := w.l.clock.now()
	kept := c.queue.len() - c.fresh // what was gathered after these has not left, and never will
	for ; c.fresh > 0; c.fresh-- {
		c.queue.at(c.queue.len() - c.fresh).sent = now
	}
	if c.state == isUp {
		w.up--
	} else {
		w.inMaking--
	}
	if c.fd >= 0 {
		w.ended.Add(w.counted(c))
		w.poll.Close(c.fd)
	}
	c.state, c.fd, c.blocked, c.broken = isDown, -1, false, nil
	c.handed, c.behind, c.cuts = 0, 0, c.cuts[:0]
	c.drop(w)
	end := w.lane.side.endpoint(c.endpoint)
	if w.opening {
		w.err = fmt.Errorf("connect to %v: %w", end, why)
		return
	}
	text := w.lane.blame(w.text[:0], end, why)
	w.l.wrong(text)
	w.l.panicked(w.session(c), why, now)
	w.lane.routes.suspect()
	c.backoff = min(max(2*c.backoff, firstBackoff), lastBackoff)
	jittered := c.backoff/2 + time.Duration(w.rand.Int64N(int64(c.backoff)))
	w.l.timers.set(now+int64(jittered), reconnect, w.token(c), 0)

	// Ending these may start new ops, which must not find this connection half reset.
	lost := w.lost
	w.lost, w.text = nil, nil
	for c.queue.len() > 0 {
		lost = append(lost, c.queue.pop())
	}
	for i, p := range lost {
		if w.l.sampling != nil {
			w.l.sampling.because(text)
		}
		switch {
		case i >= kept:
			w.way.failed(c, &lost[i], op.Refused, now)
		case !p.dead:
			w.way.failed(c, &lost[i], op.Lost, now)
		}
	}
	w.lost, w.text = lost[:0], text
	if w.l.sampling != nil {
		w.l.sampling.forget()
	}
}

// drop gives the connection's buffers back.
func (c *wireConn) drop(w *wire) {
	if c.out != nil {
		w.recycle(c.out)
	}
	if c.in != nil {
		w.letGo(c)
	}
	if c.held != nil {
		w.recycle(c.held)
	}
	c.out, c.held, c.gone, c.lent, c.skipped, c.progress = nil, nil, 0, nil, skipped{}, driver.Progress{}
}

func (w *wire) fire(t timer, _ int64) {
	switch c := w.conns[t.arg-w.base]; {
	case c.state != isDown:
	case w.lane.routes.idle(c.endpoint): // it stays down until something is sent there
		c.wasUp, c.backoff = false, 0
	default:
		w.dial(c)
	}
}

func (w *wire) close() {
	for _, c := range w.conns {
		if c.fd >= 0 {
			w.poll.Close(c.fd)
		}
		c.state, c.fd = isDown, -1
	}
	w.unmapAll()
	if p, ok := w.poll.(interface{ Release() }); ok && w.base == 0 {
		p.Release()
	}
}
