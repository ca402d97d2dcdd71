package faultproxy_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/loadgen/loadgen/internal/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// route is a client, a proxy and a server.
type route struct {
	proxy          *faultproxy.Proxy
	client, server net.Conn
}

// lay makes a proxy and a connection through it.
func lay(t *testing.T) *route {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	r := &route{}
	r.proxy, err = faultproxy.Start(listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.proxy.Close()) })
	r.client, err = net.Dial("tcp", r.proxy.Addr())
	require.NoError(t, err)
	r.server, err = listener.Accept()
	require.NoError(t, err)
	for _, conn := range []net.Conn{r.client, r.server} {
		require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		t.Cleanup(func() { _ = conn.Close() })
	}
	requireCarried(t, r.client, r.server, "the proxy has it")
	return r
}

// requireCarried sends words one way and expects them at the other end.
func requireCarried(t *testing.T, from, to net.Conn, words string) {
	t.Helper()
	_, err := io.WriteString(from, words)
	require.NoError(t, err)
	got := make([]byte, len(words))
	_, err = io.ReadFull(to, got)
	require.NoError(t, err)
	require.Equal(t, words, string(got))
}

// requireSilent expects nothing to come for a while.
func requireSilent(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	require.True(t, errors.As(err, &timeout) && timeout.Timeout(), "%v", err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
}

func TestCarriesBothWaysAndTheEnd(t *testing.T) {
	r := lay(t)
	requireCarried(t, r.client, r.server, "ping")
	requireCarried(t, r.server, r.client, "pong")
	require.NoError(t, r.client.(*net.TCPConn).CloseWrite())
	_, err := r.server.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	requireCarried(t, r.server, r.client, "the other half is open")
}

func TestDropsOneWay(t *testing.T) {
	r := lay(t)
	r.proxy.Set(faultproxy.Fault{DropUp: true})
	_, err := io.WriteString(r.client, "lost")
	require.NoError(t, err)
	requireSilent(t, r.server)
	requireCarried(t, r.server, r.client, "the other way is whole")

	r.proxy.Set(faultproxy.Fault{DropDown: true})
	_, err = io.WriteString(r.server, "lost")
	require.NoError(t, err)
	requireSilent(t, r.client)
	requireCarried(t, r.client, r.server, "what was swallowed does not come later")
}

// TestEnds resets a connection, and ends one in good order: both ends see which.
func TestEnds(t *testing.T) {
	r := lay(t)
	r.proxy.Reset()
	for _, conn := range []net.Conn{r.client, r.server} {
		_, err := conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
	}
	r = lay(t)
	r.proxy.Finish()
	for _, conn := range []net.Conn{r.client, r.server} {
		_, err := conn.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
	}
}

// TestPassesResetsOn breaks a connection at one end.
func TestPassesResetsOn(t *testing.T) {
	r := lay(t)
	require.NoError(t, r.client.(*net.TCPConn).SetLinger(0))
	require.NoError(t, r.client.Close())
	_, err := r.server.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestIsDown(t *testing.T) {
	r := lay(t)
	r.proxy.Set(faultproxy.Fault{Down: true})
	conn, err := net.Dial("tcp", r.proxy.Addr())
	if err == nil { // else the reset was quicker
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
	requireCarried(t, r.client, r.server, "those there are remain")
}

// TestIsSlow measures the least that bytes take; what they take at most is up to the machine.
func TestIsSlow(t *testing.T) {
	r := lay(t)
	r.proxy.Set(faultproxy.Fault{Delay: 40 * time.Millisecond})
	began := time.Now()
	requireCarried(t, r.client, r.server, "there")
	requireCarried(t, r.server, r.client, "and back")
	require.GreaterOrEqual(t, time.Since(began), 80*time.Millisecond)

	r.proxy.Set(faultproxy.Fault{Rate: 64 << 10})
	began = time.Now()
	requireCarried(t, r.client, r.server, string(make([]byte, 16<<10)))
	require.GreaterOrEqual(t, time.Since(began), 250*time.Millisecond)
}
