package prom

import (
	"maps"
	"sync"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Feed keeps a Collector up to date during a run by adding up the intervals. Its methods may be called from any goroutine; none of them waits for a
// scrape.
type Feed struct {
	collector *Collector
	plan      *plan.Plan

	mu    sync.Mutex
	view  View
	step  worker.Step // the step in progress
	phase *Phase      // the step's phase in view; nil if no step is in progress
	hands int         // number of workers that carry the step out
	share float64     // share of the phase's sessions that these workers drive
	steps float64     // ops per arrival
}

// NewFeed makes c show a run of p that has not begun.
func NewFeed(c *Collector, runID string, p *plan.Plan) *Feed {
	f := &Feed{collector: c, plan: p, view: NewView(runID, p)}
	c.Set(f.view)
	return f
}

// Begin begins a step, to which the following intervals belong. Each worker of the step may call it, with its own part of the sessions, and calls
// Done later. A step whose phase is not in the plan is not shown.
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

// Found records which nodes the clusters among a phase's targets have, by target name.
func (f *Feed) Found(phase string, nodes map[string][]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ph := f.view.Phase(phase); ph != nil && len(nodes) > 0 {
		ph.found(nodes)
	}
}

// part returns one worker's share of the phase's sessions in a step; 0 if the plan has no such phase.
func (f *Feed) part(step worker.Step) float64 {
	ph := f.plan.Phase(step.Phase)
	if ph == nil {
		return 0
	}
	return float64(step.To-step.From) / float64(max(ph.Sessions(), 1))
}

// Done ends the step for one worker that began it. Once all have, no phase is in progress.
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

// leave ends the step in progress.
func (f *Feed) leave() {
	if f.phase != nil {
		f.phase.Offered = 0
	}
	for i := range f.view.Events { // events end with their phase
		f.view.Events[i].On = false
	}
	f.view.Current, f.phase, f.hands, f.share = "", nil, 0, 0
}

// Add adds what was counted in an interval that ends at a time on the run clock, in nanoseconds. It does not keep delta. If no step is in progress,
// delta belongs to no phase and is dropped.
func (f *Feed) Add(delta *measure.Totals, to int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phase == nil {
		return
	}
	if f.step.Kind == worker.Setup {
		f.collector.add(&f.phase.Setup, delta)
	} else {
		f.collector.add(&f.phase.Load, delta)
	}
	if delta.Origin > 0 {
		f.phase.Offered = f.share * f.steps * f.step.Shape.At(time.Duration(to-delta.Origin))
	}
	f.collector.Set(f.view)
}

// Judge sets the verdict so far.
func (f *Feed) Judge(v run.Verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view.Verdict = v
	f.collector.Set(f.view)
}

// Happen says that an event of a phase has happened, or is undone.
func (f *Feed) Happen(phase, event string, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.view.Events {
		if e := &f.view.Events[i]; e.Phase == phase && e.Name == event {
			e.On = on
		}
	}
	f.collector.Set(f.view)
}

// Probe sets what a probe has read.
func (f *Feed) Probe(p *run.Probe) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.view.Observed {
		if o := &f.view.Observed[i]; o.Name == p.Observe {
			o.Value = maps.Clone(p.Value)
		}
	}
	f.collector.Set(f.view)
}

// End ends the run, with its verdict and the results of the plan's asserts; none: they were not evaluated.
func (f *Feed) End(v run.Verdict, asserts []run.AssertResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave()
	f.view.Ended, f.view.Verdict = true, v
	for i, a := range asserts {
		f.view.Asserts[i].OK = a.OK
	}
	f.collector.Set(f.view)
}
