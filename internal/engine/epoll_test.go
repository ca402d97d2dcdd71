package engine

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUnsentBytesStayHere writes 4 MiB to a server that does not read: the kernel takes what goes into the server's window and little more,
// not all that its send buffer would have room for.
func TestUnsentBytesStayHere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	p, err := newEpoll()
	require.NoError(t, err)
	defer p.release()
	fd, err := p.connect(&endpoint{addr: listener.Addr().(*net.TCPAddr).AddrPort()}, 0)
	require.NoError(t, err)
	defer p.close(fd)
	ready := make([]readiness, 1)
	n, err := p.wait(ready, time.Second)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, p.connected(fd))
	took := 0
	for range 100 {
		n, err := p.write(fd, make([]byte, 4<<20))
		if err != nil {
			require.Equal(t, errAgain, err)
			break
		}
		took += n
	}
	require.Positive(t, took)
	require.Less(t, took, 1<<20)
}
