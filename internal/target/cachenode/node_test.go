package cachenode

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	memcacheddriver "github.com/loadgen/loadgen/internal/target/drivers/memcached"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

// startNode serves a node until the end of the test. prepare, if any, changes it before it serves.
func startNode(t testing.TB, cfg Config, prepare ...func(*Node)) *Node {
	t.Helper()
	cfg.Listen = "127.0.0.1:0"
	if cfg.Memory == 0 {
		cfg.Memory = 64 << 20
	}
	n, err := New(cfg)
	require.NoError(t, err)
	for _, f := range prepare {
		f(n)
	}
	served := make(chan error, 1)
	go func() { served <- n.Serve(context.Background()) }()
	t.Cleanup(func() {
		n.Close()
		select {
		case err := <-served:
			require.NoError(t, err)
		case <-time.After(5 * time.Second):
			t.Error("node did not end within 5 s of Close")
		}
	})
	return n
}

func dial(t testing.TB, n *Node) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", n.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	return conn
}

func TestConformance(t *testing.T) {
	tests := []struct {
		name   string
		node   Config
		driver redis.Config
	}{
		{"plain", Config{}, redis.Config{Protocol: 2}},
		{"user and database", Config{Password: "s3cret"}, redis.Config{Protocol: 2, Username: "default", Password: &driver.Secret{Name: "cache"}, Database: 3}},
		{"delay", Config{Delay: fixed(time.Millisecond)}, redis.Config{Protocol: 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.node.Version = "1.2.3"
			n := startNode(t, test.node)
			drivertest.Run(t, drivertest.Suite{
				Driver:  redis.Driver{},
				Config:  &test.driver,
				Secrets: func(string) (string, error) { return "s3cret", nil },
				Dial:    func() (net.Conn, error) { return net.Dial("tcp", n.Addr().String()) },
			})
		})
	}
}

func TestConformanceOfMemcached(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond} {
		t.Run("delay="+delay.String(), func(t *testing.T) {
			n := startNode(t, Config{Protocol: "memcached", Delay: fixed(delay), Version: "1.2.3"})
			drivertest.Run(t, drivertest.Suite{
				Driver:   memcacheddriver.Driver{},
				Dial:     func() (net.Conn, error) { return net.Dial("tcp", n.Addr().String()) },
				MaxKey:   maxMemcachedKey,
				TextKeys: true,
			})
		})
	}
}

// fixed is the same time each time.
func fixed(d time.Duration) Times { return Times{First: d} }
