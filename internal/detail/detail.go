package detail

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
)

// Run is what a run's snapshots hold beyond its result: histograms, over time and in all. It is made by [NewRun]; a nil one stands for
// a run whose snapshots are not at hand.
//
// It takes as much memory for a day as for a minute: where a step lasts longer than maxColumns of its columns, neighbours are joined.
type Run struct {
	snapshot measure.Snapshot // room to decode into
	steps    []*Step          // in the order of the run
	cuts     []float64        // ends of warm-ups, in seconds since a step's start; ascending
}

// NewRun returns the detail of a run without its snapshots.
func NewRun(r *run.Run) *Run {
	d := &Run{}
	for _, ph := range r.Phase {
		if ph.WarmUp.Seconds > 0 && !slices.Contains(d.cuts, ph.WarmUp.Seconds) {
			d.cuts = append(d.cuts, ph.WarmUp.Seconds)
		}
	}
	slices.Sort(d.cuts)
	return d
}

// maxSteps bounds the steps: snapshots may be somebody else's, and each step takes room.
const maxSteps = 4096

// Add takes a snapshot in its binary form, as the run directory keeps them, of any worker. It keeps nothing of b.
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
		d.steps = append(d.steps, &Step{seq: s.Step, Seconds: lasts[0], parts: make([]measure.Totals, len(d.cuts)+1)})
		for j := range d.steps[i].parts {
			d.steps[i].parts[j].Origin = s.Delta.Origin
		}
	}
	return d.steps[i].add(s, d.cuts)
}

// Phases finds the measured steps of each phase, in their order: those whose digests of ops add up to the phase's. A phase whose steps are not
// all there has none.
func (d *Run) Phases(r *run.Run) map[string][]*Step {
	found := map[string][]*Step{}
	if d == nil {
		return found
	}
	next := 0
	for _, name := range r.PhaseOrder {
		ph := r.Phase[name]
		n := max(len(ph.Levels), 1)
		for i := next; i+n <= len(d.steps); i++ {
			var sum uint64
			for _, p := range d.steps[i : i+n] {
				sum += p.digest()
			}
			if digest, err := strconv.ParseUint(ph.Digest, 16, 64); err == nil && digest == sum {
				found[name] = d.steps[i : i+n]
				next = i + n
				for _, p := range found[name] {
					p.settle(after(d.cuts, ph.WarmUp.Seconds))
				}
				break
			}
		}
	}
	return found
}
