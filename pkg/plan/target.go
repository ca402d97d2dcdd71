package plan

import (
	"cmp"
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// Target is a system under load.
type Target struct {
	Name        string        `json:"name"`
	Driver      string        `json:"driver"`
	Endpoints   []string      `json:"endpoints"` // host:port, or unix:// and a path; mere names for a driver without a wire; empty when Builtin starts them
	Builtin     *Builtin      `json:"builtin"`   // nil when Endpoints are given
	Timeout     time.Duration `json:"timeout_ns"`
	IdleTimeout time.Duration `json:"idle_timeout_ns,omitempty"` // after this long without a request, a connection is closed until the next; 0: never
	Executor    string        `json:"executor"`                  // EventLoop, Blocking or Thread
	Placement   string        `json:"placement"`                 // ketama, Rendezvous, Slots or ServersRing: how keys map to endpoints
	TLS         *TLS          `json:"tls"`                       // nil for plain TCP
	Replication *Replication  `json:"replication"`               // nil if loadgen sends each request to one endpoint
	Copies      *Copies       `json:"copies,omitempty"`          // how the servers are expected to copy values; nil for no expectation
	Retry       *Retry        `json:"retry,omitempty"`           // nil if an op is tried once
	Config      any           `json:"config"`                    // the driver's own attributes: what its NewConfig returned, filled

	Source string `json:"source,omitempty"` // the target behind the cache; "" if this target is not a cache before another
	Cache  *Cache `json:"cache,omitempty"`  // nil unless there is a source

	Ops []*Op `json:"ops,omitempty"` // ops whose requests the plan defines itself, in file order
}

// Builtin asks for built-in cache nodes on this machine.
type Builtin struct {
	Nodes  int           `json:"nodes"`
	Memory int64         `json:"memory_bytes"`      // memory of each node
	Delay  time.Duration `json:"delay_ns"`          // delay before each reply
	Copies *Copies       `json:"copies,omitempty"`  // how the nodes copy, if they do so by themselves
	Wait   time.Duration `json:"wait_ns,omitempty"` // how long nodes wait for each other, if they copy
	Build  string        `json:"build,omitempty"`   // which servers they answer as, if they copy; "" for the driver's latest

	Service time.Duration `json:"service_ns,omitempty"` // a node works on one request at a time, for this long; 0 to answer without that
}

// The executors that can carry a target.
const (
	EventLoop = "event loop" // one thread with non-blocking sockets
	Blocking  = "blocking"   // goroutines for each connection
	Thread    = "thread"     // a thread for each session does the work itself
)

// The placements of keys on endpoints. The first two hash the endpoints' names n0, n1, …, not their addresses.
const (
	ketama     = "ketama"     // on a hash ring with several points per name
	Rendezvous = "rendezvous" // by highest random weight
	Slots      = "slots"      // as reported by a cluster, with some of its nodes as Endpoints; for clusters only, and their only placement

	ServersRing = "servers" // on the ring of servers that copy values by themselves, which hash their addresses
)

var (
	targetAttributes = []string{"driver", "endpoints", "timeout", "idle_timeout", "executor", "placement", "source"}
	targetBlocks     = []string{"builtin", "tls", "replication", "retry", "cache", "op"}
)

// target reads a target block.
func (r *resolver) target(body *hclsyntax.Block) *Target {
	t := &Target{Name: body.Labels[0], Endpoints: []string{}, Timeout: time.Second, Placement: ketama}
	b := r.block(body, "target."+t.Name, "target "+dialect.Quote(t.Name))
	if b.Has("source") {
		b.source(t)
	} else if b.Require("driver", "Write driver = \"NAME\". "+dialect.ThereIs(driverNames(r.file.drivers))) {
		b.Text("driver", &t.Driver)
	}
	b.Texts("endpoints", &t.Endpoints)
	b.Duration("timeout", &t.Timeout)
	b.Duration("idle_timeout", &t.IdleTimeout)
	b.Text("executor", &t.Executor)
	b.Text("placement", &t.Placement)
	d := driverNamed(r.file.drivers, t.Driver)
	if inner := b.inner("builtin"); inner != nil {
		_, copies := d.(driver.Replicator)
		t.Builtin = inner.builtin(copies)
	}
	if inner := b.inner("tls"); inner != nil {
		t.TLS = inner.tls()
	}
	if inner := b.inner("replication"); inner != nil {
		t.Replication, t.Copies = inner.replication(t.Timeout)
	}
	if inner := b.inner("retry"); inner != nil {
		t.Retry = inner.retry()
	}
	if d == nil {
		if b.Has("driver") && !r.isWrong(b.Path+".driver") {
			b.Bad("driver", "unknown driver "+dialect.Quote(t.Driver), cmp.Or(Meant("driver", t.Driver), dialect.Instead(t.Driver, driverNames(r.file.drivers), "driver = %q")+otherDrivers))
		}
		return t // the attributes depend on the driver
	}
	t.Config = d.NewConfig()
	b.driverBody(t.Config, targetAttributes, targetBlocks)
	b.ops(t, d)
	return t
}

// builtin reads the block that asks for built-in nodes, which may copy values by themselves.
func (b *block) builtin(copies bool) *Builtin {
	n := &Builtin{Nodes: 1, Memory: 64 << 20}
	own := []string{"nodes", "memory", "delay", "service"}
	if copies {
		n.Copies, n.Wait = &Copies{N: 3, W: 2, R: 1}, time.Second
		own = append(own, "n", "w", "r", "wait", "build")
	}
	b.Expect(own, nil)
	if copies {
		dialect.Integer(b.Block, "n", &n.Copies.N)
		dialect.Integer(b.Block, "w", &n.Copies.W)
		dialect.Integer(b.Block, "r", &n.Copies.R)
		b.Duration("wait", &n.Wait)
		b.Text("build", &n.Build)
	}
	dialect.Integer(b.Block, "nodes", &n.Nodes)
	dialect.Size(b.Block, "memory", &n.Memory)
	b.Duration("delay", &n.Delay)
	b.Duration("service", &n.Service)
	return n
}

// otherDrivers says where more drivers than a program has may come from.
const otherDrivers = " A program can bring its own: docs/drivers.md says how."

// target checks a target.
func (v *validator) target(t *Target) {
	at := part{"target." + t.Name, "target " + dialect.Quote(t.Name)}
	v.lasts(at, "timeout", t.Timeout, 1)
	d := driverNamed(v.drivers, t.Driver)
	if d == nil {
		v.fault(fmt.Sprintf("%s: unknown driver %s", at.where, dialect.Quote(t.Driver)), dialect.Instead(t.Driver, driverNames(v.drivers), "driver = %q")+otherDrivers, at.path+".driver")
		return
	}
	if _, inside := d.(driver.Inside); inside || t.Cache != nil || t.Source != "" {
		v.cache(t, d, at)
	}
	v.endpoints(t, d, at)
	v.executor(t, d, at)
	v.idles(t, d, at)
	if _, copies := d.(driver.Replicator); copies && !clustered(t, d) {
		v.oneOf(at, "placement", t.Placement, ServersRing, ketama, Rendezvous)
	} else if clustered(t, d) {
		v.cluster(t, copies, at)
	} else {
		v.oneOf(at, "placement", t.Placement, ketama, Rendezvous)
	}
	if t.Builtin != nil {
		v.builtin(t, d, at.in("builtin"))
	}
	if t.TLS != nil {
		v.tls(t, d, at.in("tls"))
	}
	if t.Replication != nil || t.Copies != nil {
		v.replication(t, d, at.in("replication"))
	}
	v.config(t, d, at)
	v.confirmed(t, at)
	v.ops(t, d, at)
	if t.Retry != nil {
		v.retry(t, at.in("retry"))
	}
}

// cluster checks for arguments that a cluster cannot have. Servers that copy values by themselves may be built in.
func (v *validator) cluster(t *Target, copies bool, at part) {
	if t.Placement != Slots && (!copies || t.Placement != ServersRing) {
		v.fault(fmt.Sprintf("%s: placement = %s of a cluster", at.where, dialect.Quote(t.Placement)),
			"Leave placement out: a cluster's nodes have divided the keys themselves.", at.path+".placement")
	}
	if copies {
		return
	}
	if t.Replication != nil || t.Copies != nil {
		v.fault(at.where+": replication of a cluster", "Leave one of them out: a cluster keeps its replicas itself, and a key has one node that takes requests.",
			at.path+".replication")
	}
	if t.Builtin != nil {
		v.fault(at.where+": built-in nodes are not a cluster, and have neither replicas nor Sentinels", `Write endpoints = ["HOST:PORT"] of one or more of the servers, or leave out what asks for that.`,
			at.path+".builtin", at.path+".config.cluster")
	}
}

// builtin checks the built-in nodes asked for.
func (v *validator) builtin(t *Target, d driver.Driver, at part) {
	if w, ok := d.(driver.Wire); !ok || w.Builtin() == "" {
		write := "Write endpoints, or another driver."
		if located(d) {
			write = "Leave builtin out: this driver needs no nodes. Or write endpoints, which are then names and no more."
		}
		v.fault(fmt.Sprintf("%s: no built-in node serves driver %q", at.where, t.Driver), write, at.path, parent(at.path)+".driver")
	}
	v.within(at, "nodes", int64(t.Builtin.Nodes), 1, maxNodes)
	v.holds(at, "memory", t.Builtin.Memory, minNodeMemory, maxNodeMemory)
	for i, d := range []time.Duration{t.Builtin.Delay, t.Builtin.Service} {
		if name := []string{"delay", "service"}[i]; d < 0 || d > maxNodeDelay {
			v.fault(fmt.Sprintf("%s: %s = %q", at.where, name, d.String()), "Write a duration from 0s to 1h.", at.path+"."+name)
		}
	}
	if c := t.Builtin.Copies; c != nil {
		v.copies(at, c)
		v.lasts(at, "wait", t.Builtin.Wait, 1)
		if r, ok := d.(driver.Replicator); ok && t.Builtin.Build != "" {
			v.oneOf(at, "build", t.Builtin.Build, r.Builds()...)
		}
		v.expects(t, at)
	}
}

// idles checks how long connections may idle.
func (v *validator) idles(t *Target, d driver.Driver, at part) {
	switch {
	case t.IdleTimeout < 0:
		v.fault(fmt.Sprintf("%s: idle_timeout = %q", at.where, t.IdleTimeout.String()), "Write a duration above 0s, or 0s for connections that may idle.", at.path+".idle_timeout")
	case t.IdleTimeout > 0 && !connects(d):
		v.fault(fmt.Sprintf("%s: idle_timeout with driver %s, which has no connections", at.where, dialect.Quote(t.Driver)), "Leave it out.", at.path+".idle_timeout")
	}
}

// executor checks that the executor can carry the target.
func (v *validator) executor(t *Target, d driver.Driver, at part) {
	v.oneOf(at, "executor", t.Executor, EventLoop, Blocking, Thread)
	if _, local := d.(localfile.Driver); local != (t.Executor == Thread) {
		v.fault(fmt.Sprintf("%s: executor %q does not carry driver %q", at.where, t.Executor, t.Driver), "Leave executor out.", at.path+".executor")
		return
	}
	if t.Executor != EventLoop {
		return
	}
	reason := ""
	if t.TLS != nil || encrypted(t, d) {
		reason = "TLS"
	} else if _, dials := d.(driver.Dialer); dials {
		reason = "driver " + dialect.Quote(t.Driver)
	}
	if reason != "" {
		v.fault(fmt.Sprintf("%s: the event loop does not carry %s", at.where, reason), "Leave executor out.", at.path+".executor")
	}
}

// executor returns the default executor of a target.
func executor(t *Target, d driver.Driver) string {
	_, dials := d.(driver.Dialer)
	_, local := d.(localfile.Driver)
	switch {
	case local:
		return Thread
	case dials || t.TLS != nil || encrypted(t, d):
		return Blocking
	}
	return EventLoop
}

// encrypted reports whether the driver's config asks for encrypted connections.
func encrypted(t *Target, d driver.Driver) bool {
	e, ok := d.(driver.Encrypter)
	return ok && e.Encrypted(t.Config)
}

// Discovers reports whether workers find the target's servers, some of which are its endpoints.
func (t *Target) Discovers() bool {
	c, ok := t.Config.(driver.Discoverer)
	return t.Placement == Slots || ok && c.Discovers()
}

// clustered reports whether a target is a cluster.
func clustered(t *Target, d driver.Driver) bool {
	c, ok := d.(driver.Cluster)
	return ok && c.Clustered(t.Config)
}

// located reports whether a driver needs no endpoints to find its target. Endpoints are then mere names.
func located(d driver.Driver) bool {
	switch d.(type) {
	case driver.Timed, driver.Inside, localfile.Driver:
		return true
	}
	return false
}

// imaginary returns endpoint names for a target that needs no endpoints: as many as its replication needs, at least one.
func imaginary(t *Target) []string {
	n := 1
	if t.Replication != nil {
		n = min(max(t.Replication.N, 1), maxReplicas)
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", t.Driver, i)
	}
	return names
}
