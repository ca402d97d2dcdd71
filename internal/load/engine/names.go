package engine

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/pkg/driver"
)

// hostName is an endpoint's host name, which was resolved when the phase began. When a connection is lost the name is resolved again, and new
// connections go to its new addresses.
type hostName struct {
	*refresher
	side   *side
	log    *slog.Logger
	leads  atomic.Pointer[sockets.Endpoint]
	failed bool // the last look-up failed, and that was logged
}

// nameEndpoints notes the endpoints whose host name identify has resolved. Other host names are resolved by whoever connects.
func (x *side) nameEndpoints(log *slog.Logger) {
	if x.servers == nil || x.resolve == nil {
		return
	}
	x.names = map[int]*hostName{}
	for i := range x.endpoints {
		if _, _, ok := hostOf(&x.endpoints[i]); ok {
			n := &hostName{refresher: newRefresher(), side: x, log: log}
			n.leads.Store(&x.endpoints[i])
			x.names[i] = n
		}
	}
}

// look resolves the name. While the name still has all addresses that are loaded, the load stays there, whether or not they answer. Otherwise it goes
// where a phase that began now would go.
func (n *hostName) look(ctx context.Context) {
	x, was := n.side, n.leads.Load()
	within, cancel := context.WithTimeout(ctx, identifyWithin+x.patience())
	defer cancel()
	places, err := x.addresses(within, was)
	gone := func(addr netip.AddrPort) bool {
		return !slices.ContainsFunc(places, func(p sockets.Endpoint) bool { return p.Addr == addr })
	}
	if err == nil && len(was.Addrs) > 0 && !slices.ContainsFunc(was.Addrs, gone) {
		n.failed = false
		return
	}
	is := sockets.Endpoint{Name: was.Name, Text: was.Text}
	if err == nil {
		err = x.lead(within, &is, places)
	}
	about := []slog.Attr{slog.String("target", x.target.Name), slog.String("endpoint", was.Text), slog.Any("was", was.Addrs)}
	switch {
	case ctx.Err() != nil: // the phase is over
	case err == nil:
		n.leads.Store(&is)
		n.failed = false
		n.log.LogAttrs(ctx, slog.LevelWarn, "name leads elsewhere", append(about, slog.Any("is", is.Addrs))...)
	case !n.failed:
		n.failed = true
		n.log.LogAttrs(ctx, slog.LevelWarn, "name leads nowhere yet", append(about, slog.Any("error", err))...)
	}
}

// lead points an endpoint at those of its name's addresses that a phase would load.
func (x *side) lead(ctx context.Context, end *sockets.Endpoint, places []sockets.Endpoint) error {
	known, _ := x.driver.(driver.Identifier)
	facts, err := x.identifyAmong(ctx, end, places, known)
	if err != nil {
		return err
	}
	return x.expected(facts)
}

// suspect notes that an endpoint may have moved, since a connection to it was lost.
func (x *side) suspect(at int) {
	if n := x.names[at]; n != nil {
		n.suspect()
	}
	if x.cluster != nil {
		x.cluster.suspect()
	}
}

// keepUp begins to re-read host names and the cluster's map when there is doubt about them. letGo ends that.
func (x *side) keepUp() {
	for _, n := range x.names {
		n.keep(n.look)
	}
	if x.cluster != nil {
		x.cluster.keep(x.cluster.reread)
	}
}

// letGo ends what keepUp began.
func (x *side) letGo() {
	for _, n := range x.names {
		n.close()
	}
	if x.cluster != nil {
		x.cluster.close()
	}
}
