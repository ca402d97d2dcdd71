package engine

import (
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/trace"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// program gives the lane the program of a step, which draws from the seed chance. Steps that are not measured need all N replicas.
func (g *group) program(la *lane, kind worker.StepKind, chance uint64) {
	x, data := la.side, g.datasetsOf(la.side)
	la.whose = whose{checked: data[0].Values.Checked, marked: data[0].Values.Marked(), since: g.since(kind, la, data[0].Name)}
	if t := g.phase.Trace(); t != nil && t.Form == trace.Requests {
		la.whose = whose{} // the key of such an op is its request
	}
	la.acks, la.confirms, la.opTimeout = x.target.Replication != nil, x.target.Confirms() > 0, 0
	if t, ok := la.tr.(*inside); ok {
		la.programs.through = g.through(t, kind, chance)
		la.programs.Program = la.programs.through
		return
	}
	la.programs.Program = g.retried(x, g.direct(la, kind, chance), chance)
	la.programs.chain, _ = la.programs.Program.(*op.Chain)
	if x.target.Replication != nil {
		la.opTimeout = int64(x.target.Replication.Timeout)
	}
}

// since returns the version from which on another run's values are amiss in a target's dataset: any once this run has put all keys, or those that are read; those put since this
// run began if it puts some; none if it only reads.
func (g *group) since(kind worker.StepKind, la *lane, dataset string) uint64 {
	target, since := la.side.target.Name, uint64(math.MaxUint64)
	for _, ph := range g.plan.Phases {
		puts := slices.ContainsFunc(ph.OpsOn(target), func(w plan.Weight) bool { return w.Op == driver.Put.String() })
		switch {
		case !puts || !slices.Contains(ph.DatasetsOn(target), dataset):
		case ph.Populate != nil || kind == worker.Verify:
			return 0
		default:
			since = uint64(la.l.wall)
		}
		if ph.Name == g.phase.Name {
			break
		}
	}
	return since
}

// direct is a program of ops that ask a lane's target itself.
func (g *group) direct(la *lane, kind worker.StepKind, chance uint64) op.Program {
	x, data := la.side, g.datasetsOf(la.side)
	if kind.Timed() && g.phase.Batch > 1 {
		return op.NewBatch(x.placement)
	}
	checked := data[0].Values.Checked
	keys := data[0].Keys.Count
	if data[0].Keys.PerSession() || len(data) > 1 { // an index does not name one key
		keys = 0
	}
	n, chain := x.target.Replication, g.phase.Chain()
	switch {
	case kind.Timed() && chain != nil:
		return op.NewChain(x.placement, chain.Ahead, keys, checked)
	case n == nil && la.routes != nil:
		return op.NewCluster(la.routes.slots, checked)
	case n == nil:
		plain := op.NewPlain(x.placement, checked)
		plain.Remember(keys)
		return plain
	}
	cfg := op.NWR{N: n.N, W: n.W, R: n.R, GetsAskR: n.GetsAskR(), AtRandom: n.AtRandom(), Seed: chance, Keys: keys}
	if !kind.Timed() {
		cfg.W = n.N
	}
	return op.NewNWR(cfg, x.placement)
}

// retried wraps a program so that failed ops are tried again, if the target says so.
func (g *group) retried(x *side, inner op.Program, chance uint64) op.Program {
	r := x.target.Retry
	if r == nil {
		return inner
	}
	t := op.Tries{Most: r.Attempts, Backoff: int64(r.Backoff), Longest: int64(plan.LongestBackoff), Jitter: r.Jitter, Seed: chance}
	for _, o := range []driver.Outcome{driver.Timeout, driver.Error} {
		t.After[o] = slices.Contains(r.On, o.String())
	}
	words := g.plan.Words()
	for _, o := range x.target.Ops {
		if verb, ok := words.Verb(o.Name); ok {
			t.Once[verb] = !o.Repeats()
		}
	}
	return op.NewRetry(t, inner)
}

// through returns the program of ops that read through a cache. A clear empties the cache and deletes nothing from the source.
func (g *group) through(t *inside, kind worker.StepKind, chance uint64) *op.Through {
	self, c := t.lane.side, t.lane.side.target.Cache
	at := func(name string) int {
		return slices.IndexFunc(g.sides(), func(x *side) bool { return x.target.Name == name })
	}
	cfg := op.Cache{Self: self.number, Look: self.number, Source: at(self.target.Source), Fails: c.Fails(), Coalesce: c.Coalesce}
	switch c.Scope {
	case plan.RemoteCache:
		cfg.Look, cfg.TTL = at(c.Target), uint32(c.TTL.Milliseconds())
	case plan.NoCache:
		cfg.Look = -1
	}
	cfg.OnPut = map[string]op.OnPut{plan.InvalidateOnPut: op.Invalidate, plan.UpdateOnPut: op.Update, plan.KeepOnPut: op.Keep}[c.OnPut]
	if kind == worker.Clear {
		cfg.Source = -1
		t.of.wipe()
	}
	t.begin()
	return op.NewThrough(cfg, func(target int) op.Program { return g.direct(t.l.lanes[target], kind, chance) })
}

// width returns the most requests that an op of a step of this kind begins with.
func (g *group) width(kind worker.StepKind) int {
	most := 1
	for _, x := range g.sides() {
		switch r := x.target.Replication; {
		case r != nil:
			most = max(most, r.N)
		case kind.Timed():
			most = max(most, g.phase.Ahead(), min(g.phase.Batch, len(x.endpoints)))
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

// choose sets the way of a loop for a step whose ops come from a source, or from a trace.
func (g *group) choose(l *loop, source *workload.Source, step worker.Step) {
	traced := step.Kind.Timed() && g.trace != nil
	for _, la := range l.lanes {
		g.program(la, step.Kind, source.Chance())
		if w, ok := la.tr.(*wire); ok {
			w.use(la.programs)
			w.writer.begin(traced && g.phase.Chain() == nil || len(g.datasetsOf(la.side)) > 1) // their values may have different TTLs
		}
	}
	l.states = l.programs
	if t, ok := l.tr.(*thread); ok {
		l.states = t
	}
	l.way = l.states
	l.ordinals = 0
	if step.Kind.Timed() && g.phase.Growth != nil {
		l.ordinals = uint64(source.Sessions())
	}
	l.scenes = newScenes(l, source)
	l.fills, l.loading = nil, 0
	l.follows = g.follow(l, step.Kind)
	l.events = g.events(l, step.Kind)
	width := g.width(step.Kind)
	if step.Kind.Timed() && g.phase.OnMiss == plan.PutOnMiss {
		l.fills = &fills{l: l, source: source, width: width, chain: l.programs.chain}
		width += width
	}
	l.gate.begin(width)
	l.sampling = nil
	if step.Kind.Timed() && g.phase.Samples > 0 {
		l.sampling = newSampling(g.phase.Samples, source.Chance(), step, l.index, l.wall)
	}
	w, wired := l.tr.(*wire)
	switch {
	case l.scenes != nil:
		l.way = l.scenes
	case wired && !traced && l.fills == nil && l.ordinals == 0: // ops that are counted together have no ordinals
		if fast := w.fast(l.programs.Program, source, l.follows); fast != nil {
			w.use(fast)
			l.way = fast
		}
	}
}

// writtenBy returns what the sessions know of their writes in a phase; nil if nothing needs it.
func (e *Engine) writtenBy(ph *plan.Phase) *written {
	if !e.plan.Follows(ph) {
		return nil
	}
	of := [2]string{e.plan.Holder(ph), ph.Dataset}
	if e.written[of] == nil {
		keys := &e.plan.Dataset(ph.Dataset).Keys
		e.written[of] = &written{writers: uint64(ph.Sessions()), keys: uint64(keys.Count), of: map[int][]writtenKey{}}
		if keys.PerSession() {
			e.written[of].writers = 0
		}
	}
	return e.written[of]
}

// follow returns the follower of a loop in a step; nil if there is nothing to follow.
func (g *group) follow(l *loop, kind worker.StepKind) *follower {
	if g.written == nil {
		return nil
	}
	f := &follower{l: l, writers: g.written.writers, verifies: kind == worker.Verify}
	for _, s := range l.sessions {
		f.keys = append(f.keys, g.written.keysOf(s.id))
	}
	if kind.Timed() && g.phase.Staleness {
		f.measureStaleness()
	}
	return f
}

// events lists the events of a step that concern the loop's own caches.
func (g *group) events(l *loop, kind worker.StepKind) (list []planned) {
	if !kind.Timed() {
		return nil
	}
	for i := range g.phase.Events {
		ev := &g.phase.Events[i]
		for _, t := range l.inside() {
			if g.plan.ByWorkers(ev) && t.lane.side.target.Name == ev.Target {
				list = append(list, planned{i, int64(ev.At), t.distinct})
			}
		}
	}
	return list
}

// fast returns a way that is faster than prog and does the same; nil if there is none. Its ops are followed unless f is nil.
func (w *wire) fast(prog op.Program, source *workload.Source, f *follower) bulkWay {
	if !w.shared || w.lane.confirms || w.idle > 0 || w.l.churn.plan != nil { // only a request of a program waits for its connection
		return nil
	}
	switch prog := prog.(type) {
	case *op.Plain:
		switch {
		case f == nil:
			return newRuns(w, prog, source)
		case !f.verifies:
			return newFollowedRuns(w, prog, f)
		}
	case *op.Quorum:
		if f == nil && w.out.prompt() && (prog.AsksAll(driver.Get) || !source.Draws(driver.Get)) {
			return newQuorum(w, prog, source)
		}
	}
	return nil
}

// use makes x the way that handles replies.
func (w *wire) use(x wireWay) {
	w.way, w.recalled = x, [driver.NumVerbs]int64{}
	w.bulk, _ = x.(bulkWay)
}
