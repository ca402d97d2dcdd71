package engine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	openWithin     = 10 * time.Second // time for all connections of a phase
	identifyWithin = 3 * time.Second  // time to identify one endpoint
	mostAddresses  = 64               // the most addresses that an endpoint's name may have
	cleanWithin    = 5 * time.Second  // time to clean up all endpoints after a clear phase
)

// group holds the loops of a phase and everything that they have open. It lives from the phase's first Prepare to the end of its last step.
type group struct {
	side             // the phase's own target
	others   []*side // the targets that steps of its scenarios name
	plan     *plan.Plan
	phase    *plan.Phase
	executor string // one for all targets
	loops    []*loop
	step     worker.Step
	sessions int
	retired  atomic.Int64                                     // sessions that have failed for good
	parts    int                                              // how many loops share the sessions
	trace    func(context.Context) (io.ReadSeekCloser, error) // opens the trace that the phase replays; nil if it replays none
	files    *files                                           // a local target's files; nil for any other target, and once closed
	written  *written                                         // what sessions know of their writes; nil if nothing needs it
	hosted   hosted                                           // the targets' processes on this machine
	partials partials
}

// sides returns the targets of the phase, its own first, in the order in which requests number them.
func (g *group) sides() []*side { return append([]*side{&g.side}, g.others...) }

// openGroup connects the sessions that a phase's first step names.
func (e *Engine) openGroup(ctx context.Context, step worker.Step) (*group, error) {
	g := &group{plan: e.plan, phase: e.plan.Phase(step.Phase), sessions: step.To - step.From, written: e.writtenBy(e.plan.Phase(step.Phase))}
	g.executor = e.plan.ExecutorOf(g.phase)
	unhurried := ctx // writing files has no time limit
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	if err := g.reach(ctx, e); err != nil {
		return nil, err
	}
	if step.Kind.Timed() || step.Kind == worker.Setup { // before connections are open, since the search would look at each
		g.hosted = findServers(g.everyEndpoint())
	}
	g.parts = min(e.cfg.Loops, g.sessions)
	if local, ok := g.driver.(localfile.Driver); ok && g.sessions > 0 {
		if err := g.openStore(unhurried, e, local, step); err != nil {
			return nil, fmt.Errorf("target %q: %w", g.target.Name, err)
		}
	}
	if s := g.phase.Schedule(); s != nil {
		g.parts = min(g.parts, s.InFlight) // each loop may have one op in flight
	}
	if slices.ContainsFunc(g.sides(), func(x *side) bool { return x.target.Cache.OneLoop() }) {
		g.parts = min(g.parts, 1)
	}
	for i := range g.parts {
		l, err := g.newLoop(e, i)
		if err != nil {
			g.close()
			return nil, err
		}
		g.loops = append(g.loops, l)
	}
	g.number(step.From)
	if err := g.open(e.clock); err != nil {
		g.close()
		return nil, err
	}
	for _, x := range g.sides() {
		x.keepUp()
	}
	e.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "connected", slog.String("phase", step.Phase),
		slog.Int("sessions", g.sessions), slog.Int("endpoints", len(g.everyEndpoint())), slog.Int("loops", len(g.loops)))
	return g, nil
}

// reach finds every target of the phase and asks each server to identify itself.
func (g *group) reach(ctx context.Context, e *Engine) error {
	for i, name := range g.phase.Targets() {
		x := &g.side
		if i > 0 {
			x = new(side)
			g.others = append(g.others, x)
		}
		x.target, x.number, x.run, x.secrets = g.plan.Target(name), i, e.run.RunID, e.cfg.Secrets
		x.resolve = e.resolve
		x.clients, x.forms = 1, x.target.Forms(g.plan.Words())
		x.batch = g.phase.Batch > 1 && slices.ContainsFunc(g.phase.Ops, func(w plan.Weight) bool { return w.Op == driver.Get.String() })
		if err := g.reachOne(ctx, e, x); err != nil {
			return fmt.Errorf("target %q: %w", name, err)
		}
		x.values = slices.ContainsFunc(g.datasetsOf(x), func(d *plan.Dataset) bool { return d.Values.Checked })
	}
	if err := g.checkPolicy(e.cfg.Policy); err != nil {
		return err
	}
	if err := g.checkLimits(e.cfg.Loops); err != nil {
		return err
	}
	if g.sessions == 0 {
		return nil
	}
	g.partials.expected = g.plan.ReplyBytes(g.phase, g.sessions)
	g.partials.largest = g.plan.LargestValue(g.phase)
	for _, x := range g.sides() {
		if err := x.identify(ctx); err != nil {
			return fmt.Errorf("target %q: %w", x.target.Name, err)
		}
		x.nameEndpoints(e.cfg.Logger)
		if err := x.prepare(ctx, e.ready); err != nil {
			return fmt.Errorf("target %q: %w", x.target.Name, err)
		}
	}
	return nil
}

// reachOne finds one target.
func (g *group) reachOne(ctx context.Context, e *Engine, x *side) (err error) {
	if x.driver, err = e.driver(x.target.Driver); err != nil {
		return err
	}
	if _, dials := x.driver.(driver.Dialer); dials {
		x.clients = g.phase.Pipeline()
	}
	if err := x.locate(e.run.Nodes[x.target.Name]); err != nil {
		return err
	}
	if x.connect, err = sockets.NewConnector(e.dial, e.readUntil(ctx), x.target.TLS); err != nil {
		return err
	}
	x.connect.Allow = e.allowance(x.target)
	if d, ok := x.driver.(driver.Negotiator); ok {
		x.connect.Negotiate(d.ALPN())
	}
	if c, ok := clustered(x.target, x.driver); ok && g.sessions > 0 {
		return x.discover(ctx, c)
	}
	return nil
}

// place gives each target its rows in the ledger of requests. No loop may be running.
func (g *group) place() {
	rows := 0
	for _, x := range g.sides() {
		x.first = rows
		rows += x.rows()
	}
}

// rows is how many rows all targets have.
func (g *group) rows() (n int) {
	for _, x := range g.sides() {
		n += x.rows()
	}
	return n
}

// everyEndpoint lists the endpoints of all targets.
func (g *group) everyEndpoint() (all []sockets.Endpoint) {
	for _, x := range g.sides() {
		all = append(all, x.endpoints...)
	}
	return all
}

func (e *Engine) driver(name string) (driver.Driver, error) {
	if inside := (driver.Inside{}); inside.Name() == name {
		return inside, nil
	}
	for _, d := range e.cfg.Drivers {
		if d.Name() == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("driver %q is not in this build", name)
}

// newLoop makes a loop with its share of the sessions and, for each target, a transport.
func (g *group) newLoop(e *Engine, index int) (*loop, error) {
	g.place()
	n := g.rows() * driver.NumVerbs
	l := &loop{
		clock: e.clock, index: index, sealAt: never, wall: e.wall, runBits: uint32(driver.KeyHash([]byte(e.run.RunID))), spin: int64(max(0, e.cfg.Spin)), halt: &e.halt, lease: &e.lease, log: e.cfg.Logger,
		away:    absences{until: never},
		retired: &g.retired, everyone: int64(g.sessions), pipeline: g.phase.Pipeline(),
		spare:     make(chan *measure.Totals, 4),
		reqBefore: make([]measure.Requests, n), reqNow: make([]measure.Requests, n),
		said: said{prefix: keyPrefix(g.plan.Dataset(g.phase.Dataset).Keys.Format)},
	}
	l.rec = l.fresh()
	for range share(g.sessions, index, g.parts) {
		l.sessions = append(l.sessions, &session{index: len(l.sessions)})
	}
	l.gate = newGate(e.cfg.Budget, e.apart, l)
	l.churn.plan = g.phase.Clients().Reconnect
	for i, x := range g.sides() {
		la := &l.lane
		if i > 0 {
			la = new(lane)
		}
		la.l, la.side = l, x
		l.lanes = append(l.lanes, la)
		if err := g.open1(e, la); err != nil {
			return nil, fmt.Errorf("target %q: %w", x.target.Name, err)
		}
		switch la.tr.(type) {
		case *wire, *blocking:
		default: // there is always one
			for _, s := range l.sessions {
				s.links++
			}
		}
	}
	l.tr = l.lane.tr
	if len(l.lanes) > 1 {
		l.tr = newJoint(l)
	}
	return l, nil
}

// traffic returns the kernel's counts of the sockets since the last call; nil if they are not known. No step may be running.
func (g *group) traffic() *measure.TCP {
	if len(g.loops) == 0 || slices.ContainsFunc(g.everyEndpoint(), func(e sockets.Endpoint) bool { return e.Path != "" }) {
		return nil
	}
	var all sockets.Traffic
	for _, l := range g.loops {
		for _, la := range l.lanes {
			t, ok := la.tr.(interface {
				traffic() (since sockets.Traffic, known bool)
			})
			if !ok {
				return nil
			}
			since, known := t.traffic()
			if !known {
				return nil
			}
			all.Add(since)
		}
	}
	return (*measure.TCP)(&all)
}

// share returns how many of n things part i of parts gets; the parts sum to n.
func share(n, i, parts int) int { return n*(i+1)/parts - n*i/parts }

// number numbers the sessions of all loops, beginning with this worker's first, and gives them their caches.
func (g *group) number(from int) {
	for _, l := range g.loops {
		for _, s := range l.sessions {
			s.id = from
			from++
		}
		for _, t := range l.inside() {
			t.keep(g.sessions, g.phase.Sessions())
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
	ph := g.phase
	if step.Kind.Timed() {
		ph = ph.As(plan.Shape(step.Shape))
	}
	g.choose(l, source, step)
	for _, s := range l.sessions {
		s.begun, s.active, s.first, s.out, s.started, s.last, s.streams, s.queued = false, 0, 0, 0, 0, 0, nil, false
		s.waiting, s.forsaken, s.idled, s.until, s.armed = 0, false, false, 0, 0
		s.stream = l.follows.reach(source.Stream(s.id))
		s.random = *rand.NewPCG(source.Chance(), ^uint64(s.id)) // the executor's own draws are numbered from 0
	}
	c := ph.Closed
	l.slotted = c != nil && step.Kind.Timed()
	l.endless = !l.slotted || c.Duration == 0
	if l.think, l.thinks, l.stages = 0, nil, nil; l.slotted {
		l.think, l.thinks, l.stages = int64(c.Think), c.Thinks, c.Ends()
	}
	if step.Kind.Timed() && g.trace != nil {
		if c != nil {
			l.feed = newRerun(l, source, c, g.plan.Words(), g.trace)
			return
		}
		l.feed = newReplay(l, source, g.phase.Open, g.plan.Words(), g.trace)
		return
	}
	if step.Kind.Timed() && ph.Schedule() != nil {
		l.feed = g.openFeed(l, source, step.Shape.Duration)
		return
	}
	f := &closedFeed{l: l, pipeline: ph.Pipeline(), sessions: source.Sessions()}
	if step.Kind.Timed() {
		f.load, f.lasts = c, int64(c.Duration)
	}
	l.feed = f
}

// openFeed makes the feed of an open load whose schedule has the given length.
func (g *group) openFeed(l *loop, source *workload.Source, lasts time.Duration) *openFeed {
	o := g.phase.Schedule()
	for _, s := range l.sessions {
		for i := s.id; i < source.Streams(); i += source.Sessions() {
			s.streams = append(s.streams, &openStream{id: i, pacer: source.Pacer(i), ops: l.follows.reach(source.Stream(i))})
		}
	}
	// The loops' bounds sum to the phase's bound, except where one is raised to 1.
	first, n := l.sessions[0].id, len(l.sessions)
	bound := o.InFlight*(first+n)/o.Sessions - o.InFlight*first/o.Sessions
	return &openFeed{l: l, pipeline: o.Pipeline, inFlight: max(1, bound), shed: o.Sheds(), lasts: int64(lasts), drain: int64(o.Drain)}
}

// begin readies a loop for its step to start.
func (l *loop) begin(at int64, parts chan<- part) {
	l.origin, l.parts, l.noPort = at, parts, 0
	l.rec.Reset()
	l.rec.Origin, l.rec.Stages = at, l.stages
	l.links()
	l.churn.counts.Before = l.churn.counts.Opened
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
	r := worker.Ready{Step: g.step.Seq, Sessions: g.sessions, Executor: g.executor, Loops: len(g.loops)}
	for _, x := range g.sides() {
		r.Connections += g.sessions * x.connections()
		if x.servers != nil {
			if r.Servers == nil {
				r.Servers = map[string]map[string]map[string]string{}
			}
			r.Servers[x.target.Name] = x.servers
		}
		if _, found := clustered(x.target, x.driver); found && g.sessions > 0 {
			if r.Nodes == nil {
				r.Nodes = map[string][]string{}
			}
			for _, end := range x.endpoints {
				r.Nodes[x.target.Name] = append(r.Nodes[x.target.Name], end.Text)
			}
		}
	}
	if g.step.Kind.Timed() && g.trace != nil {
		return r
	}
	if g.step.Kind == worker.Verify {
		for _, l := range g.loops {
			r.Ops += l.follows.due()
		}
		return r
	}
	for i := g.step.From; i < g.step.To; i++ {
		n, bounded := source.Ops(i)
		if !bounded {
			return r
		}
		r.Ops += uint64(n)
	}
	return r
}

func (g *group) close() {
	for _, x := range g.sides() {
		x.letGo()
	}
	var closing sync.WaitGroup
	for _, l := range g.loops {
		closing.Go(l.tr.close)
	}
	closing.Wait()
	g.closeStore()
}
