package identity

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"
)

const (
	// Silence is how long the other end may be silent before it has proved who it is.
	Silence = 900 * time.Millisecond // a silent end is disconnected within a second
	// Within is how long that proof may take in total.
	Within = 5 * time.Second
)

// Handshake returns credentials that give up on an end that, before it has proved itself, is silent for Silence or takes longer than Within.
func Handshake(c credentials.TransportCredentials) credentials.TransportCredentials { return &hasty{c} }

type hasty struct {
	credentials.TransportCredentials
}

func (h *hasty) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	w := &watched{Conn: conn, until: time.Now().Add(Within)}
	proved, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, w)
	return w.end(proved, info, err, time.Time{})
}

func (h *hasty) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	w := &watched{Conn: conn, until: time.Now().Add(Within)}
	proved, info, err := h.TransportCredentials.ServerHandshake(w)
	return w.end(proved, info, err, time.Now().Add(Within)) // the deadline for the first message; gRPC then lifts it
}

// end ends the watch. After that, the next data must come by until.
func (w *watched) end(proved net.Conn, info credentials.AuthInfo, err error, until time.Time) (net.Conn, credentials.AuthInfo, error) {
	w.proved.Store(true)
	if err == nil {
		err = w.SetReadDeadline(until)
	}
	if err == nil {
		return proved, info, nil
	}
	if closing := w.Close(); !errors.Is(closing, net.ErrClosed) {
		err = errors.Join(err, closing)
	}
	return nil, nil, err
}

func (h *hasty) Clone() credentials.TransportCredentials {
	return &hasty{h.TransportCredentials.Clone()}
}

// watched is a connection that must keep delivering data until it has proved itself.
type watched struct {
	net.Conn
	until  time.Time
	proved atomic.Bool
}

func (w *watched) Read(b []byte) (int, error) {
	if !w.proved.Load() {
		until := time.Now().Add(Silence)
		if until.After(w.until) {
			until = w.until
		}
		if err := w.Conn.SetReadDeadline(until); err != nil {
			return 0, err
		}
	}
	return w.Conn.Read(b)
}

// SyscallConn gives access to the socket.
func (w *watched) SyscallConn() (syscall.RawConn, error) { return socketOf(w.Conn) }

// socketOf gives access to a connection's socket.
func socketOf(conn net.Conn) (syscall.RawConn, error) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return nil, errors.New("no socket")
	}
	return raw.SyscallConn()
}
