package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/internal/target/drivers/memcached"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// identified prepares a target at an address up to identifying the server.
func identified(t *testing.T, d driver.Driver, addr string, secure *plan.TLS) (map[string]string, error) {
	t.Helper()
	g := &side{target: &plan.Target{Driver: d.Name(), Endpoints: []string{addr}, TLS: secure, Config: d.NewConfig()}, driver: d}
	require.NoError(t, g.locate(nil))
	var err error
	g.connect, err = sockets.NewConnector(new(net.Dialer).DialContext, os.ReadFile, secure)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = g.identify(ctx)
	return g.servers[addr], err
}

// saying is a server that says a few words once a client has said something, and hangs up.
func saying(t *testing.T, words string) (addr string) {
	t.Helper()
	return servertest.Serve(t, nil, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1024))
		_, _ = io.WriteString(conn, words)
	})
}

// A server that cannot serve the load is reported before the load, with what to do.
func TestServersThatAreNotThereForLoads(t *testing.T) {
	t.Parallel()
	const web = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
	a := servertest.NewAuthority(t)
	secureRedis := servertest.StartRedisTLS(t, a, a.Issue("127.0.0.1", time.Hour))
	secureMemcached := servertest.StartMemcachedTLS(t, a, a.Issue("127.0.0.1", time.Hour))
	plainRedis, plainMemcached := servertest.Redis(t), servertest.Memcached(t)
	for _, test := range []struct {
		name   string
		driver driver.Driver
		addr   string
		secure *plan.TLS
		want   string
	}{
		{"a Sentinel", redis.Driver{}, servertest.Sentinel(t, plainRedis), nil, "it is a Sentinel, which holds no keys"},
		{"Redis over TLS", redis.Driver{}, secureRedis.Addr, nil, "TLS at this port"},
		{"memcached over TLS", memcached.Driver{}, secureMemcached.Addr, nil, "TLS at this port"},
		{"a TLS alert", redis.Driver{}, saying(t, "\x15\x03\x01\x00\x02\x02\x46"), nil, "the server speaks TLS at this port: write tls {} in the target"},
		{"Redis without TLS", redis.Driver{}, plainRedis, &plan.TLS{}, "speak TLS at this port"},
		{"memcached without TLS", memcached.Driver{}, plainMemcached, &plan.TLS{}, "speak TLS at this port"},
		{"the web, asked as Redis", redis.Driver{}, saying(t, web), nil, "a web server answers at this port"},
		{"the web, asked as memcached", memcached.Driver{}, saying(t, web), nil, "a web server answers at this port"},
		{"Redis, asked as memcached", memcached.Driver{}, plainRedis, nil, "not the memcached protocol"},
		{"memcached, asked as Redis", redis.Driver{}, plainMemcached, nil, "not RESP2"},
		{"a proxy without meta commands", memcached.Driver{}, servertest.Nutcracker(t, plainMemcached, false), nil, "does not know the meta commands"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := identified(t, test.driver, test.addr, test.secure)
			require.ErrorContains(t, err, test.want)
			t.Log(err)
		})
	}
}

// A proxy that hangs up on INFO is loaded, and noted to say nothing.
func TestNutcrackerIsIdentified(t *testing.T) {
	facts, err := identified(t, redis.Driver{}, servertest.Nutcracker(t, servertest.Redis(t), true), nil)
	require.NoError(t, err)
	delete(facts, "address")
	require.Equal(t, map[string]string{driver.Note: "the server says nothing of itself: INFO: server closed the connection"}, facts)
}

// When a cluster's nodes are asked for, what answers is explained as elsewhere.
func TestServersThatAreNoCluster(t *testing.T) {
	a := servertest.NewAuthority(t)
	plain := servertest.Redis(t)
	for _, test := range []struct {
		name string
		addr string
		want string
	}{
		{"TLS", servertest.StartRedisTLS(t, a, a.Issue("127.0.0.1", time.Hour)).Addr, "TLS at this port"},
		{"a TLS alert", saying(t, "\x15\x03\x01\x00\x02\x02\x46"), "the server speaks TLS at this port: write tls {} in the target"},
		{"the web", saying(t, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), "a web server answers at this port"},
		{"a Sentinel", servertest.Sentinel(t, plain), "the server knows no CLUSTER NODES, as a Sentinel or a proxy"},
		{"one server", plain, "the server is in no cluster: leave cluster out of the target"},
		{"nobody", "127.0.0.1:1", "nothing listens there"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := &side{target: &plan.Target{Driver: "redis", Endpoints: []string{test.addr}, Config: redis.Driver{}.NewConfig(), Timeout: time.Second}}
			g.connect = sockets.Connector{Dial: (&net.Dialer{}).DialContext}
			require.NoError(t, g.locate(nil))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := g.discover(ctx, redis.Driver{})
			require.ErrorContains(t, err, test.want)
			t.Log(err)
		})
	}
}

// A target that cannot be reached is named, whatever it is for; a worker without sessions connects to nothing.
func TestATargetThatIsNotReachedIsNamed(t *testing.T) {
	refused := errors.New("nobody is there")
	for name, tt := range map[string]struct {
		target string
		change func(e *Engine, of *plan.Target)
		idle   bool // a worker without sessions
		says   string
	}{
		"no driver":           {"", func(e *Engine, _ *plan.Target) { e.cfg.Drivers = nil }, false, `driver "redis" is not in this build`},
		"no driver, idle":     {"", func(e *Engine, _ *plan.Target) { e.cfg.Drivers = nil }, true, `driver "redis" is not in this build`},
		"no endpoint":         {"", func(_ *Engine, of *plan.Target) { of.Endpoints = nil }, true, "it has no endpoint"},
		"no authorities":      {"", func(_ *Engine, of *plan.Target) { of.TLS = &plan.TLS{CA: filepath.Join(t.TempDir(), "none.pem")} }, true, "tls, ca: "},
		"nobody to ask":       {"", func(*Engine, *plan.Target) {}, false, "nobody is there"},
		"nobody to ask, idle": {"", func(*Engine, *plan.Target) {}, true, ""},
		"no node of it":       {"cluster = true", func(*Engine, *plan.Target) {}, false, "nobody is there"},
		"no node of it, idle": {"cluster = true", func(*Engine, *plan.Target) {}, true, ""},
	} {
		p := redisPlan(t, 1, tt.target, "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}")
		e := New(Config{Drivers: drivers.All(), Loops: 1})
		e.resolve = nil
		e.dial = func(context.Context, string, string) (net.Conn, error) { return nil, refused }
		e.plan = p
		tt.change(e, p.Target("t"))
		g := &group{plan: p, phase: p.Phase("load"), sessions: 1}
		if tt.idle {
			g.sessions = 0
		}
		err := g.reach(t.Context(), e)
		if tt.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, `target "t": `, name)
		require.ErrorContains(t, err, tt.says, name)
	}
}
