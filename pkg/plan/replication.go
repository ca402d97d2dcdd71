package plan

import (
	"fmt"
	"time"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Copies says how servers copy values among themselves. N, W and R have the servers' own meaning.
type Copies struct {
	N int `json:"n"`
	W int `json:"w"`
	R int `json:"r"`
}

// Replication says on how many endpoints a key lives and how many answers complete an op.
type Replication struct {
	Coordinate string        `json:"coordinate"` // byClient; if the servers copy values, the target has Copies instead
	N          int           `json:"n"`
	W          int           `json:"w"`
	R          int           `json:"r"`
	Timeout    time.Duration `json:"timeout_ns"`  // of the op
	ReadFanout string        `json:"read_fanout"` // askN or askR
	ReadFrom   string        `json:"read_from"`   // for askR: fromFirst or fromRandom
}

const (
	byClient = "client" // loadgen sends the requests to all copies
	byServer = "server" // the servers copy

	askN = "n" // a get asks all N endpoints
	askR = "r" // a get asks R of them, and another one on each failure

	fromFirst  = "first" // the first R in the placement's order
	fromRandom = "random"
)

// GetsAskR reports whether a get asks only R endpoints, and others when these fail; else it asks all N.
func (r *Replication) GetsAskR() bool { return r.ReadFanout == askR }

// AtRandom reports whether such a get asks randomly chosen endpoints.
func (r *Replication) AtRandom() bool { return r.ReadFrom == fromRandom }

// replication reads how keys are replicated: by loadgen, or by the servers. The default timeout of an op leaves time for a request that is never answered
// and for another in its place.
func (b *block) replication(timeout time.Duration) (*Replication, *Copies) {
	p := &Replication{Coordinate: byClient, Timeout: 2 * timeout, ReadFanout: askN, ReadFrom: fromFirst}
	b.Text("coordinate", &p.Coordinate)
	own := []string{"coordinate", "n", "w", "r"}
	if p.Coordinate != byServer {
		own = append(own, "timeout", "read_fanout", "read_from")
	}
	b.Expect(own, nil)
	for i, to := range []*int{&p.N, &p.W, &p.R} {
		name := []string{"n", "w", "r"}[i]
		if b.Require(name, fmt.Sprintf("Write %s = NUMBER; n, w and r have no defaults.", name)) {
			dialect.Integer(b.Block, name, to)
		}
	}
	if p.Coordinate == byServer {
		return nil, &Copies{N: p.N, W: p.W, R: p.R}
	}
	b.Duration("timeout", &p.Timeout)
	b.Text("read_fanout", &p.ReadFanout)
	b.Text("read_from", &p.ReadFrom)
	return p, nil
}

// Confirms returns the largest number of copies of a value that the target's servers report in their replies to puts; 0 if they report none.
func (t *Target) Confirms() int {
	copies, _ := t.confirms()
	return copies
}

func (t *Target) confirms() (copies int, within time.Duration) {
	if c, ok := t.Config.(driver.Confirmer); ok {
		return c.Confirms()
	}
	return 0, 0
}

// confirmed checks a target whose servers wait for copies.
func (v *validator) confirmed(t *Target, at part) {
	copies, within := t.confirms()
	switch {
	case copies == 0:
	case within >= t.Timeout && t.Timeout > 0:
		v.fault(fmt.Sprintf("%s: its servers wait for copies for %s, and timeout = %q", at.where, within, t.Timeout),
			"Write a longer timeout of the target: otherwise a put with too few copies looks like one without an answer.", at.path+".timeout", at.path+".config.timeout", at.path)
	case t.Replication != nil:
		v.fault(at.where+": replication by loadgen, and servers that wait for copies", "Leave one of them out.", at.path+".replication", at.path)
	case t.Builtin != nil:
		v.fault(at.where+": built-in nodes have no replicas to wait for", `Write endpoints = ["HOST:PORT"] of servers that have, or leave wait out.`, at.path+".builtin", at.path)
	}
}

// copies checks N, W and R of servers that copy by themselves.
func (v *validator) copies(at part, c *Copies) {
	v.within(at, "n", int64(c.N), 1, maxReplicas)
	v.needed(at, c.N, c.W, c.R)
}

// needed checks W and R.
func (v *validator) needed(at part, n, w, r int) {
	for i, k := range []int{w, r} {
		name := []string{"w", "r"}[i]
		if k < 1 || k > n {
			v.fault(fmt.Sprintf("%s: %s = %d with n = %d", at.where, name, k, n), fmt.Sprintf("Write a number from 1 to n = %d.", n), at.path+"."+name, at.path+".n")
		}
	}
}

// expects checks that the built-in nodes of a target copy values as the plan expects.
func (v *validator) expects(t *Target, at part) {
	if t.Copies != nil && *t.Copies != *t.Builtin.Copies {
		is, want := t.Builtin.Copies, t.Copies
		v.fault(fmt.Sprintf("%s: nodes with n = %d, w = %d, r = %d, where replication expects n = %d, w = %d, r = %d", at.where, is.N, is.W, is.R, want.N, want.W, want.R),
			"Write the same in both blocks.", at.path, parent(at.path)+".replication")
	}
}

// replication checks N, W and R.
func (v *validator) replication(t *Target, d driver.Driver, at part) {
	_, copies := d.(driver.Replicator)
	switch {
	case t.Copies != nil && !copies:
		v.fault(fmt.Sprintf(`%s: coordinate = "server" with driver %s`, at.where, dialect.Quote(t.Driver)),
			`Use coordinate = "client": the servers of this driver do not say how many copies they wait for.`, at.path+".coordinate", at.path)
		return
	case t.Copies != nil:
		v.copies(at, t.Copies)
		return
	case copies:
		v.fault(fmt.Sprintf(`%s: coordinate = %s with driver %s`, at.where, dialect.Quote(t.Replication.Coordinate), dialect.Quote(t.Driver)),
			`Use coordinate = "server": these servers copy values by themselves.`, at.path+".coordinate", at.path)
	}
	p, nodes := t.Replication, len(t.Endpoints)
	if t.Builtin != nil {
		nodes = t.Builtin.Nodes
	}
	n := at.path + ".n"
	v.oneOf(at, "coordinate", p.Coordinate, byClient, byServer)
	v.within(at, "n", int64(p.N), 1, maxReplicas)
	if p.N > nodes && p.N <= maxReplicas {
		noun := "endpoints"
		if nodes == 1 {
			noun = "endpoint"
		}
		v.fault(fmt.Sprintf("%s: n = %d on %d %s", at.where, p.N, nodes, noun), fmt.Sprintf("Write n = %d or less, or more endpoints.", nodes),
			n, parent(at.path)+".endpoints", parent(at.path)+".builtin.nodes", parent(at.path)+".builtin")
	}
	v.needed(at, p.N, p.W, p.R)
	v.lasts(at, "timeout", p.Timeout, 1)
	v.oneOf(at, "read_fanout", p.ReadFanout, askN, askR)
	v.oneOf(at, "read_from", p.ReadFrom, fromFirst, fromRandom)
}

// remembered checks that a driver that keeps state for each key of each session can keep all of it.
func (v *validator) remembered(ph *Phase, t *Target, d *Dataset, at part) {
	r, ok := driverNamed(v.drivers, t.Driver).(driver.Replicator)
	if !ok {
		return
	}
	if all := multiply(d.Keys.Count, int64(ph.Sessions())); all > r.MostKept() {
		v.fault(fmt.Sprintf("%s: %d keys with %d sessions", at.where, d.Keys.Count, ph.Sessions()),
			fmt.Sprintf("Write fewer: driver %s keeps the version of each key for each session, and keys × sessions may be %d at most.", dialect.Quote(t.Driver), r.MostKept()),
			"dataset."+d.Name+".keys.count", at.path)
	}
}
