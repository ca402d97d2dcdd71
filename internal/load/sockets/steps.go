package sockets

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"

	"golang.org/x/sys/unix"
)

// Steps are the times of making a connection.
type Steps struct {
	Began int64
	TCP   int64 // TCP's handshake was done
	Made  int64 // that of TLS, too
}

// Stepped connects by dial and takes the times.
func Stepped(ctx context.Context, now func() int64, dial func(context.Context) (net.Conn, error)) (net.Conn, Steps, error) {
	s := Steps{Began: now()}
	conn, err := dial(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{ConnectDone: func(string, string, error) { s.TCP = now() }}))
	s.Made = now()
	if _, encrypted := conn.(*tls.Conn); !encrypted || s.TCP == 0 {
		s.TCP = s.Made
	}
	return conn, s, err
}

// Reset makes Close end a connection with a reset. Its port is free at once, whoever closes first.
func (p *Epoll) Reset(fd int) { abrupt(uintptr(fd)) }

// Reset is like [Epoll.Reset].
func (p *Pipes) Reset(fd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reset(p.slots[int32(fd)].conn)
}

// Reset makes the open connections end with a reset when they are closed.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.open {
		c.parted = true
		reset(c.Conn)
	}
}

func reset(conn net.Conn) {
	if raw := rawOf(conn); raw != nil {
		_ = raw.Control(abrupt) // of a closed connection nothing is left to end
	}
}

// abrupt has no effect on sockets that are not TCP's, which have no ports.
func abrupt(fd uintptr) {
	_ = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}
