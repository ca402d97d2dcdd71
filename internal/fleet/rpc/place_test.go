package rpc

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loadgen/loadgen/internal/fleet/identity"
)

// Trusting is an in-memory place where both ends trust each other.
func Trusting(name string, lis net.Listener, dial func(context.Context) (net.Conn, error)) identity.Place {
	return identity.Place{
		Name: name, Dial: dial,
		Listen: func() (net.Listener, error) { return lis, nil },
		Prove:  func(identity.Role) (credentials.TransportCredentials, error) { return insecure.NewCredentials(), nil },
	}
}

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

// Both ends check these limits, so a build with other ones speaks another protocol: if you change one, change the protocol's number, too.
func TestNumbersOfTheProtocol(t *testing.T) {
	require.Equal(t, []int{6, 16 << 20, 1 << 20, 256, 255}, []int{protocol, maxMessage, windowBytes, windowCount, maxLine})
	require.Equal(t, []int{10_000, 1 << 24, 1 << 20, 4096, 256}, []int{maxWorkers, maxSessions, maxLevels, maxServers, maxFacts})
	require.Equal(t, 87_600*time.Hour, maxRunTime)
	require.EqualValues(t, 1_000_000_000, maxRate)
}
