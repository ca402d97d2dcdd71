package measure

import (
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Limits is the most that a step can count, according to its plan. It bounds what a worker's snapshots add up to, whatever they contain: 58 KiB for
// each latency of each op that the step can have.
type Limits struct {
	Verbs     [driver.NumVerbs]bool // verbs of ops; other verbs may have requests, whose bytes are counted
	Acks      int                   // the most good answers of an op; 0 if they are not counted
	Scenarios []int                 // number of steps of each scenario; empty if the phase has single ops
	Stages    int                   // number of stages of sessions, and one for what is due later; 0 if there are none
	Growth    bool                  // latency is also counted by ordinal
	Samples   int                   // the most sampled ops; 0 for none
}

// CheckWithin returns an error if the snapshot counts something that its step cannot have.
func (s *Snapshot) CheckWithin(l *Limits) error {
	if err := l.check(s); err != nil {
		return fmt.Errorf("snapshot %d %w", s.SeqFirst, err)
	}
	return nil
}

func (l *Limits) check(s *Snapshot) error {
	for v, o := range s.Delta.Ops {
		if o == nil {
			continue
		}
		name := driver.Verb(v).String()
		if !l.Verbs[v] && !o.idle() {
			return fmt.Errorf("counts ops of %s, and its step has none", name)
		}
		if err := l.checkOp(o, name); err != nil {
			return err
		}
		for i, stage := range o.stages() {
			if i >= l.Stages {
				return fmt.Errorf("counts %s in stage %d, which its step does not have", name, i+1)
			}
			if err := l.checkOp(stage, name); err != nil {
				return err
			}
		}
	}
	for i, o := range s.Delta.Scenarios {
		if err := l.checkScenario(o, i); err != nil {
			return err
		}
	}
	if !s.Samples.Empty() && s.Samples.most > l.Samples {
		return fmt.Errorf("has up to %d samples, and its step wants at most %d", s.Samples.most, l.Samples)
	}
	return nil
}

func (l *Limits) checkScenario(o *Op, i int) error {
	if o.empty() {
		return nil
	}
	if i >= len(l.Scenarios) {
		return fmt.Errorf("counts %s, and its step has %d", scenarioName(i), len(l.Scenarios))
	}
	if err := l.checkOp(o, scenarioName(i)); err != nil {
		return err
	}
	for j, step := range o.Steps {
		name := fmt.Sprintf("step %d of %s", j+1, scenarioName(i))
		if j >= l.Scenarios[i] && !step.empty() {
			return fmt.Errorf("counts %s, which has %d", name, l.Scenarios[i])
		}
		if err := l.checkOp(step, name); err != nil {
			return err
		}
	}
	return nil
}

func (l *Limits) checkOp(o *Op, name string) error {
	switch {
	case o == nil:
		return nil
	case len(o.acks()) > l.Acks:
		return fmt.Errorf("counts %d good answers of an op, %s, and its step waits for at most %d", len(o.acks()), name, l.Acks)
	case !l.Growth && len(o.Growth.Used()) > 0:
		return fmt.Errorf("counts %s by ordinal, and its step does not", name)
	}
	return nil
}
