package coord

import (
	"time"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/pkg/plan"
)

// planned returns the steps of a phase that are known before it begins, without the workers' shares.
func planned(ph *plan.Phase) (steps []worker.Step) {
	add := func(s worker.Step) {
		s.Phase = ph.Name
		steps = append(steps, s)
	}
	if len(ph.Setup) > 0 {
		add(worker.Step{Kind: worker.Setup})
	}
	switch {
	case ph.Populate != nil:
		add(worker.Step{Kind: worker.Populate, Last: true})
	case ph.Clear != nil:
		add(worker.Step{Kind: worker.Clear, Last: true})
	case ph.Verify != nil:
		add(worker.Step{Kind: worker.Verify, Last: true})
	case ph.Closed != nil:
		add(worker.Step{Kind: worker.Load, Last: true})
	case ph.Open != nil:
		add(worker.Step{Kind: worker.Load, Last: true, Shape: pace.Shape(ph.Open.Shape())})
	case ph.Stages != nil:
		shapes := ph.Stages.Shapes()
		for i, shape := range shapes {
			add(worker.Step{Kind: worker.Load, Last: i == len(shapes)-1, Level: i, Shape: pace.Shape(shape)})
		}
	}
	return steps
}

// next returns the next step, or false when the phase is over. spent is the time since its first level began. A search decides each of its steps by what has been measured so far.
func (p *activePhase) next(spent time.Duration) (step worker.Step, more bool) {
	if len(p.ahead) > 0 {
		step, p.ahead = p.ahead[0], p.ahead[1:]
		return step, true
	}
	if p.ph.Search == nil {
		return worker.Step{}, false
	}
	shape, more := p.m.NextTry(p.ph, spent)
	return worker.Step{Phase: p.ph.Name, Kind: worker.Load, Level: len(p.m.Levels), Shape: pace.Shape(shape)}, more
}
