package plan

import (
	"fmt"
	"time"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Replication says on how many endpoints a key lives and how many answers complete an op.
type Replication struct {
	Coordinate string        `json:"coordinate"` // byClient
	N          int           `json:"n"`
	W          int           `json:"w"`
	R          int           `json:"r"`
	Timeout    time.Duration `json:"timeout_ns"`  // of the op
	ReadFanout string        `json:"read_fanout"` // askN or askR
	ReadFrom   string        `json:"read_from"`   // for askR: fromFirst or fromRandom
}

const (
	byClient = "client" // loadgen sends the requests to all copies

	askN = "n" // a get asks all N endpoints
	askR = "r" // a get asks R of them, and another one on each failure

	fromFirst  = "first" // the first R in the placement's order
	fromRandom = "random"
)

// ByClient reports whether loadgen maintains the copies, rather than the store.
func (r *Replication) ByClient() bool { return r.Coordinate == byClient }

// GetsAskR reports whether a get asks only R endpoints, and others when these fail; else it asks all N.
func (r *Replication) GetsAskR() bool { return r.ReadFanout == askR }

// AtRandom reports whether such a get asks randomly chosen endpoints.
func (r *Replication) AtRandom() bool { return r.ReadFrom == fromRandom }

// replication reads how keys are replicated. The default timeout of an op leaves time for a request that is never answered and for
// another in its place.
func (b *block) replication(timeout time.Duration) *Replication {
	p := &Replication{Coordinate: byClient, Timeout: 2 * timeout, ReadFanout: askN, ReadFrom: fromFirst}
	b.Expect([]string{"coordinate", "n", "w", "r", "timeout", "read_fanout", "read_from"}, nil)
	b.Text("coordinate", &p.Coordinate)
	for i, to := range []*int{&p.N, &p.W, &p.R} {
		name := []string{"n", "w", "r"}[i]
		if b.Require(name, fmt.Sprintf("Write %s = NUMBER; n, w and r have no defaults.", name)) {
			dialect.Integer(b.Block, name, to)
		}
	}
	b.Duration("timeout", &p.Timeout)
	b.Text("read_fanout", &p.ReadFanout)
	b.Text("read_from", &p.ReadFrom)
	return p
}

// replication checks N, W and R.
func (v *validator) replication(t *Target, at part) {
	p, nodes := t.Replication, len(t.Endpoints)
	if t.Builtin != nil {
		nodes = t.Builtin.Nodes
	}
	n := at.path + ".n"
	if p.Coordinate == "server" {
		v.fault(at.where+`: coordinate = "server" is not supported by this version`, `Use coordinate = "client".`, at.path+".coordinate")
	} else {
		v.oneOf(at, "coordinate", p.Coordinate, byClient)
	}
	v.within(at, "n", int64(p.N), 1, maxReplicas)
	if p.N > nodes && p.N <= maxReplicas {
		noun := "endpoints"
		if nodes == 1 {
			noun = "endpoint"
		}
		v.fault(fmt.Sprintf("%s: n = %d on %d %s", at.where, p.N, nodes, noun), fmt.Sprintf("Write n = %d or less, or more endpoints.", nodes),
			n, parent(at.path)+".endpoints", parent(at.path)+".builtin.nodes", parent(at.path)+".builtin")
	}
	for i, k := range []int{p.W, p.R} {
		name := []string{"w", "r"}[i]
		if k < 1 || k > p.N {
			v.fault(fmt.Sprintf("%s: %s = %d with n = %d", at.where, name, k, p.N), fmt.Sprintf("Write a number from 1 to n = %d.", p.N),
				at.path+"."+name, n)
		}
	}
	v.lasts(at, "timeout", p.Timeout, 1)
	v.oneOf(at, "read_fanout", p.ReadFanout, askN, askR)
	v.oneOf(at, "read_from", p.ReadFrom, fromFirst, fromRandom)
}
