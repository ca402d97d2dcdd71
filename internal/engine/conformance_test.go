package engine

import (
	"context"
	"log/slog"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/drivers"
	"github.com/loadgen/loadgen/internal/drivers/memcached"
	"github.com/loadgen/loadgen/internal/drivers/redis"
	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
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
		reply = driver.Reply{Outcome: ev.Reply.Outcome, Value: slices.Clone(ev.Reply.Value), Message: slices.Clone(ev.Reply.Message)}
	}
	r.replies[ev.Op.N] = reply
	return dst, op.Step{Done: true, Outcome: reply.Outcome, Settled: true}
}

// restful is a feed that starts nothing.
type restful struct{ feed }

func (restful) freed(*session, int, int64, bool) {}

// overEngine is a drivertest.Executor over the only connection of a loop.
type overEngine struct{ l *loop }

// Do implements drivertest.Executor.
func (x overEngine) Do(t testing.TB, reqs ...driver.Request) []driver.Reply {
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
		st.N, st.Verb, st.session, st.done = uint64(i), reqs[i].Verb, l.sessions[0], false
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
	g := &group{plan: &plan.Plan{Datasets: []*plan.Dataset{{}}}, target: target, phase: &plan.Phase{Closed: &plan.Closed{Sessions: 1, Pipeline: 1000}}, sessions: 1, parts: 1}
	require.NoError(t, g.locate(nil))
	var err error
	g.connect, err = sockets.NewConnector(e.dial, os.ReadFile, secure)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, g.identify(ctx, d, nil))
	l, err := g.newLoop(e, d, 0)
	require.NoError(t, err)
	g.loops = []*loop{l}
	t.Cleanup(g.close)
	require.NoError(t, g.open(e.clock))
	return overEngine{l}
}

// TestConformanceOnBothExecutors runs the drivers' suite against real servers over the event loop, over the blocking executor, and over
// that with TLS.
func TestConformanceOnBothExecutors(t *testing.T) {
	for _, kind := range []struct {
		driver driver.Driver
		suite  drivertest.Suite
		plain  func(t testing.TB, options ...string) string
		secure func(t testing.TB, a *servertest.Authority, shows servertest.Certificate, options ...string) *servertest.Server
	}{
		{redis.Driver{}, drivertest.Suite{}, servertest.Redis, servertest.StartRedisTLS},
		{memcached.Driver{}, drivertest.Suite{MaxKey: 250, TextKeys: true, MaxValue: 1<<20 - 1024}, servertest.Memcached, servertest.StartMemcachedTLS},
		{
			memcached.Driver{},
			drivertest.Suite{Config: &memcached.Config{Protocol: "text"}, MaxKey: 250, TextKeys: true, MaxValue: 1<<20 - 1024},
			servertest.Memcached, servertest.StartMemcachedTLS,
		},
	} {
		run := func(name, addr, executor string, secure *plan.TLS) {
			t.Run(kind.driver.Name()+", "+name, func(t *testing.T) {
				suite := kind.suite
				suite.Driver = kind.driver
				if suite.Config == nil {
					suite.Config = kind.driver.NewConfig()
				}
				suite.Open = func(t testing.TB) drivertest.Executor {
					return overExecutor(t, kind.driver, suite.Config, addr, executor, secure)
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
		addr := kind.plain(t)
		run("event loop", addr, plan.EventLoop, nil)
		run("blocking", addr, plan.Blocking, nil)
		a := servertest.NewAuthority(t)
		client := a.Issue("client.example.org", time.Hour)
		s := kind.secure(t, a, a.Issue("127.0.0.1", time.Hour))
		run("TLS", s.Addr, plan.Blocking, &plan.TLS{CA: a.CA, Cert: client.Cert, Key: client.Key})
	}
}
