package cachenode

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

const (
	// firstBuffer is the initial size of a request buffer.
	firstBuffer = 16 << 10
	// maxKept is how many bytes of replies a connection gathers before it sends them. A larger value is sent from where it is stored.
	maxKept = 16 << 10
	// lingerBytes and lingerTime bound what is read and dropped after a protocol error, so that the client can read the reason: closing a socket with
	// unread data discards what was sent.
	lingerBytes = 1 << 20
	lingerTime  = time.Second
)

// conn is one connection. Only its own goroutine may use it, except for abort.
type conn struct {
	node     *Node
	id       uint64 // its number among all that were accepted, from 1
	socket   net.Conn
	counts   *counts
	dialect  dialect
	in       []byte // received bytes; in[taken:] is not yet answered
	taken    int
	reserved int64     // bytes of in's capacity accounted in node.buffers
	arrived  time.Time // of the requests being answered
	departs  time.Time // when the reply being made must leave; zero if with all that arrived together
	ends     fault     // what ends the connection, if anything does
	mute     bool      // no request is answered any more
	awaited  int       // bytes of an unfinished request that the client must have sent in time; 0 if there is none
	patience time.Duration
	idle     time.Duration // how long the client may be silent between requests; 0 for ever
	out      []byte        // replies not yet sent
	broken   bool          // a reply could not be sent
	line     atomic.Pointer[delayLine]
	looker   *looker // nil unless the node is attentive
}

func newConn(n *Node, socket net.Conn, id uint64) *conn {
	c := &conn{
		node:   n,
		id:     id,
		socket: socket,
		counts: n.peers.of(socket.RemoteAddr().String()),
		in:     make([]byte, 0, firstBuffer),
		idle:   n.protocol.idle,
	}
	c.dialect = n.protocol.newDialect(c)
	if n.attention != nil {
		c.looker = newLooker(socket)
	}
	return c
}

// requestLimit bounds the bytes of a request's arguments, or of its data. A value of up to twice the memory bound, and any value of up to 1 MiB, is
// read before it is refused, so that the client learns why and keeps its connection.
func (n *Node) requestLimit() int {
	const names = 64 << 10 // room beside the value
	return int(max(1<<20, min(2*min(n.cfg.Memory, maxBulk), maxBulk))) + names
}

// maxBuffer is the largest request buffer: one request, and the lines that announce its arguments.
func (n *Node) maxBuffer() int { return n.requestLimit() + maxArgs*(maxLengthDigits+8) }

// bufferLimit bounds the memory of all connections' unanswered requests beyond their first buffers: one of the largest, plus many small ones.
func (n *Node) bufferLimit() int64 { return int64(n.maxBuffer()) + 64<<20 }

// serve answers requests until the client leaves, breaks the protocol or leaves replies unread, or the node is closed.
func (c *conn) serve() {
	defer c.end()
	for c.read() {
		c.arrived = time.Now()
		c.node.gate.wait()
		goOn := c.answerAll()
		c.flush()
		if c.ends == resetFault {
			c.reset()
			return
		}
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
	if len(c.in) == cap(c.in) && !c.resize(min(2*cap(c.in), c.node.maxBuffer())) {
		c.out = c.node.protocol.appendRefusal(c.out, "this node holds too many unfinished requests")
		c.flush()
		return false
	}
	free := c.in[len(c.in):cap(c.in)]
	n, err := c.receive(free[:c.node.in.piece(len(free))])
	c.in = c.in[:len(c.in)+n]
	c.node.received.Add(uint64(n))
	c.node.in.pass(n)
	if errors.Is(err, os.ErrDeadlineExceeded) && len(c.in) > c.taken {
		c.node.faults.slow.Add(1)
		c.out = c.node.protocol.appendRefusal(c.out, fmt.Sprintf("a request was begun, and %v later no more than %d bytes of it were there", c.node.readTimeout, len(c.in)-c.taken))
		c.flush()
	}
	return err == nil
}

// receive reads what has come. A client that has begun a request has limited time to finish it, or to send as much of it as any network would carry
// in that time. Only time spent waiting for the client counts.
func (c *conn) receive(into []byte) (n int, err error) {
	const progress = 16 << 10
	unfinished := len(c.in) - c.taken
	if unfinished == 0 {
		var deadline time.Time
		if c.idle > 0 {
			deadline = time.Now().Add(c.idle)
		}
		if c.idle > 0 || c.awaited != 0 {
			if err := c.socket.SetReadDeadline(deadline); err != nil {
				return 0, err
			}
		}
		c.awaited = 0
		return c.take(into, deadline)
	}
	if unfinished >= c.awaited {
		c.awaited, c.patience = unfinished+progress, c.node.readTimeout
	}
	from := time.Now()
	deadline := from.Add(c.patience)
	if err := c.socket.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	n, err = c.take(into, deadline)
	c.patience -= time.Since(from)
	return n, err
}

// resize changes the capacity of the request buffer. It reports false if the node has no room for that.
func (c *conn) resize(size int) bool {
	extra := int64(size - firstBuffer)
	if !c.node.buffers.take(extra - c.reserved) {
		return false
	}
	c.reserved = extra
	c.in = append(make([]byte, 0, size), c.in...)
	return true
}

// answerAll answers the complete requests. It reports false if the connection must then end.
func (c *conn) answerAll() bool {
	for c.taken < len(c.in) && !c.broken {
		taken, goOn := c.dialect.answer(c.in[c.taken:])
		if taken == 0 || !goOn {
			return goOn
		}
		if c.ends != noFault {
			return false
		}
		c.taken += taken
		c.awaited = min(c.awaited, 1) // the next request has its own time limit
		if len(c.out) > maxKept {
			c.flush()
		}
	}
	return true
}

// flush sends the replies made so far, at once or after their delay.
func (c *conn) flush() {
	if len(c.out) == 0 || c.broken {
		return
	}
	c.out = c.dispatch(c.out, nil)
	if cap(c.out) > 2*maxKept {
		c.out = nil
	}
}

// begin is called before each request is carried out. It decides whether the request gets a reply, and when the reply leaves, if not with those that
// arrived with it.
func (c *conn) begin(v verb) {
	n := c.node
	worked := v != verbOther
	if c.mute {
		return
	}
	if fate := n.faults.draw(worked); fate != noFault {
		c.flush() // the replies before this one
		c.mute = true
		if fate != dropFault {
			c.ends = fate
		}
		return
	}
	queued, each := worked && n.queue != nil, n.delays.each()
	if !queued && !each {
		return
	}
	c.flush() // the replies before this one need not wait for it
	base, delay := c.arrived, n.delays.constant()
	if queued {
		base = n.queue.admit()
	}
	if each {
		delay = n.delays.draw(c.id, v, c.arrived)
	}
	c.departs = base.Add(delay)
}

// finish completes what begin began.
func (c *conn) finish() {
	if c.mute {
		c.out = c.out[:0]
		if c.ends == noFault {
			c.node.faults.unanswered.Add(1)
		}
	}
	if !c.departs.IsZero() {
		c.flush()
		c.departs = time.Time{}
	}
}

// dispatch takes over b and returns an empty buffer. It calls done, if not nil, once b has been sent, or never will be.
func (c *conn) dispatch(b []byte, done func()) []byte {
	due, line := c.departs, c.line.Load()
	if due.IsZero() {
		due = c.arrived.Add(c.node.delays.constant())
	}
	switch {
	case c.mute || c.broken:
	case !due.After(c.arrived) && (line == nil || line.idle()):
		c.broken = c.send(b) != nil
	default:
		if line = c.delayLine(); line != nil {
			next, ok := line.push(batch{due, b, done})
			c.broken = !ok
			return next
		}
		c.broken = true
	}
	if done != nil {
		done()
	}
	return b[:0]
}

// delayLine returns the connection's delay line, or nil if none can be made.
func (c *conn) delayLine() *delayLine {
	if line := c.line.Load(); line != nil {
		return line
	}
	line, err := newDelayLine(c.send, c.node.watchful(), &c.node.waiting)
	if err != nil {
		c.node.log.Error("delay replies", "error", err)
		return nil
	}
	c.line.Store(line)
	if c.node.closed() {
		line.abort() // the node's Close may have missed it
	}
	return line
}

// send writes to the socket. With a delay line, the line's goroutine calls it.
func (c *conn) send(b []byte) error {
	c.node.gate.wait()
	for len(b) > 0 {
		piece := c.node.out.piece(len(b))
		c.node.out.pass(piece)
		if err := c.write(b[:piece]); err != nil {
			_ = c.socket.Close() // wakes the reader, which ends the connection
			return err
		}
		b = b[piece:]
	}
	return nil
}

func (c *conn) write(b []byte) error {
	if err := c.socket.SetWriteDeadline(time.Now().Add(c.node.writeTimeout)); err != nil {
		return err
	}
	c.node.sent.Add(uint64(len(b))) // before the client can have read them and ask for the count
	n, err := c.socket.Write(b)
	c.node.sent.Add(-uint64(len(b) - n))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.node.faults.slow.Add(1)
	}
	return err
}

// appendValue appends a value and CR LF to the replies. A large value is sent on its own, uncopied, so value must not be modified until done, if not
// nil, is called: once the value was sent or copied, or never will be.
func (c *conn) appendValue(value []byte, done func()) {
	if len(value) > maxKept {
		c.flush()
		c.dispatch(value, done)
		c.out = append(c.out, "\r\n"...)
		return
	}
	if len(c.out)+len(value) > maxKept {
		c.flush()
	}
	c.out = append(c.out, value...)
	c.out = append(c.out, "\r\n"...)
	if done != nil {
		done()
	}
}

// appendListing appends text that may be long and was made only for this reply, after the line with its length. It reports false, and appends
// nothing, if too many such texts are not yet sent.
func (c *conn) appendListing(text []byte, header func(int)) bool {
	size := int64(len(text))
	if !c.node.waiting.take(size) {
		return false
	}
	header(len(text))
	c.appendValue(text, func() { c.node.waiting.give(size) })
	return true
}

// linger lets the client read the last reply before the socket is closed.
func (c *conn) linger() {
	c.line.Load().close()
	half, ok := c.socket.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.socket.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.socket, lingerBytes) // returns when the client closes, for whatever reason
}

// reset makes the end of the connection, once what is due was sent, a reset.
func (c *conn) reset() {
	if tcp, ok := c.socket.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it is closed either way
	}
}

// abort ends the connection from another goroutine.
func (c *conn) abort() {
	_ = c.socket.Close() // also ends a read or write that blocks
	if line := c.line.Load(); line != nil {
		line.abort()
	}
}

// end sends what still waits for its delay and releases everything.
func (c *conn) end() {
	c.line.Load().close()
	_ = c.socket.Close()
	c.node.buffers.give(c.reserved)
}
