package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest/ticket"
	"github.com/loadgen/loadgen/pkg/plan"
)

// mapped is Redis whose nodes, ticket servers, give a test's answers.
type mapped struct {
	redis.Driver
	nodes func(ctx context.Context, endpoint string) ([]driver.Node, error)
}

func (m mapped) Nodes(ctx context.Context, conn net.Conn, link driver.Link) ([]driver.Node, error) {
	if _, err := (ticket.Driver{}).Identify(ctx, conn, link); err != nil { // the connection is a fresh one
		return nil, err
	}
	return m.nodes(ctx, link.Endpoint)
}

// allSlots are the slots of a cluster of one node.
var allSlots = [][2]int{{0, op.NumSlots - 1}}

// clusterSide is a target of servers that take connections. It returns their addresses, too.
func clusterSide(t *testing.T, servers int) (x *side, addrs []string) {
	t.Helper()
	for range servers {
		addrs = append(addrs, serveTickets(t, nil).addr)
	}
	x = &side{target: &plan.Target{Driver: "redis", Endpoints: addrs, Config: redis.Driver{}.NewConfig(), Timeout: time.Second}}
	x.connect = sockets.Connector{Dial: (&net.Dialer{}).DialContext}
	require.NoError(t, x.locate(nil))
	return x, addrs
}

// TestClusterIsDiscovered asks the endpoints of a target in turn. The nodes that the first answer names become the endpoints, by address.
func TestClusterIsDiscovered(t *testing.T) {
	x, addrs := clusterSide(t, 3)
	var asked []string
	half := op.NumSlots / 2
	require.NoError(t, x.discover(t.Context(), mapped{nodes: func(ctx context.Context, endpoint string) ([]driver.Node, error) {
		_, limited := ctx.Deadline()
		require.True(t, limited)
		if asked = append(asked, endpoint); len(asked) == 1 {
			return nil, errors.New("still loading")
		}
		return []driver.Node{
			{Addr: "10.0.0.10:7001", Slots: [][2]int{{half, op.NumSlots - 1}}},
			{Addr: "10.0.0.9:7002"},
			{Addr: "cache.example.org:7001", Aliases: []string{"10.0.0.7:7001"}, Slots: [][2]int{{0, half - 1}}},
			{Addr: "10.0.0.9:7001"},
		}, nil
	}}))
	require.Equal(t, addrs[:2], asked)
	var names, texts []string
	for _, end := range x.endpoints {
		names, texts = append(names, end.Name), append(texts, end.Text)
	}
	require.Equal(t, []string{"n0", "n1", "n2", "n3"}, names)
	require.Equal(t, []string{"cache.example.org:7001", "10.0.0.9:7001", "10.0.0.9:7002", "10.0.0.10:7001"}, texts)
	for at, addr := range append(texts, "10.0.0.7:7001") {
		known, ok := x.cluster.knows(addr)
		require.True(t, ok)
		require.Equal(t, at%4, known)
	}
	slots := x.cluster.newest.Load()
	require.Equal(t, []int{half, 0, 0, half}, []int{slots.Held(0), slots.Held(1), slots.Held(2), slots.Held(3)})
	require.Equal(t, slots, x.placement)
	require.Empty(t, x.cluster.known.Load().joined)
}

// TestClustersThatCannotBeLoaded are refused with the reason.
func TestClustersThatCannotBeLoaded(t *testing.T) {
	many := func(n int) (nodes []driver.Node) {
		for i := range n {
			nodes = append(nodes, driver.Node{Addr: "10.0.0.1:" + strconv.Itoa(1+i)})
		}
		nodes[0].Slots = allSlots
		return nodes
	}
	for name, c := range map[string]struct {
		nodes []driver.Node
		err   error
		want  string // "" if it can
	}{
		"the largest": {many(mostNodes), nil, ""},
		"too many":    {many(mostNodes + 1), nil, "a cluster of 1001 nodes, more than 1000"},
		"a slot that nobody has": {
			[]driver.Node{{Addr: "10.0.0.1:1", Slots: [][2]int{{0, op.NumSlots - 2}}}},
			nil,
			"1 of 16384 slots of the cluster have no node: see redis-cli --cluster check 10.0.0.1:1",
		},
		"no answer": {nil, errors.New("still loading"), "still loading\n"},
		"no node":   {nil, nil, ": it names no node of its cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := clusterSide(t, 2)
			err := x.discover(t.Context(), mapped{nodes: func(context.Context, string) ([]driver.Node, error) { return c.nodes, c.err }})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.Nil(t, x.cluster)
		})
	}
}

// TestClusterIsReadAnew reads the map when a loop has doubts, from node after node until one answers. What it says is added to what was known.
func TestClusterIsReadAnew(t *testing.T) {
	x, addrs := clusterSide(t, 2)
	half := op.NumSlots / 2
	answer := []driver.Node{{Addr: addrs[0], Slots: allSlots}, {Addr: addrs[1]}}
	asked := make(chan string, 100)
	fail := true
	require.NoError(t, x.discover(t.Context(), mapped{nodes: func(_ context.Context, endpoint string) ([]driver.Node, error) {
		if asked <- endpoint; fail {
			fail = false
			return nil, errors.New("still loading")
		}
		return answer, nil
	}}))
	require.Len(t, asked, 2)
	<-asked
	<-asked
	first, _ := x.cluster.knows(addrs[0])
	r := &routes{cluster: x.cluster, slots: op.NewSlots(x.cluster.places())}
	r.renew()
	require.Equal(t, op.NumSlots, r.slots.Held(first))

	answer, fail = []driver.Node{{Addr: "10.0.0.9:1"}, {Addr: "10.0.0.1:7001", Aliases: []string{"cache.example.org:7001"}, Slots: [][2]int{{0, half - 1}}}}, true
	x.cluster.keep(x.cluster.reread)
	defer x.cluster.close()
	began := time.Now()
	for range 3 { // doubts of several loops are one
		r.suspect()
	}
	require.Equal(t, [2]string{x.endpoints[0].Text, x.endpoints[1].Text}, [2]string{<-asked, <-asked})
	require.Eventually(t, func() bool {
		r.renew()
		return r.slots.Held(2) > 0
	}, time.Minute, time.Millisecond)
	require.Equal(t, [2]int{half, half}, [2]int{r.slots.Held(first), r.slots.Held(2)})
	require.Equal(t, "10.0.0.1:7001", x.cluster.newcomer(2).Text, "one without slots gets no place")
	at, known := x.cluster.knows("cache.example.org:7001")
	require.Equal(t, [2]any{2, true}, [2]any{at, known})

	r.suspect() // the next node is asked, some time later
	require.Equal(t, x.endpoints[0].Text, <-asked)
	require.GreaterOrEqual(t, time.Since(began), 100*time.Millisecond)
}

// hearsay is Redis whose nodes a test names without asking anybody.
type hearsay struct {
	redis.Driver
	nodes func(ctx context.Context, endpoint string) ([]driver.Node, error)
}

func (h hearsay) Nodes(ctx context.Context, _ net.Conn, link driver.Link) ([]driver.Node, error) {
	return h.nodes(ctx, link.Endpoint)
}

// hearsayOf is a cluster of three nodes whose slots are nobody's, in virtual time.
func hearsayOf(t *testing.T, nodes func(ctx context.Context, endpoint string) ([]driver.Node, error)) *cluster {
	x := &side{target: &plan.Target{Driver: "redis", Endpoints: []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}, Config: redis.Driver{}.NewConfig()}}
	x.connect.Dial = func(context.Context, string, string) (net.Conn, error) {
		here, _ := net.Pipe()
		return here, nil
	}
	require.NoError(t, x.locate(nil))
	c := newCluster(x, hearsay{nodes: nodes})
	c.asked = x.endpoints
	c.newest.Store(op.NewSlots(c.places()))
	return c
}

// A map in doubt is read from one node after another until one answers, each within a second. The next time begins with the node after that, and at
// least 100 ms later.
func TestWhenAMapIsReadAnew(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		began := time.Now()
		var asked []string
		c := hearsayOf(t, func(ctx context.Context, endpoint string) ([]driver.Node, error) {
			asked = append(asked, fmt.Sprintf("%s after %v", endpoint, time.Since(began)))
			if len(asked) == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return []driver.Node{{Addr: endpoint, Slots: allSlots}}, nil
		})
		r := &routes{cluster: c}
		c.keep(c.reread)
		for _, at := range []time.Duration{0, 2 * time.Second, 2010 * time.Millisecond} {
			time.Sleep(at - time.Since(began))
			r.suspect()
		}
		time.Sleep(time.Second)
		c.close()
		require.Equal(t, []string{"10.0.0.1:1 after 0s", "10.0.0.2:1 after 1s", "10.0.0.3:1 after 2s", "10.0.0.1:1 after 2.1s"}, asked)
	})
}

// A cluster is closed when nobody is asked for its map any more.
func TestClosingWaitsForTheMap(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		asked, over := 0, 0
		c := hearsayOf(t, func(ctx context.Context, _ string) ([]driver.Node, error) {
			asked++
			<-ctx.Done()
			time.Sleep(10 * time.Millisecond)
			over++
			return nil, ctx.Err()
		})
		c.keep(c.reread)
		(&routes{cluster: c}).suspect()
		synctest.Wait()
		require.Equal(t, 1, asked)
		c.close()
		require.Equal(t, asked, over)
	})
}

// TestLoadOfACluster loads a real cluster that one replica's address leads to.
func TestLoadOfACluster(t *testing.T) {
	nodes := servertest.RedisCluster(t, 3, 1)
	ready, final, err := driveLines(t, Config{Loops: 2, Drivers: drivers.All()}, fmt.Sprintf(`
		target "t" {
			driver    = "redis"
			endpoints = [%q]
			cluster   = true
			timeout   = "30s"
		}
		dataset "d" {
			keys { count = 1000 }
			values { size = 30 }
		}
		phase "load" {
			target  = target.t
			dataset = dataset.d
			ops     = { put = 1 }
			closed {
				sessions   = 4
				iterations = 500
			}
		}`, nodes[5].Addr))
	require.NoError(t, err)
	var addrs []string
	for _, node := range nodes {
		addrs = append(addrs, node.Addr)
	}
	require.ElementsMatch(t, addrs, ready.Nodes["t"])
	require.Equal(t, 4*3, ready.Connections, "none to replicas")
	require.Len(t, ready.Servers["t"], 6)
	var all uint64
	for at, addr := range ready.Nodes["t"] {
		sent := final.Totals.Request(at, driver.Put)
		require.Equal(t, measure.Requests{Sent: sent.Sent, Answered: sent.Sent}, *sent)
		require.Equal(t, slices.Index(addrs, addr) < 3, sent.Sent > 0, "masters and no replicas")
		all += sent.Sent
	}
	require.EqualValues(t, 2000, all)
}

// Which processes serve a target is known from a phase's first step on, and before its load's connections are open.
func TestServersAreFoundFromTheSetupOn(t *testing.T) {
	p := parsePlan(t, fmt.Sprintf(`
		target "t" {
			driver    = "redis"
			endpoints = [%q]
			timeout   = "30s"
		}
		dataset "d" {
			keys {
				count = 10
				scope = "session"
			}
			values { size = 30 }
		}
		phase "load" {
			target  = target.t
			dataset = dataset.d
			setup { ops = { put = 1 } }
			ops = { get = 1 }
			closed { iterations = 10 }
		}`, servertest.Redis(t)))
	for _, kind := range []worker.StepKind{worker.Setup, worker.Load} {
		e := assigned(t, Config{Loops: 1}, p)
		prepared(t, e, stepOf(p.Phases[0], kind))
		require.NoError(t, e.group.hosted.err)
		require.Len(t, e.group.hosted.pids, 1)
	}
}

// wordless is a cluster whose codec has nothing but a codec's methods.
type wordless struct{ mapped }

func (w wordless) NewCodec(link driver.Link) (driver.Codec, error) {
	codec, err := w.mapped.NewCodec(link)
	return opaque{codec}, err
}

// A driver that cannot read redirects loads no cluster.
func TestClusterOfADriverWithoutRedirects(t *testing.T) {
	addr := serveTickets(t, nil).addr
	d := wordless{mapped{nodes: func(context.Context, string) ([]driver.Node, error) {
		return []driver.Node{{Addr: addr, Slots: allSlots}}, nil
	}}}
	p := parsePlanFor(t, []driver.Driver{d}, fmt.Sprintf(`
		target "t" {
			driver    = "redis"
			endpoints = [%q]
			cluster   = true
		}
		dataset "d" {
			keys { count = 10 }
			values { size = 30 }
		}
		phase "load" {
			target  = target.t
			dataset = dataset.d
			ops     = { put = 1 }
			closed { iterations = 10 }
		}`, addr))
	g := &group{plan: p, phase: p.Phases[0], sessions: 1, executor: plan.EventLoop}
	g.target, g.driver = p.Target("t"), d
	g.cluster = newCluster(&g.side, d)
	e := New(Config{Loops: 1})
	_, err := g.newWire(e, &lane{l: new(loop), side: &g.side}, d, 10)
	require.EqualError(t, err, `driver "redis" does not read redirects`)
}
