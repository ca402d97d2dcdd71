package engine

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/drivers/null"
	"github.com/loadgen/loadgen/internal/drivers/redis"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest/ticket"
	"github.com/loadgen/loadgen/pkg/plan"
)

// standIn is a connection to nobody. It notes how it is used.
type standIn struct {
	net.Conn
	to       net.Addr
	deadline time.Time
	fails    error // when a deadline is set
	closed   int
}

func (c *standIn) RemoteAddr() net.Addr           { return c.to }
func (c *standIn) SetDeadline(at time.Time) error { c.deadline = at; return c.fails }
func (c *standIn) Read([]byte) (int, error)       { return 0, os.ErrDeadlineExceeded }
func (c *standIn) Close() error                   { c.closed++; return nil }

// standInTo seems to connect to an address.
func standInTo(addr string) (net.Conn, error) {
	return &standIn{to: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))}, nil
}

// sideTo is a target at endpoints that are reached by dial.
func sideTo(t *testing.T, d driver.Driver, dial func(addr string) (net.Conn, error), endpoints ...string) *side {
	t.Helper()
	x := &side{target: &plan.Target{Name: "t", Endpoints: endpoints}, driver: d, clients: 1}
	x.connect.Dial = func(_ context.Context, _, addr string) (net.Conn, error) { return dial(addr) }
	require.NoError(t, x.locate(nil))
	return x
}

// slotted makes the target a cluster. The first node has all slots but one, the second has that one, and the others are spare.
func (x *side) slotted() {
	x.cluster = newCluster(x, redis.Driver{})
	slots := op.NewSlots(len(x.endpoints))
	for slot := range op.NumSlots {
		slots.Set(slot, 0)
	}
	slots.Set(7, 1)
	x.cluster.newest.Store(slots)
}

// A session connects to each endpoint, with each of its clients. No connection is needed by drivers that have no wire and no clients, nor to spare
// nodes when a phase begins.
func TestConnectionsOfASession(t *testing.T) {
	clients := hanging{null.Driver{}, ""}
	for name, tt := range map[string]struct {
		driver             driver.Driver
		clients, endpoints int
		cluster            bool
		opens, connections int
	}{
		"neither wire nor clients": {null.Driver{}, 3, 2, false, 0, 0},
		"a wire":                   {redis.Driver{}, 1, 2, false, 2, 2},
		"clients":                  {clients, 3, 2, false, 6, 6},
		"one client":               {clients, 1, 1, false, 1, 1},
		"a cluster":                {redis.Driver{}, 1, 4, true, 4, 2},
		"clients of a cluster":     {clients, 3, 3, true, 9, 6},
	} {
		x := sideTo(t, tt.driver, nil, []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1"}[:tt.endpoints]...)
		x.clients = tt.clients
		if tt.cluster {
			x.slotted()
		}
		require.Equal(t, [2]int{tt.opens, tt.connections}, [2]int{x.opens(), x.connections()}, name)
	}
}

// Every endpoint has a row of the ledger of requests, behind those of other targets. All nodes that join a cluster share one more.
func TestRowsAndPlacesOfATarget(t *testing.T) {
	x := sideTo(t, redis.Driver{}, nil, "10.0.0.1:1", "10.0.0.2:1")
	x.first = 5
	require.Equal(t, [2]int{2, 2}, [2]int{x.rows(), x.places()})
	x.slotted()
	require.Equal(t, [2]int{3, 2 + mostNew}, [2]int{x.rows(), x.places()})
	for endpoint, row := range []int{5, 6, 7, 7, 7} {
		require.Equal(t, row, (&lane{side: x}).row(endpoint), "endpoint %d", endpoint)
	}
	require.Equal(t, 2, x.cluster.place("10.0.0.3:1"))
	for i, text := range []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"} {
		require.Equal(t, text, x.endpoint(i).Text)
	}
}

// A target is where the plan says or, if it says nothing, at the nodes of a built-in target. Keys are placed by the nodes' names.
func TestWhereATargetIs(t *testing.T) {
	for _, tt := range []struct{ plan, nodes, want []string }{
		{[]string{"10.0.0.1:1"}, nil, []string{"n0 (10.0.0.1:1)"}},
		{[]string{"10.0.0.1:1"}, []string{"10.0.0.2:1"}, []string{"n0 (10.0.0.1:1)"}},
		{nil, []string{"10.0.0.2:1", "10.0.0.3:1"}, []string{"n0 (10.0.0.2:1)", "n1 (10.0.0.3:1)"}},
	} {
		names := []string{"n0", "n1"}[:len(tt.want)]
		for placement, want := range map[string]op.Placement{plan.Rendezvous: op.NewRendezvous(names), "ketama": op.NewRing(names)} {
			x := &side{target: &plan.Target{Endpoints: tt.plan, Placement: placement}}
			require.NoError(t, x.locate(tt.nodes))
			var got []string
			for _, end := range x.endpoints {
				got = append(got, end.String())
			}
			require.Equal(t, tt.want, got)
			require.Equal(t, want, x.placement)
		}
	}
	require.EqualError(t, (&side{target: new(plan.Target)}).locate(nil), "it has no endpoint")
}

// Servers are asked who they are if their driver can ask. Those of a wire are connected to anyway, for their addresses.
func TestWhichServersAreIdentified(t *testing.T) {
	for name, tt := range map[string]struct {
		driver  driver.Driver
		reached bool
		facts   map[string]map[string]string
	}{
		"neither wire nor clients": {null.Driver{}, false, nil},
		"clients":                  {dialed{null.Driver{}, nil}, false, nil},
		"clients that ask":         {hanging{null.Driver{}, ""}, true, map[string]map[string]string{"10.0.0.1:1": {"version": "1"}}},
		"a wire":                   {struct{ driver.Wire }{redis.Driver{}}, true, map[string]map[string]string{}},
	} {
		x := sideTo(t, tt.driver, standInTo, "10.0.0.1:1")
		require.NoError(t, x.identify(t.Context()), name)
		require.Equal(t, tt.reached, x.endpoints[0].Addr.IsValid(), name)
		require.Equal(t, tt.facts, x.servers, name)
	}
}

// A node of a cluster that has no slots may be down. Its address is the plan's, if that is one.
func TestSpareNodesMayBeDown(t *testing.T) {
	up := map[string]string{"10.0.0.1:1": "10.0.0.1:1", "10.0.0.2:1": "10.0.0.2:1", "localhost:3": "127.0.0.1:3"}
	dial := func(addr string) (net.Conn, error) {
		if up[addr] == "" {
			return nil, errors.New("no route")
		}
		return standInTo(up[addr])
	}
	x := sideTo(t, hanging{null.Driver{}, ""}, dial, "10.0.0.1:1", "10.0.0.2:1", "localhost:3", "10.0.0.4:1", "cache.example.org:5")
	x.slotted()
	require.NoError(t, x.identify(t.Context()))
	var addrs []string
	for _, end := range x.endpoints {
		addrs = append(addrs, end.Addr.String())
	}
	require.Equal(t, []string{"10.0.0.1:1", "10.0.0.2:1", "127.0.0.1:3", "10.0.0.4:1", "invalid AddrPort"}, addrs)
	require.Len(t, x.servers, 3)
	delete(up, "10.0.0.2:1")
	require.EqualError(t, x.identify(t.Context()), "connect to n1 (10.0.0.2:1): no route", "one slot is enough to be needed")
}

// A server that says nothing of itself has one fact if its connections are encrypted: how.
func TestServersOfWhichOnlyTheEncryptionIsKnown(t *testing.T) {
	a := servertest.NewAuthority(t)
	shows := a.Issue("127.0.0.1", time.Hour)
	for _, d := range []driver.Driver{nameless{}, struct{ driver.Wire }{ticket.Driver{}}} {
		facts, err := identified(t, d, ticketsAt(t, &shows), &plan.TLS{CA: a.CA})
		require.NoError(t, err)
		require.Len(t, facts, 1)
		require.Contains(t, facts["tls"], "TLS 1.3")
	}
}

// What a driver says beside the load has the context's deadline, and its connection is closed whatever comes of it. Errors say where it led and, if
// nobody listens there, what to do.
func TestWhatIsSaidBesideTheLoad(t *testing.T) {
	const tcp, socket = "10.0.0.1:7001", "unix:///run/none.sock"
	const remedy = "nothing listens there: start the server, or write endpoints that are there"
	const atSocket = "nobody listens there: the server has ended and left the file, or it is no socket"
	refused, broken := &net.OpError{Op: "dial", Err: unix.ECONNREFUSED}, errors.New("broken")
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	deadline, _ := ctx.Deadline()
	for name, tt := range map[string]struct {
		endpoint              string
		dials, fails, answers error // of the connection, its deadline and the driver
		want                  string
	}{
		"well":                       {tcp, nil, nil, nil, ""},
		"nobody listens":             {tcp, refused, nil, nil, "connect to n0 (10.0.0.1:7001): connection refused: " + remedy},
		"nobody listens at a socket": {socket, refused, nil, nil, "connect to n0 (unix:///run/none.sock): connection refused: " + atSocket},
		"no connection":              {tcp, broken, nil, nil, "connect to n0 (10.0.0.1:7001): broken"},
		"no connection to a socket":  {socket, broken, nil, nil, "connect to n0 (unix:///run/none.sock): broken"},
		"no deadline":                {tcp, nil, broken, nil, "n0 (10.0.0.1:7001): broken"},
		"no answer":                  {tcp, nil, nil, broken, "n0 (10.0.0.1:7001): broken"},
	} {
		conn, said := &standIn{fails: tt.fails}, 0
		x := sideTo(t, nil, func(string) (net.Conn, error) { return conn, tt.dials }, tt.endpoint)
		err := x.talk(ctx, &x.endpoints[0], func(over *sockets.Witness) error {
			require.Same(t, conn, over.Conn)
			require.Equal(t, deadline, conn.deadline)
			require.Zero(t, conn.closed)
			said++
			return tt.answers
		})
		if tt.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, tt.want)
		}
		require.Equal(t, tt.dials == nil && tt.fails == nil, said == 1, name)
		require.Equal(t, tt.dials == nil, conn.closed == 1, name)
	}
}

// remembering is a driver that remembers the contexts of what it was asked for.
type remembering struct {
	driver.Driver
	given chan context.Context
}

func (k remembering) Identify(ctx context.Context, _ net.Conn, _ driver.Link) (map[string]string, error) {
	k.given <- ctx
	return nil, ctx.Err()
}

func (k remembering) Prepare(context.Context, net.Conn, driver.Link) error { return nil }

func (k remembering) CleanUp(ctx context.Context, _ net.Conn, _ driver.Link) error {
	k.given <- ctx
	return ctx.Err()
}

// Each endpoint is cleaned up after a clear phase that ran to its end and had something to do. The run's next load prepares the servers again. What a
// driver was asked for has a context that ends with it.
func TestWhenServersAreCleanedUp(t *testing.T) {
	k := remembering{null.Driver{}, make(chan context.Context, 2)}
	x := sideTo(t, k, standInTo, "10.0.0.1:1", "10.0.0.2:1")
	require.NoError(t, x.identify(t.Context()))
	for range x.endpoints {
		require.Error(t, (<-k.given).Err())
	}
	for name, tt := range map[string]struct {
		driver           driver.Driver
		kind             worker.StepKind
		stopped, expired bool
		sessions         int
		cleans           bool
	}{
		"as it should be":  {k, worker.Clear, false, false, 2, true},
		"one session":      {k, worker.Clear, false, false, 1, true},
		"no session":       {k, worker.Clear, false, false, 0, false},
		"a load":           {k, worker.Load, false, false, 2, false},
		"stopped":          {k, worker.Clear, true, false, 2, false},
		"without a lease":  {k, worker.Clear, false, true, 2, false},
		"nothing to clean": {null.Driver{}, worker.Clear, false, false, 2, false},
	} {
		e := New(Config{Loops: 1, Logger: slog.New(slog.DiscardHandler)})
		e.ready = map[string]bool{"t": true}
		g := &group{side: *x, step: worker.Step{Kind: tt.kind}, sessions: tt.sessions}
		g.driver = tt.driver
		e.cleanUp(t.Context(), g, &worker.Final{Stopped: tt.stopped, Expired: tt.expired})
		require.Equal(t, tt.cleans, !e.ready["t"], name)
		require.Equal(t, tt.cleans, len(k.given) == len(x.endpoints), name)
		for len(k.given) > 0 {
			require.Error(t, (<-k.given).Err(), name)
		}
	}
}
