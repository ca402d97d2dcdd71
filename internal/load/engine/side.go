package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// side is one of the targets of a phase with what this worker needs to reach it: its driver, addresses and connections.
type side struct {
	target    *plan.Target
	driver    driver.Driver
	clients   int           // clients of each session and endpoint: one or, if the driver's clients block, one for each op in flight
	forms     []driver.Form // the target's ops in the plan's own words
	batch     bool          // its gets have several keys
	values    bool          // the load looks at the values of its gets
	run       string        // the run's id
	secrets   func(name string) (string, error)
	number    int // its number among the phase's targets
	first     int // the first of its rows in the ledger of requests
	endpoints []sockets.Endpoint
	placement op.Placement
	names     map[int]*hostName // by endpoint: those with a host name
	cluster   *cluster          // nil if the target is not a cluster
	connect   sockets.Connector
	resolve   func(ctx context.Context, network, host string) ([]netip.Addr, error)
	servers   map[string]map[string]string
}

// rows returns how many rows of the ledger of requests the target has: one for each endpoint and, for a cluster, one for all nodes that join later.
func (x *side) rows() int {
	if x.cluster != nil {
		return len(x.endpoints) + 1
	}
	return len(x.endpoints)
}

// opens returns the most connections that a session opens: none if there is nothing to connect to.
func (x *side) opens() int {
	_, wire := x.driver.(driver.Wire)
	_, dials := x.driver.(driver.Dialer)
	if !wire && !dials {
		return 0
	}
	return x.clients * len(x.endpoints)
}

// connections returns how many connections a session opens when a phase begins.
func (x *side) connections() int {
	n := x.opens()
	for i := range x.endpoints {
		if x.spare(i) {
			n -= x.clients
		}
	}
	return n
}

// locate lists the target's endpoints; nodes are those of built-in targets.
func (x *side) locate(nodes []string) error {
	texts := x.target.Endpoints
	if len(texts) == 0 {
		texts = nodes
	}
	if len(texts) == 0 {
		return errors.New("it has no endpoint")
	}
	return x.place(texts)
}

// place makes servers at these addresses the target's endpoints, and places keys on them.
func (x *side) place(texts []string) error {
	x.endpoints = nil
	var names []string
	for i, text := range texts {
		name := "n" + strconv.Itoa(i)
		x.endpoints = append(x.endpoints, sockets.NewEndpoint(name, text))
		names = append(names, name)
	}
	switch x.target.Placement {
	case plan.Rendezvous:
		x.placement = op.NewRendezvous(names)
	case plan.ServersRing:
		d, ok := x.driver.(driver.Replicator)
		if !ok {
			return fmt.Errorf("driver %q has no ring of its own", x.target.Driver)
		}
		points := make([][]uint32, len(texts))
		for i, text := range texts {
			points[i] = d.Points(x.target.Config, text)
		}
		x.placement = op.NewRingOf(points)
	default:
		x.placement = op.NewRing(names)
	}
	return nil
}

// identify finds every endpoint's address and asks the server there to identify itself. It fails if an endpoint that has work cannot be reached.
func (x *side) identify(ctx context.Context) error {
	_, wire := x.driver.(driver.Wire)
	known, tells := x.driver.(driver.Identifier)
	if !wire && !tells {
		return nil
	}
	facts := make([]map[string]string, len(x.endpoints))
	var asks errgroup.Group
	for i := range x.endpoints {
		asks.Go(func() (err error) {
			ctx, cancel := context.WithTimeout(ctx, identifyWithin+x.patience())
			defer cancel()
			facts[i], err = x.identifyOne(ctx, &x.endpoints[i], known)
			if err != nil && x.spare(i) {
				x.endpoints[i].Addr, _ = netip.ParseAddrPort(x.endpoints[i].Text) // the address stays unknown if the node has a host name
				return nil
			}
			return err
		})
	}
	if err := asks.Wait(); err != nil {
		return err
	}
	x.servers = make(map[string]map[string]string)
	for i, end := range x.endpoints {
		if err := x.expected(facts[i]); err != nil {
			return fmt.Errorf("%v: %w", &end, err)
		}
		if len(facts[i]) > 0 {
			x.servers[end.Text] = facts[i]
		}
	}
	return nil
}

// patience returns how long the target's servers may take to know each other.
func (x *side) patience() time.Duration {
	if d, ok := x.driver.(driver.Replicator); ok {
		return d.Patience(x.target.Config)
	}
	return 0
}

// expected returns an error if a server reports N, W and R and they differ from the plan's.
func (x *side) expected(facts map[string]string) error {
	want := x.target.Copies
	if want == nil {
		return nil
	}
	for _, k := range []struct {
		name string
		k    int
	}{{"n", want.N}, {"w", want.W}, {"r", want.R}} {
		if said, ok := facts[k.name]; ok && said != strconv.Itoa(k.k) {
			return fmt.Errorf("the server says %s = %s, and the plan expects %d: start it with that, or write what it has in replication", k.name, said, k.k)
		}
	}
	return nil
}

// prepare makes the driver prepare the servers of a target, once in a run; ready lists the targets whose servers are prepared.
func (x *side) prepare(ctx context.Context, ready map[string]bool) error {
	p, ok := x.driver.(driver.Preparer)
	if !ok || ready[x.target.Name] {
		return nil
	}
	var all errgroup.Group
	for i := range x.endpoints {
		end := x.endpoints[i]
		all.Go(func() error {
			return x.talk(ctx, &end, func(conn *sockets.Witness, link driver.Link) error { return p.Prepare(ctx, conn, link) })
		})
	}
	err := all.Wait()
	ready[x.target.Name] = err == nil
	return err
}

// cleanUp makes the driver remove what it created on the servers, after a clear phase that ran to its end. The run's next load of the target prepares
// the servers again. A failure is only logged: the phase still counts.
func (e *Engine) cleanUp(ctx context.Context, g *group, final *worker.Final) {
	c, ok := g.driver.(driver.Cleaner)
	if !ok || g.step.Kind != worker.Clear || final.Stopped || final.Expired || g.sessions == 0 {
		return
	}
	delete(e.ready, g.target.Name)
	ctx, cancel := context.WithTimeout(ctx, cleanWithin)
	defer cancel()
	for i := range g.endpoints {
		end := g.endpoints[i]
		err := g.talk(ctx, &end, func(conn *sockets.Witness, link driver.Link) error { return c.CleanUp(ctx, conn, link) })
		if err != nil {
			e.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "server is not cleaned up", slog.String("target", g.target.Name), slog.Any("error", err))
		}
	}
}

// spare reports whether an endpoint is a cluster node that has nothing to do for now, such as a replica: it may be down.
func (x *side) spare(i int) bool { return x.cluster != nil && !x.cluster.newest.Load().Serves(i) }

// identifyOne finds the addresses of an endpoint's name and asks the server at each to identify itself. The load goes to the first that answers.
// Blocking clients divide all that answer among themselves.
func (x *side) identifyOne(ctx context.Context, end *sockets.Endpoint, d driver.Identifier) (map[string]string, error) {
	places, err := x.addresses(ctx, end)
	if err != nil {
		return nil, fmt.Errorf("connect to %v: %w", end, err)
	}
	return x.identifyAmong(ctx, end, places, d)
}

// identifyAmong is identifyOne for an endpoint whose addresses are known.
func (x *side) identifyAmong(ctx context.Context, end *sockets.Endpoint, places []sockets.Endpoint, d driver.Identifier) (map[string]string, error) {
	facts, errs := make([]map[string]string, len(places)), make([]error, len(places))
	var asks sync.WaitGroup
	for i := range places {
		asks.Go(func() { facts[i], errs[i] = x.identifyAt(ctx, &places[i], d) })
	}
	asks.Wait()
	first := slices.IndexFunc(errs, func(err error) bool { return err == nil })
	if first < 0 {
		return nil, errors.Join(errs...)
	}
	end.Addr = places[first].Addr
	x.choose(end, places, facts)
	return facts[first], nil
}

// hostOf returns the host name of an endpoint and its port; false if it has no name, but an IP address or a socket's path.
func hostOf(end *sockets.Endpoint) (name string, port uint16, ok bool) {
	name, text, err := net.SplitHostPort(end.Text)
	n, err2 := strconv.ParseUint(text, 10, 16)
	_, notIP := netip.ParseAddr(name)
	return name, uint16(n), end.Path == "" && err == nil && err2 == nil && notIP != nil
}

// addresses returns the endpoint at each address of its name; the endpoint itself if it has no name.
func (x *side) addresses(ctx context.Context, end *sockets.Endpoint) ([]sockets.Endpoint, error) {
	host, port, ok := hostOf(end)
	if !ok || x.resolve == nil {
		return []sockets.Endpoint{*end}, nil
	}
	found, err := x.resolve(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var all []sockets.Endpoint
	for _, addr := range found {
		at := *end
		at.Addr = netip.AddrPortFrom(addr.Unmap(), port)
		if !slices.ContainsFunc(all, func(e sockets.Endpoint) bool { return e.Addr == at.Addr }) {
			all = append(all, at)
		}
	}
	if len(all) == 0 || len(all) > mostAddresses {
		return nil, fmt.Errorf("%s has %d addresses, and from 1 to %d are possible", host, len(all), mostAddresses)
	}
	return all, nil
}

// choose records which addresses of a name are loaded and which are not. facts are nil for an address where nobody answered. The facts of the first
// that answered become the endpoint's.
func (x *side) choose(end *sockets.Endpoint, places []sockets.Endpoint, facts []map[string]string) {
	_, divided := x.driver.(driver.Dialer)
	var loaded, others, silent []string
	var is map[string]string
	for i, at := range places {
		switch f := facts[i]; {
		case f == nil:
			silent = append(silent, at.Addr.String())
		case is == nil:
			is = f
			loaded, end.Addrs = append(loaded, f[worker.Address]), append(end.Addrs, at.Addr)
		case divided:
			loaded, end.Addrs = append(loaded, f[worker.Address]), append(end.Addrs, at.Addr)
		case f[worker.Instance] == "" || f[worker.Instance] != is[worker.Instance]:
			others = append(others, f[worker.Address])
		}
	}
	for name, list := range map[string][]string{worker.Address: loaded, worker.OtherAddresses: others, worker.SilentAddresses: silent} {
		if text := strings.Join(list, ", "); text != "" {
			is[name] = text
		}
	}
}

// identifyAt connects to an endpoint and asks the server there to identify itself. It notes the address that the connection leads to.
func (x *side) identifyAt(ctx context.Context, end *sockets.Endpoint, d driver.Identifier) (map[string]string, error) {
	facts := map[string]string{}
	err := x.talk(ctx, end, func(conn *sockets.Witness, link driver.Link) error {
		if d != nil {
			told, err := d.Identify(ctx, conn, link)
			if err = cmp.Or(err, ctx.Err()); err != nil { // after its time nobody waits for what it says
				return err
			}
			maps.Copy(facts, told)
		}
		if at, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
			end.Addr = netip.AddrPortFrom(at.AddrPort().Addr().Unmap(), at.AddrPort().Port())
			facts[worker.Address] = end.Addr.String()
		}
		maps.Copy(facts, x.connect.Facts(conn.Conn))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return facts, nil
}

// dialOneOf connects the i-th client of an endpoint whose clients divide its addresses among themselves. If an address is dead, the next one is tried.
func (x *side) dialOneOf(ctx context.Context, end *sockets.Endpoint, i int) (net.Conn, error) {
	if len(end.Addrs) < 2 {
		return x.connect.To(ctx, end)
	}
	var errs []error
	for tried := range end.Addrs {
		at := *end
		at.Addr = end.Addrs[(i+tried)%len(end.Addrs)]
		conn, err := x.dialIn(ctx, &at, len(end.Addrs)-tried)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("%v: %w", at.Addr, err))
	}
	return nil, errors.Join(errs...)
}

// dialIn connects within the n-th part of the time that is left.
func (x *side) dialIn(ctx context.Context, end *sockets.Endpoint, n int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(n))
		defer cancel()
	}
	return x.connect.To(ctx, end)
}

// link returns the link from which codecs and sessions are made; its endpoint is "" if connections share a codec.
func (x *side) link(endpoint string) driver.Link {
	others := make([]string, len(x.endpoints))
	for i := range x.endpoints {
		others[i] = x.endpoints[i].Text
	}
	return driver.Link{
		Endpoint: endpoint, Others: others, Ring: x.target.Placement == plan.ServersRing, Run: x.run, TLS: x.target.TLS != nil, Config: x.target.Config, Forms: x.forms, Batch: x.batch, Values: x.values, Secrets: x.secrets,
	}
}

// talk runs a driver's exchange with an endpoint over a connection of its own, until ctx ends. The link of a Dialer makes more of them. Errors name the
// likely cause.
func (x *side) talk(ctx context.Context, end *sockets.Endpoint, exchange func(conn *sockets.Witness, link driver.Link) error) error {
	dial := func(ctx context.Context) (net.Conn, error) {
		conn, err := x.connect.To(ctx, end)
		if deadline, ok := ctx.Deadline(); ok && err == nil {
			err = conn.SetDeadline(deadline)
		}
		return conn, err
	}
	conn, err := dial(ctx)
	switch {
	case end.Path == "" && errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("connect to %v: %w: nothing listens there: start the server, or write endpoints that are there", end, err)
	case err != nil:
		return fmt.Errorf("connect to %v: %w", end, err)
	}
	defer conn.Close()
	heard, link := &sockets.Witness{Conn: conn}, x.link(end.Text)
	if _, dials := x.driver.(driver.Dialer); dials {
		link.Dial = func(context.Context) (net.Conn, error) { return dial(ctx) }
	}
	if err := timely(ctx, func() error { return exchange(heard, link) }); err != nil {
		return fmt.Errorf("%v: %w", end, heard.Explain(x.connect.Explain(err)))
	}
	return nil
}

// places returns how many endpoints a session may have connections to.
func (x *side) places() int {
	if x.cluster != nil {
		return x.cluster.places()
	}
	return len(x.endpoints)
}

// endpoint returns the endpoint at a place, as it is known now. The caller must not change it.
func (x *side) endpoint(at int) *sockets.Endpoint {
	switch n := x.names[at]; {
	case n != nil:
		return n.leads.Load()
	case at < len(x.endpoints):
		return &x.endpoints[at]
	}
	return x.cluster.newcomer(at)
}
