package sockets

import (
	"bytes"
	"context"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// dialTest connects to the test's own listener.
func dialTest(t *testing.T) (p *Epoll, fd int, listener net.Listener) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	p, err = NewEpoll()
	require.NoError(t, err)
	t.Cleanup(p.Release)
	fd, err = p.Connect(&Endpoint{Addr: listener.Addr().(*net.TCPAddr).AddrPort()}, 0)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close(fd) })
	ready := make([]Readiness, 1)
	n, err := p.Wait(ready, time.Second)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, p.Connected(fd))
	return p, fd, listener
}

// readiness waits until a socket is ready; signals may end a wait early.
func readiness(t *testing.T, p Poller, token int32) Readiness {
	ready := make([]Readiness, 1)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		n, err := p.Wait(ready, time.Second)
		require.NoError(t, err)
		if n > 0 {
			require.Equal(t, token, ready[0].Token)
			return ready[0]
		}
	}
	require.FailNow(t, "the socket does not become ready")
	return Readiness{}
}

// A socket of any family connects, echoes, and tells when its far end closes it.
func TestSocketsOfEachFamily(t *testing.T) {
	for network, addr := range map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0", "unix": filepath.Join(t.TempDir(), "s")} {
		listener, err := net.Listen(network, addr)
		if network == "tcp6" && err != nil {
			continue // this machine has no such addresses
		}
		require.NoError(t, err)
		end := &Endpoint{Path: addr}
		if at, ok := listener.Addr().(*net.TCPAddr); ok {
			end = &Endpoint{Addr: at.AddrPort()}
		}
		dial := new(net.Dialer)
		handed, err := NewHanded(func(ctx context.Context, _ int32) (net.Conn, error) {
			return dial.DialContext(ctx, listener.Addr().Network(), listener.Addr().String())
		})
		require.NoError(t, err)
		own, err := NewEpoll()
		require.NoError(t, err)
		for _, p := range []interface {
			Poller
			Release()
		}{own, handed} {
			fd, err := p.Connect(end, 7)
			require.NoError(t, err)
			next := func() Readiness { return readiness(t, p, 7) }
			require.True(t, next().Write)
			require.NoError(t, p.Connected(fd))
			require.NoError(t, p.Watch(fd, 7, true))
			far, err := listener.Accept()
			require.NoError(t, err)
			_, err = p.Write(fd, []byte("hello"))
			require.NoError(t, err)
			b := make([]byte, 5)
			_, err = p.Read(fd, b)
			require.Equal(t, ErrAgain, err)
			_, err = io.ReadFull(far, b)
			require.NoError(t, err)
			_, err = far.Write(b)
			require.NoError(t, err)
			for !next().Read {
			}
			n, err := p.Read(fd, b)
			require.NoError(t, err)
			require.Equal(t, "hello", string(b[:n]))
			require.NoError(t, far.Close())
			for !next().Ended {
			}
			n, err = p.Read(fd, b)
			require.NoError(t, err)
			require.Zero(t, n)
			p.Close(fd)
			p.Release()
		}
		require.NoError(t, listener.Close())
	}
}

// A connection that fails is ready, and has its error; one that is closed before it was made is given up.
func TestConnectionsThatFail(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	free := listener.Addr().(*net.TCPAddr).AddrPort()
	require.NoError(t, listener.Close())
	near, far := net.Pipe()
	defer far.Close()
	own, err := NewEpoll()
	require.NoError(t, err)
	handed, err := NewHanded(func(ctx context.Context, token int32) (net.Conn, error) {
		switch token {
		case 1:
			return nil, unix.ECONNREFUSED
		case 2:
			return near, nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	require.NoError(t, err)
	for _, c := range []struct {
		p     Poller
		token int32
		says  string
	}{{own, 1, "connection refused"}, {handed, 1, "connection refused"}, {handed, 2, "made something else of the connection than a socket"}} {
		fd, err := c.p.Connect(&Endpoint{Addr: free}, c.token)
		if err == nil {
			require.True(t, readiness(t, c.p, c.token).Write)
			err = c.p.Connected(fd)
			c.p.Close(fd)
		}
		require.ErrorContains(t, err, c.says)
	}
	fd, err := handed.Connect(nil, 3)
	require.NoError(t, err)
	handed.Close(fd)
	handed.Release()
	own.Release()
	require.ErrorContains(t, own.Connected(-1), "connect: ")
	require.ErrorIs(t, own.Watch(-1, 0, false), unix.EBADF)
	_, err = own.Connect(&Endpoint{Path: filepath.Join(t.TempDir(), "none")}, 0)
	require.ErrorIs(t, err, unix.ENOENT)
}

// TestUnsentBytesStayHere writes 4 MiB to a server that does not read: the kernel takes what fits the server's window and little more, not all that
// its send buffer has room for.
func TestUnsentBytesStayHere(t *testing.T) {
	p, fd, _ := dialTest(t)
	took := 0
	for range 100 {
		n, err := p.Write(fd, make([]byte, 4<<20))
		if err != nil {
			require.Equal(t, ErrAgain, err)
			break
		}
		took += n
	}
	require.Positive(t, took)
	require.Less(t, took, 1<<20)
}

// TestPartsArriveInOrder writes parts of many sizes, more of them than the kernel takes at a time.
func TestPartsArriveInOrder(t *testing.T) {
	p, fd, listener := dialTest(t)
	conn, err := listener.Accept()
	require.NoError(t, err)
	defer conn.Close()
	var parts [][]byte
	for i := range 32 {
		parts = append(parts, bytes.Repeat([]byte{byte(i)}, 1+i*i*i*100))
	}
	want := bytes.Join(parts, nil)
	took, err := p.Writev(fd, parts)
	require.NoError(t, err)
	require.Less(t, took, len(want))
	got := make([]byte, took)
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.ReadFull(conn, got)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want[:took], got))
	_, err = p.Writev(-1, parts)
	require.Equal(t, unix.EBADF, err)
}

// TestTrafficAllocatesNothing asks the kernel about a connection, as happens with each attempt that a dead server refuses.
func TestTrafficAllocatesNothing(t *testing.T) {
	p, fd, _ := dialTest(t)
	n, err := p.Write(fd, make([]byte, 100))
	require.NoError(t, err)
	require.Equal(t, 100, n)
	require.Zero(t, testing.AllocsPerRun(100, func() { p.Traffic(fd) }))
	require.EqualValues(t, 100, p.Traffic(fd).BytesSent)
	require.Equal(t, Traffic{}, p.Traffic(-1))
}
