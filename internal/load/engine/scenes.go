package engine

import (
	"bytes"
	"slices"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// scenes carries out scenarios: each takes a session's slot from the start of its first op to the end of its last, think times included.
type scenes struct {
	stateful // the way of the scenarios' ops
	l        *loop
	source   *workload.Source
	slab     []*scene // by scene.id
	free     []int32
	cut      []int64                   // by scenario: how many the end of the run cut off between two steps; they stay in flight
	before   []int64                   // by scenario: how many were in flight at the last census
	now      []int64                   // by scenario: scratch for a census
	steps    [2]map[measure.Step]int64 // by step: how many ops were in flight at the last census, and scratch
	shed     []op.Op                   // scratch for the steps of a shed scenario
	rolls    []*inside                 // the targets whose caches know rollbacks
}

// scene is a scenario in progress.
type scene struct {
	id      int32
	number  int // the scenario's number in the phase
	session *session
	ops     []op.Op // its steps
	at      int     // index of the current or awaited step
	steps   int
	due     int64
	start   int64 // when its first op started
	outcome driver.Outcome
	cause   op.EventKind
	used    bool
	doomed  []doomed
	waits   bool // the next step is not due yet
	fills   bool // it is putting what the current step has missed
	bag     driver.Bag
}

// doomed are the keys that a scenario's rollback drops from a target's cache. They are copies, since the ops' key buffers are reused by then.
type doomed struct {
	of   *inside
	keys [][]byte
}

// newScenes returns the scenes of a step whose phase has scenarios; else nil.
func newScenes(l *loop, source *workload.Source) *scenes {
	n := source.Scenarios()
	if n == 0 {
		return nil
	}
	x := &scenes{
		stateful: l.states, l: l, source: source, cut: make([]int64, n), before: make([]int64, n), now: make([]int64, n), shed: make([]op.Op, source.Longest()),
		steps: [2]map[measure.Step]int64{{}, {}},
	}
	for _, t := range l.inside() {
		if t.lane.side.target.Cache.Rollback > 0 {
			x.rolls = append(x.rolls, t)
		}
	}
	return x
}

func (x *scenes) start(s *session, stream *workload.Stream, n int, due, now int64) int {
	for i := range n {
		if !x.begin(s, stream, due, now) {
			return i
		}
	}
	return n
}

// begin starts the stream's next scenario, unless the stream has ended.
func (x *scenes) begin(s *session, stream *workload.Stream, due, now int64) bool {
	sc := x.take()
	var ok bool
	if sc.number, sc.steps, ok = stream.NextScenario(sc.ops); !ok {
		x.release(sc)
		return false
	}
	sc.session, sc.at, sc.due, sc.outcome = s, 0, due, driver.OK
	sc.bag = stream.AppendRow(append(sc.bag[:0], s.bag...))
	x.doom(sc)
	x.l.rec.AddScenario(sc.number)
	x.l.occupy(s, 1, now)
	x.step(sc, due, now)
	return true
}

// step starts the current step.
func (x *scenes) step(sc *scene, due, now int64) {
	x.l.rec.AddStep(x.at(sc))
	sc.ops[sc.at].Bag = &sc.bag
	x.l.launch(sc.session, &sc.ops[sc.at], sc, due, now)
}

// at returns the current step as results number it.
func (x *scenes) at(sc *scene) measure.Step {
	return measure.Step{Scenario: sc.number, Step: x.source.Step(sc.number, sc.at)}
}

// took notes how the op of a step ended.
func (sc *scene) took(st *opState, outcome driver.Outcome, cause op.EventKind, now int64) {
	if sc.at == 0 {
		sc.start = st.startOr(now)
	}
	if outcome != driver.OK {
		sc.outcome, sc.cause = outcome, cause
	}
}

// proceed continues after a step that has ended: with the next step, or by giving the slot back. held says that the step failed before anything of it
// could be sent.
func (x *scenes) proceed(sc *scene, now int64, held bool) {
	sc.fills = false
	sc.at++
	over := sc.at == sc.steps || sc.outcome > driver.Miss
	if !over && !x.l.stopped {
		think := int64(x.source.Think(sc.number, sc.at, &sc.session.random))
		if think == 0 {
			x.fire(timer{at: now, kind: nextScene, arg: sc.id}, now)
			return
		}
		sc.waits = true
		x.l.timers.set(now+think, nextScene, sc.id, 0)
		return
	}
	if over {
		if x.source.Setup() && sc.outcome == driver.OK {
			sc.session.bag = slices.Clone(sc.bag)
		}
		x.rollBack(sc)
		sample := measure.Sample{Outcome: sc.outcome, Cause: measure.Cause(sc.cause), Due: sc.due, Start: sc.start, End: now}
		x.l.rec.RecordScenario(sc.number, &sample)
		if x.l.ordinals > 0 {
			first := &sc.ops[0]
			x.l.rec.GrowScenario(sc.number, &sample, x.l.ordinal(first.N/uint64(x.source.Longest()), first.Stream))
		}
	} else {
		x.cut[sc.number]++
	}
	x.leave(sc, now, held)
}

// doom keeps the keys of a scenario that will end in a rollback.
func (x *scenes) doom(sc *scene) {
	sc.doomed = sc.doomed[:0]
	for _, t := range x.rolls {
		if !x.source.Falls(sc.ops[0].Stream, sc.ops[0].N, t.lane.side.target.Cache.Rollback) {
			continue
		}
		d := doomed{of: t}
		for i := range sc.ops[:sc.steps] {
			if sc.ops[i].Target == t.lane.side.number {
				d.keys = append(d.keys, bytes.Clone(sc.ops[i].Key))
			}
		}
		sc.doomed = append(sc.doomed, d)
	}
}

// rollBack empties caches if the scenario is one of those that end in a rollback.
func (x *scenes) rollBack(sc *scene) {
	for _, d := range sc.doomed {
		d.of.empty(sc.session, d.keys)
	}
}

// leave ends the scenario and gives its slot back.
func (x *scenes) leave(sc *scene, now int64, held bool) {
	s := sc.session
	x.release(sc)
	x.l.vacate(s, 1, now)
	x.l.feed.freed(s, 1, now, held)
}

// fire starts a scenario's step that is due.
func (x *scenes) fire(t timer, now int64) {
	sc := x.slab[t.arg]
	if sc.waits = !x.l.gate.open(now); sc.waits {
		x.l.gate.hold(t.at, nextScene, sc.id, 0)
		return
	}
	x.l.gate.pass()
	x.step(sc, t.at, now)
}

// stop ends the scenarios that wait for their next step.
func (x *scenes) stop(now int64) {
	x.l.timers.drop(nextScene)
	x.l.gate.drop(nextScene)
	for _, sc := range x.slab {
		if sc.waits {
			x.cut[sc.number]++
			x.leave(sc, now, false)
		}
	}
}

// drop counts a scenario that was due and will never start, with its first op, which was due at the same time.
func (x *scenes) drop(stream *workload.Stream) {
	if number, _, ok := stream.NextScenario(x.shed); ok {
		rec := x.l.rec
		rec.AddScenario(number)
		rec.ShedScenario(number)
		x.l.count(&x.shed[0])
		rec.Shed(x.shed[0].Verb, 1)
		first := measure.Step{Scenario: number}
		rec.AddStep(first)
		rec.ShedStep(first)
	}
}

// sweep sweeps the ops of every lane.
func (x *scenes) sweep(now int64) int64 {
	next := int64(never)
	for _, la := range x.l.lanes {
		next = min(next, la.programs.sweep(now))
	}
	return next
}

// census also records the change in how many scenarios are in flight, which it counts one by one.
func (x *scenes) census(ops, keys *[driver.NumVerbs]int64) {
	x.stateful.census(ops, keys)
	copy(x.now, x.cut)
	steps, before := x.steps[0], x.steps[1]
	clear(steps)
	for _, sc := range x.slab {
		if sc.used {
			x.now[sc.number]++
		}
		if sc.used && !sc.waits && !sc.fills {
			steps[x.at(sc)]++
		}
	}
	for at, n := range steps {
		if change := n - before[at]; change != 0 {
			x.l.rec.AddStepInFlight(at, change)
		}
	}
	for at, n := range before {
		if steps[at] == 0 {
			x.l.rec.AddStepInFlight(at, -n)
		}
	}
	x.steps[0], x.steps[1] = before, steps
	for i, n := range x.now {
		if change := n - x.before[i]; change != 0 {
			x.l.rec.AddScenarioInFlight(i, change)
		}
	}
	x.now, x.before = x.before, x.now
}

func (x *scenes) take() *scene {
	if len(x.free) == 0 {
		x.grow()
	}
	last := len(x.free) - 1
	sc := x.slab[x.free[last]]
	x.free = x.free[:last]
	sc.used, sc.waits = true, false
	return sc
}

func (x *scenes) grow() {
	made, steps := make([]scene, minStates), x.source.Longest()
	ops := make([]op.Op, minStates*steps)
	for i := range made {
		made[i].id, made[i].ops = int32(len(x.slab)), ops[i*steps:(i+1)*steps]
		x.slab = append(x.slab, &made[i])
		x.free = append(x.free, made[i].id)
	}
}

func (x *scenes) release(sc *scene) {
	sc.used = false
	x.free = append(x.free, sc.id)
}
