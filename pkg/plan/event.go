package plan

import (
	"fmt"
	"slices"
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
	Do     string        `json:"do"`
	Target string        `json:"target"`
	Node   *int          `json:"node,omitempty"`     // index of a built-in node, from 0; nil for all
	For    time.Duration `json:"for_ns,omitempty"`   // time until it is undone; 0 if it is not
	Delay  time.Duration `json:"delay_ns,omitempty"` // of DelayEvent: the delay before each reply
	Drop   float64       `json:"drop,omitempty"`     // of DropEvent: share of requests, 0 to 1
	Hook   string        `json:"hook,omitempty"`     // of HookEvent: the hook's name
}

// The kinds of events.
const (
	// FlushEvent empties a cache. A target that reads through a cache loses the cache's entries, a built-in node everything, and other servers the
	// keys that the phase uses.
	FlushEvent = "flush"

	KillEvent     = "kill"     // built-in nodes are killed; undone: they start again, empty
	RestartEvent  = "restart"  // built-in nodes are killed and start again, empty
	StopEvent     = "stop"     // built-in nodes are stopped by SIGSTOP; undone: they go on
	ContinueEvent = "continue" // stopped nodes go on
	DelayEvent    = "delay"    // built-in nodes reply later; undone: as before
	DropEvent     = "drop"     // built-in nodes leave requests unanswered; undone: as before
	HookEvent     = "hook"     // a command that the user has allowed runs
)

// eventWords lists the kinds of events.
var eventWords = []string{FlushEvent, KillEvent, RestartEvent, StopEvent, ContinueEvent, DelayEvent, DropEvent, HookEvent}

// undone are the events that end after a while.
var undone = []string{KillEvent, StopEvent, DelayEvent, DropEvent}

// events reads the events of a phase.
func (b *block) events(ph *Phase) {
	for _, in := range b.labelled("event", true) {
		ev := Event{Name: in.label, Target: ph.Target}
		in.Expect([]string{"at", "do", "target", "node", "for", "delay", "drop", "hook"}, nil)
		in.Require("at", `Write at = "5s": how long after the start of the load.`)
		in.Duration("at", &ev.At)
		in.Require("do", `Write do = "flush", or what else is to happen.`)
		in.Text("do", &ev.Do)
		if in.Has("target") {
			ev.Target = in.Reference("target", "target")
		}
		if in.Has("node") {
			ev.Node = new(int)
			dialect.Integer(in.Block, "node", ev.Node)
		}
		in.Duration("for", &ev.For)
		in.Duration("delay", &ev.Delay)
		in.Share("drop", &ev.Drop)
		if in.Has("hook") || ev.Do == HookEvent {
			ev.Hook = in.hook("hook")
		}
		ph.Events = append(ph.Events, ev)
	}
}

// ByWorkers reports whether workers carry out an event themselves, each at its time on the run clock, because it concerns caches that they keep.
func (p *Plan) ByWorkers(ev *Event) bool {
	t := p.Target(ev.Target)
	return ev.Do == FlushEvent && t != nil && t.Cache != nil && t.Cache.keeps()
}

// Flushed returns the target whose servers a flush empties; nil if there are none.
func (p *Plan) Flushed(ev *Event) *Target {
	t := p.Target(ev.Target)
	if t == nil || t.Cache == nil {
		return t
	}
	return p.Target(t.Cache.Target)
}

// Deleting returns a plan whose phases delete all keys that a phase uses on the servers that a flush in it empties.
func (p *Plan) Deleting(ph *Phase, ev *Event) *Plan {
	t := p.Flushed(ev)
	all := &Plan{Name: p.Name, Seed: p.Seed, Targets: []*Target{t}}
	for i, name := range ph.DatasetsOn(ev.Target) {
		d := p.Dataset(name)
		if d == nil { // that is reported as an error elsewhere
			continue
		}
		one := &Phase{
			Name: fmt.Sprintf("flush-%d", i+1), Target: t.Name, Dataset: name, Batch: 1, MaxBad: ph.MaxBad,
			Ops: []Weight{{driver.Delete.String(), 1}}, Clear: &Clients{Sessions: 16, Pipeline: 16},
		}
		if d.Keys.PerSession() {
			one.Clear.Sessions = ph.Sessions()
		}
		all.Datasets, all.Phases = append(all.Datasets, d), append(all.Phases, one)
	}
	return all
}

// lasts returns how long the load of a phase lasts; 0 if the plan does not say.
func (ph *Phase) lasts() time.Duration {
	switch {
	case ph.Closed != nil:
		return ph.Closed.Duration
	case ph.Open != nil && (ph.Open.Trace == nil || ph.Open.Trace.Lines > 0): // otherwise its file has not been read
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

// event checks one event.
func (v *validator) event(ph *Phase, ev *Event, at part) {
	v.oneOf(at, "do", ev.Do, eventWords...)
	v.lasts(at, "at", ev.At, time.Millisecond)
	v.lasts(at, "for", ev.For, 0)
	if lasts := ph.lasts(); lasts > 0 && ev.At+ev.For >= lasts {
		what := fmt.Sprintf("%s: at = %q, and the phase lasts %s", at.where, ev.At, lasts)
		if ev.For > 0 {
			what = fmt.Sprintf("%s: it ends after %s, and the phase lasts %s", at.where, ev.At+ev.For, lasts)
		}
		v.fault(what, "Write a time within it, or a longer duration.", at.path+".at", at.path+".for")
	}
	v.means(ev, at)
	t := v.plan.Target(ev.Target)
	switch {
	case t == nil:
		v.fault(fmt.Sprintf("%s: unknown target %s", at.where, dialect.Quote(ev.Target)), "Write target = target.NAME, one that the phase loads.", at.path+".target", at.path)
	case !slices.Contains(ph.Targets(), ev.Target):
		v.fault(fmt.Sprintf("%s: the phase does not load target %s", at.where, dialect.Quote(ev.Target)), "Write a target that it loads.", at.path+".target", at.path)
	case ev.Do == FlushEvent:
		v.flushEvent(ev, at)
	case ev.Do != HookEvent && t.Builtin == nil && slices.Contains(eventWords, ev.Do):
		v.fault(fmt.Sprintf("%s: loadgen did not start target %s", at.where, dialect.Quote(ev.Target)),
			`Write the target of built-in nodes that it is about, or do = "hook" and hook = hook.NAME, a command that does it to servers of your own.`, at.path+".do")
	case ev.Node != nil && t.Builtin != nil:
		v.within(at, "node", int64(*ev.Node), 0, int64(t.Builtin.Nodes)-1)
	}
}

// means checks that an event has the arguments that it needs and no others.
func (v *validator) means(ev *Event, at part) {
	for _, a := range []struct {
		name  string
		has   bool
		of    []string
		needs bool
		write string
	}{
		{"for", ev.For != 0, undone, false, ""},
		{"node", ev.Node != nil, eventWords[1:], false, ""},
		{"delay", ev.Delay != 0, []string{DelayEvent}, true, `Write delay = "20ms": how much later nodes reply.`},
		{"drop", ev.Drop != 0, []string{DropEvent}, true, `Write drop = "10%": the share of requests that are left unanswered.`},
		{"hook", ev.Hook != "", []string{HookEvent}, true, "Write hook = hook.NAME."},
	} {
		switch its := slices.Contains(a.of, ev.Do); {
		case a.has && !its:
			v.fault(fmt.Sprintf("%s: %s, and it is to %s", at.where, a.name, ev.Do), "Leave "+a.name+" out.", at.path+"."+a.name)
		case !a.has && its && a.needs:
			v.fault(fmt.Sprintf("%s: %s is missing", at.where, a.name), a.write, at.path+"."+a.name, at.path+".do")
		}
	}
	if ev.Delay < 0 || ev.Delay > maxNodeDelay {
		v.fault(fmt.Sprintf("%s: delay = %q", at.where, ev.Delay.String()), "Write a duration from 0s to 1h.", at.path+".delay")
	}
	if !(ev.Drop >= 0 && ev.Drop <= 1) {
		v.fault(fmt.Sprintf("%s: drop = %g", at.where, ev.Drop), `Write a share from 0 to 1, or "10%".`, at.path+".drop")
	}
}

// flushEvent checks that a target can be emptied.
func (v *validator) flushEvent(ev *Event, at part) {
	t := v.plan.Flushed(ev)
	if v.plan.ByWorkers(ev) || t == nil {
		return
	}
	_, cleans := driverNamed(v.drivers, t.Driver).(driver.Cleaner) // a clear removes more than keys
	if t.Builtin == nil && (cleans || t.Executor == Thread) {
		v.fault(fmt.Sprintf("%s: target %s is not a cache", at.where, dialect.Quote(t.Name)),
			"Write a target that reads through one, or one of driver redis or memcached.", at.path+".target", at.path)
	}
}
