package plan

import (
	"fmt"
	"time"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// maxEvents is the most events of a phase: each has figures of its own.
const maxEvents = 32

// Event is something that happens to a target while a phase loads it.
type Event struct {
	Name   string        `json:"name"`
	At     time.Duration `json:"at_ns"` // after the start of the load, its warm-up included
	Do     string        `json:"do"`    // FlushEvent
	Target string        `json:"target"`
}

// FlushEvent empties a cache. A target that reads through a cache loses what that holds, a built-in node everything, and other servers the keys that
// the phase uses.
const FlushEvent = "flush"

// events reads the events of a phase.
func (b *block) events(ph *Phase) {
	for _, in := range b.labelled("event", true) {
		ev := Event{Name: in.label, Target: ph.Target}
		in.Expect([]string{"at", "do", "target"}, nil)
		if in.Require("at", `Write at = "5s": how long after the start of the load.`) {
			in.Duration("at", &ev.At)
		}
		if in.Require("do", `Write do = "flush".`) {
			in.Text("do", &ev.Do)
		}
		if in.Has("target") {
			ev.Target = in.Reference("target", "target")
		}
		ph.Events = append(ph.Events, ev)
	}
}

// ByWorkers reports whether workers carry out an event themselves, each at its time on the run clock: it is about caches that they keep.
func (p *Plan) ByWorkers(ev *Event) bool {
	t := p.Target(ev.Target)
	return t != nil && t.Cache != nil && t.Cache.keeps()
}

// Flushed returns the target whose servers a flush empties; nil if there are none.
func (p *Plan) Flushed(ev *Event) *Target {
	t := p.Target(ev.Target)
	if t == nil || t.Cache == nil {
		return t
	}
	return p.Target(t.Cache.Target)
}

// Deleting returns a plan of phases that delete, from the servers that a flush in a phase empties, all keys that the phase uses there.
func (p *Plan) Deleting(ph *Phase, ev *Event) *Plan {
	t := p.Flushed(ev)
	all := &Plan{Name: p.Name, Seed: p.Seed, Targets: []*Target{t}}
	for i, name := range ph.DatasetsOn(ev.Target) {
		d := p.Dataset(name)
		if d == nil { // which is an error of its own
			continue
		}
		one := &Phase{
			Name: fmt.Sprintf("flush-%d", i+1), Target: t.Name, Dataset: name, Batch: 1, MaxBad: ph.MaxBad,
			Ops: []Weight{{driver.Delete.String(), 1}}, Clear: &Clear{Sessions: 16, Pipeline: 16},
		}
		if d.Keys.PerSession() {
			one.Clear.Sessions = ph.Sessions()
		}
		all.Datasets, all.Phases = append(all.Datasets, d), append(all.Phases, one)
	}
	return all
}

// lasts returns how long the load of a phase lasts; 0: the plan does not say.
func (ph *Phase) lasts() time.Duration {
	switch {
	case ph.Closed != nil:
		return ph.Closed.Duration
	case ph.Open != nil && (ph.Open.Trace == nil || ph.Open.Trace.Lines > 0): // else its file has not been read
		return ph.Open.Duration
	}
	return 0
}

// events checks the events of a phase.
func (v *validator) events(ph *Phase, at part) {
	if len(ph.Events) == 0 {
		return
	}
	if ph.Closed == nil && ph.Open == nil {
		v.fault(at.where+": an event in a phase that is not closed or open", "Write closed { … } or open { … }: a time within one load.", at.path+".event")
		return
	}
	v.within(at, "event", int64(len(ph.Events)), 0, maxEvents)
	seen := map[string]bool{}
	for i := range ph.Events {
		ev := &ph.Events[i]
		in := part{at.path + ".event." + ev.Name, at.where + ", event " + dialect.Quote(ev.Name)}
		switch {
		case !namePattern.MatchString(ev.Name):
			v.fault(at.where+": an event named "+dialect.Quote(ev.Name), writeName, in.path)
		case seen[ev.Name]:
			v.fault(at.where+": a second event named "+dialect.Quote(ev.Name), "Give it another name.", in.path)
		}
		seen[ev.Name] = true
		v.event(ph, ev, in)
	}
}

// event checks one of them.
func (v *validator) event(ph *Phase, ev *Event, at part) {
	v.oneOf(at, "do", ev.Do, FlushEvent)
	v.lasts(at, "at", ev.At, time.Millisecond)
	if lasts := ph.lasts(); lasts > 0 && ev.At >= lasts {
		v.fault(fmt.Sprintf("%s: at = %q, and the phase lasts %s", at.where, ev.At, lasts), "Write a time within it, or a longer duration.", at.path+".at")
	}
	if v.plan.Target(ev.Target) == nil {
		v.fault(fmt.Sprintf("%s: unknown target %s", at.where, dialect.Quote(ev.Target)), "Write target = target.NAME, one that the phase loads.", at.path+".target", at.path)
		return
	}
	if len(ph.DatasetsOn(ev.Target)) == 0 {
		v.fault(fmt.Sprintf("%s: the phase does not load target %s", at.where, dialect.Quote(ev.Target)), "Write a target that it loads.", at.path+".target", at.path)
		return
	}
	t := v.plan.Flushed(ev)
	if v.plan.ByWorkers(ev) || t == nil {
		return
	}
	_, cleans := driverNamed(v.drivers, t.Driver).(driver.Cleaner) // its clear removes more than keys
	if t.Builtin == nil && (cleans || t.Executor == Thread) {
		v.fault(fmt.Sprintf("%s: target %s is no cache", at.where, dialect.Quote(t.Name)),
			"Write a target that reads through one, or one of driver redis or memcached.", at.path+".target", at.path)
	}
}
