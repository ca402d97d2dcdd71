package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/lang"
	"github.com/loadgen/loadgen/pkg/driver"
)

// bound checks that a phase and its bound both write logs, the bound first.
func (v *validator) bound(ph *Phase, at part) {
	if ph.Bound == "" {
		return
	}
	i := slices.Index(v.plan.Phases, ph)
	j := slices.IndexFunc(v.plan.Phases, func(p *Phase) bool { return p.Name == ph.Bound })
	if j < 0 || j >= i {
		v.fault(fmt.Sprintf("%s: its bound %s does not run before it", at.where, lang.Quote(ph.Bound)), "Write the bound's phase above this one, and when on both or neither.", at.path+".bound")
		return
	}
	for _, p := range []*Phase{ph, v.plan.Phases[j]} {
		if t := v.plan.Target(p.Target); t != nil && t.Executor != Thread {
			v.fault(fmt.Sprintf("%s: bound, and the target of phase %s is no log", at.where, lang.Quote(p.Name)), "Leave bound out.", at.path+".bound")
			return
		}
	}
}

// phase checks a phase.
func (v *validator) phase(ph *Phase) {
	at := part{"phase." + ph.Name, "phase " + lang.Quote(ph.Name)}
	v.oneModel(ph, at)
	v.scenarios(ph, at)
	if len(ph.Scenarios) == 0 {
		v.mix(ph, at, "ops", ph.Ops)
	}
	if len(ph.Setup) > 0 {
		v.setup(ph, at)
	}
	switch h := ph.ExpectHits; {
	case h == nil:
	case !(*h >= 0 && *h <= 1):
		v.fault(fmt.Sprintf("%s: expect_hits = %g", at.where, *h), `Write a share from 0 to 1, or "99%".`, at.path+".expect_hits")
	case weightOf(ph.Ops, driver.Get) == 0:
		v.fault(at.where+": expect_hits without gets", "Leave expect_hits out, or write ops with get.", at.path+".expect_hits", at.path+".ops")
	}
	v.hitRatio(ph, at)
	if !(ph.MaxBad >= 0 && ph.MaxBad <= 1) {
		v.fault(fmt.Sprintf("%s: max_bad = %g", at.where, ph.MaxBad), `Write a share from 0 to 1, or "1%".`, at.path+".max_bad")
	}
	v.stop(ph, at)
	v.local(ph, at)
	v.bound(ph, at)
	if d := v.plan.Dataset(ph.Dataset); d != nil {
		v.keysOf(ph, d, at)
		v.listed(ph, d, at)
		v.growing(ph, d, at)
		if t := v.plan.Target(ph.Target); t != nil {
			v.ttl(ph, d, t)
			v.batch(ph, d, t, at)
		}
		if t := v.plan.Target(ph.Target); t != nil && t.Replication != nil && !d.Values.Checked {
			v.fault(fmt.Sprintf("%s: replicated values that are not checked", at.where),
				fmt.Sprintf("Leave checked = false out of dataset %q: versions stand in checked values.", d.Name),
				"dataset."+d.Name+".values.checked")
		}
	}
}

// stop checks how many failures end a load.
func (v *validator) stop(ph *Phase, at part) {
	s := ph.Stop
	if s == nil {
		return
	}
	about := at.path + ".stop_after"
	if s.Errors == 1 {
		about = at.path + ".on_error"
	}
	switch {
	case ph.Search != nil:
		v.fault(at.where+": search with on_error or stop_after", "Leave them out: a search tries what is too much, and max_bad says which level does not hold.", about)
	case ph.Closed == nil && ph.Schedule() == nil:
		v.fault(at.where+": populate or clear with on_error or stop_after", "Leave them out: when one of their ops fails, the run has failed.", about)
	case !(s.Errors >= 1 && s.Errors <= maxIterations && s.Share == 0) && !(s.Errors == 0 && s.Share > 0 && s.Share < 1):
		v.fault(fmt.Sprintf("%s: stop_after is %d errors and a share of %g", at.where, s.Errors, s.Share),
			`Write a number of errors such as 100, or a share of the ops below 100%, such as "5%".`, about)
	}
}

// oneModel checks that there is one load model, and it.
func (v *validator) oneModel(ph *Phase, at part) {
	var models []string
	if c := ph.Closed; c != nil {
		models = append(models, "closed")
		v.closed(ph, at.in("closed"))
		if c.Trace != nil {
			v.trace(ph, c.Trace, at.in("closed").in("trace"))
		}
	}
	if ph.Open != nil {
		models = append(models, "open")
		v.open(ph.Open, at.in("open"))
		if t := ph.Open.Trace; t != nil {
			v.trace(ph, t, at.in("open").in("trace"))
		}
	}
	if ph.Stages != nil {
		models = append(models, "stages")
		v.stages(ph.Stages, at.in("stages"))
	}
	if ph.Search != nil {
		models = append(models, "search")
		v.search(ph, at.in("search"))
	}
	if w := ph.Populate; w != nil {
		models = append(models, "populate")
		v.connections(at.in("populate"), w.Sessions, w.Pipeline)
	}
	if w := ph.Clear; w != nil {
		models = append(models, "clear")
		v.connections(at.in("clear"), w.Sessions, w.Pipeline)
	}
	switch {
	case len(models) == 0:
		v.fault(at.where+": no load model", "Write closed { … }, open { … }, stages { … }, search { … }, populate {} or clear {}.",
			append([]string{at.path, at.path + ".model"}, eachIn(at.path, loadModels)...)...)
	case len(models) > 1:
		v.fault(fmt.Sprintf("%s: %d load models: %s", at.where, len(models), lang.Listed(models)), "Write one, and a phase for each other.", at.path)
	}
}

func (v *validator) connections(at part, sessions, pipeline int) {
	v.within(at, "sessions", int64(sessions), 1, maxSessions)
	v.within(at, "pipeline", int64(pipeline), 1, maxPipeline)
}

// closed checks a closed load.
func (v *validator) closed(ph *Phase, at part) {
	c := ph.Closed
	v.connections(at, c.Sessions, c.Pipeline)
	if c.Iterations != 0 { // 0 stands for none
		v.within(at, "iterations", c.Iterations, 1, maxIterations)
	}
	if c.Duration != 0 {
		v.lasts(at, "duration", c.Duration, time.Nanosecond)
	}
	v.lasts(at, "ramp", c.Ramp, 0)
	v.lasts(at, "think", c.Think, 0)
	d := v.plan.Dataset(ph.Dataset)
	switch {
	case c.Iterations > 0 && c.Duration > 0:
		v.fault(at.where+": both iterations and duration", "Write one of them.", at.path, at.path+".iterations", at.path+".duration")
	case c.Iterations != 0 || c.Duration != 0:
	case c.Trace != nil && c.Trace.Loop:
		v.fault(at.where+": a trace that begins again, and neither iterations nor duration", `Write duration = "30s", or iterations = 1000 for each session, or leave loop out.`,
			at.path+".trace.loop", at.path)
	case c.Trace == nil && d != nil && d.Keys.Pick != "sequence":
		v.fault(at.where+": neither iterations nor duration", `Write iterations = 1000, for each session, or duration = "30s".`,
			at.path, at.path+".iterations", at.path+".duration", "dataset."+d.Name+".keys.pick")
	}
	v.warmUp(at, c.WarmUp, c.Duration)
	if c.Duration > 0 && c.Ramp >= c.Duration {
		v.fault(at.where+": ramp is not shorter than duration", "Write a shorter ramp, or a longer duration.", at.path+".ramp", at.path+".duration")
	}
}

// warmUp checks the beginning of a load that figures leave out. Without a duration nobody knows what would be left.
func (v *validator) warmUp(at part, warmUp, duration time.Duration) {
	v.lasts(at, "warmup", warmUp, 0)
	switch {
	case warmUp > 0 && duration == 0:
		v.fault(at.where+": warmup without duration", `Write duration = "60s" instead of iterations: of a load that ends with its work, nobody knows how much a warm-up would leave.`,
			at.path+".warmup", at.path)
	case warmUp > 0 && warmUp > duration-leastMeasured:
		v.fault(fmt.Sprintf("%s: warmup leaves less than %v of duration", at.where, leastMeasured), "Write a shorter warmup, or a longer duration: it is a part of it.",
			at.path+".warmup", at.path+".duration")
	}
}

// leastMeasured is what a warm-up leaves of a load at least: it ends with a second of the run's clock.
const leastMeasured = 2 * time.Second

// mix checks weights: known ops of the target's driver, in verb order, each once.
func (v *validator) mix(ph *Phase, at part, name string, mix []Weight) {
	path, last := at.path+"."+name, -1
	if len(mix) == 0 {
		v.fault(fmt.Sprintf("%s: %s is empty", at.where, name), "Write an op with a weight above 0: { get = 1 }.", path, at.path)
	}
	for _, w := range mix {
		verb := verbOf(w.Op)
		switch {
		case verb < 0:
			v.fault(fmt.Sprintf("%s: unknown op %s", at.where, lang.Quote(w.Op)), lang.Instead(w.Op, verbNames(), "%s"), path)
		case verb <= last:
			v.fault(fmt.Sprintf("%s: %s out of order or twice", at.where, w.Op), "Write each op once, in the order "+lang.Listed(verbNames())+".", path)
		case !(w.Weight > 0 && w.Weight <= maxWeightOf):
			v.fault(fmt.Sprintf("%s: the weight of %s is %g", at.where, w.Op, w.Weight), "Write a weight above 0 and up to 1e9.", path)
		default:
			v.supported(ph, at, driver.Verb(verb), path)
		}
		last = verb
	}
	for model, only := range map[string]driver.Verb{"populate": driver.Put, "clear": driver.Delete} {
		is := model == "populate" && ph.Populate != nil || model == "clear" && ph.Clear != nil
		if is && name == "ops" && (len(mix) != 1 || mix[0] != Weight{only.String(), 1}) {
			v.fault(fmt.Sprintf("%s: %s with other ops than %s", at.where, model, only), "Leave ops out.", path)
		}
	}
}

// supported checks that the driver of the phase's target knows a verb.
func (v *validator) supported(ph *Phase, at part, verb driver.Verb, path string) {
	t := v.plan.Target(ph.Target)
	if t == nil {
		return
	}
	if d := driverNamed(v.drivers, t.Driver); d != nil && d.Outcomes(verb) == nil {
		var known []string
		for k := range driver.NumVerbs {
			if d.Outcomes(driver.Verb(k)) != nil {
				known = append(known, driver.Verb(k).String())
			}
		}
		v.fault(fmt.Sprintf("%s: driver %q has no %s", at.where, t.Driver, verb), "It has "+lang.Listed(known)+".", path, at.path+".target")
	}
}

// setup checks the untimed puts before a load.
func (v *validator) setup(ph *Phase, at part) {
	v.mix(ph, at.in("setup"), "ops", ph.Setup)
	path := at.path + ".setup"
	if len(ph.Setup) != 1 || ph.Setup[0].Op != driver.Put.String() {
		v.fault(at.where+": setup that does not only put", "Write setup { ops = { put = 1 } }.", path, path+".ops")
	}
	if ph.Closed == nil && ph.Schedule() == nil {
		v.fault(at.where+": setup before populate or clear", "Leave it out.", path, at.path)
	}
	if d := v.plan.Dataset(ph.Dataset); d != nil && d.Keys.Scope != "session" {
		v.fault(fmt.Sprintf("%s: setup of the shared dataset %q", at.where, d.Name),
			`Write a phase with populate {} before this one, or scope = "session" in the dataset's keys: setup is for session pools.`,
			path, "dataset."+d.Name+".keys.scope")
	}
}

// keysOf checks that a phase can take its keys from the dataset.
func (v *validator) keysOf(ph *Phase, d *Dataset, at part) {
	keys, n := "dataset."+d.Name+".keys", int64(ph.Sessions())
	session := d.Keys.Scope == "session"
	if session && n > 0 && n <= maxSessions && d.Keys.Count > maxKeys/n {
		v.fault(fmt.Sprintf("%s: %d pools of %d keys are more than %d", at.where, n, d.Keys.Count, int64(maxKeys)),
			"Write fewer sessions, or a smaller count.", at.path, keys+".count")
	}
	if ph.Populate != nil && session {
		v.fault(fmt.Sprintf("%s: populate of the session pools of dataset %q", at.where, d.Name),
			`Write setup { ops = { put = 1 } } in the phase that reads them, or scope = "shared" in the dataset's keys: populate is for shared keys.`,
			at.path+".populate", keys+".scope")
	}
	if d.Keys.Pick != "sequence" {
		return
	}
	switch c := ph.Closed; {
	case ph.Schedule() != nil:
		v.fault(fmt.Sprintf("%s: %s with the keys of dataset %q in sequence", at.where, ph.scheduled(), d.Name),
			`Write closed { … }, or a dataset with pick = "uniform": a sequence ends when its keys do, a schedule when its time does.`,
			at.path+"."+ph.scheduled(), keys+".pick")
	case c == nil || c.Trace != nil || c.Iterations < 1 || n < 1 || n > maxSessions:
	case session && c.Iterations > d.Keys.Count, !session && c.Iterations > d.Keys.Count/n:
		v.fault(fmt.Sprintf("%s: more iterations than there are keys in sequence", at.where),
			fmt.Sprintf("Write fewer iterations, or none: the load ends with the %d keys of dataset %q, each used once.", d.Keys.Count, d.Name),
			at.path+".closed.iterations", at.path+".closed.sessions", keys+".count", keys+".pick")
	}
}
