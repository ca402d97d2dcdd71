package prom

import (
	"sync"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Feed keeps a Collector up to date while a run goes on: it adds up what each interval brought. Its methods may be called from any
// goroutine; none of them waits for a scrape.
type Feed struct {
	collector *Collector
	plan      *plan.Plan

	mu    sync.Mutex
	view  View
	step  worker.Step // under way
	phase *Phase      // of the step, in view; nil: none is under way
	hands int         // that carry the step out
	share float64     // of the phase's sessions that they drive
	steps float64     // ops that an arrival brings
}

// NewFeed has c show a run of p that has not begun.
func NewFeed(c *Collector, runID string, p *plan.Plan) *Feed {
	f := &Feed{collector: c, plan: p, view: NewView(runID, p)}
	c.Set(f.view)
	return f
}

// Begin says that a step begins, of which further intervals are. Each worker that carries it out may say so, with its own part of the
// sessions, and say Done later. Of a step whose phase is none of the plan's, nothing is shown.
func (f *Feed) Begin(step worker.Step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hands == 0 || step.Seq != f.step.Seq {
		f.leave()
		f.step, f.phase = step, f.view.Phase(step.Phase)
		if f.phase != nil {
			f.view.Current, f.steps = step.Phase, f.plan.Phase(step.Phase).StepsPerArrival()
		}
	}
	f.hands++
	f.share += f.part(step)
	f.collector.Set(f.view)
}

// Found says which nodes the clusters among a phase's targets have, by their names.
func (f *Feed) Found(phase string, nodes map[string][]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ph := f.view.Phase(phase); ph != nil && len(nodes) > 0 {
		ph.found(nodes)
	}
}

// part returns the share of the phase's sessions that one worker's step has; 0 when the plan has no such phase.
func (f *Feed) part(step worker.Step) float64 {
	ph := f.plan.Phase(step.Phase)
	if ph == nil {
		return 0
	}
	return float64(step.To-step.From) / float64(max(ph.Sessions(), 1))
}

// Done says that one who began the step has ended it. When all have, no phase is under way.
func (f *Feed) Done(step worker.Step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hands == 0 || step.Seq != f.step.Seq {
		return
	}
	f.share -= f.part(step)
	if f.hands--; f.hands == 0 {
		f.leave()
	}
	f.collector.Set(f.view)
}

// leave ends the step under way.
func (f *Feed) leave() {
	if f.phase != nil {
		f.phase.Offered = 0
	}
	f.view.Current, f.phase, f.hands, f.share = "", nil, 0, 0
}

// Add adds what was counted in an interval that ends at a time on the run clock, in nanoseconds. Nothing of delta is kept. What comes
// when no step is under way belongs to no phase and is dropped.
func (f *Feed) Add(delta *measure.Totals, to int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phase == nil {
		return
	}
	if f.step.Kind == worker.Setup {
		f.phase.Setup = sum(f.phase.Setup, delta)
	} else {
		f.phase.Load = sum(f.phase.Load, delta)
	}
	if delta.Origin > 0 {
		f.phase.Offered = f.share * f.steps * f.step.Shape.At(time.Duration(to-delta.Origin))
	}
	f.collector.Set(f.view)
}

// Judge sets the verdict as it stands.
func (f *Feed) Judge(v run.Verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view.Verdict = v
	f.collector.Set(f.view)
}

// End says that the run is over, with its verdict.
func (f *Feed) End(v run.Verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave()
	f.view.Ended, f.view.Verdict = true, v
	f.collector.Set(f.view)
}

// sum returns new Totals, as a collector has to be given: what it shows does not change. Bins are left out, for no metric is made
// from them, and with them the origin, which steps of one phase do not share.
func sum(so, delta *measure.Totals) *measure.Totals {
	total := new(measure.Totals)
	if so != nil {
		total.Merge(so)
	}
	total.Merge(delta.WithoutBins())
	return total
}
