package engine

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/faultproxy"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/cachenode"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/internal/target/drivers/hydra"
	"github.com/loadgen/loadgen/internal/target/drivers/ignite"
	"github.com/loadgen/loadgen/internal/target/drivers/memcached"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/internal/target/drivers/web"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
	"github.com/loadgen/loadgen/pkg/driver/drivertest/ticket"
	"github.com/loadgen/loadgen/pkg/plan"
)

// relay is a program that sends one request as it is and keeps the reply.
type relay struct {
	replies []driver.Reply // by number of the op
	left    int
}

func (r *relay) Start(dst []driver.Request, _ *op.Op) []driver.Request { return dst }

func (r *relay) On(dst []driver.Request, ev op.Event) ([]driver.Request, op.Step) {
	r.left--
	reply := driver.Reply{Outcome: driver.Error, Message: []byte(ev.Kind.String())}
	if ev.Kind == op.Replied {
		reply = *ev.Reply
		reply.Value, reply.Message = slices.Clone(reply.Value), slices.Clone(reply.Message)
	}
	r.replies[ev.Op.N] = reply
	return dst, op.Step{Done: true, Outcome: reply.Outcome, Settled: true}
}

// restful is a feed that starts nothing.
type restful struct{ feed }

func (restful) freed(*session, int, int64, bool) {}

// overEngine is a drivertest.Executor over the only connection of a loop.
type overEngine struct{ l *loop }

// Do implements drivertest.Executor. Clients that block are given one request after the other.
func (x overEngine) Do(t testing.TB, reqs ...driver.Request) (replies []driver.Reply) {
	t.Helper()
	if _, blocks := x.l.tr.(*blocking); !blocks {
		return x.atOnce(t, reqs)
	}
	for i := range reqs {
		replies = append(replies, x.atOnce(t, reqs[i:i+1])...)
	}
	return replies
}

func (x overEngine) atOnce(t testing.TB, reqs []driver.Request) []driver.Reply {
	t.Helper()
	r := &relay{replies: make([]driver.Reply, len(reqs)), left: len(reqs)}
	l := x.l
	l.programs.Program, l.feed = r, restful{}
	if w, ok := l.tr.(*wire); ok {
		w.use(l.programs)
		w.writer.exact = true // requests differ from their ops
	}
	l.rec = measure.NewTotals(0, 1)
	for i := range reqs {
		st := l.take()
		st.N, st.Verb, st.by, st.session, st.done = uint64(i), reqs[i].Verb, l.programs, l.sessions[0], false
		l.programs.issue(st, &reqs[i], l.clock.now())
	}
	l.tr.flush()
	deadline := l.clock.now() + int64(10*time.Second)
	for r.left > 0 {
		require.Less(t, l.clock.now(), deadline, "%d replies are missing", r.left)
		l.tr.wait(50 * time.Millisecond)
	}
	return r.replies
}

// overExecutor connects to a server as the load does.
func overExecutor(t testing.TB, d driver.Driver, config any, addr, executor string, secure *plan.TLS) drivertest.Executor {
	t.Helper()
	e := New(Config{Drivers: drivers.All(), Loops: 1, Spin: -1, Logger: slog.New(slog.DiscardHandler)})
	e.clock = &wallClock{zero: time.Now(), nap: time.Sleep}
	target := &plan.Target{Name: "t", Driver: d.Name(), Endpoints: []string{addr}, Timeout: 5 * time.Second, Executor: executor, TLS: secure, Config: config}
	pipeline := 1000
	if _, dials := d.(driver.Dialer); dials {
		pipeline = 1
	}
	g := &group{plan: &plan.Plan{Datasets: []*plan.Dataset{{}}}, side: side{target: target, driver: d, values: true}, executor: executor, phase: &plan.Phase{Target: "t", Closed: &plan.Closed{Clients: plan.Clients{Sessions: 1, Pipeline: pipeline}}}, sessions: 1, parts: 1}
	require.NoError(t, g.locate(nil))
	var err error
	g.connect, err = sockets.NewConnector(e.dial, os.ReadFile, secure)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, g.identify(ctx))
	l, err := g.newLoop(e, 0)
	require.NoError(t, err)
	g.loops = []*loop{l}
	t.Cleanup(g.close)
	require.NoError(t, g.open(e.clock))
	return overEngine{l}
}

// ticketsAt serves the toy protocol, over TLS where it is given a certificate to show.
func ticketsAt(t testing.TB, shows *servertest.Certificate) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if shows != nil {
		pair, err := tls.LoadX509KeyPair(shows.Cert, shows.Key)
		require.NoError(t, err)
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}})
	}
	s := new(ticket.Server)
	return servertest.Serve(t, listener, func(conn net.Conn) { _ = s.Serve(conn) }) // tests end connections as they like
}

// nginxAt starts an nginx, over TLS where it is given a certificate to show.
func nginxAt(t testing.TB, shows *servertest.Certificate) (addr string) {
	return servertest.Nginx(t, 0, shows).Addr
}

// kind is a driver and real servers of it.
type kind struct {
	driver driver.Driver
	suite  drivertest.Suite
	plain  func(t testing.TB, options ...string) string
	secure func(t testing.TB, a *servertest.Authority, shows servertest.Certificate, options ...string) *servertest.Server
	either func(t testing.TB, shows *servertest.Certificate) (addr string) // in the place of both
}

var kinds = []kind{
	{driver: ticket.Driver{}, suite: drivertest.Suite{MaxKey: 250, TextKeys: true}, either: ticketsAt},
	{driver: web.Driver{}, suite: drivertest.Suite{MaxKey: 200, TextKeys: true}, either: nginxAt},
	{driver: redis.Driver{}, plain: servertest.Redis, secure: servertest.StartRedisTLS},
	{
		driver: memcached.Driver{}, suite: drivertest.Suite{MaxKey: 250, TextKeys: true, MaxValue: 1<<20 - 1024},
		plain: servertest.Memcached, secure: servertest.StartMemcachedTLS,
	},
	{
		driver: memcached.Driver{}, plain: servertest.Memcached, secure: servertest.StartMemcachedTLS,
		suite: drivertest.Suite{Config: &memcached.Config{Protocol: "text", CAS: true}, MaxKey: 250, TextKeys: true, MaxValue: 1<<20 - 1024, Tokens: true},
	},
}

// server starts a server of the kind.
func (k *kind) server(t *testing.T) (addr string) {
	if k.either != nil {
		return k.either(t, nil)
	}
	return k.plain(t)
}

// conforms runs the drivers' suite against a server.
func (k *kind) conforms(t *testing.T, name, addr, executor string, secure *plan.TLS) {
	t.Run(k.driver.Name()+", "+name, func(t *testing.T) {
		suite := k.suite
		suite.Driver = k.driver
		if suite.Config == nil {
			suite.Config = k.driver.NewConfig()
		}
		suite.Open = func(t testing.TB) drivertest.Executor {
			return overExecutor(t, k.driver, suite.Config, addr, executor, secure)
		}
		suite.Dial = func() (net.Conn, error) {
			c, err := sockets.NewConnector(new(net.Dialer).DialContext, os.ReadFile, secure)
			if err != nil {
				return nil, err
			}
			return c.To(t.Context(), &sockets.Endpoint{Text: addr})
		}
		drivertest.Run(t, suite)
	})
}

// executors are those that carry the kind's driver.
func (k *kind) executors() []string {
	if _, wire := k.driver.(driver.Wire); wire {
		return []string{plan.EventLoop, plan.Blocking}
	}
	return []string{plan.Blocking}
}

// TestConformanceOnBothExecutors runs the drivers' suite against real servers over each executor that carries the driver.
func TestConformanceOnBothExecutors(t *testing.T) {
	for _, k := range kinds {
		addr := k.server(t)
		for _, executor := range k.executors() {
			k.conforms(t, executor, addr, executor, nil)
		}
	}
}

// TestConformanceFarAway runs the suite through a slow and distant network, and over TLS.
func TestConformanceFarAway(t *testing.T) {
	for _, k := range kinds {
		if !servertest.Whole() && k.driver.Name() != "redis" {
			continue
		}
		far, err := faultproxy.Start(k.server(t))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, far.Close()) })
		far.Set(faultproxy.Fault{Delay: 200 * time.Microsecond, Rate: 50_000_000})
		for _, executor := range k.executors() {
			k.conforms(t, executor+", far away", far.Addr(), executor, nil)
		}
		a := servertest.NewAuthority(t)
		client, shows := a.Issue("client.example.org", time.Hour), a.Issue("127.0.0.1", time.Hour)
		var addr string
		if k.either != nil {
			addr = k.either(t, &shows)
		} else {
			addr = k.secure(t, a, shows).Addr
		}
		k.conforms(t, "TLS", addr, plan.Blocking, &plan.TLS{CA: a.CA, Cert: client.Cert, Key: client.Key})
	}
}

// TestHydraConformsOnBothExecutors runs the suite against a node at the address that it lists: a proxy's would be another.
func TestHydraConformsOnBothExecutors(t *testing.T) {
	n, err := cachenode.New(cachenode.Config{
		Listen: "127.0.0.1:0", Protocol: "hydra", Memory: 64 << 20, Space: cachenode.Space{N: 1, W: 1, R: 1, Wait: time.Millisecond},
	})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- n.Serve(context.Background()) }()
	t.Cleanup(func() {
		n.Close()
		require.NoError(t, <-served)
	})
	addr, d := n.Addr().String(), hydra.Driver{}
	for _, executor := range []string{plan.EventLoop, plan.Blocking} {
		t.Run(executor, func(t *testing.T) {
			drivertest.Run(t, drivertest.Suite{
				Driver: d, BlindDeletes: true,
				Dial: func() (net.Conn, error) { return net.Dial("tcp", addr) },
				Open: func(t testing.TB) drivertest.Executor { return overExecutor(t, d, d.NewConfig(), addr, executor, nil) },
			})
		})
	}
}

// TestIgniteConformsOnBothExecutors runs the suite against what stands for a node, which answers requests that come together in any order.
func TestIgniteConformsOnBothExecutors(t *testing.T) {
	s, d := servertest.StartIgnite(t), ignite.Driver{}
	s.Shuffle = true
	for _, executor := range []string{plan.EventLoop, plan.Blocking} {
		t.Run(executor, func(t *testing.T) {
			drivertest.Run(t, drivertest.Suite{
				Driver: d, Config: &ignite.Config{CacheName: "items"}, Note: "does not tell the server's version",
				Dial: func() (net.Conn, error) { return net.Dial("tcp", s.Addr) },
				Open: func(t testing.TB) drivertest.Executor {
					return overExecutor(t, d, &ignite.Config{CacheName: "items"}, s.Addr, executor, nil)
				},
			})
		})
	}
}

// threefold is a driver whose servers ask replicas themselves: three stand behind each answer.
type threefold struct{ redis.Driver }

func (d threefold) NewCodec(link driver.Link) (driver.Codec, error) {
	codec, err := d.Driver.NewCodec(link)
	return standing{codec}, err
}

type standing struct{ driver.Codec }

func (c standing) Parse(b []byte, verb driver.Verb, reply *driver.Reply) (int, error) {
	n, err := c.Codec.Parse(b, verb, reply)
	reply.Acks = 3
	return n, err
}

// TestProgramsAreToldWhoStandsBehindAnAnswer has servers say how many replicas do.
func TestProgramsAreToldWhoStandsBehindAnAnswer(t *testing.T) {
	d := threefold{}
	for _, executor := range []string{plan.EventLoop, plan.Blocking} {
		x := overExecutor(t, d, d.NewConfig(), servertest.Redis(t), executor, nil)
		for _, reply := range x.Do(t, driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{Size: 3}}, driver.Request{Verb: driver.Get, Key: []byte("k")}) {
			require.Equal(t, driver.OK, reply.Outcome, "%s", reply.Message)
			require.EqualValues(t, 3, reply.Acks)
		}
	}
}
