package engine

import "github.com/loadgen/loadgen/internal/sockets"

// What wire does besides when its poller is sockets.Pipes: bytes that were handed over leave later, or not at all.

// pass writes what the socket takes of what is left of a connection's output. It returns the bytes, and whether they were all that it was offered.
func (w *wire) pass(c *wireConn) (n int, whole bool, err error) {
	if len(c.lent) > 0 {
		parts, size := w.parts(c)
		n, err = w.gatherer.Writev(c.fd, parts)
		return n, n == size, err
	}
	if w.pipes == nil {
		n, err = w.poll.Write(c.fd, c.out[c.gone:])
		return n, false, err
	}
	if !w.date(c) {
		return 0, false, sockets.ErrAgain
	}
	n, err = w.pipes.Hand(c.fd, c.out, c.cuts)
	if n > 0 {
		c.batch, c.behind, c.cuts = c.behind, 0, c.cuts[:0]
	}
	return n, false, err
}

// cut ends a write before the request that was just gathered, where it would no longer fit in one TLS record with those before it. When
// a request ends in another record than it began in, memcached 1.6 does not look at those behind it in that record until more bytes come.
func (c *wireConn) cut(before int) {
	last := 0
	if n := len(c.cuts); n > 0 {
		last = c.cuts[n-1]
	}
	if before > last && len(c.out)-last > sockets.RecordSize {
		c.cuts = append(c.cuts, before)
	}
}

// date sets the start of the requests handed over last to when their write began; it returns false when it has not.
func (w *wire) date(c *wireConn) bool {
	if c.batch == 0 {
		return true
	}
	at, begun := w.pipes.Began(c.fd)
	if !begun {
		return false
	}
	for end := c.queue.len() - c.behind - c.fresh; c.batch > 0; c.batch-- {
		p := c.queue.at(end - c.batch)
		if p.st != nil && (p.st.start == p.sent || at < p.st.start) {
			p.st.start = at
		}
		p.sent = at
	}
	return true
}

// arrival is when the bytes came that were read last. Times that the loop sees do not go back.
func (w *wire) arrival(c *wireConn) int64 {
	if w.pipes == nil {
		return w.l.clock.now()
	}
	w.date(c)
	w.newest = max(w.newest, w.pipes.Arrived(c.fd))
	return w.newest
}

// unwritten is how many of the last requests in the queue have not begun to leave.
func (c *wireConn) unwritten() int { return c.batch + c.behind + c.fresh }
