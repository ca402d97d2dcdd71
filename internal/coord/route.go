package coord

import (
	"time"

	"github.com/loadgen/loadgen/internal/judge"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/search"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/internal/workload"
	"github.com/loadgen/loadgen/pkg/plan"
)

// route decides the steps of a phase, as it goes.
type route struct {
	ph    *plan.Phase
	ahead []worker.Step // what is decided; the workers' own part of each is left out
}

// newRoute returns the route of a phase that nothing has been done of.
func newRoute(ph *plan.Phase) *route {
	r := &route{ph: ph}
	if len(ph.Setup) > 0 {
		r.add(worker.Step{Kind: run.Setup})
	}
	switch {
	case ph.Populate != nil:
		r.add(worker.Step{Kind: run.Populate, Last: true})
	case ph.Clear != nil:
		r.add(worker.Step{Kind: run.Clear, Last: true})
	case ph.Closed != nil:
		r.add(worker.Step{Kind: run.Load, Last: true})
	case ph.Open != nil:
		r.add(worker.Step{Kind: run.Load, Last: true, Shape: workload.Shape(ph.Open)})
	case ph.Stages != nil:
		shapes := workload.Shapes(ph.Stages)
		for i, shape := range shapes {
			r.add(worker.Step{Kind: run.Load, Last: i == len(shapes)-1, Level: i, Shape: shape})
		}
	}
	return r
}

func (r *route) add(s worker.Step) {
	s.Phase = r.ph.Name
	r.ahead = append(r.ahead, s)
}

// next returns the next step, or none when the phase is over. m is what has been measured so far, and spent the time since its first level
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

// try returns the next step of a search, or says why there is none.
func (r *route) try(m *judge.Measured, spent time.Duration) (step worker.Step, more bool) {
	s := r.ph.Search
	bounds := search.Bounds{From: s.From, To: s.To, Precision: s.Precision}
	rate, end := bounds.Next(m.Tries())
	switch {
	case len(m.Losses) > 0 && len(m.Levels) > 0:
		m.Ended = search.Shrunk
		return worker.Step{}, false
	case rate == 0:
		m.Ended = end
		return worker.Step{}, false
	case len(m.Levels) > 0 && spent+s.StepDuration+s.Drain > s.Budget:
		m.Ended = search.Spent
		if end != search.GoOn {
			m.Ended = end
		}
		return worker.Step{}, false
	}
	return worker.Step{
		Phase: r.ph.Name, Kind: run.Load, Level: len(m.Levels), Shape: workload.Try(s, rate),
	}, true
}
