package listen

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// A resolver that lies about localhost opens no port: a single address beyond the loopback is enough.
func TestNameThatLiesOpensNoPort(t *testing.T) {
	for _, at := range [][]string{
		{"0.0.0.0"},
		{"::"},
		{"192.0.2.7"},
		{"127.0.0.1", "192.0.2.7"},
		{"::1", "2001:db8::7"},
		{"::ffff:192.0.2.7"},
		{"fe80::1%lo"},
	} {
		l, err := loopbackBy(lying(at...), "localhost:0")
		require.ErrorIs(t, err, ErrBeyond, at)
		require.Nil(t, l)
	}
}

func lying(addrs ...string) Lookup {
	return func(context.Context, string) ([]netip.Addr, error) {
		var found []netip.Addr
		for _, a := range addrs {
			found = append(found, netip.MustParseAddr(a))
		}
		return found, nil
	}
}

func TestLoopback(t *testing.T) {
	for _, at := range [][]string{{"127.0.0.1"}, {"127.3.2.1"}, {"::1", "127.0.0.1"}, {"::ffff:127.0.0.1"}} {
		l, err := loopbackBy(lying(at...), "localhost:0")
		require.NoError(t, err, at)
		ip := l.Addr().(*net.TCPAddr).IP
		require.True(t, ip.IsLoopback())
		require.NotNil(t, ip.To4(), "IPv4 where there is any")
		require.NoError(t, l.Close())
	}
	l, err := Loopback("127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = Loopback(l.Addr().String())
	require.ErrorContains(t, err, "address already in use")
}

func TestRefused(t *testing.T) {
	for _, address := range []string{":7001", "0.0.0.0:0", "[::]:0", "192.0.2.1:7001", "[2001:db8::1]:1", "[::ffff:0.0.0.0]:0", "example.org:7001"} {
		_, err := Loopback(address)
		require.ErrorIs(t, err, ErrBeyond, address)
		require.ErrorContains(t, err, `"`+address+`"`)
	}
	for _, address := range []string{"", "7001", "127.0.0.1", "127.0.0.1:", "[::1", "127.0.0.1:70000", "127.0.0.1:-1", "127.0.0.1:x"} {
		_, err := Loopback(address)
		require.Error(t, err, address)
		require.NotErrorIs(t, err, ErrBeyond, address)
	}
	_, err := loopbackBy(lying(), "localhost:0")
	require.ErrorContains(t, err, "the name has no address")
	gone := errors.New("no such host")
	_, err = loopbackBy(func(context.Context, string) ([]netip.Addr, error) { return nil, gone }, "localhost:0")
	require.ErrorIs(t, err, gone)
}
