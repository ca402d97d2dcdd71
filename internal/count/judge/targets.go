package judge

import (
	"maps"
	"slices"

	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/result/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// severalTargets is why an op has no figures: they would mix what different targets did.
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

// part is what a phase did of a verb: its op or, if that goes to several targets, one of the steps that do it.
type part struct {
	verb driver.Verb
	name string // for people
	at   string // path relative to the phase
	*run.Figures
	hits *float64 // share of those answered; nil: none was
}

// parts lists what was done of the verb with a name.
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

// parts lists everything that the phase did, by verb.
func (p *phase) parts() (all []part) {
	for v := range driver.NumVerbs {
		all = append(all, parts(driver.Verb(v), p.words.Name(driver.Verb(v)), p.Op, p.Scenario)...)
	}
	return all
}

// judgeTargets checks the ops of each of several targets against max_bad, so that the verdict names the target that failed.
func (p *phase) judgeTargets(ph *plan.Phase) {
	if len(p.Others) == 0 {
		return
	}
	for _, t := range p.targets() {
		var all run.Figures
		var touches []string
		for _, name := range slices.Sorted(maps.Keys(p.Scenario)) {
			for _, step := range p.Scenario[name].StepOrder {
				if s := p.Scenario[name].Step[step]; s.Target == t.Name {
					sumUp(&all, &s.Figures)
					touches = append(touches, "scenario."+name+".step."+step)
				}
			}
		}
		wrong := all.QuorumFailed + all.Timeout + all.Error + all.Shed
		if all.Due == 0 || float64(wrong)/float64(all.Due) <= ph.MaxBad {
			continue
		}
		p.doubt(reason.MaxBad, run.Invalid, touches, "target %q: %s of its %s ops went wrong, more than max_bad = %s: %s", t.Name,
			quantity.Percent(float64(wrong)/float64(all.Due)), quantity.Number(float64(all.Due)), quantity.Percent(ph.MaxBad), wrongs(&all, p.Lost()))
	}
}

// sumUp adds the counts of ops.
func sumUp(to, of *run.Figures) {
	to.Due += of.Due
	to.QuorumFailed += of.QuorumFailed
	to.Timeout += of.Timeout
	to.Error += of.Error
	to.Shed += of.Shed
	to.Causes.Reply += of.Causes.Reply
	to.Causes.Timeout += of.Causes.Timeout
	to.Causes.Lost += of.Causes.Lost
	to.Causes.Refused += of.Causes.Refused
	to.Causes.OpTimeout += of.Causes.OpTimeout
}
