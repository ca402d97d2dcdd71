package cachenode

import (
	"io"
	"net"
	"sync/atomic"
	"time"
)

const (
	// firstBuffer is the size of a request buffer that no large request has come through.
	firstBuffer = 16 << 10
	// maxKept is the largest reply buffer kept for reuse; a larger value is sent from where it is stored.
	maxKept = 64 << 10
	// lingerBytes and lingerTime bound what is read and dropped after a protocol error, so that the client gets to read
	// why: closing a socket with unread data discards what was sent.
	lingerBytes = 1 << 20
	lingerTime  = time.Second
)

// conn is one connection. All but abort is for its own goroutine.
type conn struct {
	node     *Node
	id       uint64 // its number among all that were accepted, from 1
	socket   net.Conn
	counts   *counts
	dialect  dialect
	in       []byte // received; in[taken:] is not yet answered
	taken    int
	reserved int64     // bytes of in's capacity accounted in node.buffers
	arrived  time.Time // when the requests being answered did
	departs  time.Time // when the server will have worked on the one that is; zero: nothing works on it
	out      []byte    // replies not yet sent
	broken   bool      // a reply could not be sent
	line     atomic.Pointer[delayLine]
}

func newConn(n *Node, socket net.Conn, id uint64) *conn {
	c := &conn{
		node:   n,
		id:     id,
		socket: socket,
		counts: n.peers.of(socket.RemoteAddr().String()),
		in:     make([]byte, 0, firstBuffer),
	}
	c.dialect = n.protocol.newDialect(c)
	return c
}

// requestLimit bounds the bytes of a request's arguments, or of its data. A value of up to twice the memory bound, and of any
// up to 1 MiB, is read before it is refused, so that the client learns why and keeps its connection.
func (n *Node) requestLimit() int {
	const names = 64 << 10 // room for what is not the value
	return int(max(1<<20, min(2*min(n.cfg.Memory, maxBulk), maxBulk))) + names
}

// bufferLimit bounds the memory of all connections' unanswered requests beyond their first buffers.
func (n *Node) bufferLimit() int64 { return 4*int64(n.requestLimit()) + 64<<20 }

// serve answers requests until the client goes, breaks the protocol or leaves replies unread, or the node is closed.
func (c *conn) serve() {
	defer c.end()
	for c.read() {
		c.arrived = time.Now()
		c.node.gate.wait()
		goOn := c.answerAll()
		c.flush()
		if !goOn {
			c.linger()
			return
		}
		if c.broken {
			return
		}
	}
}

// read waits for more bytes of requests.
func (c *conn) read() bool {
	if c.taken == len(c.in) {
		c.in, c.taken = c.in[:0], 0
		if cap(c.in) > firstBuffer {
			c.resize(firstBuffer)
		}
	}
	if len(c.in) == cap(c.in) && c.taken > 0 {
		c.in = c.in[:copy(c.in, c.in[c.taken:])]
		c.taken = 0
	}
	if len(c.in) == cap(c.in) && !c.resize(2*cap(c.in)) {
		c.out = c.node.protocol.appendRefusal(c.out, "this node holds too many unfinished requests")
		c.flush()
		return false
	}
	n, err := c.socket.Read(c.in[len(c.in):cap(c.in)])
	c.in = c.in[:len(c.in)+n]
	return err == nil
}

// resize changes the capacity of the request buffer. It reports false when the node has no room for that.
func (c *conn) resize(size int) bool {
	extra := int64(size - firstBuffer)
	if c.node.buffers.Add(extra-c.reserved) > c.node.bufferLimit() && extra > c.reserved {
		c.node.buffers.Add(c.reserved - extra)
		return false
	}
	c.reserved = extra
	c.in = append(make([]byte, 0, size), c.in...)
	return true
}

// answerAll answers the requests that are complete. It reports false when the connection is to end with that.
func (c *conn) answerAll() bool {
	for c.taken < len(c.in) && !c.broken {
		taken, goOn := c.dialect.answer(c.in[c.taken:])
		if taken == 0 || !goOn {
			return goOn
		}
		c.taken += taken
		if len(c.out) > maxKept {
			c.flush()
		}
	}
	return true
}

// flush sends the replies made so far, now or when their delay has passed.
func (c *conn) flush() {
	if len(c.out) == 0 || c.broken {
		return
	}
	c.out = c.dispatch(c.out)
	if cap(c.out) > 2*maxKept {
		c.out = nil
	}
}

// queue has the node's single server, if it has one, work on a request: what is answered until leave is called departs when that is done.
func (c *conn) queue() {
	if c.node.queue != nil {
		c.flush() // what was answered before does not wait
		c.departs = c.node.queue.admit()
	}
}

// leave ends what queue began.
func (c *conn) leave() {
	if !c.departs.IsZero() {
		c.flush()
		c.departs = time.Time{}
	}
}

// dispatch takes over b and returns an empty buffer.
func (c *conn) dispatch(b []byte) []byte {
	delay := time.Duration(c.node.delay.Load())
	line := c.line.Load()
	if delay == 0 && c.departs.IsZero() && (line == nil || line.idle()) {
		c.broken = c.send(b) != nil
		return b[:0]
	}
	if line == nil {
		var err error
		if line, err = newDelayLine(c.send, c.node.watchful()); err != nil {
			c.node.log.Error("delay replies", "error", err)
			c.broken = true
			return b[:0]
		}
		c.line.Store(line)
		if c.node.closed() {
			line.abort() // the node's Close may have been too early to see it
		}
	}
	due := c.arrived
	if !c.departs.IsZero() {
		due = c.departs
	}
	next, ok := line.push(b, due.Add(delay))
	c.broken = !ok
	return next
}

// send writes to the socket. With a delay line it is the line's goroutine that calls it.
func (c *conn) send(b []byte) error {
	c.node.gate.wait()
	if err := c.socket.SetWriteDeadline(time.Now().Add(c.node.writeTimeout)); err != nil {
		return err
	}
	_, err := c.socket.Write(b)
	if err != nil {
		_ = c.socket.Close() // wakes the reader, which then ends the connection
	}
	return err
}

// appendValue appends a value and CR LF to the replies. A large one goes out on its own, uncopied, so value must never be
// written to again.
func (c *conn) appendValue(value []byte) {
	if len(value) <= maxKept {
		c.out = append(c.out, value...)
	} else {
		c.flush()
		if !c.broken {
			c.dispatch(value)
		}
	}
	c.out = append(c.out, "\r\n"...)
}

// linger lets the client read the last reply before the socket is closed.
func (c *conn) linger() {
	if line := c.line.Load(); line != nil {
		line.close()
	}
	half, ok := c.socket.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.socket.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.socket, lingerBytes) // its end, for whatever reason, is what was waited for
}

// abort ends the connection from outside.
func (c *conn) abort() {
	_ = c.socket.Close() // also ends a read or write that blocks
	if line := c.line.Load(); line != nil {
		line.abort()
	}
}

// end sends what still waits for its delay and gives everything back.
func (c *conn) end() {
	if line := c.line.Load(); line != nil {
		line.close()
	}
	_ = c.socket.Close()
	c.node.buffers.Add(-c.reserved)
}
