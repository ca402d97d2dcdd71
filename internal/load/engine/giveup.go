package engine

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/loadgen/loadgen/internal/base/panics"
	"github.com/loadgen/loadgen/pkg/driver"
)

// lastWord is how long servers have at the end of a phase to give up what they were asked to.
const lastWord = 2 * time.Second

// interruption makes a server give up, over a fresh connection, the requests of another.
type interruption = func(ctx context.Context, conn net.Conn) error

// givenUp is a connection whose server was asked to end what it does there. It would go on beyond the connection's end, so that a new connection would
// double the load. Nothing more is written until all that was written is answered; requests wait for that, and time out.
type givenUp struct {
	since int64        // when it was given up
	asked int64        // when the server was asked last; 0 if it was not
	busy  atomic.Int32 // attempts to ask that go on: a late one would end a later request
}

// giveUp gives a connection up; false if its server cannot be asked to end its requests.
func (w *wire) giveUp(c *wireConn, now int64) bool {
	w.l.hold.release()
	if _, asks := w.l.interruptions.Load(w.token(c)); asks {
		c.givenUp = &givenUp{since: now}
	}
	return c.givenUp != nil
}

// interrupt asks the server once to end the request that it works on.
func (w *wire) interrupt(c *wireConn, now int64) {
	how, _ := w.l.interruptions.Load(w.token(c))
	g, x, end := c.givenUp, w.lane.side, w.lane.side.endpoint(c.endpoint)
	g.asked = now
	g.busy.Add(1)
	w.asking.Go(func() {
		defer g.busy.Add(-1)
		ctx, cancel := context.WithTimeout(context.Background(), lastWord)
		defer cancel()
		conn, err := x.connect.To(ctx, end)
		if err != nil {
			return // it is tried again
		}
		defer conn.Close()
		_ = driver.Interruptible(ctx, conn, func() error { // likewise
			return panics.Safely(func() error { return how.(interruption)(ctx, conn) })
		})
	})
}

// written reports whether the i-th request owed on the connection was written before it was given up.
func (c *wireConn) written(i int) bool {
	return i < c.queue.len()-c.fresh && c.queue.at(i).sent < c.givenUp.since
}

// pursue lets a connection that was given up go on once the server has answered all that it was sent. Else it asks for each of these requests, and
// again whenever the server was silent for too long, but not before all have timed out: a server may well end the next one, too. It returns when to
// look again.
func (w *wire) pursue(c *wireConn, now int64) int64 {
	g := c.givenUp
	switch {
	case g.busy.Load() > 0:
	case !c.written(0):
		w.l.hold.release()
		if c.givenUp = nil; len(c.out) > 0 && !c.blocked {
			w.write(c)
		}
	case !c.written(c.queue.dead) && (c.heard > g.asked || now >= g.asked+2*w.timeout):
		w.l.hold.release()
		w.interrupt(c, now)
	}
	return now + sweepStep
}

// leave has the servers end what they still do, at the end of a phase, and counts the connections for which they do not. What they answer now is of no
// op any more.
func (l *loop) leave() {
	for now := l.last; ; now = l.clock.now() {
		l.abandoned = 0
		for _, la := range l.lanes {
			if w, ok := la.tr.(*wire); ok {
				l.abandoned += w.leave(now)
			}
		}
		if l.abandoned == 0 || now-l.last >= int64(lastWord) || l.lapsed || l.halt.Load() == abandon {
			break
		}
		l.tr.wait(time.Millisecond)
	}
}

// leave asks for the connections on which requests are owed, and returns how many there are.
func (w *wire) leave(now int64) (owing uint64) {
	for _, c := range w.conns {
		_, asks := w.l.interruptions.Load(w.token(c))
		if c.state != isUp || !asks || c.queue.len() <= c.unwritten() || c.givenUp != nil && !c.written(0) {
			continue
		}
		owing++
		for ; c.queue.dead < c.queue.len(); c.queue.dead++ {
			c.queue.at(c.queue.dead).dead = true
		}
		if c.givenUp == nil {
			c.givenUp = &givenUp{since: now}
		}
		if !w.l.lapsed && w.l.halt.Load() != abandon {
			w.pursue(c, now)
		}
	}
	return owing
}
