package plan

import (
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
)

// walks reports whether the phase takes each key once, untimed, and is not a load.
func (ph *Phase) walks() bool { return ph.Populate != nil || ph.Clear != nil || ph.Verify != nil }

// setup checks the untimed puts before a load.
func (v *validator) setup(ph *Phase, at part) {
	v.mix(ph, at.in("setup"), "ops", ph.Setup)
	path := at.path + ".setup"
	steps := len(ph.SetupSteps) > 0
	if steps && !slices.Equal(ph.Setup, mixOf([]Scenario{{Weight: 1, Steps: ph.SetupSteps}})) || len(ph.SetupSteps) > maxScenes {
		v.fault(fmt.Sprintf("%s: setup of %d steps that are not its ops", at.where, len(ph.SetupSteps)), fmt.Sprintf("Write at most %d steps.", maxScenes), path)
	}
	if !steps && (len(ph.Setup) != 1 || ph.Setup[0].Op != driver.Put.String()) {
		v.fault(at.where+": setup that does not only put", `Write setup { ops = { put = 1 } }, or steps such as step "login" {}.`, path, path+".ops")
	}
	if ph.Closed == nil && ph.Schedule() == nil {
		v.fault(at.where+": setup before populate, clear or verify", "Leave it out.", path, at.path)
	}
	if d := v.plan.Dataset(ph.Dataset); d != nil && !steps && !d.Keys.PerSession() {
		v.fault(fmt.Sprintf("%s: setup of the shared dataset %q", at.where, d.Name),
			`Write a phase with populate {} before this one, or scope = "session" in the dataset's keys: setup is for session pools.`,
			path, "dataset."+d.Name+".keys.scope")
	}
}

// setup reads what each session does before the load.
func (b *block) setup(ph *Phase) {
	b.Expect([]string{"ops"}, nil, "step")
	for _, step := range b.labelled("step", false) {
		step.Expect(nil, nil)
		ph.SetupSteps = append(ph.SetupSteps, ScenarioStep{Op: step.label, Key: newKey})
	}
	switch {
	case ph.SetupSteps != nil && b.Has("ops"):
		b.without("ops beside steps", "Write one of them.", "ops")
	case ph.SetupSteps != nil:
		ph.Setup = mixOf([]Scenario{{Weight: 1, Steps: ph.SetupSteps}})
	case b.Require("ops", `Write ops = { put = 1 }, or step "login" {}.`):
		ph.Setup = b.weights("ops")
	}
}

// pools checks that the session pools of a phase do not overlap.
func (v *validator) pools(ph *Phase, d *Dataset, at part) {
	if n := int64(ph.Sessions()); d.Keys.PerSession() && n > 0 && n <= maxSessions && d.Keys.Count > maxKeys/n {
		v.fault(fmt.Sprintf("%s: %d pools of %d keys are more than %d", at.where, n, d.Keys.Count, int64(maxKeys)),
			"Write fewer sessions, or a smaller count.", at.path, "dataset."+d.Name+".keys.count")
	}
}

// keysOf checks that a phase can take its keys from its dataset.
func (v *validator) keysOf(ph *Phase, d *Dataset, at part) {
	keys, n := "dataset."+d.Name+".keys", int64(ph.Sessions())
	session := d.Keys.PerSession()
	v.pools(ph, d, at)
	if ph.Populate != nil && session {
		v.fault(fmt.Sprintf("%s: populate of the session pools of dataset %q", at.where, d.Name),
			`Write setup { ops = { put = 1 } } in the phase that reads them, or scope = "shared" in the dataset's keys: populate is for shared keys.`,
			at.path+".populate", keys+".scope")
	}
	if d.Keys.Pick != sequencePick {
		return
	}
	switch c := ph.Closed; {
	case ph.Schedule() != nil:
		v.fault(fmt.Sprintf("%s: %s with the keys of dataset %q in sequence", at.where, ph.model(), d.Name),
			`Write closed { … }, or a dataset with pick = "uniform": a sequence ends when its keys do, a schedule when its time does.`,
			at.path+"."+ph.model(), keys+".pick")
	case c == nil || c.Trace != nil || c.Iterations < 1 || n < 1 || n > maxSessions:
	case session && c.Iterations > d.Keys.Count, !session && c.Iterations > d.Keys.Count/n:
		v.fault(fmt.Sprintf("%s: more iterations than there are keys in sequence", at.where),
			fmt.Sprintf("Write fewer iterations, or none: the load ends with the %d keys of dataset %q, each used once.", d.Keys.Count, d.Name),
			at.path+".closed.iterations", at.path+".closed.sessions", keys+".count", keys+".pick")
	}
}

// flushes reports whether a phase is a clear that empties its whole target, other datasets included.
func (p *Plan) flushes(ph *Phase) bool {
	t := p.Target(ph.Target)
	return ph.Clear != nil && t != nil && t.Builtin != nil
}
