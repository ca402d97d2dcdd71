package coord

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/plan"
)

// limits returns what the plan lets the step's workers count.
func (s *step) limits() *measure.Limits {
	l, ops, words := &measure.Limits{}, s.ph.Counted(), s.c.Plan.Words()
	switch s.steps[0].Kind {
	case worker.Setup:
		ops = s.ph.Setup
		if steps := len(s.ph.SetupSteps); steps > 0 {
			l.Scenarios = []int{steps}
		}
	case worker.Load:
		if c := s.ph.Closed; c != nil && len(c.Stages) > 0 {
			l.Stages = len(c.Stages) + 1
		}
		l.Growth, l.Samples = s.ph.Growth != nil, s.ph.Samples
		for i := range s.ph.Scenarios {
			l.Scenarios = append(l.Scenarios, len(s.ph.Scenarios[i].Steps))
		}
	}
	for _, w := range ops {
		if verb, ok := words.Verb(w.Op); ok {
			l.Verbs[verb] = true
		}
	}
	for _, name := range s.ph.Targets() {
		l.Acks = max(l.Acks, acksOf(s.c.Plan.Target(name)))
	}
	return l
}

// acksOf returns the most good answers that an op on the target can have, if they are counted; otherwise 0.
func acksOf(t *plan.Target) int {
	if t.Replication == nil {
		return t.Confirms()
	}
	return t.Replication.N
}

// fits returns an error if the counts that wait for other workers, including snap, take too much memory.
func (s *step) fits(snap *measure.Snapshot) error {
	if held := s.joiner.Held(); held > s.joiner.Most {
		return fmt.Errorf("snapshot %d: with it, the snapshots that wait for other workers take %d MiB, but at most %d MiB may: use fewer scenarios, steps or replicas",
			snap.SeqFirst, held>>20, s.joiner.Most>>20)
	}
	return nil
}
