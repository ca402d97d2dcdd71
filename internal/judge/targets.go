package judge

import (
	"maps"
	"slices"

	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/reason"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

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
