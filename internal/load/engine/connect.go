package engine

import (
	"fmt"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// open makes all wanted connections. It stops at the first that cannot be made.
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
	c.since = w.l.clock.now()
	end := w.lane.side.endpoint(c.endpoint)
	fd, err := -1, w.out.admits(end)
	if err == nil {
		err = w.own(c, end.Text)
	}
	if err == nil {
		fd, err = w.poll.Connect(end, w.token(c))
	}
	c.state = isConnecting
	c.fd = fd
	w.l.churn.counts.Attempted++
	w.inMaking++
	if err != nil {
		w.lose(c, end.Explain(err))
	}
}

// own gives a connection its codec, before it is made and before requests wait for it.
func (w *wire) own(c *wireConn, endpoint string) error {
	codec, err := w.codec.connection(endpoint, w.session(c).id)
	if err == nil {
		c.codec = codec
	}
	return err
}

// connected greets the endpoint once the connection is made.
func (w *wire) connected(c *wireConn) {
	w.l.hold.release()
	c.back()
	if err := w.poll.Connected(c.fd); err != nil {
		end := w.lane.side.endpoint(c.endpoint)
		w.lose(c, end.Explain(err))
		return
	}
	if err := w.poll.Watch(c.fd, w.token(c), false); err != nil {
		w.lose(c, err)
		return
	}
	if w.l.churn.plan != nil {
		now := w.l.clock.now()
		c.steps = sockets.Steps{Began: c.since, TCP: now, Made: now}
		if s, ok := w.l.churn.dialed.LoadAndDelete(w.token(c)); ok {
			c.steps = s.(sockets.Steps)
		}
	}
	c.state = isGreeting
	hello, replies, err := c.codec.greet(w.buffer())
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
	c.back()
	c.state = isUp
	c.heard = w.l.clock.now()
	w.inMaking--
	w.up++
	w.l.made(&c.link, c.heard)
	_, shakes := w.lane.side.driver.(driver.Handshaker)
	w.l.churn.counts.Made(took(c.steps, shakes || c.greetAll > 0, c.heard))
	if life := w.l.churn.life(w.rand); life > 0 {
		c.until = c.heard + int64(life)
		w.l.sweepAt = min(w.l.sweepAt, c.until)
	}
	if c.wasUp {
		w.l.rec.Reconnects++
	}
	c.wasUp, c.rests = true, false
	if c.held != nil {
		c.out, c.held = c.held, nil
		if !c.dirty {
			c.dirty = true
			w.dirty = append(w.dirty, c)
		}
	}
	w.probing[c.endpoint].probe = nil
	w.follow()
}

// probing has one connection of a loop find out when an endpoint that refused them can be reached again. The others follow it.
type probing struct {
	probe   *wireConn   // the connection that tries; nil if the endpoint has refused none since it was last reached
	waiting []*wireConn // connections that follow it
}

// retry arranges for a lost connection to be made again: soon, or when the endpoint can be reached.
func (w *wire) retry(c *wireConn, refused bool, now int64) {
	g := &w.probing[c.endpoint]
	if refused && g.probe == nil {
		g.probe = c
	}
	switch g.probe {
	case nil:
		jittered := reopenAfter/2 + time.Duration(w.rand.Int64N(int64(reopenAfter)))
		w.l.timers.set(now+int64(jittered), reconnect, w.token(c), 0)
	case c:
		w.l.timers.set(now+int64(probeEvery), reconnect, w.token(c), 0)
	default:
		g.waiting = append(g.waiting, c)
	}
}

// follow makes, some at a time, the connections that waited for an endpoint that can be reached again.
func (w *wire) follow() {
	for i := range w.probing {
		for g := &w.probing[i]; len(g.waiting) > 0 && g.probe == nil && w.inMaking < maxOpening; {
			c := g.waiting[len(g.waiting)-1]
			g.waiting = g.waiting[:len(g.waiting)-1]
			w.again(c)
		}
	}
}

// again remakes a lost connection, unless its endpoint gets no requests any more.
func (w *wire) again(c *wireConn) {
	if w.lane.routes.idle(c.endpoint) { // it stays down until something is sent there
		c.wasUp = false
		w.l.forget(&c.link, w.l.clock.now())
		if g := &w.probing[c.endpoint]; g.probe == c {
			g.probe = nil
		}
		return
	}
	w.dial(c)
}

// rest closes a connection that is idle or due, or that the server has closed because it was. The next request makes it again.
func (w *wire) rest(c *wireConn) {
	w.ended.Add(w.counted(c))
	w.poll.Close(c.fd)
	if c.state == isUp {
		w.retired(c)
	}
	c.state, c.fd, c.blocked, c.rests = isDown, -1, false, true
	c.handed, c.behind, c.cuts = 0, 0, c.cuts[:0]
	c.wasUp = c.wasUp && w.idle == 0 && !c.due // the plan expects it
	c.drop(w)
	later := c.later
	c.due, c.used, c.until, c.later = false, 0, 0, nil
	for i := range later {
		if r := &later[i]; !w.send(r.st.session, r.st, &r.req) {
			w.refuse(c, r, w.l.clock.now())
		}
	}
}

// retired counts a connection that ends in order.
func (w *wire) retired(c *wireConn) {
	w.l.churn.counts.Renewed++
	w.up--
	c.link.session.links--
}

// postpone keeps a request for a connection that is due until it was made again; false if there are too many.
func (w *wire) postpone(c *wireConn, st *opState, req *driver.Request) bool {
	if len(c.later) >= w.limit {
		return false
	}
	st.delayed = true
	c.later = append(c.later, heldRequest{st, *req})
	return true
}

// refuse ends a request that was postponed in vain.
func (w *wire) refuse(c *wireConn, r *heldRequest, now int64) {
	w.way.failed(c, &pending{st: r.st, n: 1, keys: int16(len(r.req.Batch)), verb: r.req.Verb, tag: r.req.Tag}, op.Refused, now)
}

// mayPart reports whether nothing is owed on a connection that is up.
func (w *wire) mayPart(c *wireConn) bool {
	return c.state == isUp && c.queue.len() == 0 && c.givenUp == nil
}

// part says goodbye on a connection that is due, so that the server closes it. It resets one whose server does not.
func (w *wire) part(c *wireConn, now int64) {
	w.l.hold.release()
	if c.state != isParting {
		var err error
		if c.out, err = c.codec.goodbye(w.buffer()); err == nil && len(c.out) > 0 {
			w.retired(c)
			c.state, c.since = isParting, now
			w.l.sweepAt = min(w.l.sweepAt, now+int64(farewell))
			w.write(c)
			return
		}
	} else {
		w.l.rec.Errors.Add(w.lane.blame(nil, w.lane.side.endpoint(c.endpoint), errStays)) // no op failed by it
	}
	w.reset(c)
}

// reset is rest, with a reset.
func (w *wire) reset(c *wireConn) {
	if p, ok := w.poll.(interface{ Reset(fd int) }); ok {
		p.Reset(c.fd)
	}
	w.rest(c)
}

// lose closes a connection, ends what was outstanding on it, and schedules a reconnect.
func (w *wire) lose(c *wireConn, why error) {
	w.l.hold.release()
	switch {
	case c.state == isParting && w.out.prompt():
		w.rest(c)
		return
	case c.state == isParting: // the far end may have closed TLS, but not TCP yet
		w.reset(c)
		return
	}
	now := w.l.clock.now()
	kept := c.queue.len() - c.fresh // the fresh ones have not left, and never will
	for ; c.fresh > 0; c.fresh-- {
		c.queue.at(c.queue.len() - c.fresh).sent = now
	}
	refused := c.state != isUp
	if refused {
		w.l.churn.counts.Refused++
		w.inMaking--
	} else {
		w.l.churn.counts.Lost++
		w.up--
		c.link.session.links--
	}
	if c.fd >= 0 {
		w.ended.Add(w.counted(c))
		w.poll.Close(c.fd)
	}
	c.state, c.fd, c.blocked, c.broken = isDown, -1, false, nil
	c.handed, c.behind, c.cuts = 0, 0, c.cuts[:0]
	c.due, c.used, c.until = false, 0, 0
	w.l.gate.stray(len(c.in))
	c.drop(w)
	end := w.lane.side.endpoint(c.endpoint)
	if w.opening {
		w.err = fmt.Errorf("connect to %v: %w", end, why)
		return
	}
	text := w.lane.blame(w.text[:0], end, why)
	w.l.wrong(text)
	w.l.panicked(w.session(c), why, now)
	w.lane.side.suspect(c.endpoint)
	w.l.missed(&c.link, now)
	w.retry(c, refused, now)

	// Ending the lost requests may start new ops, which must not find this connection half reset.
	lost, later := w.lost, c.later
	w.lost, w.text, c.later = nil, nil, nil
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
	for i := range later {
		w.refuse(c, &later[i], now)
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
	c.out, c.held, c.aside, c.gone, c.lent, c.skipped, c.progress, c.givenUp = nil, nil, false, 0, nil, skipped{}, driver.Progress{}, nil
}

func (w *wire) fire(t timer, now int64) {
	c := w.conns[t.arg-w.base]
	if c.state != isDown {
		return
	}
	if probe := w.probing[c.endpoint].probe; probe != nil && probe != c { // it was refused meanwhile
		w.retry(c, false, now)
		return
	}
	w.again(c)
	w.follow()
}

// links implements connecting.
func (w *wire) links(*measure.Connections) (making, open int64) {
	for _, c := range w.conns {
		switch c.state {
		case isConnecting, isGreeting:
			making++
		case isUp:
			open++
		}
	}
	return making, open
}

func (w *wire) close() {
	for _, c := range w.conns {
		if c.fd >= 0 {
			w.poll.Close(c.fd)
		}
		c.state, c.fd = isDown, -1
	}
	w.asking.Wait()
	w.unmapAll()
	if p, ok := w.poll.(interface{ Release() }); ok && w.base == 0 {
		p.Release()
	}
}
