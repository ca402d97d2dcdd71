package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/policy"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// acquainted is Redis whose servers are not asked who they are. The nodes of a cluster are a test's.
type acquainted struct {
	redis.Driver
	nodes func() ([]driver.Node, error)
}

func (acquainted) Identify(context.Context, net.Conn, driver.Link) (map[string]string, error) {
	return map[string]string{"version": "1"}, nil
}

func (d acquainted) Nodes(context.Context, net.Conn, driver.Link) ([]driver.Node, error) {
	return d.nodes()
}

// placed is a connection in memory that leads to an address.
type placed struct {
	net.Conn
	at netip.AddrPort
}

func (c placed) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.at) }

// virtually is an engine that loads scripted Redis servers in virtual time, as many as are asked for.
func virtually(t *testing.T, cfg Config, d acquainted, servers int, p *plan.Plan) (*Engine, *virtualNet) {
	t.Helper()
	n := newVirtualNet(10)
	for i := range servers {
		n.server(uint16(firstPort+i), time.Millisecond)
	}
	cfg.Loops, cfg.Drivers = max(1, cfg.Loops), []driver.Driver{d}
	e := assigned(t, cfg, p)
	e.clock = n.clock
	e.newPoller = func() (sockets.Poller, error) { return n, nil }
	e.resolve = nil
	e.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := n.dial(ctx, network, addr)
		return placed{conn, netip.MustParseAddrPort(addr)}, err
	}
	return e, n
}

const twentyGets = "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 20\n}"

// A worker with a single session finds the nodes of a cluster, too. Their map is read anew until the phase is over.
func TestPhaseOnACluster(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		asked := 0
		d := acquainted{nodes: func() ([]driver.Node, error) {
			asked++
			return []driver.Node{{Addr: "127.0.0.1:7002", Slots: allSlots}, {Addr: "127.0.0.1:7001"}}, nil
		}}
		e, n := virtually(t, Config{}, d, 2, redisPlan(t, 1, "cluster = true", twentyGets))
		ready := loaded(t, e)
		require.Equal(t, map[string][]string{"t": {"127.0.0.1:7001", "127.0.0.1:7002"}}, ready.Nodes)
		require.Equal(t, 1, ready.Connections, "none to a node without slots")
		require.Len(t, ready.Servers["t"], 2)
		require.Equal(t, 1, asked)
		(&routes{cluster: e.group.cluster}).suspect()
		synctest.Wait()
		require.Equal(t, 2, asked)
		ran(t, e)
		require.Equal(t, 20, *n.servers[firstPort+1].got["GET"])
	})
}

// What a phase needs is checked before a connection of its sessions is made.
func TestPhasesThatCannotBegin(t *testing.T) {
	loading := acquainted{nodes: func() ([]driver.Node, error) { return nil, errors.New("still loading") }}
	for says, tt := range map[string]struct {
		target, phase string
		change        func(e *Engine)
	}{
		`target "t": n0 (127.0.0.1:7001): still loading`:                   {"cluster = true", twentyGets, func(*Engine) {}},
		"this worker's policy: targets: 127.0.0.1:7001 is not among them":  {"", twentyGets, func(e *Engine) { e.cfg.Policy = new(policy.Policy) }},
		"50000000 ops a second are more than one event loop can send: use": {"", "ops = { get = 1 }\nopen {\n rate = \"50M/s\"\n duration = \"1s\"\n sessions = 1\n}", func(*Engine) {}},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			e, n := virtually(t, Config{}, loading, 1, redisPlan(t, 1, tt.target, tt.phase))
			tt.change(e)
			_, err := e.Prepare(t.Context(), stepOf(e.plan.Phases[0], worker.Load))
			require.ErrorContains(t, err, says)
			require.Empty(t, n.socks)
		})
	}
}

// A phase whose connections are not all made leaves none, whether a loop gets no poller, a server does not answer, or nobody waits for it any more.
func TestConnectionsThatAreNotMade(t *testing.T) {
	for name, tt := range map[string]struct {
		loops int
		says  string
		takes time.Duration // at most
		fails map[string]error
	}{
		"no poller": {2, "no descriptor left", 0, nil},
		"refused":   {1, "connect to n0 (127.0.0.1:7001): no way", time.Duration(maxSleep), map[string]error{"connect": errors.New("no way")}},
		"lost":      {1, "connect to n0 (127.0.0.1:7001): write: no way", time.Duration(maxSleep), map[string]error{"write": errors.New("no way")}},
		"no answer": {1, "no answer in time; 0 of 2 connections were made", 10 * time.Second, nil},
		"cancelled": {1, "no answer in time; 0 of 2 connections were made", 2 * time.Second, nil},
	} {
		e, n := virtually(t, Config{Loops: tt.loops}, acquainted{}, 1, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 2\n iterations = 1\n}"))
		poller := &releasing{virtualNet: n}
		made := 0
		e.newPoller = func() (sockets.Poller, error) {
			if made++; made > 1 {
				return nil, errors.New("no descriptor left")
			}
			return poller, nil
		}
		n.servers[firstPort].mute, n.fails = true, tt.fails
		ctx, cancel := context.WithCancel(t.Context())
		if name == "cancelled" {
			n.at(time.Second, func() {
				cancel()
				for e.halt.Load() != abandon {
					runtime.Gosched()
				}
			})
		}
		_, err := e.Prepare(ctx, stepOf(e.plan.Phases[0], worker.Load))
		cancel()
		require.ErrorContains(t, err, tt.says, name)
		require.LessOrEqual(t, n.clock.t, int64(tt.takes+time.Millisecond), name)
		require.Equal(t, 1, poller.released, name)
		require.Len(t, poller.closed, len(n.socks), name)
	}
}

// What a phase has open is logged. What its connections sent before a step is not the step's.
func TestPreparedConnections(t *testing.T) {
	var said strings.Builder
	cfg := Config{Logger: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	e, n := virtually(t, cfg, acquainted{}, 2, redisPlan(t, 2, "", "ops = { get = 1 }\nclosed {\n sessions = 3\n iterations = 100\n}"))
	kernel := metered{n, map[int]uint64{}}
	e.newPoller = func() (sockets.Poller, error) { return kernel, nil }
	ready := loaded(t, e)
	require.Equal(t, 6, ready.Connections)
	require.EqualValues(t, 300, ready.Ops)
	require.Contains(t, said.String(), "msg=connected phase=load sessions=3 endpoints=2 loops=1")
	before := kernel.all()
	n.at(time.Duration(n.clock.t)+50*time.Millisecond, n.servers[firstPort].sever)
	final := ran(t, e)
	require.EqualValues(t, 3, final.Totals.Reconnects)
	require.Equal(t, &measure.TCP{BytesSent: kernel.all() - before}, final.Generator.TCP, "with connections that were lost, and without what had been before")
}

// A loop may have as large a part of the ops in flight as it has of the sessions, and always one.
func TestOpsInFlightAreShared(t *testing.T) {
	for _, tt := range []struct {
		sessions, inFlight, loops int
		workers                   []int // where each begins, and the last ends
		want                      string
	}{
		{10, 7, 1, []int{0, 10}, "[7]"},
		{10, 7, 2, []int{0, 10}, "[3 4]"},
		{10, 7, 3, []int{0, 10}, "[2 2 3]"},
		{10, 7, 9, []int{0, 10}, "[1 1 1 1 1 1 2]"},
		{10, 7, 2, []int{0, 3, 10}, "[1 2 2 3]"},
		{10, 2, 2, []int{0, 1, 10}, "[1 1 1]"},
	} {
		p := nullPlan(t, 1, "", fmt.Sprintf("ops = { get = 1 }\nopen {\n rate = 1000\n duration = \"1s\"\n sessions = %d\n in_flight = %d\n}", tt.sessions, tt.inFlight))
		var got []int
		for i, from := range tt.workers[:len(tt.workers)-1] {
			e := assigned(t, Config{Loops: tt.loops}, p)
			step := stepOf(p.Phases[0], worker.Load)
			step.From, step.To = from, tt.workers[i+1]
			prepared(t, e, step)
			for _, l := range e.group.loops {
				got = append(got, l.feed.(*openFeed).inFlight)
			}
		}
		require.Equal(t, tt.want, fmt.Sprint(got), "%+v", tt)
	}
}

// lingering is a transport that takes a second to close.
type lingering struct {
	transport
	closed *atomic.Int64
}

func (l lingering) close() {
	time.Sleep(time.Second)
	l.closed.Add(1)
}

// The loops of a phase close side by side, and the phase is closed once all are.
func TestClosingAPhase(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		var closed atomic.Int64
		g := new(group)
		for range 3 {
			g.loops = append(g.loops, &loop{tr: lingering{closed: &closed}})
		}
		began := time.Now()
		g.close()
		require.EqualValues(t, 3, closed.Load())
		require.Equal(t, time.Second, time.Since(began))
	})
}
