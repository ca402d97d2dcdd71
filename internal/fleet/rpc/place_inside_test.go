package rpc

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMetricsAreWhereTheWorkerIs: a Prometheus shows its token where a worker says that its page is.
func TestMetricsAreWhereTheWorkerIs(t *testing.T) {
	at := func(text string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)) }
	for _, c := range []struct {
		from net.Addr
		ok   bool
		page string
	}{
		{at("10.0.0.8:40000"), true, "10.0.0.8:9465"},
		{at("[::ffff:10.0.0.8]:40000"), true, "10.0.0.8:9465"},
		{at("10.0.0.8:40000"), true, ""},
		{at("10.0.0.8:40000"), false, "10.0.0.9:9465"},
		{at("10.0.0.8:40000"), false, "127.0.0.1:9465"},
		{at("10.0.0.8:40000"), false, "169.254.169.254:80"},
		{at("127.0.0.1:40000"), true, "127.0.0.1:9465"},
		{at("127.0.0.1:40000"), true, "[::1]:9465"},
		{at("127.0.0.1:40000"), false, "10.0.0.8:9465"},
		{&net.UnixAddr{Name: "@"}, true, "127.0.0.1:9465"},
		{nil, false, "10.0.0.8:9465"},
	} {
		err := checkMetrics(c.page, c.from)
		require.Equal(t, c.ok, err == nil, "%s from %v: %v", c.page, c.from, err)
	}
}
