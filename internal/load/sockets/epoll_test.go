package sockets

import (
	"bytes"
	"io"
	"net"
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
