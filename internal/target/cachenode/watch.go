package cachenode

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attentive is how long an attentive node polls its connections after a request, and the clock before a reply is due, instead of sleeping. Its
// recorded times check the client's measurements, but a sleeping thread wakes some 50 µs late, depending on how long it slept, and would record its
// own delay. The time is long compared with the 20 ms after which the runtime, while goroutines poll, notices by itself those that can wake.
const attentive = 50 * time.Millisecond

// attention records when a node polls and when it sleeps.
type attention struct {
	epoch time.Time
	until atomic.Int64 // poll for requests until then, in nanoseconds since the epoch
}

// attending reports whether the last request is recent enough to poll for the next one.
func (a *attention) attending() bool { return int64(time.Since(a.epoch)) < a.until.Load() }

func (a *attention) attend() { a.until.Store(int64(time.Since(a.epoch) + attentive)) }

// watchful returns how long before a reply is due to poll the clock instead of sleeping. A server that checks a client's measurements must not be as
// late as a sleeping thread commonly is.
func (n *Node) watchful() time.Duration {
	switch {
	case n.attention != nil:
		return attentive
	case n.queue != nil:
		return 200 * time.Microsecond
	}
	return 0
}

// looker reads what is available on a socket, without waiting.
type looker struct {
	raw  syscall.RawConn
	read func(fd uintptr) bool
	into []byte // into, n and err are read's argument and results
	n    int
	err  error
}

// newLooker returns nil if the socket is not a file.
func newLooker(socket net.Conn) *looker {
	file, ok := socket.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil // the socket is closed, as a read will show
	}
	l := &looker{raw: raw}
	l.read = func(fd uintptr) bool {
		l.n, l.err = unix.Read(int(fd), l.into)
		return true
	}
	return l
}

// look returns 0 and no error if nothing has come.
func (l *looker) look(into []byte) (int, error) {
	l.into = into
	if err := l.raw.Read(l.read); err != nil {
		return 0, err
	}
	switch {
	case l.err == nil && l.n == 0:
		return 0, io.EOF
	case l.err == nil:
		return l.n, nil
	case l.err == unix.EAGAIN || l.err == unix.EINTR:
		return 0, nil
	}
	return 0, os.NewSyscallError("read", l.err)
}

// take reads what has come, or waits for it until the deadline, which is the socket's. While the node is attentive it polls.
func (c *conn) take(into []byte, deadline time.Time) (n int, err error) {
	if c.looker == nil {
		return c.socket.Read(into)
	}
	for {
		if c.node.attention.attending() {
			n, err = c.looker.look(into)
		} else if n, err = c.socket.Read(into); n > 0 {
			c.node.rouse(c)
		}
		switch {
		case n > 0:
			c.node.attention.attend()
			return n, err
		case errors.Is(err, os.ErrDeadlineExceeded) && (deadline.IsZero() || time.Now().Before(deadline)): // roused
			if err := c.socket.SetReadDeadline(deadline); err != nil {
				return 0, err
			}
		case err != nil:
			return 0, err
		default:
			runtime.Gosched()
		}
	}
}

// rouse makes all sleeping connections but one poll for requests.
func (n *Node) rouse(but *conn) {
	n.attention.attend() // first: a connection checks this between setting its deadline and sleeping
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		if c != but && c.looker != nil {
			_ = c.socket.SetReadDeadline(time.Unix(1, 0)) // a closed connection has ended already
		}
	}
}
