package coord

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// source is what is known of a worker's part in a step.
type source struct {
	seq     uint64 // of its last snapshot in this step; 0: none yet
	upTo    int64  // run clock
	final   bool
	whole   bool            // it did its part to the end
	lost    bool            // what it counts from now on is not taken
	counted measure.Account // sum of its snapshots
}

// follows takes a snapshot into the account of its worker, or says why it does not follow the one before it: intervals leave no gap
// and do not overlap, and their sum is what the worker says it has counted.
func (s *step) follows(worker int, snap *measure.Snapshot) error {
	src, last := &s.sources[worker], s.c.seqs[worker]
	switch {
	case snap.Step != s.steps[worker].Seq:
		return fmt.Errorf("snapshot %d is of step %d, not %d", snap.SeqFirst, snap.Step, s.steps[worker].Seq)
	case snap.SeqFirst != last+1 || snap.SeqLast < snap.SeqFirst || src.final:
		return fmt.Errorf("snapshot %d–%d does not follow number %d", snap.SeqFirst, snap.SeqLast, last)
	case snap.From != src.upTo || snap.To < snap.From:
		return fmt.Errorf("snapshot %d goes from %d ns to %d ns, and the one before it to %d ns", snap.SeqFirst, snap.From, snap.To, src.upTo)
	case snap.Delta.Origin != int64(s.at):
		return fmt.Errorf("snapshot %d counts from %d ns, the step from %d ns", snap.SeqFirst, snap.Delta.Origin, int64(s.at))
	case len(snap.Delta.Requests) > s.rows()*driver.NumVerbs:
		return fmt.Errorf("snapshot %d counts requests to more than %d endpoints", snap.SeqFirst, len(s.endpoints()))
	}
	src.counted.Add(&snap.Delta)
	if sum := src.counted.Counters(); !sum.Equal(&snap.Running) {
		return fmt.Errorf("snapshot %d: the sum of the intervals is not what it says the step has counted", snap.SeqFirst)
	}
	src.seq, src.upTo, src.final = snap.SeqLast, snap.To, snap.Final
	s.c.seqs[worker] = snap.SeqLast
	return nil
}

// endpoints lists those of the phase's target.
func (s *step) endpoints() []string {
	if s.found != nil {
		return s.found
	}
	if nodes, ok := s.c.nodes[s.ph.Target]; ok {
		return nodes
	}
	return s.c.Plan.Target(s.ph.Target).Endpoints
}

// rows is how many endpoints requests are counted for: nodes that join a cluster in mid-phase are one more.
func (s *step) rows() int {
	n := len(s.endpoints())
	if s.found != nil {
		n++
	}
	return n
}

func (c *coordinator) isLost(worker int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost[worker]
}

// left is how many workers are not lost.
func (c *coordinator) left() (n int) {
	for i := range c.Workers {
		if !c.isLost(i) {
			n++
		}
	}
	return n
}

// missing lists the losses for which a part of the step's load is missing, or ended early.
func (s *step) missing() (list []run.Loss) {
	for _, l := range s.c.result.Losses {
		i := slices.IndexFunc(s.c.Workers, func(m Member) bool { return m.Name == l.Worker })
		if part := s.steps[i]; part.From < part.To && !s.sources[i].whole {
			list = append(list, l)
		}
	}
	return list
}

// lose goes on without a worker: what it has counted so far stands, and what it may have done since is bounded. It returns an error
// when nobody is left.
func (s *step) lose(worker int, lost *run.Loss) error {
	s.mu.Lock()
	src := &s.sources[worker]
	loss := *lost
	loss.Phase, loss.Seq, loss.KnownSeconds = s.ph.Name, src.seq, time.Duration(src.upTo).Seconds()
	loss.LoadedSeconds = max(loss.KnownSeconds, loss.LoadedSeconds)
	if s.joiner != nil {
		if !src.final {
			loss.UnseenOps = s.unseen(worker, time.Duration(lost.LoadedSeconds*1e9))
		}
		if joint, ok := s.joiner.Add(worker, src.upTo, true, &measure.Totals{}); ok && !src.final {
			s.pass(joint)
		}
		known := src.counted.Counters()
		s.unfinished.Merge(&known)
		src.lost = true
		if part := s.steps[worker]; s.logs[worker] == nil && part.From < part.To {
			s.unread = append(s.unread, lost.Worker)
		}
	}
	s.mu.Unlock()
	err := s.c.lose(worker, loss)
	if err == nil && s.c.AbortOnLoss {
		s.drain()
	}
	return err
}

// lose takes a worker off the list. It returns an error when nobody is left.
func (c *coordinator) lose(worker int, loss run.Loss) error {
	c.mu.Lock()
	c.lost[worker] = true
	c.result.Losses = append(c.result.Losses, loss)
	left := slices.Contains(c.lost, false)
	c.mu.Unlock()
	c.Logger.Warn("worker lost", "worker", loss.Worker, "why", loss.Why)
	if !left {
		return errors.New("no worker is left")
	}
	return nil
}

// fastest is the least time that an op is believed to take, when none has shown what it takes.
const fastest = time.Microsecond

// unseen bounds the ops that a worker may have sent after its last snapshot: until its lease was over, as many as were left to
// it, or as its schedule wanted, or as all its slots do one after the other, each at the speed of its fastest so far.
func (s *step) unseen(worker int, until time.Duration) uint64 {
	step, src := s.steps[worker], &s.sources[worker]
	var due uint64
	for _, l := range src.counted.Counters().Ops {
		due += l.Due
	}
	least := time.Duration(src.counted.Quickest())
	window := until - time.Duration(src.upTo)
	if window <= 0 || step.From == step.To {
		return 0
	}
	if planned := s.ready[worker].Ops; planned > 0 {
		return planned - min(planned, due)
	}
	if o := s.ph.Schedule(); o != nil && step.Kind == run.Load {
		part := float64(step.To-step.From) / float64(o.Sessions)
		so := step.Shape
		so.Duration = min(until-s.at, so.Duration)
		n := part * so.Expected()
		most := uint64(math.Ceil(n + 6*math.Sqrt(n) + part*float64(o.Streams))) // six standard deviations of a Poisson count
		most *= uint64(s.ph.MostSteps())
		return most - min(most, due)
	}
	if least == math.MaxInt64 {
		least = fastest
	}
	if c := s.ph.Closed; c != nil {
		least += c.Think
	}
	slots := float64((step.To - step.From) * s.ph.Pipeline())
	return uint64(slots * (1 + math.Ceil(float64(window)/float64(max(least, fastest)))))
}
