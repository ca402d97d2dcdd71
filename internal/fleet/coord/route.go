package coord

import (
	"time"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/pkg/plan"
)

// route decides the steps of a phase as it goes along.
type route struct {
	ph    *plan.Phase
	ahead []worker.Step // steps decided so far, without the workers' shares
}

// newRoute returns the route of a phase that has not begun.
func newRoute(ph *plan.Phase) *route {
	r := &route{ph: ph}
	if len(ph.Setup) > 0 {
		r.add(worker.Step{Kind: worker.Setup})
	}
	switch {
	case ph.Populate != nil:
		r.add(worker.Step{Kind: worker.Populate, Last: true})
	case ph.Clear != nil:
		r.add(worker.Step{Kind: worker.Clear, Last: true})
	case ph.Verify != nil:
		r.add(worker.Step{Kind: worker.Verify, Last: true})
	case ph.Closed != nil:
		r.add(worker.Step{Kind: worker.Load, Last: true})
	case ph.Open != nil:
		r.add(worker.Step{Kind: worker.Load, Last: true, Shape: pace.Shape(ph.Open.Shape())})
	case ph.Stages != nil:
		shapes := ph.Stages.Shapes()
		for i, shape := range shapes {
			r.add(worker.Step{Kind: worker.Load, Last: i == len(shapes)-1, Level: i, Shape: pace.Shape(shape)})
		}
	}
	return r
}

func (r *route) add(s worker.Step) {
	s.Phase = r.ph.Name
	r.ahead = append(r.ahead, s)
}

// next returns the next step, or false when the phase is over. m is what has been measured so far, and spent the time since the phase's first level
// began.
func (r *route) next(m *judge.Measured, spent time.Duration) (step worker.Step, more bool) {
	if len(r.ahead) > 0 {
		step, r.ahead = r.ahead[0], r.ahead[1:]
		return step, true
	}
	if r.ph.Search == nil {
		return worker.Step{}, false
	}
	return r.try(m, spent)
}

// try returns the next step of a search, or false when the search is over.
func (r *route) try(m *judge.Measured, spent time.Duration) (step worker.Step, more bool) {
	shape, more := m.NextTry(r.ph, spent)
	if !more {
		return worker.Step{}, false
	}
	return worker.Step{
		Phase: r.ph.Name, Kind: worker.Load, Level: len(m.Levels), Shape: pace.Shape(shape),
	}, true
}
