package measure

import (
	"fmt"
)

// Snapshot holds what one worker counted in an interval of a step; it is final. A worker's intervals follow each other without gap or overlap, so
// their deltas add up to the step's totals, even if some were joined on the way.
type Snapshot struct {
	Step              int      // worker.Step.Seq
	SeqFirst, SeqLast uint64   // the intervals it covers, numbered from 1 per worker and run; equal unless joined by Merge
	From, To          int64    // the time it covers, nanoseconds on the run clock, [From, To)
	Delta             Totals   // counted in the interval; in_flight is the change
	Running           Counters // both ledgers from the step's start to To
	Samples           Samples  // ops sampled in the interval, if the phase wants samples
	Final             bool     // the last of its step
}

// Merge joins next, the snapshot that follows s in the same step, to s. Neither may have been sent: a sent snapshot is resent unchanged. If next does
// not follow s, Merge returns an error and leaves s alone.
func (s *Snapshot) Merge(next *Snapshot) error {
	if s.Step != next.Step || s.SeqLast+1 != next.SeqFirst || s.To != next.From || s.Final {
		return fmt.Errorf("join snapshot %d–%d of step %d, from %d ns, to snapshot %d–%d of step %d, to %d ns, final %t: it does not follow",
			next.SeqFirst, next.SeqLast, next.Step, next.From, s.SeqFirst, s.SeqLast, s.Step, s.To, s.Final)
	}
	s.SeqLast = next.SeqLast
	s.To = next.To
	s.Delta.Merge(&next.Delta)
	s.Samples.Merge(&next.Samples)
	s.Running.Reset()
	s.Running.Merge(&next.Running)
	s.Final = next.Final
	return nil
}

// CheckValid checks the ledgers of the interval and of the step so far, and that sequence and time run forwards.
func (s *Snapshot) CheckValid() error {
	if s.SeqFirst > s.SeqLast || s.From > s.To {
		return fmt.Errorf("snapshot %d–%d runs from %d ns to %d ns", s.SeqFirst, s.SeqLast, s.From, s.To)
	}
	if err := s.Delta.CheckValid(); err != nil {
		return fmt.Errorf("snapshot %d–%d: %w", s.SeqFirst, s.SeqLast, err)
	}
	if err := s.Running.CheckValid(); err != nil {
		return fmt.Errorf("snapshot %d–%d, step so far: %w", s.SeqFirst, s.SeqLast, err)
	}
	return nil
}
