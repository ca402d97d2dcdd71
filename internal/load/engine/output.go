package engine

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

const mostParts = 32 // the most slices of one gathered write

func (w *wire) send(s *session, st *opState, req *driver.Request) bool {
	c := w.conn(s, req.Endpoint)
	if c.due {
		return w.postpone(c, st, req)
	}
	if w.room(c) == 0 {
		return false
	}
	if most := w.l.churn.ops(); most > 0 {
		c.used++
		c.due = c.used == most
	}
	st.delayed = st.delayed || c.state != isUp
	w.touch(c)
	size := 0
	if w.shared {
		size = w.writer.lendRequest(c, req)
	}
	if size == 0 {
		size = w.encode(c, st, req)
	}
	size += req.Owed
	w.l.rec.AddBytes(st.Verb, 0, size)
	st.out += int64(size)
	c.queue.push(pending{st: st, start: &st.start, n: 1, keys: int16(len(req.Batch)), verb: req.Verb, tag: req.Tag, asking: req.Asking, id: req.ID})
	c.fresh++
	return true
}

// encode appends a program's request for an op to a connection's output, and returns its size in bytes.
func (w *wire) encode(c *wireConn, st *opState, req *driver.Request) int {
	if req.Value != nil {
		c.out = w.fitting(c.out, req.Value.Size)
	}
	at := len(c.out)
	if w.shared {
		c.out = w.writer.request(c.out, req, &st.Op)
	} else {
		c.lastID = max(1, c.lastID+1) // it starts again after 2^32
		req.ID = c.lastID
		c.out = c.request(c.out, req)
	}
	w.taint(c)
	w.split(c, at, len(c.out)-at)
	return len(c.out) - at
}

// put appends the request of an op to a connection's output, and returns its size in bytes.
func (w *wire) put(c *wireConn, o *op.Op) int {
	if n := w.writer.lend(c, o); n > 0 {
		return n
	}
	if o.Verb.Stores() {
		c.out = w.fitting(c.out, o.Value.Size)
	}
	at := len(c.out)
	c.out = w.writer.append(c.out, o)
	w.taint(c)
	w.split(c, at, len(c.out)-at)
	return len(c.out) - at
}

// taint makes the next flush lose the connection if the codec panicked while making a request for it.
func (w *wire) taint(c *wireConn) {
	if c.codec.fault != nil {
		c.broken = c.codec.took()
	}
}

// request appends a request made by the connection's own codec.
func (c *wireConn) request(dst []byte, req *driver.Request) []byte {
	if len(req.Batch) > 0 {
		return c.codec.batch(dst, req)
	}
	return c.codec.request(dst, req)
}

// touch marks a connection to be written to, and gives it a buffer.
func (w *wire) touch(c *wireConn) {
	if !c.dirty {
		c.dirty = true
		w.dirty = append(w.dirty, c)
		if c.state != isUp {
			c.swap()
		}
		if c.out == nil {
			c.out = w.buffer()
		}
	}
}

// swap exchanges what is written now and what is written once the connection is up.
func (c *wireConn) swap() {
	c.out, c.held = c.held, c.out
	c.aside = !c.aside
}

// back undoes a swap.
func (c *wireConn) back() {
	if c.aside {
		c.swap()
	}
}

func (w *wire) flush() {
	if len(w.dirty) == 0 {
		return
	}
	now := w.l.clock.now()
	if w.l.expired(now) {
		return
	}
	for i := 0; i < len(w.dirty); i++ { // a failed write can make other connections dirty
		c := w.dirty[i]
		c.dirty = false
		waits := c.aside
		c.back()
		if c.broken != nil {
			w.lose(c, c.broken)
			continue
		}
		if waits {
			continue
		}
		w.out.gathered(c)
		c.stamp(now)
		if c.state == isUp && !c.blocked && c.givenUp == nil {
			w.write(c)
		}
	}
	w.dirty = w.dirty[:0]
}

// recall takes back what was gathered or handed over and has not left. Its ops stay in flight.
func (w *wire) recall() {
	for _, c := range w.conns {
		for i := range c.later {
			ledger := w.lane.requests(c.endpoint, c.later[i].req.Verb)
			ledger.Sent--
			ledger.Refused++
		}
		c.later = nil
		for back := c.behind + c.fresh + w.out.withdraw(c); back > 0 && c.queue.len() > c.queue.dead; back-- {
			p := c.queue.drop()
			ledger := w.lane.requests(c.endpoint, p.verb)
			ledger.Sent -= uint64(p.n)
			ledger.Refused += uint64(p.n)
			w.recalled[p.verb] += int64(p.n)
		}
		c.back()
		c.handed, c.behind, c.fresh, c.dirty = 0, 0, 0, false
	}
	w.dirty = w.dirty[:0]
}

// stamp sets the start of what is about to be written.
func (c *wireConn) stamp(now int64) {
	for ; c.fresh > 0; c.fresh-- {
		p := c.queue.at(c.queue.len() - c.fresh)
		p.sent = now
		if p.start != nil && *p.start == 0 {
			*p.start = now
		}
	}
}

// write sends what the socket takes.
func (w *wire) write(c *wireConn) {
	for {
		n, whole, err := w.out.pass(c)
		if err != nil && err != sockets.ErrAgain {
			w.l.hold.release() // formatting takes a lock that loops share
			w.lose(c, fmt.Errorf("write: %w", err))
			return
		}
		c.leave(n)
		if c.gone == len(c.out) && len(c.lent) == 0 {
			break
		}
		c.compact()
		if whole {
			continue
		}
		if !c.blocked {
			w.block(c, true)
		}
		return
	}
	w.recycle(c.out)
	c.out, c.gone = nil, 0
	if c.blocked {
		w.block(c, false)
	}
}

func (w *wire) block(c *wireConn, blocked bool) {
	c.blocked = blocked
	if err := w.poll.Watch(c.fd, w.token(c), blocked); err != nil {
		w.lose(c, err)
	}
}

// lent holds bytes of a connection's output that were not copied there: pieces of the text that large values are cut from. Copies for a whole
// pipeline take megabytes, more than the processor's caches hold; the text itself fits.
type lent struct {
	at   int    // they belong before this offset in wireConn.out
	text []byte // what is left to write
}

// parts appends to an empty slice what a connection writes next, and returns how many bytes that is.
func (c *wireConn) parts(parts [][]byte) ([][]byte, int) {
	at := c.gone
	for i := range c.lent {
		if len(parts) >= mostParts {
			break
		}
		p := &c.lent[i]
		if at < p.at {
			parts = append(parts, c.out[at:p.at])
		}
		parts = append(parts, p.text)
		at = p.at
	}
	if len(parts) < mostParts && at < len(c.out) {
		parts = append(parts, c.out[at:])
	}
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	return parts, size
}

// leave records that n bytes of a connection's output have been written.
func (c *wireConn) leave(n int) {
	used := 0
	for n > 0 && used < len(c.lent) {
		p := &c.lent[used]
		own := min(n, p.at-c.gone)
		c.gone += own
		n -= own
		took := min(n, len(p.text))
		p.text = p.text[took:]
		n -= took
		if len(p.text) == 0 {
			used++
		}
	}
	c.gone += n
	c.lent = c.lent[:copy(c.lent, c.lent[used:])]
}

// compact drops written bytes once they are more than half of the output, so that it never moves more bytes than it frees.
func (c *wireConn) compact() {
	if c.gone <= len(c.out)/2 {
		return
	}
	for i := range c.lent {
		c.lent[i].at -= c.gone
	}
	c.out, c.gone = c.out[:copy(c.out, c.out[c.gone:])], 0
}
