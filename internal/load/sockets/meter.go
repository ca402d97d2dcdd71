package sockets

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Meter makes the connections of one client and counts the bytes on them. Its methods may be called from any goroutine.
type Meter struct {
	to   func(ctx context.Context) (net.Conn, error)
	idle int64        // how long a connection may idle, in nanoseconds; 0 for ever
	now  func() int64 // reads the clock
	in   atomic.Uint64
	out  atomic.Uint64
	made atomic.Uint64

	unasked atomic.Uint64 // connections on which bytes came that nothing had asked for

	mu    sync.Mutex
	open  map[*metered]struct{}
	ended Traffic // traffic of connections that are closed
	dials Dials
}

// Dials says what became of connections. Counts are those since it was last asked for.
type Dials struct {
	Attempted, Refused uint64
	Closed, Lost       uint64
	Made               []Steps
	Making, Open       int64 // now
}

// Dials returns what became of the connections.
func (m *Meter) Dials() Dials {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.dials
	d.Open = int64(len(m.open))
	m.dials = Dials{Making: d.Making}
	return d
}

// Lose makes the connections that are open count as lost once they are closed.
func (m *Meter) Lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.open {
		c.lost = !c.parted
	}
}

// NewMeter returns a meter of the connections that to makes. Those on which nothing has come for idle, unless that is 0, count as ended; now reads
// the clock, in nanoseconds.
func NewMeter(to func(ctx context.Context) (net.Conn, error), idle time.Duration, now func() int64) *Meter {
	return &Meter{to: to, idle: int64(idle), now: now, open: make(map[*metered]struct{})}
}

// Dial makes a connection.
func (m *Meter) Dial(ctx context.Context) (net.Conn, error) {
	m.mu.Lock()
	m.dials.Attempted++
	m.dials.Making++
	m.mu.Unlock()
	conn, steps, err := Stepped(ctx, m.now, m.to)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dials.Making--
	if err != nil {
		m.dials.Refused++
		return nil, err
	}
	m.dials.Made = append(m.dials.Made, steps)
	m.made.Add(1)
	c := &metered{Conn: conn, meter: m, raw: rawOf(conn)}
	c.look = c.poll
	c.hear()
	if _, c.secure = conn.(*tls.Conn); c.secure {
		c.next = make([]byte, 4096)
	} else {
		c.next = make([]byte, len(timedOut))
	}
	m.open[c] = struct{}{}
	return c, nil
}

// Bytes returns how many bytes the client has read and written so far; of an encrypted connection, the plain bytes.
func (m *Meter) Bytes() (in, out uint64) { return m.in.Load(), m.out.Load() }

// Made returns how many connections were made.
func (m *Meter) Made() uint64 { return m.made.Load() }

// Unasked returns on how many connections bytes came, since the last call, while their client waited for none, as [metered.Ended] has found. With last
// set, it looks once more; no client may be at work then.
func (m *Meter) Unasked(last bool) uint64 {
	if last {
		m.mu.Lock()
		open := slices.Collect(maps.Keys(m.open))
		m.mu.Unlock()
		for _, c := range open {
			c.lookOnce()
		}
	}
	return m.unasked.Swap(0)
}

// lookOnce looks for bytes that nothing has asked for. Some of what a far end sends over TLS is for TLS alone, such as tickets: only a read tells, and
// spoils the connection.
func (c *metered) lookOnce() {
	if !c.asks || c.raw == nil || c.Ended() || !c.secure || c.asked[0].Revents == 0 {
		return
	}
	defer time.AfterFunc(ticketWait, func() { abort(c.Conn) }).Stop()
	n, _ := c.Conn.Read(c.next)
	c.tell(c.next[:n])
	c.meter.forget(c)
	abort(c.Conn)
}

// ticketWait is how long a read may take of bytes that are there but may be none of the client's.
const ticketWait = 10 * time.Millisecond

// Traffic returns the kernel's counts for all connections since they were opened.
func (m *Meter) Traffic() Traffic {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.ended
	for c := range m.open {
		all.Add(c.traffic())
	}
	return all
}

// Cut closes the open connections without sending a farewell, which could block. Reads and writes in progress return.
func (m *Meter) Cut() {
	m.mu.Lock()
	var open []*metered
	for c := range m.open {
		c.lost = !c.parted
		open = append(open, c)
	}
	m.mu.Unlock()
	for _, c := range open {
		m.forget(c)
		abort(c.Conn)
	}
}

// forget adds the counts of a connection that is about to be closed.
func (m *Meter) forget(c *metered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, open := m.open[c]; open {
		m.ended.Add(c.traffic())
		if c.lost {
			m.dials.Lost++
		} else {
			m.dials.Closed++
		}
		delete(m.open, c)
	}
}

// metered is a connection that a Meter made.
type metered struct {
	net.Conn
	meter *Meter
	raw   syscall.RawConn // nil if it is not a socket

	look  func(fd uintptr) // poll
	heard int64            // when bytes last came, if connections may not idle for ever
	asked [1]unix.PollFd
	next  []byte // the front of what has come and was not read
	ended bool   // the result of poll

	secure bool // it is a TLS connection
	asks   bool // its client asks whether it has ended, so it waits for nothing in between
	parted bool // it is to be closed
	lost   bool // it ends otherwise
}

// hear notes that the connection is not idle.
func (c *metered) hear() {
	if c.meter.idle > 0 {
		c.heard = c.meter.now()
	}
}

// Ended reports whether the far end has closed the connection, or will send nothing more on it, or whether it has idled for too long. It neither waits
// nor reads. Over TLS, a far end may say so and leave the connection beneath open. One on which bytes have come that nothing asked for is as good as
// ended, and counted. The client that reads and writes may call it, and nobody else.
func (c *metered) Ended() bool {
	c.asks = true
	if c.meter.idle > 0 && c.meter.now()-c.heard >= c.meter.idle {
		return true
	}
	if c.raw == nil {
		return false
	}
	c.ended = false
	return c.raw.Control(c.look) != nil || c.ended
}

func (c *metered) poll(fd uintptr) {
	c.asked[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLRDHUP | unix.POLLIN}
	n, err := unix.Poll(c.asked[:], 0)
	if n == 0 || err != nil {
		return
	}
	if c.ended = c.asked[0].Revents&^unix.POLLIN != 0; c.ended {
		return
	}
	n, _, err = unix.Recvfrom(int(fd), c.next, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if front := c.next[:max(0, n)]; c.secure {
		c.ended = err == nil && bidsFarewell(front)
	} else {
		c.ended = c.tell(front)
	}
}

// timedOut is how HTTP servers may begin to say that they are about to close an idle connection.
const timedOut = "HTTP/1.1 408"

// tell counts bytes that came while nothing was asked for, if there are any, and reports whether there are.
func (c *metered) tell(front []byte) bool {
	if len(front) > 0 && !bytes.HasPrefix(front, []byte(timedOut)) {
		c.meter.unasked.Add(1)
	}
	return len(front) > 0
}

// bidsFarewell reports whether an alert is among TLS records that answer no request. In TLS 1.3 it looks like any data of 2 bytes, its type and its
// tag (RFC 8446, sections 5.2 and 6.1); tickets, which are longer, may precede it.
func bidsFarewell(records []byte) bool {
	const head, alert, data, sealed = 5, 21, 23, 2 + 1 + 16
	for len(records) >= head {
		size := int(binary.BigEndian.Uint16(records[3:]))
		if records[0] == alert || records[0] == data && size == sealed {
			return true
		}
		records = records[min(len(records), head+size):]
	}
	return false
}

// rawOf returns the socket below a connection; nil if there is none.
func rawOf(conn net.Conn) syscall.RawConn {
	for over, ok := conn.(interface{ NetConn() net.Conn }); ok; over, ok = conn.(interface{ NetConn() net.Conn }) {
		conn = over.NetConn()
	}
	at, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := at.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// NetConn returns the connection that is metered.
func (c *metered) NetConn() net.Conn { return c.Conn }

func (c *metered) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.meter.in.Add(uint64(n))
	c.hear()
	return n, err
}

func (c *metered) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.meter.out.Add(uint64(n))
	return n, err
}

func (c *metered) Close() error {
	c.meter.forget(c)
	return c.Conn.Close()
}

// traffic returns the kernel's counts for a connection; zero if there are none.
func (c *metered) traffic() (t Traffic) {
	if c.raw != nil {
		_ = c.raw.Control(func(fd uintptr) { t = trafficOf(int(fd)) }) // the counts of a closed connection are gone
	}
	return t
}
