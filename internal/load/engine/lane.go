package engine

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/load/op"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// lane is what a loop has for one of its phase's targets: what moves requests there, and the program of the ops that go there. A request may leave
// its op's lane, such as the put of a get that fills another target. It is sent, counted and answered in its own target's lane, and its end is
// reported to the op's program.
type lane struct {
	l         *loop
	side      *side
	tr        transport
	routes    *routes // nil if the target is not a cluster
	programs  *programs
	opTimeout int64 // 0: the request's timeout is enough
	acks      bool  // record the latency of the k-th good answer
	checked   bool  // the values of gets carry a header
}

// row returns the row in which requests to an endpoint are counted. All nodes that joined a cluster during the phase share the target's last row.
func (la *lane) row(endpoint int) int { return la.side.first + min(endpoint, la.side.rows()-1) }

// requests returns the ledger of requests to an endpoint with a verb.
func (la *lane) requests(endpoint int, v driver.Verb) *measure.Requests {
	return la.l.rec.Request(la.row(endpoint), v)
}

// program gives the lane the program of a step, which draws from the seed chance. Steps that are not measured need all N replicas.
func (g *group) program(la *lane, kind worker.StepKind, chance uint64) {
	x, data := la.side, g.datasetsOf(la.side)
	la.checked = data[0].Values.Checked
	la.acks, la.opTimeout = x.target.Replication != nil, 0
	la.programs.Program = func() op.Program {
		if kind.Timed() && g.phase.Batch > 1 {
			return op.NewBatch(x.placement)
		}
		keys := data[0].Keys.Count
		if data[0].Keys.PerSession() || len(data) > 1 { // an index does not name one key
			keys = 0
		}
		n := x.target.Replication
		switch {
		case n == nil && la.routes != nil:
			return op.NewCluster(la.routes.slots, la.checked)
		case n == nil:
			plain := op.NewPlain(x.placement, la.checked)
			plain.Remember(keys)
			return plain
		}
		la.opTimeout = int64(n.Timeout)
		cfg := op.NWR{N: n.N, W: n.W, R: n.R, GetsAskR: n.GetsAskR(), AtRandom: n.AtRandom(), Seed: chance, Keys: keys}
		if !kind.Timed() {
			cfg.W = n.N
		}
		return op.NewNWR(cfg, x.placement)
	}()
}

// width is the most requests that an op of a step of the phase begins with.
func (g *group) width(kind worker.StepKind) int {
	most := 1
	for _, x := range g.sides() {
		switch r := x.target.Replication; {
		case r != nil:
			most = max(most, r.N)
		case kind.Timed():
			most = max(most, min(g.phase.Batch, len(x.endpoints)))
		}
	}
	return most
}

// datasetsOf lists the datasets whose keys the phase asks a target for. There is at least one.
func (g *group) datasetsOf(x *side) (list []*plan.Dataset) {
	for _, name := range g.phase.DatasetsOn(x.target.Name) {
		list = append(list, g.plan.Dataset(name))
	}
	return list
}

// open1 makes the transport of a lane, and the programs that it reports to.
func (g *group) open1(e *Engine, la *lane) (err error) {
	if la.tr, err = g.newTransport(e, la); err == nil {
		la.programs = newPrograms(la)
	}
	return err
}

// leads returns which endpoint of which target the connection with a token goes to. Any goroutine may call it once the loop is made.
func (l *loop) leads(token int32) (x *side, endpoint int) {
	w := l.wireOf(token)
	return w.lane.side, int(token-w.base) % w.places
}

// wireOf returns the wire that has the connection with a token.
func (l *loop) wireOf(token int32) *wire {
	for _, la := range l.lanes {
		if w, ok := la.tr.(*wire); ok && token-w.base < int32(len(w.conns)) {
			return w
		}
	}
	panic("engine: a connection of no target")
}

// named adds the target's name to an error of a phase with several targets.
func (la *lane) named(err error) error {
	return fmt.Errorf("target %q: %w", la.side.target.Name, err)
}

// blame appends what went wrong at an endpoint, with the target if there are several, and counts what is this machine's fault. It leaves out a connection's addresses: the local port differs
// each time, and one cause should be one text.
func (la *lane) blame(dst []byte, end *sockets.Endpoint, why error) []byte {
	if errors.Is(why, unix.EADDRNOTAVAIL) {
		la.l.noPort++
	}
	what := why.Error()
	if connection, ok := errors.AsType[*net.OpError](why); ok {
		what = strings.Replace(what, connection.Error(), connection.Err.Error(), 1)
	}
	if len(la.l.lanes) > 1 {
		dst = append(append(dst, la.side.target.Name...), " at "...)
	}
	dst = append(append(dst, end.String()...), ": "...)
	return append(dst, what...)
}
