package engine

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// pipeBuffer is how many bytes a pipe's goroutine asks for in one read: the most that a TLS record holds.
const pipeBuffer = 16 << 10

// pipes is a poller whose sockets are blocking connections, each with a goroutine that reads and one that writes: the blocking executor's
// way to carry a codec. The goroutines move bytes, note the time and know nothing of requests. A socket's descriptor is its token.
type pipes struct {
	clock clock
	lease *atomic.Int64 // run clock from which on nothing may be written
	dial  func(ctx context.Context, token int32) (net.Conn, error)
	group sync.WaitGroup
	timer *time.Timer
	wake  chan struct{} // something is ready

	lapsed atomic.Bool // a write did not begin because the lease was over

	mu    sync.Mutex
	slots map[int32]*pipe
	ready []*pipe
}

// pipe is a connection between the call of connect and that of close. The mutex of pipes guards it.
type pipe struct {
	token  int32
	cancel context.CancelFunc // of the attempt to connect
	conn   net.Conn           // once it is made; until then nil
	failed error              // why it could not be made
	closed bool
	queued bool // in pipes.ready

	in    []byte // read and not taken by the loop
	at    int64  // when it was read
	took  int64  // the same of what the loop has taken last
	ended error  // behind in: why no more will come
	taken sync.Cond

	out    []byte // handed over by the loop
	cuts   []int  // of out, where another write begins
	stage  writeStage
	began  int64 // when its write began
	wants  bool  // the loop waits for room
	handed sync.Cond
}

// writeStage is how far the bytes are that were handed over last.
type writeStage uint8

const (
	isWritten writeStage = iota
	isHanded
	isWriting
)

func newPipes(c clock, lease *atomic.Int64, dial func(ctx context.Context, token int32) (net.Conn, error)) *pipes {
	return &pipes{
		clock: c, lease: lease, dial: dial,
		timer: time.NewTimer(0), wake: make(chan struct{}, 1), slots: make(map[int32]*pipe),
	}
}

func (p *pipes) connect(_ *endpoint, token int32) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openWithin)
	x := &pipe{token: token, cancel: cancel, taken: sync.Cond{L: &p.mu}, handed: sync.Cond{L: &p.mu}}
	p.mu.Lock()
	p.slots[token] = x
	p.mu.Unlock()
	p.group.Go(func() { p.serve(ctx, x) })
	return int(token), nil
}

// serve connects and is then the goroutine that writes. It starts the one that reads; release waits for both.
func (p *pipes) serve(ctx context.Context, x *pipe) {
	conn, err := p.dial(ctx, x.token)
	x.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.closed {
		if conn != nil {
			abort(conn)
		}
		return
	}
	x.conn, x.failed = conn, err
	p.mark(x)
	if err != nil {
		return
	}
	p.group.Go(func() { p.receive(x, conn) })
	p.send(x, conn)
}

// receive reads ahead of the loop by one buffer.
func (p *pipes) receive(x *pipe, conn net.Conn) {
	buf, other := make([]byte, pipeBuffer), make([]byte, pipeBuffer)
	for {
		n, err := conn.Read(buf)
		at := p.clock.now()
		p.mu.Lock()
		for len(x.in) > 0 && !x.closed {
			x.taken.Wait()
		}
		x.in, x.at = buf[:n], at
		if err != nil {
			x.end(err)
		}
		p.mark(x)
		over := x.closed || err != nil
		p.mu.Unlock()
		if over {
			return
		}
		buf, other = other, buf
	}
}

// send writes what is handed over, each with one write. It is called with the mutex, and holds it but while it writes.
func (p *pipes) send(x *pipe, conn net.Conn) {
	for {
		for x.stage != isHanded && !x.closed {
			x.handed.Wait()
		}
		if x.closed {
			return
		}
		now := p.clock.now()
		if now >= p.lease.Load() {
			p.lapsed.Store(true)
			p.notify()
			return
		}
		x.stage, x.began = isWriting, now
		p.mu.Unlock()
		err := writeParts(conn, x.out, x.cuts)
		p.mu.Lock()
		x.stage = isWritten
		if err != nil {
			x.end(err)
		}
		if err != nil || x.wants {
			p.mark(x)
		}
	}
}

// writeParts writes b with a write for each part of it.
func writeParts(conn net.Conn, b []byte, cuts []int) error {
	from := 0
	for _, to := range cuts {
		if _, err := conn.Write(b[from:to]); err != nil {
			return err
		}
		from = to
	}
	_, err := conn.Write(b[from:])
	return err
}

// end notes the first error.
func (x *pipe) end(err error) {
	if x.ended == nil {
		x.ended = err
	}
}

// mark tells the loop that the pipe is ready.
func (p *pipes) mark(x *pipe) {
	if x.queued || x.closed {
		return
	}
	x.queued = true
	p.ready = append(p.ready, x)
	p.notify()
}

func (p *pipes) notify() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *pipes) wait(ready []readiness, d time.Duration) (int, error) {
	if n := p.collect(ready); n > 0 || d <= 0 {
		return n, nil
	}
	p.timer.Reset(d)
	select {
	case <-p.wake:
	case <-p.timer.C:
	}
	return p.collect(ready), nil
}

func (p *pipes) collect(ready []readiness) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen, n := 0, 0
	for _, x := range p.ready {
		if n == len(ready) {
			break
		}
		seen++
		x.queued = false
		if !x.closed {
			ready[n] = readiness{token: x.token, read: x.readable(), write: x.writable()}
			n++
		}
	}
	p.ready = p.ready[:copy(p.ready, p.ready[seen:])]
	return n
}

func (x *pipe) readable() bool { return len(x.in) > 0 || x.ended != nil }

// writable says whether the attempt to connect has ended, or there is room.
func (x *pipe) writable() bool {
	return x.failed != nil || x.conn != nil && x.stage == isWritten
}

func (p *pipes) connected(fd int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots[int32(fd)].failed
}

func (p *pipes) watch(fd int, _ int32, write bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.slots[int32(fd)]
	x.wants = write
	if x.readable() || write && x.writable() {
		p.mark(x)
	}
	return nil
}

func (p *pipes) read(fd int, b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.slots[int32(fd)]
	n := copy(b, x.in)
	switch {
	case n > 0:
		x.took = x.at
		if x.in = x.in[n:]; len(x.in) == 0 {
			x.taken.Signal()
		}
		if x.readable() {
			p.mark(x)
		}
		return n, nil
	case x.ended == io.EOF:
		return 0, nil
	case x.ended != nil:
		return 0, x.ended
	}
	return 0, errAgain
}

func (p *pipes) write(fd int, b []byte) (int, error) { return p.hand(fd, b, nil) }

// hand is write for bytes with cuts. It takes all of b, or nothing while earlier bytes are on their way: what gathers meanwhile leaves together.
func (p *pipes) hand(fd int, b []byte, cuts []int) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.slots[int32(fd)]
	if x.ended != nil && x.ended != io.EOF {
		return 0, x.ended
	}
	if x.stage != isWritten {
		return 0, errAgain
	}
	x.out, x.cuts, x.stage = append(x.out[:0], b...), append(x.cuts[:0], cuts...), isHanded
	x.handed.Signal()
	return len(b), nil
}

// arrived returns when the bytes came that read returned last.
func (p *pipes) arrived(fd int) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots[int32(fd)].took
}

// began returns when the write of what was handed over last began; false when it has not.
func (p *pipes) began(fd int) (at int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.slots[int32(fd)]
	return x.began, x.stage != isHanded
}

// withdraw takes back what was handed over last, unless its write has begun.
func (p *pipes) withdraw(fd int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.slots[int32(fd)]
	if x.stage != isHanded {
		return false
	}
	x.stage = isWritten
	return true
}

// close ends a connection, or the attempt to make one, without a farewell that could block.
func (p *pipes) close(fd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.slots[int32(fd)]
	delete(p.slots, int32(fd))
	x.closed = true
	x.cancel()
	x.taken.Signal()
	x.handed.Signal()
	if x.conn != nil {
		abort(x.conn)
	}
}

// release waits for the goroutines of all connections, which are closed.
func (p *pipes) release() { p.group.Wait() }

// abort closes what a connection runs over. A TLS connection would first say goodbye, to a server that may not be listening.
func abort(conn net.Conn) {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = over.NetConn()
	}
	_ = conn.Close() // nothing that it could say is of use any more
}

// The rest is what wire does besides when its poller is pipes: bytes that were handed over leave later, or not at all.

// pass writes what the socket takes of what is left of a connection's output. It returns the bytes, and whether they were all that it was offered.
func (w *wire) pass(c *wireConn) (n int, whole bool, err error) {
	if len(c.lent) > 0 {
		parts, size := w.parts(c)
		n, err = w.gatherer.writev(c.fd, parts)
		return n, n == size, err
	}
	if w.pipes == nil {
		n, err = w.poll.write(c.fd, c.out[c.gone:])
		return n, false, err
	}
	if !w.date(c) {
		return 0, false, errAgain
	}
	n, err = w.pipes.hand(c.fd, c.out, c.cuts)
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
	if before > last && len(c.out)-last > pipeBuffer {
		c.cuts = append(c.cuts, before)
	}
}

// date sets the start of the requests handed over last to when their write began; it returns false when it has not.
func (w *wire) date(c *wireConn) bool {
	if c.batch == 0 {
		return true
	}
	at, begun := w.pipes.began(c.fd)
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
	w.newest = max(w.newest, w.pipes.arrived(c.fd))
	return w.newest
}

// unwritten is how many of the last requests in the queue have not begun to leave.
func (c *wireConn) unwritten() int { return c.batch + c.behind + c.fresh }
