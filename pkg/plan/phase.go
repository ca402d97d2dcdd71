package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Phase is a load on a target. Exactly one of Closed, Open, Stages, Search, Populate, Clear and Verify is set.
type Phase struct {
	Name       string         `json:"name"`
	Target     string         `json:"target"`
	Behind     []string       `json:"behind,omitempty"` // targets that other targets of the phase ask: their sources, and remote caches
	Dataset    string         `json:"dataset"`
	Ops        []Weight       `json:"ops"`                   // in verb order; for Populate: put, for Clear: delete, for Verify: get; for Scenarios: the sum of their steps
	Scenarios  []Scenario     `json:"scenarios"`             // sessions draw from these instead of Ops; if empty, from Ops
	Batch      int            `json:"batch"`                 // keys per op of the load
	Distinct   bool           `json:"distinct,omitempty"`    // no key twice in a batch
	Setup      []Weight       `json:"setup"`                 // untimed ops before the load: each session takes every key of its pool once, or the steps below; empty for none
	SetupSteps []ScenarioStep `json:"setup_steps,omitempty"` // each session carries them out once, before the load; what they capture lasts
	Closed     *Closed        `json:"closed"`                //
	Open       *Open          `json:"open"`                  //
	Stages     *Stages        `json:"stages"`                //
	Search     *Search        `json:"search"`                //
	Populate   *Clients       `json:"populate"`              // puts every key of a shared dataset exactly once
	Clear      *Clients       `json:"clear"`                 // deletes every key of the dataset; built-in nodes are flushed instead
	Verify     *Clients       `json:"verify,omitempty"`      // reads every key that earlier phases have put and counts acknowledged writes that are lost
	ExpectLost bool           `json:"expect_lost,omitempty"` // lost writes do not make the verify invalid
	ExpectHits *float64       `json:"expect_hits"`           // share of gets, 0 to 1; nil for no expectation
	HitRatio   *float64       `json:"hit_ratio,omitempty"`   // share of gets for the dataset's keys, above 0; the rest ask for keys that are never put. nil for all
	OnMiss     string         `json:"on_miss,omitempty"`     // PutOnMiss, or "" if nothing follows a get that misses
	Bound      string         `json:"bound,omitempty"`       // earlier phase; this one's speed is shown as a share of its speed; "" for none
	MaxBad     float64        `json:"max_bad"`               // share of due ops, 0 to 1
	Growth     *Growth        `json:"growth,omitempty"`      // nil if latencies are not recorded by ordinal
	Staleness  bool           `json:"staleness,omitempty"`   // what gets return is compared with the puts that were acknowledged when they began
	Samples    int            `json:"samples,omitempty"`     // number of single ops kept, drawn at random; 0 for none
	Stop       *Stop          `json:"stop"`                  // nil if the load goes on however many ops fail
	Events     []Event        `json:"events,omitempty"`      // events on targets during the load
}

// Schedule returns the schedule of arrivals that do not wait for the target; nil when they do wait.
func (ph *Phase) Schedule() *Schedule {
	switch {
	case ph.Open != nil:
		return &ph.Open.Schedule
	case ph.Stages != nil:
		return &ph.Stages.Schedule
	case ph.Search != nil:
		return &ph.Search.Schedule
	}
	return nil
}

// Trace returns the trace that the phase replays; nil when it replays none.
func (ph *Phase) Trace() *Trace {
	switch {
	case ph.Closed != nil:
		return ph.Closed.Trace
	case ph.Open != nil:
		return ph.Open.Trace
	}
	return nil
}

// WarmUp returns how much of the phase's beginning the plan excludes from its figures; 0 if the plan does not say.
func (ph *Phase) WarmUp() time.Duration {
	switch {
	case ph.Closed != nil:
		return ph.Closed.WarmUp
	case ph.Open != nil:
		return ph.Open.WarmUp
	}
	return 0
}

// loadModels are the inner blocks of a phase, which has exactly one of them.
var loadModels = []string{"closed", "open", "stages", "search", "populate", "clear", "verify"}

// models lists the load models that the phase has.
func (ph *Phase) models() (words []string) {
	for i, has := range []bool{ph.Closed != nil, ph.Open != nil, ph.Stages != nil, ph.Search != nil, ph.Populate != nil, ph.Clear != nil, ph.Verify != nil} {
		if has {
			words = append(words, loadModels[i])
		}
	}
	return words
}

// model returns the phase's one load model.
func (ph *Phase) model() string { return append(ph.models(), "open")[0] }

// phase reads a phase block; nil if the phase is left out.
func (r *resolver) phase(body *hclsyntax.Block) *Phase {
	ph := &Phase{Name: body.Labels[0], Ops: []Weight{}, Scenarios: []Scenario{}, Setup: []Weight{}, Batch: 1, MaxBad: 0.01}
	b := r.block(body, "phase."+ph.Name, "phase "+dialect.Quote(ph.Name))
	b.Expect([]string{"target", "dataset", "ops", "batch", "distinct", "when", "bound", "expect_hits", "hit_ratio", "on_miss", "max_bad", "samples", "on_error", "stop_after"}, slices.Concat([]string{"setup", "growth", "staleness"}, loadModels), "scenario", "event", "slo")
	ph.Target, ph.Dataset = b.Named("target"), b.Named("dataset")
	when := true
	b.Flag("when", &when)
	if !when {
		return nil
	}
	b.loadModel(ph)
	b.mix(ph)
	b.scenarios(ph)
	if setup := b.inner("setup"); setup != nil {
		setup.setup(ph)
	}
	dialect.Integer(b.Block, "batch", &ph.Batch)
	b.Flag("distinct", &ph.Distinct)
	var hits float64
	if b.Share("expect_hits", &hits) {
		ph.ExpectHits = &hits
	}
	var ratio float64
	if b.Share("hit_ratio", &ratio) {
		ph.HitRatio = &ratio
	}
	b.Text("on_miss", &ph.OnMiss)
	if b.Has("bound") {
		ph.Bound = b.Reference("bound", "phase")
	}
	b.Share("max_bad", &ph.MaxBad)
	dialect.Integer(b.Block, "samples", &ph.Samples)
	if ph.Samples == 0 {
		b.notZero("samples", "0 samples are none", writeMore)
	}
	ph.Growth = b.growth()
	if staleness := b.inner("staleness"); staleness != nil {
		staleness.Expect(nil, nil)
		ph.Staleness = true
	}
	ph.Stop = b.stop()
	b.events(ph)
	for _, inner := range b.each("slo") {
		if slo := inner.slo("op"); inner.Require("op", "Write the op that it limits, or slo in a step.") {
			inner.held(slo, "phase", ph.Name, "op", slo.Op)
		}
	}
	return ph
}

// loadModel reads the phase's one load model.
func (b *block) loadModel(ph *Phase) {
	for _, model := range loadModels {
		inner := b.inner(model)
		switch {
		case inner == nil:
		case model == "closed":
			ph.Closed = inner.closed()
		case model == "open":
			ph.Open = inner.open()
		case model == "stages" && inner.ofSessions():
			ph.Closed = inner.users()
		case model == "stages":
			ph.Stages = inner.stages()
		case model == "search":
			ph.Search = inner.search()
		case model == "populate":
			ph.Populate = inner.walk("sessions", "pipeline")
		case model == "clear":
			ph.Clear = inner.walk("sessions", "pipeline")
		case model == "verify":
			ph.Verify = inner.walk("pipeline", "expect_lost") // its sessions are known once all phases are
			inner.Flag("expect_lost", &ph.ExpectLost)
		}
	}
}

// bound checks that a phase and its bound both write logs, and that the bound runs first.
func (v *validator) bound(ph *Phase, at part) {
	if ph.Bound == "" {
		return
	}
	i := slices.Index(v.plan.Phases, ph)
	j := slices.IndexFunc(v.plan.Phases, func(p *Phase) bool { return p.Name == ph.Bound })
	if j < 0 || j >= i {
		v.fault(fmt.Sprintf("%s: its bound %s does not run before it", at.where, dialect.Quote(ph.Bound)), "Write the bound's phase above this one, and when on both or neither.", at.path+".bound")
		return
	}
	for _, p := range []*Phase{ph, v.plan.Phases[j]} {
		if t := v.plan.Target(p.Target); t != nil && t.Executor != Thread {
			v.fault(fmt.Sprintf("%s: bound, and the target of phase %s is not a log", at.where, dialect.Quote(p.Name)), "Leave bound out.", at.path+".bound")
			return
		}
	}
}

// phase checks a phase.
func (v *validator) phase(ph *Phase) {
	at := part{"phase." + ph.Name, "phase " + dialect.Quote(ph.Name)}
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
	case weightOf(ph.Ops, driver.Get) == 0 && (*h > 0 || !v.plan.mayMiss(ph)):
		v.fault(at.where+": expect_hits without gets", "Leave expect_hits out, or write ops with get.", at.path+".expect_hits", at.path+".ops")
	}
	v.hitRatio(ph, at)
	v.onMiss(ph, at)
	v.cached(ph, at)
	if !(ph.MaxBad >= 0 && ph.MaxBad <= 1) {
		v.fault(fmt.Sprintf("%s: max_bad = %g", at.where, ph.MaxBad), `Write a share from 0 to 1, or "1%".`, at.path+".max_bad")
	}
	v.growth(ph, at)
	v.samples(ph, at)
	v.stop(ph, at)
	v.reconnect(ph, at)
	v.chain(ph, at)
	v.events(ph, at)
	v.local(ph, at)
	v.bound(ph, at)
	if d := v.plan.Dataset(ph.Dataset); d != nil {
		v.enough(ph, d, at)
		v.notes(ph, d, at)
		v.keysOf(ph, d, at)
		v.listed(ph, d, at)
		v.growing(ph, d, at)
		v.grown(ph, d, at)
		v.single(ph, d, at)
		if t := v.plan.Target(ph.Target); t != nil {
			v.batch(ph, d, t, at)
			v.follow(ph, d, t, at)
		}
	}
	for _, name := range ph.Datasets()[1:] {
		if d := v.plan.Dataset(name); d != nil {
			v.pools(ph, d, at)
		}
	}
	for _, x := range v.plan.uses(ph) {
		v.ttl(ph, x.data, x.target)
		v.formed(ph, x.target, x.data, at)
		v.requested(ph, x.target, x.data, at)
		v.remembered(ph, x.target, x.data, at)
		if x.target.Replication != nil && !x.data.Values.Checked {
			v.fault(fmt.Sprintf("%s: replicated values that are not checked", at.where),
				fmt.Sprintf("Leave checked = false out of dataset %q: checked values hold the versions.", x.data.Name),
				"dataset."+x.data.Name+".values.checked")
		}
	}
}

// samples checks the number of single ops to keep.
func (v *validator) samples(ph *Phase, at part) {
	if ph.Samples == 0 {
		return
	}
	v.within(at, "samples", int64(ph.Samples), 1, maxSamples)
	if ph.Closed == nil && ph.Schedule() == nil {
		v.fault(at.where+": samples of populate, clear or verify", "Leave samples out: those of a load are kept, which is closed, open, stages or search.", at.path+".samples")
	}
}

// oneModel checks that there is exactly one load model, and checks that model.
func (v *validator) oneModel(ph *Phase, at part) {
	if c := ph.Closed; c != nil {
		name := "closed"
		if len(c.Stages) > 0 {
			name = "stages"
		}
		v.closed(ph, at.in(name))
		if c.Trace != nil {
			v.trace(ph, c.Trace, at.in("closed").in("trace"))
		}
	}
	if ph.Open != nil {
		v.open(ph.Open, at.in("open"))
		if t := ph.Open.Trace; t != nil {
			v.trace(ph, t, at.in("open").in("trace"))
		}
	}
	if ph.Stages != nil {
		v.stages(ph.Stages, at.in("stages"))
	}
	if ph.Search != nil {
		v.search(ph, at.in("search"))
	}
	for i, w := range []*Clients{ph.Populate, ph.Clear, ph.Verify} {
		if w != nil {
			v.clients(w, at.in([]string{"populate", "clear", "verify"}[i]))
		}
	}
	switch models := ph.models(); {
	case len(models) == 0:
		v.fault(at.where+": no load model", "Write closed { … }, open { … }, stages { … }, search { … }, populate {}, clear {} or verify {}.",
			append([]string{at.path, at.path + ".model"}, namesOf(loadModels, func(model string) string { return at.path + "." + model })...)...)
	case len(models) > 1:
		v.fault(fmt.Sprintf("%s: %d load models: %s", at.where, len(models), dialect.Listed(models)), "Write one, and a phase for each other.", at.path)
	}
}

// fills reports whether the phase's setup puts every key of its sessions' pools. Steps do not.
func (ph *Phase) fills() bool { return len(ph.Setup) > 0 && len(ph.SetupSteps) == 0 }
