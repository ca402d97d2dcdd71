package sockets

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// RecordSize is the largest number of bytes in a TLS record, and the number that a pipe's goroutine asks for in one read.
const RecordSize = 16 << 10

// Pipes is a poller whose sockets are blocking connections, each with a goroutine that reads and one that writes. The blocking executor uses it for
// codecs. The goroutines move bytes and take timestamps; they do not deal with requests. A socket's descriptor is its token.
type Pipes struct {
	now   func() int64         // run clock
	over  func(now int64) bool // reports whether the lease is over, so that nothing more may be written
	dial  func(ctx context.Context, token int32) (net.Conn, error)
	group sync.WaitGroup
	timer *time.Timer
	wake  chan struct{} // something is ready

	lapsed atomic.Bool // a write did not begin because the lease was over

	mu    sync.Mutex
	slots map[int32]*pipe
	ready []*pipe
}

// pipe is a connection between the calls of Connect and Close. The mutex of Pipes guards it.
type pipe struct {
	token  int32
	cancel context.CancelFunc // ends the attempt to connect
	conn   net.Conn           // nil until the connection is made
	failed error              // why the connection could not be made
	closed bool
	queued bool // the pipe is in Pipes.ready

	in    []byte // bytes that were read and not yet taken by the loop
	at    int64  // time at which in was read
	took  int64  // time at which the bytes that the loop took last were read
	ended error  // why no bytes will come after in
	taken sync.Cond

	out    []byte // bytes handed over by the loop
	cuts   []int  // offsets in out where another write begins
	stage  writeStage
	began  int64 // time at which the write of out began
	wants  bool  // the loop waits for room
	handed sync.Cond
}

// writeStage is the state of the bytes last handed over.
type writeStage uint8

const (
	isWritten writeStage = iota
	isHanded
	isWriting
)

// NewPipes returns a poller whose connections are made by dial, each on its own goroutine. dial's context ends when dial returns or the connection is
// closed. Timestamps are from now. Once over returns true for one of them, nothing more is written. Any goroutine may call both.
func NewPipes(now func() int64, over func(now int64) bool, dial func(ctx context.Context, token int32) (net.Conn, error)) *Pipes {
	return &Pipes{
		now: now, over: over, dial: dial,
		timer: time.NewTimer(0), wake: make(chan struct{}, 1), slots: make(map[int32]*pipe),
	}
}

// Connect implements [Poller]. The descriptor is the token.
func (p *Pipes) Connect(_ *Endpoint, token int32) (int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	x := &pipe{token: token, cancel: cancel, taken: sync.Cond{L: &p.mu}, handed: sync.Cond{L: &p.mu}}
	p.mu.Lock()
	p.slots[token] = x
	p.mu.Unlock()
	p.group.Go(func() { p.serve(ctx, x) })
	return int(token), nil
}

// serve connects and then becomes the goroutine that writes. It starts the one that reads; Release waits for both.
func (p *Pipes) serve(ctx context.Context, x *pipe) {
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
func (p *Pipes) receive(x *pipe, conn net.Conn) {
	buf, other := make([]byte, RecordSize), make([]byte, RecordSize)
	for {
		n, err := conn.Read(buf)
		at := p.now()
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

// send writes the bytes handed over, part by part. It is called with the mutex, and releases it only while it writes.
func (p *Pipes) send(x *pipe, conn net.Conn) {
	for {
		for x.stage != isHanded && !x.closed {
			x.handed.Wait()
		}
		if x.closed {
			return
		}
		now := p.now()
		if p.over(now) {
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

// writeParts makes one write for each part of b.
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

// end keeps the first error.
func (x *pipe) end(err error) {
	if x.ended == nil {
		x.ended = err
	}
}

// mark tells the loop that the pipe is ready.
func (p *Pipes) mark(x *pipe) {
	if x.queued || x.closed {
		return
	}
	x.queued = true
	p.ready = append(p.ready, x)
	p.notify()
}

func (p *Pipes) notify() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Notify ends a wait. Any goroutine may call it.
func (p *Pipes) Notify() { p.notify() }

// Wait implements [Poller].
func (p *Pipes) Wait(ready []Readiness, d time.Duration) (int, error) {
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

func (p *Pipes) collect(ready []Readiness) int {
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
			ready[n] = Readiness{Token: x.token, Read: x.readable(), Write: x.writable()}
			n++
		}
	}
	p.ready = p.ready[:copy(p.ready, p.ready[seen:])]
	return n
}

func (x *pipe) readable() bool { return len(x.in) > 0 || x.ended != nil }

// writable reports whether the attempt to connect has ended, or there is room.
func (x *pipe) writable() bool {
	return x.failed != nil || x.conn != nil && x.stage == isWritten
}

// Connected implements [Poller].
func (p *Pipes) Connected(fd int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots[int32(fd)].failed
}

// Watch implements [Poller].
func (p *Pipes) Watch(fd int, _ int32, write bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.slots[int32(fd)]
	x.wants = write
	if x.readable() || write && x.writable() {
		p.mark(x)
	}
	return nil
}

// Read implements [Poller].
func (p *Pipes) Read(fd int, b []byte) (int, error) {
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
	return 0, ErrAgain
}

// Write implements [Poller].
func (p *Pipes) Write(fd int, b []byte) (int, error) { return p.Hand(fd, b, nil) }

// Hand is Write for bytes with cuts. It takes all of b, or nothing while earlier bytes are still unwritten. So bytes that gather in the meantime are
// written together.
func (p *Pipes) Hand(fd int, b []byte, cuts []int) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.slots[int32(fd)]
	if x.ended != nil && x.ended != io.EOF {
		return 0, x.ended
	}
	if x.stage != isWritten {
		return 0, ErrAgain
	}
	x.out, x.cuts, x.stage = append(x.out[:0], b...), append(x.cuts[:0], cuts...), isHanded
	x.handed.Signal()
	return len(b), nil
}

// Arrived returns the time at which the bytes that Read returned last came in.
func (p *Pipes) Arrived(fd int) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots[int32(fd)].took
}

// Began returns the time at which the write of the bytes handed over last began; false if it has not begun.
func (p *Pipes) Began(fd int) (at int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.slots[int32(fd)]
	return x.began, x.stage != isHanded
}

// Withdraw takes back the bytes handed over last, unless their write has begun. It reports whether it did.
func (p *Pipes) Withdraw(fd int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.slots[int32(fd)]
	if x.stage != isHanded {
		return false
	}
	x.stage = isWritten
	return true
}

// Lapsed reports whether a write did not begin because the lease was over. Any goroutine may call it.
func (p *Pipes) Lapsed() bool { return p.lapsed.Load() }

// Close ends a connection, or the attempt to make one, without sending a farewell, which could block.
func (p *Pipes) Close(fd int) {
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

// Release waits for the goroutines of all connections, which must be closed.
func (p *Pipes) Release() { p.group.Wait() }

// abort closes the socket below a connection. A TLS connection would first send a farewell, to a server that may not read it.
func abort(conn net.Conn) {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = over.NetConn()
	}
	_ = conn.Close() // its error no longer matters
}
