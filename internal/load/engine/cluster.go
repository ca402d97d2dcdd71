package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	mapWithin = time.Second // how long one node may take to send the map
	mostNodes = 1000        // the largest cluster
	mostNew   = 8           // the most nodes that may join during a phase
)

// cluster holds what a worker knows about a target that is a cluster: its nodes, a few of which may join during a phase, and the node of each slot.
// Its refresher reads the map again; loops adopt the new map at their next turn.
type cluster struct {
	*refresher
	side   *side
	driver driver.Cluster
	asked  []sockets.Endpoint // where to ask for the map: the nodes, or the servers that watch them
	next   int                // index of the one to ask next, modulo their number
	epoch  uint64             // the highest epoch of a map so far
	newest atomic.Pointer[op.Slots]
	known  atomic.Pointer[directory]
}

// directory says which nodes of a cluster are which endpoints. It does not change; to add a node, a copy replaces it. So loops can read it without
// waiting for each other.
type directory struct {
	index  map[string]int     // endpoint by address and aliases
	joined []sockets.Endpoint // nodes that joined nodes that joined during this phase; numbered after the side's endpoints
}

func newCluster(x *side, d driver.Cluster) *cluster {
	c := &cluster{refresher: newRefresher(), side: x, driver: d}
	c.known.Store(&directory{index: map[string]int{}})
	return c
}

// discover finds the nodes of the target's cluster. It asks the target's endpoints in turn until one answers, and replaces them by the nodes, ordered
// by address. Nodes without slots, which a Replicator has, are endpoints like those of a plan.
func (x *side) discover(ctx context.Context, d driver.Cluster) error {
	c := newCluster(x, d)
	var errs []error
	for i := range x.endpoints {
		nodes, err := c.ask(ctx, &x.endpoints[i], identifyWithin+x.patience())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if len(nodes) > mostNodes {
			return fmt.Errorf("%v: a cluster of %d nodes, more than %d", x.endpoints[i], len(nodes), mostNodes)
		}
		slices.SortFunc(nodes, byAddress)
		if _, rings := d.(driver.Replicator); rings {
			var all []string
			for _, n := range nodes {
				all = append(all, n.Addr)
			}
			return x.place(all)
		}
		c.asked, x.endpoints = x.endpoints, nil
		for i, n := range nodes {
			x.endpoints = append(x.endpoints, sockets.NewEndpoint(fmt.Sprintf("n%d", i), n.Addr))
			c.name(i, append(n.Aliases, n.Addr)...)
		}
		if w, ok := d.(driver.Watched); !ok || !w.Watched(x.target.Config) {
			c.asked = x.endpoints
		}
		slots := op.NewSlots(c.places())
		c.enter(slots, nodes)
		if missing := slots.Missing(); missing > 0 {
			return fmt.Errorf("%d of %d slots of the cluster have no node: see redis-cli --cluster check %s", missing, op.NumSlots, nodes[0].Addr)
		}
		c.newest.Store(slots)
		x.cluster, x.placement = c, slots
		return nil
	}
	return errors.Join(errs...)
}

// byAddress orders nodes by IP address and port; nodes with a host name instead come first.
func byAddress(a, b driver.Node) int {
	x, _ := netip.ParseAddrPort(a.Addr)
	y, _ := netip.ParseAddrPort(b.Addr)
	return cmp.Or(x.Compare(y), cmp.Compare(a.Addr, b.Addr))
}

// ask asks a node for the map.
func (c *cluster) ask(ctx context.Context, end *sockets.Endpoint, within time.Duration) ([]driver.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var nodes []driver.Node
	err := c.side.talk(ctx, end, func(conn *sockets.Witness, link driver.Link) (err error) {
		nodes, err = c.driver.Nodes(ctx, conn, link)
		if err == nil && len(nodes) == 0 {
			return errors.New("it names no node of its cluster")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return nodes, nil
}

// enter gives nodes their slots, unless the map is older than the one in use; then it returns false. The slots of a node for which there is no place
// stay where they were.
func (c *cluster) enter(slots *op.Slots, nodes []driver.Node) bool {
	readers := make([][]int, c.places())
	for _, n := range nodes {
		if n.Epoch < c.epoch {
			return false
		}
		c.epoch = n.Epoch
		if n.Of != "" {
			if at, of := c.place(n.Addr, n.Aliases...), c.place(n.Of); at >= 0 && of >= 0 {
				readers[of] = append(readers[of], at)
			}
		}
		if len(n.Slots) == 0 {
			continue
		}
		at := c.place(n.Addr, n.Aliases...)
		for _, r := range n.Slots {
			for slot := r[0]; at >= 0 && slot <= r[1]; slot++ {
				slots.Set(slot, at)
			}
		}
	}
	slots.Share(readers)
	return true
}

// places is how many endpoints the phase can have.
func (c *cluster) places() int { return len(c.side.endpoints) + mostNew }

// name adds addresses by which an endpoint is known.
func (c *cluster) name(at int, addrs ...string) {
	c.change(func(d *directory) {
		for _, addr := range addrs {
			d.index[addr] = at
		}
	})
}

// change replaces the directory by a changed copy. The function change may be called again, with another copy.
func (c *cluster) change(change func(*directory)) {
	for {
		before := c.known.Load()
		after := &directory{index: maps.Clone(before.index), joined: slices.Clone(before.joined)}
		change(after)
		if c.known.CompareAndSwap(before, after) {
			return
		}
	}
}

// place returns the endpoint with an address. A node that has joined gets a place now, and becomes known by the aliases too. It returns −1 if no
// place is left or the node's IP address is unknown.
func (c *cluster) place(addr string, aliases ...string) int {
	at, known := c.knows(addr)
	if !known {
		ip, ok := ipPort(addr)
		if !ok {
			return -1
		}
		if at = c.join(ip); at < 0 {
			return at
		}
	}
	if known && !slices.ContainsFunc(aliases, func(alias string) bool { return !c.names(at, alias) }) {
		return at
	}
	c.name(at, append(aliases, addr)...)
	return at
}

// join returns the endpoint with an IP address, and gives it a place if it has none; −1 if none is left.
func (c *cluster) join(ip netip.AddrPort) (at int) {
	c.change(func(d *directory) {
		there, known := d.index[ip.String()]
		if known {
			at = there
			return
		}
		if at = -1; len(d.joined) < mostNew {
			at = len(c.side.endpoints) + len(d.joined)
			d.joined = append(d.joined, sockets.Endpoint{Name: fmt.Sprintf("n%d", at), Text: ip.String(), Addr: ip})
			d.index[ip.String()] = at
		}
	})
	return at
}

// ipPort reads an IP address and a port. A version 6 address may stand with or without brackets.
func ipPort(addr string) (netip.AddrPort, bool) {
	if ip, err := netip.ParseAddrPort(addr); err == nil {
		return ip, true
	}
	at := max(0, strings.LastIndexByte(addr, ':'))
	ip, err := netip.ParseAddrPort("[" + addr[:at] + "]" + addr[at:])
	return ip, err == nil
}

// knows returns the endpoint that is known by an address or an alias.
func (c *cluster) knows(addr string) (at int, ok bool) {
	at, ok = c.known.Load().index[addr]
	return at, ok
}

// names reports whether an endpoint is known by an address.
func (c *cluster) names(endpoint int, addr string) bool {
	at, known := c.knows(addr)
	return known && at == endpoint
}

// newcomer returns an endpoint that has joined.
func (c *cluster) newcomer(at int) *sockets.Endpoint {
	return &c.known.Load().joined[at-len(c.side.endpoints)]
}

// reread reads the map again. It asks nodes in turn until one returns a map that is not older than the one in use.
func (c *cluster) reread(ctx context.Context) {
	for range c.asked {
		of := &c.asked[c.next%len(c.asked)]
		end := sockets.NewEndpoint(of.Name, of.Text) // a name may resolve to another address by now
		c.next++
		nodes, err := c.ask(ctx, &end, mapWithin)
		if err != nil {
			continue
		}
		slots := op.NewSlots(c.places())
		slots.Copy(c.newest.Load())
		if c.enter(slots, nodes) {
			c.newest.Store(slots)
			return
		}
	}
}

// routes is a loop's own view of a cluster; nil if the target is not a cluster.
type routes struct {
	*cluster
	codec  *guarded // of the loop
	slots  *op.Slots
	latest *op.Slots   // the map that was adopted last
	to     op.Redirect // where the current reply redirects to
}

func newRoutes(c *cluster, codec driver.Codec) (*routes, error) {
	if _, ok := codec.(driver.Redirector); !ok {
		return nil, fmt.Errorf("driver %q does not read redirects", c.driver.Name())
	}
	return &routes{cluster: c, slots: op.NewSlots(c.places())}, nil
}

// renew adopts the newest map if it has changed.
func (r *routes) renew() {
	if r == nil {
		return
	}
	if newest := r.newest.Load(); newest != r.latest {
		r.latest = newest
		r.slots.Copy(newest)
	}
}

// suspect notes that the map may be wrong.
func (r *routes) suspect() {
	if r == nil {
		return
	}
	r.refresher.suspect()
}

// idle reports whether requests reach an endpoint only by redirects: it has no slots, and serves no gets for nodes that have.
func (r *routes) idle(endpoint int) bool { return r != nil && !r.slots.Serves(endpoint) }

// redirect parses an endpoint's error as a redirect; nil if it is none. The result is valid until the next call. It fails if the driver panics.
func (r *routes) redirect(endpoint int, message []byte) (*op.Redirect, error) {
	if r == nil {
		return nil, nil
	}
	addr, ask, ok, err := r.codec.redirect(message)
	if !ok || !ask {
		r.suspect()
	}
	if !ok {
		return nil, err
	}
	at, known := r.knows(string(addr))
	if !known {
		r.codec.hold.release()
		if bytes.LastIndexByte(addr, ':') == 0 { // another port of the same host
			host, _, _ := net.SplitHostPort(r.side.endpoint(endpoint).Text)
			addr = []byte(net.JoinHostPort(host, string(addr[1:])))
		}
		at = r.place(string(addr))
	}
	r.to = op.Redirect{Endpoint: at, Ask: ask}
	return &r.to, nil
}

// Reasons why an op ends at a redirect.
var (
	strangeNode = fmt.Appendf(nil, "redirected to a node that has joined and is known by its name only, or after %d others", mostNew)
	noEnd       = fmt.Appendf(nil, "redirected more than %d times", op.MaxRedirects)
)

// clustered reports whether a target is a cluster, and by which driver.
func clustered(t *plan.Target, d driver.Driver) (driver.Cluster, bool) {
	c, ok := d.(driver.Cluster)
	return c, ok && c.Clustered(t.Config)
}
