package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/internal/workload"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	openWithin     = 10 * time.Second // for all connections of a phase
	identifyWithin = 3 * time.Second  // for one endpoint to say what it is
)

// group is the loops of a phase and what they have open. It lives from the phase's first Prepare to the end of its last step.
type group struct {
	plan      *plan.Plan
	phase     *plan.Phase
	target    *plan.Target
	endpoints []sockets.Endpoint
	placement op.Placement
	cluster   *cluster // nil: the target is none
	loops     []*loop
	step      worker.Step
	connect   sockets.Connector
	sessions  int
	retired   atomic.Int64 // sessions that have failed for good
	parts     int          // loops that the sessions are divided between
	servers   map[string]map[string]string
	trace     func(context.Context) (io.ReadSeekCloser, error) // opens the trace that the phase replays; nil: it replays none
	files     *files                                           // of a local target; nil for any other, and once they were closed
	hosted    hosted                                           // processes of the target
}

// openGroup connects the sessions that a phase's first step names.
func (e *Engine) openGroup(ctx context.Context, step worker.Step) (*group, error) {
	g := &group{plan: e.plan, sessions: step.To - step.From}
	if g.phase = e.plan.Phase(step.Phase); g.phase == nil {
		return nil, errors.New("the plan has no such phase")
	}
	g.target = e.plan.Target(g.phase.Target)
	d, err := e.driver(g.target.Driver)
	if err != nil {
		return nil, err
	}
	unhurried := ctx // files are written for as long as that takes
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	if err := g.locate(e.run.Nodes[g.target.Name]); err != nil {
		return nil, fmt.Errorf("target %q: %w", g.target.Name, err)
	}
	if g.connect, err = sockets.NewConnector(e.dial, e.readUntil(ctx), g.target.TLS); err != nil {
		return nil, fmt.Errorf("target %q: %w", g.target.Name, err)
	}
	g.connect.Allow = e.allowance(g.target.Config)
	if c, ok := clustered(g.target, d); ok && g.sessions > 0 {
		if err := g.discover(ctx, c, e.cfg.Secrets); err != nil {
			return nil, fmt.Errorf("target %q: %w", g.target.Name, err)
		}
	}
	if err := g.checkPolicy(e.cfg.Policy, d); err != nil {
		return nil, err
	}
	if err := g.checkLimits(d, e.cfg.Loops); err != nil {
		return nil, err
	}
	if err := g.identify(ctx, d, e.cfg.Secrets); err != nil {
		return nil, fmt.Errorf("target %q: %w", g.target.Name, err)
	}
	if step.Kind == run.Load || step.Kind == run.Setup { // before the connections are open, which would all be looked at
		g.hosted = findServers(g.endpoints)
	}
	g.parts = min(e.cfg.Loops, g.sessions)
	if local, ok := d.(localfile.Driver); ok && g.sessions > 0 {
		if err := g.openStore(unhurried, e, local, step); err != nil {
			return nil, fmt.Errorf("target %q: %w", g.target.Name, err)
		}
	}
	if s := g.phase.Schedule(); s != nil {
		g.parts = min(g.parts, s.InFlight) // each loop may have one
	}
	for i := range g.parts {
		l, err := g.newLoop(e, d, i)
		if err != nil {
			g.close()
			return nil, fmt.Errorf("target %q: %w", g.target.Name, err)
		}
		g.loops = append(g.loops, l)
	}
	g.number(step.From)
	if err := g.open(e.clock); err != nil {
		g.close()
		return nil, fmt.Errorf("target %q: %w", g.target.Name, err)
	}
	if g.cluster != nil {
		g.cluster.start()
	}
	e.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "connected", slog.String("phase", step.Phase),
		slog.Int("sessions", g.sessions), slog.Int("endpoints", len(g.endpoints)), slog.Int("loops", len(g.loops)))
	return g, nil
}

func (e *Engine) driver(name string) (driver.Driver, error) {
	for _, d := range e.cfg.Drivers {
		if d.Name() == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("driver %q is not in this build", name)
}

// locate lists the target's endpoints; nodes are those of the built-in ones.
func (g *group) locate(nodes []string) error {
	texts := g.target.Endpoints
	if len(texts) == 0 {
		texts = nodes
	}
	if len(texts) == 0 {
		return errors.New("it has no endpoint")
	}
	var names []string
	for i, text := range texts {
		name := "n" + strconv.Itoa(i)
		g.endpoints = append(g.endpoints, sockets.NewEndpoint(name, text))
		names = append(names, name)
	}
	if g.target.Placement == plan.Rendezvous {
		g.placement = op.NewRendezvous(names)
	} else {
		g.placement = op.NewRing(names)
	}
	return nil
}

// identify finds every endpoint's address and asks the server there what it is. The first that cannot be reached is the error.
func (g *group) identify(ctx context.Context, d driver.Driver, secrets driver.Secrets) error {
	w, ok := d.(driver.Wire)
	if !ok || g.sessions == 0 {
		return nil
	}
	facts := make([]map[string]string, len(g.endpoints))
	var asks errgroup.Group
	for i := range g.endpoints {
		asks.Go(func() (err error) {
			ctx, cancel := context.WithTimeout(ctx, identifyWithin)
			defer cancel()
			facts[i], err = g.identifyOne(ctx, &g.endpoints[i], w, secrets)
			if err != nil && g.spare(i) {
				g.endpoints[i].Addr, _ = netip.ParseAddrPort(g.endpoints[i].Text) // of a node with a name it stays unknown
				return nil
			}
			return err
		})
	}
	if err := asks.Wait(); err != nil {
		return err
	}
	g.servers = make(map[string]map[string]string)
	for i, end := range g.endpoints {
		if facts[i] != nil {
			g.servers[end.Text] = facts[i]
		}
	}
	return nil
}

// spare says whether an endpoint is a node of a cluster that has nothing to do for now, such as a replica: it may be away.
func (g *group) spare(i int) bool { return g.cluster != nil && g.cluster.newest.Load().Held(i) == 0 }

// identifyOne connects as net does: of a host's addresses it takes the first that answers, and the load goes there too.
func (g *group) identifyOne(ctx context.Context, end *sockets.Endpoint, w driver.Wire, secrets driver.Secrets) (map[string]string, error) {
	var facts map[string]string
	err := g.talk(ctx, end, func(conn *sockets.Witness) (err error) {
		if at, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
			end.Addr = at.AddrPort()
		}
		if facts, err = w.Identify(ctx, conn, g.target.Config, secrets); err == nil {
			maps.Copy(facts, g.connect.Facts(conn.Conn))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return facts, nil
}

// talk has a driver talk to an endpoint over a connection of its own, until ctx ends. Why that fails is explained, as far as one can tell.
func (g *group) talk(ctx context.Context, end *sockets.Endpoint, exchange func(conn *sockets.Witness) error) error {
	conn, err := g.connect.To(ctx, end)
	switch {
	case end.Path == "" && errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("connect to %v: %w: nothing listens there: start the server, or write endpoints that are there", end, err)
	case err != nil:
		return fmt.Errorf("connect to %v: %w", end, err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("%v: %w", end, err)
	}
	heard := &sockets.Witness{Conn: conn}
	if err := driver.Safely(func() error { return exchange(heard) }); err != nil {
		return fmt.Errorf("%v: %w", end, heard.Explain(g.connect.Explain(err)))
	}
	return nil
}

// newLoop makes a loop with its share of the sessions and a transport for the driver.
func (g *group) newLoop(e *Engine, d driver.Driver, index int) (*loop, error) {
	n := len(g.endpoints) * driver.NumVerbs
	if g.cluster != nil {
		n += driver.NumVerbs // of all that join later
	}
	l := &loop{
		clock: e.clock, index: index, sealAt: never, wall: e.wall, spin: int64(max(0, e.cfg.Spin)), halt: &e.halt, lease: &e.lease, log: e.cfg.Logger,
		retired: &g.retired, everyone: int64(g.sessions), pipeline: g.phase.Pipeline(),
		spare:     make(chan *measure.Totals, 4),
		reqBefore: make([]measure.Requests, n), reqNow: make([]measure.Requests, n),
		said: said{prefix: keyPrefix(g.plan.Dataset(g.phase.Dataset).Keys.Format)},
	}
	for range share(g.sessions, index, g.parts) {
		l.sessions = append(l.sessions, &session{index: len(l.sessions)})
	}
	var err error
	if l.tr, err = g.newTransport(e, d, l); err != nil {
		return nil, err
	}
	l.programs = newPrograms(l)
	return l, nil
}

func (g *group) newTransport(e *Engine, d driver.Driver, l *loop) (transport, error) {
	limit := backlog + g.phase.Pipeline()
	newBlocking := func(dial dialer) transport {
		return &blocking{l: l, endpoints: g.endpoints, dial: dial, limit: limit, timeout: g.target.Timeout}
	}
	switch d := d.(type) {
	case driver.Wire:
		var codec driver.Codec
		if err := driver.Safely(func() (err error) {
			codec, err = d.NewCodec(g.target.Config, e.cfg.Secrets)
			return err
		}); err != nil {
			return nil, err
		}
		if g.cluster != nil {
			var err error
			if l.routes, err = newRoutes(g.cluster, codec); err != nil {
				return nil, err
			}
			l.routes.renew()
		}
		p, err := g.newPoller(e)
		if err != nil {
			return nil, err
		}
		w := newWire(l, p, codec, g)
		if l.routes != nil {
			l.routes.codec = w.codec
		}
		w.limit, w.timeout = limit, int64(g.target.Timeout)
		return w, nil
	case driver.Timed:
		if g.target.Executor == plan.Blocking {
			return newBlocking(func(context.Context, int) (driver.Session, error) {
				return timedSession{driver: d, config: g.target.Config}, nil
			}), nil
		}
		return &timed{l: l, driver: d, config: g.target.Config, endpoints: len(g.endpoints), limit: limit, timeout: int64(g.target.Timeout)}, nil
	case localfile.Driver:
		return &thread{l: l, store: g.files.store, timeout: int64(g.target.Timeout)}, nil
	case driver.Dialer:
		return newBlocking(func(ctx context.Context, i int) (s driver.Session, err error) {
			err = driver.Safely(func() (err error) {
				s, err = d.Dial(ctx, g.target.Config, e.secretsFor(), g.endpoints[i].Text)
				return err
			})
			return s, err
		}), nil
	}
	return nil, fmt.Errorf("driver %q has no transport", d.Name())
}

// places is how many endpoints a session may have connections to.
func (g *group) places() int {
	if g.cluster != nil {
		return g.cluster.places()
	}
	return len(g.endpoints)
}

// endpoint returns one of the places.
func (g *group) endpoint(at int) sockets.Endpoint {
	if at < len(g.endpoints) {
		return g.endpoints[at]
	}
	return g.cluster.newcomer(at)
}

// newPoller returns what moves the bytes of a wire for the target's executor.
func (g *group) newPoller(e *Engine) (sockets.Poller, error) {
	if g.target.Executor == plan.EventLoop {
		return e.newPoller()
	}
	return sockets.NewPipes(e.clock.now, e.lease.over, func(ctx context.Context, token int32) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, openWithin)
		defer cancel()
		end := g.endpoint(int(token) % g.places())
		return g.connect.To(ctx, &end)
	}), nil
}

// traffic returns what the kernel has counted on the event loops' sockets since the last call; nil when there are none. No step may be under way.
func (g *group) traffic() *run.TCP {
	if len(g.loops) == 0 {
		return nil
	}
	var all sockets.Traffic
	for _, l := range g.loops {
		w, ok := l.tr.(*wire)
		if !ok || !w.out.prompt() || slices.ContainsFunc(g.endpoints, func(e sockets.Endpoint) bool { return e.Path != "" }) {
			return nil
		}
		all.Add(w.traffic())
	}
	return (*run.TCP)(&all)
}

// share returns how many of n things part i of parts has; the parts sum to n.
func share(n, i, parts int) int { return n*(i+1)/parts - n*i/parts }

// number numbers the sessions of all loops, from the first one of this worker on.
func (g *group) number(from int) {
	for _, l := range g.loops {
		for _, s := range l.sessions {
			s.id = from
			from++
		}
	}
}

// open makes the connections of all loops.
func (g *group) open(c clock) error {
	deadline := c.now() + int64(openWithin)
	var opens errgroup.Group
	for _, l := range g.loops {
		opens.Go(func() error { return l.tr.open(deadline) })
	}
	return opens.Wait()
}

// equip gives a loop the program, the feed and the streams of a step.
func (g *group) equip(l *loop, source *workload.Source, step worker.Step) {
	g.choose(l, source, step)
	l.acks = g.target.Replication != nil
	l.checked = g.plan.Dataset(g.phase.Dataset).Values.Checked
	for _, s := range l.sessions {
		s.begun, s.active, s.first, s.out, s.started, s.last, s.streams, s.queued = false, 0, 0, 0, 0, 0, nil, false
		s.stream = source.Stream(s.id)
	}
	if step.Kind == run.Load && g.trace != nil {
		if c := g.phase.Closed; c != nil {
			l.feed = newRerun(l, source, c, g.trace)
			return
		}
		l.feed = newReplay(l, source, g.phase.Open, g.trace)
		return
	}
	if step.Kind == run.Load && g.phase.Schedule() != nil {
		l.feed = g.openFeed(l, source, step.Shape.Duration)
		return
	}
	f := &closedFeed{l: l, pipeline: g.phase.Pipeline(), sessions: source.Sessions()}
	if c := g.phase.Closed; c != nil && step.Kind == run.Load {
		f.ramp, f.think, f.lasts = c.Ramp, int64(c.Think), int64(c.Duration)
	}
	l.feed = f
}

// openFeed makes the feed of a step whose schedule lasts for a time.
func (g *group) openFeed(l *loop, source *workload.Source, lasts time.Duration) *openFeed {
	o := g.phase.Schedule()
	for _, s := range l.sessions {
		for i := s.id; i < source.Streams(); i += source.Sessions() {
			s.streams = append(s.streams, &openStream{id: i, pacer: source.Pacer(i), ops: source.Stream(i)})
		}
	}
	// Bounds of loops sum to the bound of all.
	first, n := l.sessions[0].id, len(l.sessions)
	bound := o.InFlight*(first+n)/o.Sessions - o.InFlight*first/o.Sessions
	return &openFeed{l: l, pipeline: o.Pipeline, inFlight: max(1, bound), shed: o.OnFull == "shed", lasts: int64(lasts + o.Drain)}
}

// program returns a program for the target and the op's own timeout, 0 for none. Steps that are not measured want all N replicas.
func (g *group) program(kind run.StepKind, r *routes) (op.Program, int64) {
	n, data := g.target.Replication, g.plan.Dataset(g.phase.Dataset)
	if kind == run.Load && g.phase.Batch > 1 {
		return op.NewBatch(g.placement), 0
	}
	keys := data.Keys.Count
	if data.Keys.Scope == "session" { // an index names a key of each session
		keys = 0
	}
	if n == nil {
		if r != nil {
			return op.NewCluster(r.slots, data.Values.Checked), 0
		}
		plain := op.NewPlain(g.placement, data.Values.Checked)
		plain.Remember(keys)
		return plain, 0
	}
	cfg := op.NWR{N: n.N, W: n.W, R: n.R, ReadFanout: n.ReadFanout, ReadFrom: n.ReadFrom, Seed: g.plan.Seed, Keys: keys}
	if kind != run.Load {
		cfg.W = n.N
	}
	return op.NewNWR(cfg, g.placement), int64(n.Timeout)
}

// begin readies a loop for its step to start.
func (l *loop) begin(at int64, parts chan<- part) {
	l.origin, l.parts = at, parts
	l.rec = measure.NewTotals(at, len(l.reqNow)/driver.NumVerbs)
	clear(l.reqBefore)
	l.opsBefore, l.keyBefore = [driver.NumVerbs]int64{}, [driver.NumVerbs]int64{}
}

// recycle returns a merged part's recorder to its loop.
func (g *group) recycle(p part) {
	p.totals.Reset()
	select {
	case g.loops[p.loop].spare <- p.totals:
	default:
	}
}

func (g *group) ready(source *workload.Source) worker.Ready {
	r := worker.Ready{Step: g.step.Seq, Sessions: g.sessions, Executor: g.target.Executor, Loops: len(g.loops), Servers: g.servers}
	if g.servers != nil {
		r.Connections = g.sessions * len(g.endpoints)
	}
	if g.cluster != nil {
		r.Connections = 0
		for i, end := range g.endpoints {
			r.Endpoints = append(r.Endpoints, end.Text)
			if !g.spare(i) {
				r.Connections += g.sessions
			}
		}
	}
	if g.step.Kind == run.Load && g.trace != nil {
		return r
	}
	for i := g.step.From; i < g.step.To && source.Streams() == source.Sessions(); i++ {
		n, bounded := source.Ops(i)
		if !bounded {
			return r
		}
		r.Ops += uint64(n)
	}
	return r
}

func (g *group) close() {
	if g.cluster != nil {
		g.cluster.close()
	}
	var closing sync.WaitGroup
	for _, l := range g.loops {
		closing.Go(l.tr.close)
	}
	closing.Wait()
	g.closeStore()
}

// timedSession lets the blocking executor carry a driver that has no transport.
type timedSession struct {
	driver driver.Timed
	config any
}

func (s timedSession) Do(ctx context.Context, req *driver.Request, reply *driver.Reply) error {
	d := s.driver.Reply(s.config, req, reply)
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s timedSession) Close() error { return nil }
