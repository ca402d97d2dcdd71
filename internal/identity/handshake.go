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
	// Silence is how long the other end may say nothing before it has proved who it is.
	Silence = 900 * time.Millisecond // whoever says nothing is hung up on within a second
	// Within is how long that may take in all.
	Within = 5 * time.Second
)

// Handshake returns credentials that give up on an end which is silent for Silence before it has proved itself, or takes longer than
// Within.
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
	return w.end(proved, info, err, time.Now().Add(Within)) // to say something; gRPC takes it away then
}

// end ends the watch; after it, something has to come until a time.
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

// watched is a connection that has to go on bringing something until it has proved itself.
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

// SyscallConn gives those who ask the kernel the socket.
func (w *watched) SyscallConn() (syscall.RawConn, error) {
	raw, ok := w.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.New("no socket")
	}
	return raw.SyscallConn()
}
