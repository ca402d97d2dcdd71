package judge

import (
	"maps"
	"slices"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// severalTargets is the reason why an op has no figures: they would mix different targets.
const severalTargets reason.Code = "several_targets"

// apart lists the ops that the phase sends to several targets.
func apart(ph *plan.Phase) (ops []string) {
	to := map[string]string{}
	for _, s := range ph.Scenarios {
		for _, step := range s.Steps {
			target := step.TargetIn(ph)
			if first, seen := to[step.Op]; seen && first != target && !slices.Contains(ops, step.Op) {
				ops = append(ops, step.Op)
			}
			to[step.Op] = target
		}
	}
	return ops
}

// part is a verb's op or, if the verb goes to several targets, one of the steps that carry it out.
type part struct {
	verb driver.Verb
	name string // for people
	at   string // path relative to the phase
	*run.Figures
	hits *float64 // share of hits among answered ops; nil if none was answered
}

// parts lists the parts of the verb with a name.
func parts(verb driver.Verb, name string, ops map[string]*run.Op, scenarios map[string]*run.Scenario) (all []part) {
	o, done := ops[name]
	switch {
	case !done:
		return nil
	case o != nil:
		return []part{{verb, name, "op." + name, &o.Figures, o.HitRatio}}
	}
	for _, scenario := range slices.Sorted(maps.Keys(scenarios)) {
		for _, step := range scenarios[scenario].StepOrder {
			s := scenarios[scenario].Step[step]
			if s.Op != name {
				continue
			}
			x := part{verb, "scenario " + scenario + ", step " + step, "scenario." + scenario + ".step." + step, &s.Figures, nil}
			if answered := s.OK + s.Miss; answered > 0 {
				x.hits = number(float64(s.OK) / float64(answered))
			}
			all = append(all, x)
		}
	}
	return all
}

// parts lists the parts of all verbs of the phase.
func (p *phase) parts() (all []part) {
	for v := range driver.NumVerbs {
		all = append(all, parts(driver.Verb(v), p.words.Name(driver.Verb(v)), p.Op, p.Scenario)...)
	}
	return all
}
