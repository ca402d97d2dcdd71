package engine

import (
	"errors"
	"time"

	"github.com/loadgen/loadgen/internal/load/sockets"
)

// outlet writes the bytes of a wire, at once or later.
type outlet interface {
	// prompt reports whether bytes leave when they are written, so that the loop's clock gives a request's start.
	prompt() bool
	// admits returns an error if an endpoint cannot be connected to or the target's secrets may not go there.
	admits(end *sockets.Endpoint) error
	// wait waits up to d for sockets to become ready, and returns how many are.
	wait(d time.Duration) (int, error)
	// gathered notes that a connection has fresh requests to write.
	gathered(c *wireConn)
	// pass writes what is left of a connection's output. It returns how many bytes it wrote, and whether the socket took all that it was offered.
	pass(c *wireConn) (n int, whole bool, err error)
	// withdraw takes back the requests that have not begun to leave, and returns how many entries of the queue those are.
	withdraw(c *wireConn) int
	// date sets the start of the requests that were passed last; it returns false if they have not begun to leave.
	date(c *wireConn) bool
	// arrival returns when the bytes that were read last came in.
	arrival(c *wireConn) int64
}

// newOutlet returns the outlet over a poller.
func newOutlet(w *wire, p sockets.Poller) outlet {
	if pipes, ok := p.(*sockets.Pipes); ok {
		return &piped{w: w, pipes: pipes}
	}
	gatherer, _ := p.(sockets.Gatherer)
	return &immediate{w: w, gatherer: gatherer}
}

// immediate writes to non-blocking sockets.
type immediate struct {
	w        *wire
	gatherer sockets.Gatherer // the poller, if it can gather; else nil
	vector   [][]byte         // scratch
}

func (o *immediate) prompt() bool { return true }

// errUnknownAddress is the error for a cluster node with a host name that could not be reached when the phase began.
var errUnknownAddress = errors.New("its address was not found when the phase began")

func (o *immediate) admits(end *sockets.Endpoint) error {
	if !end.Addr.IsValid() && end.Path == "" {
		return errUnknownAddress
	}
	return o.w.lane.side.connect.Admits(end)
}

func (o *immediate) wait(d time.Duration) (int, error) {
	if d < spinBelow {
		d = 0
	}
	return o.w.poll.Wait(o.w.ready, d)
}

func (o *immediate) gathered(*wireConn) {}

func (o *immediate) pass(c *wireConn) (n int, whole bool, err error) {
	if len(c.lent) > 0 {
		parts, size := c.parts(o.vector[:0])
		o.vector = parts
		n, err = o.gatherer.Writev(c.fd, parts)
		return n, n == size, err
	}
	n, err = o.w.poll.Write(c.fd, c.out[c.gone:])
	return n, false, err
}

func (o *immediate) withdraw(*wireConn) int { return 0 }

func (o *immediate) date(*wireConn) bool { return true }

func (o *immediate) arrival(*wireConn) int64 { return o.w.l.clock.now() }

// piped hands bytes over to goroutines that write them: they leave later, or not at all.
type piped struct {
	w      *wire
	pipes  *sockets.Pipes
	newest int64 // latest arrival
}

func (o *piped) prompt() bool { return false }

// admits leaves the check to dial, which sees where each connection leads.
func (o *piped) admits(*sockets.Endpoint) error { return nil }

func (o *piped) wait(d time.Duration) (int, error) {
	n, err := o.pipes.Wait(o.w.ready, d)
	if o.pipes.Lapsed() {
		o.w.l.lapsed = true
	}
	return n, err
}

func (o *piped) gathered(c *wireConn) { c.behind += c.fresh }

func (o *piped) pass(c *wireConn) (n int, whole bool, err error) {
	if !o.date(c) {
		return 0, false, sockets.ErrAgain
	}
	n, err = o.pipes.Hand(c.fd, c.out, c.cuts)
	if n > 0 {
		c.handed, c.behind, c.cuts = c.behind, 0, c.cuts[:0]
	}
	return n, false, err
}

func (o *piped) withdraw(c *wireConn) int {
	if c.handed > 0 && o.pipes.Withdraw(c.fd) {
		return c.handed
	}
	return 0
}

// date sets the start to the time at which the last write began.
func (o *piped) date(c *wireConn) bool {
	if c.handed == 0 {
		return true
	}
	at, begun := o.pipes.Began(c.fd)
	if !begun {
		return false
	}
	c.began(at)
	return true
}

// began records when the bytes that were handed over last began to leave.
func (c *wireConn) began(at int64) {
	for end := c.queue.len() - c.behind - c.fresh; c.handed > 0; c.handed-- {
		p := c.queue.at(end - c.handed)
		if p.start != nil && (*p.start == p.sent || at < *p.start) {
			*p.start = at
		}
		p.sent = at
	}
}

// arrival returns when the bytes that were read last came in. Its times never go back.
func (o *piped) arrival(c *wireConn) int64 {
	o.date(c)
	o.newest = max(o.newest, o.pipes.Arrived(c.fd))
	return o.newest
}

// split divides the connection's output, from an offset on, into writes of whole requests that each fit in one TLS record; all requests have the
// given size. If a request is split over two records, memcached 1.6 does not look at the requests behind it in the second record until more bytes
// come.
func (w *wire) split(c *wireConn, from, size int) {
	if w.records && c.state == isUp {
		c.split(from, size)
	}
}

func (c *wireConn) split(from, size int) {
	for ; from < len(c.out); from += size {
		last := 0
		if n := len(c.cuts); n > 0 {
			last = c.cuts[n-1]
		}
		if from > last && from+size-last > sockets.RecordSize {
			c.cuts = append(c.cuts, from)
		}
	}
}

// unwritten is how many of the last entries in the queue have not begun to leave.
func (c *wireConn) unwritten() int { return c.handed + c.behind + c.fresh }
