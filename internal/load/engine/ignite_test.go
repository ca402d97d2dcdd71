package engine

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/internal/target/drivers/ignite"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/internal/target/observe"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestRealIgnite loads nodes of Ignite, which start once for all of it.
func TestRealIgnite(t *testing.T) {
	authority := servertest.NewAuthority(t)
	nodes := servertest.StartIgniteNodes(t, authority.Issue("127.0.0.1", time.Hour))
	d, items := ignite.Driver{}, &ignite.Config{CacheName: "items"}
	dial := func() (net.Conn, error) { return net.Dial("tcp", nodes.Addr) }
	password := func(string) (string, error) { return "ignite", nil }

	for _, executor := range []string{plan.EventLoop, plan.Blocking} {
		t.Run("conforms on "+executor, func(t *testing.T) {
			drivertest.Run(t, drivertest.Suite{
				Driver: d, Config: items, Dial: dial, Unordered: true, UTF8Keys: true,
				Open: func(t testing.TB) drivertest.Executor { return overExecutor(t, d, items, nodes.Addr, executor, nil) },
			})
		})
	}
	t.Run("a user over TLS", func(t *testing.T) {
		secure := func() (net.Conn, error) { return tls.Dial("tcp", nodes.Secure, authority.Client()) }
		user := &ignite.Config{CacheName: "items", User: "ignite", Password: &driver.Secret{Name: "P"}}
		drivertest.Run(t, drivertest.Suite{Driver: d, Config: user, Secrets: password, Dial: secure, Unordered: true, UTF8Keys: true})
		conn, err := secure()
		require.NoError(t, err)
		defer conn.Close()
		wrong := driver.Link{Config: user, Secrets: func(string) (string, error) { return "wrong", nil }}
		_, err = d.Identify(t.Context(), conn, wrong)
		require.ErrorContains(t, err, "refuses 1.2.0 or the user")
	})
	t.Run("is told from Redis", func(t *testing.T) {
		for _, batch := range []bool{false, true} {
			conn, err := net.Dial("tcp", nodes.RESP)
			require.NoError(t, err)
			defer conn.Close()
			link := driver.Link{Endpoint: nodes.RESP, Config: redis.Driver{}.NewConfig(), Batch: batch}
			_, err = redis.Driver{}.Identify(t.Context(), conn, link)
			require.ErrorContains(t, err, `this is Ignite: use driver = "ignite" with the node's client connector, endpoints = ["127.0.0.1:10800"]`)
		}
	})
	t.Run("counts are its own", func(t *testing.T) {
		onBothExecutors(t, unhurried, func(t *testing.T, target string) {
			figures := asked(t, nodes.Addr, items)
			text := strings.Replace(ignitePlan(nodes.Addr, target, "closed {\n sessions = 3\n pipeline = 16\n}"), "count = 4800", "count = 4800\n pick = \"sequence\"", 1)
			_, final, err := driveLines(t, Config{Loops: 1, Drivers: drivers.All()}, text)
			require.NoError(t, err)
			since := asked(t, nodes.Addr, items)
			get, put := keysOf(final.Totals.Ops[driver.Get]), keysOf(final.Totals.Ops[driver.Put])
			require.EqualValues(t, 4800, get[driver.OK]+get[driver.Miss]+put[driver.OK])
			for name, ours := range map[string]uint64{
				"CacheGets": get[driver.OK] + get[driver.Miss], "CacheHits": get[driver.OK], "CacheMisses": get[driver.Miss], "CachePuts": put[driver.OK],
			} {
				require.EqualValues(t, ours, since[name]-figures[name], name)
			}
			require.Equal(t, since["items"], since["OffHeapEntriesCount"])
		})
	})
	t.Run("keys that a getAll repeats count once there", func(t *testing.T) {
		figures := asked(t, nodes.Addr, items)
		_, final, err := driveLines(t, Config{Loops: 1, Drivers: drivers.All()}, strings.Replace(
			ignitePlan(nodes.Addr, "", "batch = 8\nclosed {\n sessions = 3\n pipeline = 16\n iterations = 100\n}"), "count = 4800", "count = 4", 1))
		require.NoError(t, err)
		get := keysOf(final.Totals.Ops[driver.Get])
		gets, ours := asked(t, nodes.Addr, items)["CacheGets"]-figures["CacheGets"], float64(get[driver.OK]+get[driver.Miss])
		require.LessOrEqual(t, gets, ours/2, "of four keys")
		require.Positive(t, gets)
	})
	t.Run("with a second node", func(t *testing.T) { testTwoNodes(t, nodes) })
	t.Run("figures of a region", func(t *testing.T) {
		small := &ignite.Config{CacheName: "few", Region: "small"}
		link := driver.Link{Config: small}
		conn, err := dial()
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, d.Prepare(t.Context(), conn, link))
		second, err := dial()
		require.NoError(t, err)
		defer second.Close()
		require.NoError(t, d.Prepare(t.Context(), second, link), "as the next worker does, and the next run")
		before := asked(t, nodes.Addr, small)
		require.Zero(t, before["items"])
		x := overExecutor(t, d, small, nodes.Addr, plan.EventLoop, nil)
		var puts []driver.Request
		for i := range 16 {
			puts = append(puts, driver.Request{Verb: driver.Put, Key: fmt.Appendf(nil, "k%d", i), Value: &driver.Value{Size: 100_000}})
		}
		for _, r := range x.Do(t, puts...) {
			require.Equal(t, driver.OK, r.Outcome, "%s", r.Message)
		}
		after := asked(t, nodes.Addr, small)
		require.EqualValues(t, 16, after["items"])
		require.GreaterOrEqual(t, after["TotalUsedSize"]-before["TotalUsedSize"], 16*100_000.0)
		require.EqualValues(t, servertest.IgniteSmall, after["MaxSize"])
		require.EqualValues(t, 1, after["TotalServerNodes"])
		other := &ignite.Config{CacheName: "few", Region: "default"}
		again, err := dial()
		require.NoError(t, err)
		defer again.Close()
		_, err = d.Identify(t.Context(), again, driver.Link{Config: other})
		require.ErrorContains(t, err, `cache "few" is in another data region, "small"`)
		fresh, err := dial()
		require.NoError(t, err)
		defer fresh.Close()
		err = d.Prepare(t.Context(), fresh, driver.Link{Config: &ignite.Config{CacheName: "none", Region: "none"}})
		require.ErrorContains(t, err, `make cache "none" in data region "none", which each node must have`)
	})
	t.Run("a temporary cache", func(t *testing.T) {
		own := driver.Link{Config: &ignite.Config{CacheName: "own", Temporary: true}}
		asks := func(do func(ctx context.Context, conn net.Conn, link driver.Link) error) {
			conn, err := dial()
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, do(t.Context(), conn, own))
		}
		there := func() (is bool) {
			asks(func(ctx context.Context, conn net.Conn, link driver.Link) error {
				id, err := d.Identify(ctx, conn, link)
				_, is = id["mode"]
				return err
			})
			return is
		}
		asks(d.Prepare)
		x := overExecutor(t, d, own.Config.(*ignite.Config), nodes.Addr, plan.EventLoop, nil)
		x.Do(t, driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{Size: 3}})
		asks(d.CleanUp)
		require.True(t, there(), "it is not empty")
		x.Do(t, driver.Request{Verb: driver.Delete, Key: []byte("k")})
		asks(d.CleanUp)
		require.False(t, there())
		asks(d.CleanUp)
	})
	t.Run("what an item takes", func(t *testing.T) {
		require.InEpsilon(t, igniteItem(t, nodes.Addr, 8000), igniteItem(t, nodes.Addr, 16_000), 0.05)
	})
	t.Run("a cache that is gone", func(t *testing.T) {
		x := overExecutor(t, d, &ignite.Config{CacheName: "gone"}, nodes.Addr, plan.EventLoop, nil)
		for range 2 {
			r := x.Do(t, driver.Request{Verb: driver.Get, Key: []byte("k")})[0]
			require.Equal(t, driver.Error, r.Outcome)
			require.Contains(t, string(r.Message), "Cache does not exist")
		}
	})
	t.Run("values of another type", func(t *testing.T) {
		conn, err := dial()
		require.NoError(t, err)
		defer conn.Close()
		const word = "\x09\x02\x00\x00\x00hi" // a string
		for _, request := range []string{"\x08\x00\x00\x00\x01\x01\x00\x02\x00\x00\x00\x02", "\x1d\x00\x00\x00\xe9\x03\x01\x00\x00\x00\x00\x00\x00\x00\xc0\xe7\xfd\x05\x00" + word + word} {
			_, err = io.WriteString(conn, request)
			require.NoError(t, err)
			_, err = conn.Read(make([]byte, 64))
			require.NoError(t, err)
		}
		x := overExecutor(t, d, items, nodes.Addr, plan.EventLoop, nil)
		r := x.Do(t, driver.Request{Verb: driver.Get, Key: []byte("hi")})[0]
		require.Equal(t, driver.Error, r.Outcome)
		require.Contains(t, string(r.Message), "a value of another type than loadgen puts")
		x.Do(t, driver.Request{Verb: driver.Put, Key: []byte("hi"), Value: &driver.Value{Size: 10}})
		require.Equal(t, driver.OK, x.Do(t, driver.Request{Verb: driver.Get, Key: []byte("hi")})[0].Outcome, "a put replaces it")
	})
	t.Run("a region that is full", func(t *testing.T) {
		x := overExecutor(t, d, &ignite.Config{CacheName: "few"}, nodes.Addr, plan.EventLoop, nil)
		var said string
		for i := range 2 * servertest.IgniteSmall / 100_000 {
			if r := x.Do(t, driver.Request{Verb: driver.Put, Key: fmt.Appendf(nil, "full%d", i), Value: &driver.Value{Size: 100_000}})[0]; r.Outcome == driver.Error {
				said = string(r.Message)
				break
			}
		}
		require.Contains(t, said, "Failed to update keys: the node's log says why. If it is IgniteOutOfMemoryException, make the data region larger")
		require.Equal(t, driver.OK, x.Do(t, driver.Request{Verb: driver.Get, Key: []byte("full0")})[0].Outcome, "it goes on")
	})
	t.Run("killed", func(t *testing.T) {
		totals := killedUnder(t, nodes.Server, ignitePlan(nodes.Addr, "timeout = \"1s\"", "closed {\n sessions = 3\n pipeline = 16\n duration = \"3s\"\n}"))
		require.NotEmpty(t, maps.Collect(totals.Errors.All()))
	})
}

// killedUnder loads nodes, one of which is killed once some requests have been made: all ops end, and some fail.
func killedUnder(t *testing.T, s *servertest.Server, text string) *measure.Totals {
	dying := &lethal{after: 500, kill: func() { _ = syscall.Kill(s.Pid(), syscall.SIGKILL) }}
	known := drivers.All()
	for i := range known {
		if known[i].Name() == "ignite" {
			known[i] = dying
		}
	}
	_, final, err := driveLines(t, Config{Loops: 1, Drivers: known}, text)
	require.NoError(t, err)
	var ended, failed, due uint64
	for _, v := range []driver.Verb{driver.Get, driver.Put} {
		o := final.Totals.Ops[v]
		due += o.Due
		for _, n := range o.Outcomes {
			ended += n
		}
		failed += o.Outcomes[driver.Error] + o.Outcomes[driver.Timeout]
	}
	require.Equal(t, due, ended)
	require.Positive(t, failed)
	return final.Totals
}

// testTwoNodes has a node join the first one's cluster. What each counts, and so what the sum of them is, depends on which has a key. Then it is killed.
func testTwoNodes(t *testing.T, nodes *servertest.IgniteNodes) {
	joined := nodes.Join()
	addrs := []string{nodes.Addr, joined.Addr}
	single, copied := &ignite.Config{CacheName: "items"}, &ignite.Config{CacheName: "copied"} // copied has a copy on each of them
	sum := func(config *ignite.Config) map[string]float64 {
		figures := asked(t, addrs[0], config)
		for name, v := range asked(t, addrs[1], config) {
			figures[name] += v
		}
		return figures
	}
	const keys = 200
	all := func(config *ignite.Config, addr, prefix string, verb driver.Verb) []driver.Reply {
		var requests []driver.Request
		for i := range keys {
			requests = append(requests, driver.Request{Verb: verb, Key: fmt.Appendf(nil, "%s%d", prefix, i), Value: &driver.Value{Size: 10}})
		}
		return overExecutor(t, ignite.Driver{}, config, addr, plan.EventLoop, nil).Do(t, requests...)
	}
	missed := func(config *ignite.Config, addr string) float64 {
		before := asked(t, addr, config)["CacheMisses"]
		all(config, addr, "none", driver.Get)
		return asked(t, addr, config)["CacheMisses"] - before
	}
	require.Eventually(t, func() bool { return missed(copied, joined.Addr) == keys && missed(single, joined.Addr) > 0 }, time.Minute, 100*time.Millisecond,
		"it has its share of the keys, and a copy of all")
	require.EqualValues(t, 2, asked(t, addrs[1], single)["TotalServerNodes"])

	before := sum(single)
	all(single, addrs[0], "two", driver.Put)
	all(single, addrs[0], "two", driver.Get)
	all(single, addrs[1], "two", driver.Get)
	all(single, addrs[0], "none", driver.Get)
	all(single, addrs[1], "none", driver.Get)
	after := sum(single)
	for name, want := range map[string]float64{"CachePuts": keys, "CacheHits": 2 * keys, "CacheMisses": keys} { // a miss counts only if the node that is asked has the key's partition
		require.Equal(t, want, after[name]-before[name], name)
	}

	both := func(cache, load string) string {
		return strings.NewReplacer(`["ADDR"]`, fmt.Sprintf("[%q, %q]", addrs[0], addrs[1]), `"items"`, strconv.Quote(cache)).Replace(ignitePlan("ADDR", "timeout = \"1s\"", load))
	}
	before = sum(copied)
	_, final, err := driveLines(t, Config{Loops: 1, Drivers: drivers.All()}, both("copied", "closed {\n sessions = 3\n pipeline = 16\n iterations = 1000\n}"))
	require.NoError(t, err)
	after = sum(copied)
	get, put := final.Totals.Ops[driver.Get].Outcomes, final.Totals.Ops[driver.Put].Outcomes
	for name, want := range map[string]uint64{
		"CacheGets": get[driver.OK] + get[driver.Miss], "CacheHits": get[driver.OK], "CacheMisses": get[driver.Miss], "CachePuts": 2 * put[driver.OK], // each copy counts
	} {
		require.EqualValues(t, want, after[name]-before[name], name)
	}

	all(copied, addrs[0], "kept", driver.Put)
	totals := killedUnder(t, joined, both("copied", "closed {\n sessions = 3\n pipeline = 16\n duration = \"3s\"\n}"))
	require.Len(t, totals.Away, 2)
	require.Positive(t, totals.Away[1])
	for _, r := range all(copied, addrs[0], "kept", driver.Get) {
		require.Equal(t, driver.OK, r.Outcome, "the survivor has it: %s", r.Message)
	}
}

// igniteItem fills a cache step by step, with a look at the node after each, and returns what an item takes of its region by these.
func igniteItem(t *testing.T, addr string, items int) float64 {
	file, diags := plan.Parse(fmt.Appendf(nil, `
		plan "test" {}
		target "t" {
			driver     = "ignite"
			endpoints  = [%q]
			cache_name = "with-%d"
		}
		dataset "d" {
			keys { count = %d }
			values { size = 200 }
		}
		observe "node" {
			server {
				target = target.t
				fields = ["TotalUsedSize", "OffHeapPrimaryEntriesCount"]
			}
		}
		phase "fill" {
			target  = target.t
			dataset = dataset.d
			populate {}
		}`, addr, items, items), "test.hcl", drivers.All())
	require.False(t, diags.HasErrors(), "%v", diags)
	p, diags := file.Resolve(plan.Vars{})
	require.False(t, diags.HasErrors(), "%v", diags)
	target := p.Targets[0]
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, ignite.Driver{}.Prepare(t.Context(), conn, driver.Link{Config: target.Config}))
	probe := observe.Means{Drivers: drivers.All(), Dial: func(context.Context, *plan.Target, string) (net.Conn, error) { return net.Dial("tcp", addr) }}.
		New(p.Observes[0], target, target.Endpoints)
	defer probe.Close()
	put := 0
	look := func() *run.Probe {
		value, missing := probe.Take(t.Context())
		return &run.Probe{At: float64(put), Value: value, Missing: missing}
	}
	seen := new(judge.Observation)
	seen.Begin(look())
	x := overExecutor(t, ignite.Driver{}, target.Config, addr, plan.EventLoop, nil)
	const step = 800
	for range items / step {
		var puts []driver.Request
		for range step {
			puts = append(puts, driver.Request{Verb: driver.Put, Key: fmt.Appendf(nil, "key:%012d", put), Value: &driver.Value{Size: 200}})
			put++
		}
		for _, r := range x.Do(t, puts...) {
			require.Equal(t, driver.OK, r.Outcome, "%s", r.Message)
		}
		seen.Add(look())
	}
	seen.End(look())
	r := judge.NewPhase(p, p.Phases[0], judge.Measured{Endpoints: target.Endpoints, Load: new(measure.Totals), Observed: map[string]*judge.Observation{"node": seen}})
	each := r.Observe["node"]["TotalUsedSize"].PerItem
	require.NotNil(t, each, "%v", r.Nulls)
	return *each
}

func ignitePlan(addr, target, load string) string {
	return fmt.Sprintf(`
		target "t" {
			driver     = "ignite"
			endpoints  = [%q]
			cache_name = "items"
			%s
		}
		dataset "d" {
			keys {
				count = 4800
			}
			values { size = 30 }
		}
		phase "load" {
			target      = target.t
			dataset     = dataset.d
			ops         = { get = 2, put = 1 }
			max_bad     = 1
			expect_hits = 0
			%s
		}`, addr, target, load)
}

// keysOf returns the outcomes of an op's keys.
func keysOf(o *measure.Op) [driver.NumOutcomes]uint64 {
	if o.Keys != (measure.Keys{}) {
		return o.Keys.Outcomes
	}
	return o.Outcomes
}

// asked returns the figures that a node tells of a cache.
func asked(t testing.TB, addr string, config *ignite.Config) map[string]float64 {
	d, link := ignite.Driver{}, driver.Link{Config: config}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	codec, err := d.NewCodec(link)
	require.NoError(t, err)
	question, err := d.AppendQuestion(nil, link)
	require.NoError(t, err)
	hello, _ := codec.Greet(nil)
	_, err = conn.Write(hello)
	require.NoError(t, err)
	_, err = io.ReadFull(conn, make([]byte, 5)) // that it is welcome
	require.NoError(t, err)
	_, err = conn.Write(question)
	require.NoError(t, err)
	var b []byte
	for {
		more := make([]byte, 64<<10)
		n, err := conn.Read(more)
		require.NoError(t, err)
		b = append(b, more[:n]...)
		told, n, err := d.ParseFigures(b)
		require.NoError(t, err)
		if n == 0 {
			continue
		}
		figures := map[string]float64{}
		for name, text := range told {
			if v, err := strconv.ParseFloat(text, 64); err == nil {
				figures[name] = v
			}
		}
		return figures
	}
}

// lethal is the driver of a server that is killed once so many requests have been made.
type lethal struct {
	ignite.Driver
	after int64
	kill  func()
	made  atomic.Int64
}

func (l *lethal) NewCodec(link driver.Link) (driver.Codec, error) {
	codec, err := l.Driver.NewCodec(link)
	if err != nil {
		return nil, err
	}
	return lethalCodec{codec.(driver.Tagged), l}, nil
}

type lethalCodec struct {
	driver.Tagged
	l *lethal
}

func (c lethalCodec) AppendRequest(dst []byte, req *driver.Request) []byte {
	if c.l.made.Add(1) == c.l.after {
		c.l.kill()
	}
	return c.Tagged.AppendRequest(dst, req)
}
