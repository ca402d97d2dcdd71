package timeline

import (
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Run holds what a run's snapshots add to its result: histograms, over time and in total. [NewRun] makes it; nil stands for a run without available
// snapshots.
//
// It takes as much memory for a day as for a minute: if a step lasts longer than maxColumns of its columns, neighbours are joined.
type Run struct {
	snapshot measure.Snapshot // scratch for decoding
	steps    []*Step          // in the order of the run
	cuts     []float64        // ends of warm-ups, in seconds since a step's start; ascending
	words    driver.Words     // of the plan
	live     bool
}

// liveColumns bounds the columns kept over time of a run in progress: its charts are sent again and again.
const liveColumns = 120

// Live returns the detail of a run in progress, which may lack snapshots that its result counts, or be ahead of it. Warm-ups are not left out.
func Live(words driver.Words) *Run { return &Run{words: words, live: true} }

// NewRun returns the detail of a run without its snapshots. words are from its plan.
func NewRun(r *run.Run, words driver.Words) *Run {
	d := &Run{words: words}
	for _, ph := range r.Phase {
		if ph.WarmUp.Seconds > 0 && !slices.Contains(d.cuts, ph.WarmUp.Seconds) {
			d.cuts = append(d.cuts, ph.WarmUp.Seconds)
		}
	}
	slices.Sort(d.cuts)
	return d
}

// maxSteps bounds the steps: snapshots may be untrusted, and each step takes memory.
const maxSteps = 4096

// Add adds a snapshot of any worker, in its binary form, as the run directory stores it. It does not keep b.
func (d *Run) Add(b []byte) error {
	s := &d.snapshot
	if _, err := s.Decode(b); err != nil {
		return fmt.Errorf("read a snapshot: %w", err)
	}
	i := slices.IndexFunc(d.steps, func(p *Step) bool { return p.seq == s.Step })
	if i < 0 && len(d.steps) == maxSteps {
		return fmt.Errorf("snapshots of more than %d steps", maxSteps)
	}
	if i < 0 {
		i = len(d.steps)
		d.steps = append(d.steps, &Step{seq: s.Step, words: d.words, Seconds: lasts[0], parts: make([]measure.Totals, len(d.cuts)+1)})
		if d.live {
			d.steps[i].most = liveColumns
		}
		for j := range d.steps[i].parts {
			d.steps[i].parts[j].Origin = s.Delta.Origin
		}
	}
	return d.steps[i].add(s, d.cuts)
}

// Phases returns the measured steps of each phase, in order, as named in the result. A phase with missing snapshots has none: it checks that the
// steps' digests of ops add up to the phase's.
func (d *Run) Phases(r *run.Run) map[string][]*Step {
	found := map[string][]*Step{}
	if d == nil {
		return found
	}
	for _, name := range r.PhaseOrder {
		ph := r.Phase[name]
		var steps []*Step
		var digest uint64
		for _, seq := range ph.Steps {
			if i := slices.IndexFunc(d.steps, func(p *Step) bool { return p.seq == seq }); i >= 0 {
				d.steps[i].settle(after(d.cuts, ph.WarmUp.Seconds))
				steps = append(steps, d.steps[i])
				digest += d.steps[i].Totals.Digest
			}
		}
		if len(steps) > 0 && (d.live || fmt.Sprintf("%016x", digest) == ph.Digest) {
			found[name] = steps
		}
	}
	return found
}
