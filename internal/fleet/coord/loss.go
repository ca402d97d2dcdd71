package coord

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/pkg/plan"
)

// source holds what is known of one worker's part in a step.
type source struct {
	seq     uint64 // number of its last snapshot in this step; 0 if there is none yet
	upTo    int64  // end of that snapshot, on the run clock
	final   bool
	whole   bool            // it has finished its part
	lost    bool            // nothing it counts from now on is accepted
	counted measure.Account // sum of its snapshots
	fastest float64         // ops due per nanosecond in its fastest second; 0 if it has counted none
}

// follows adds a snapshot to its worker's account, or says why the snapshot cannot follow the one before it. Intervals must have no gaps or overlaps,
// count nothing that the plan does not have, and add up to what the worker says it has counted.
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
	case snap.Delta.Endpoints() > s.rows():
		return fmt.Errorf("snapshot %d counts requests to more than %d endpoints", snap.SeqFirst, s.rows())
	}
	if err := snap.CheckWithin(s.bounds); err != nil {
		return err
	}
	if took := snap.To - snap.From; took >= int64(time.Second)/2 {
		src.fastest = max(src.fastest, float64(dueOf(&snap.Delta))/float64(took))
	}
	src.counted.Add(&snap.Delta)
	if !src.counted.HasCounted(&snap.Running) {
		return fmt.Errorf("snapshot %d: the sum of the intervals is not what it says the step has counted", snap.SeqFirst)
	}
	src.seq, src.upTo, src.final = snap.SeqLast, snap.To, snap.Final
	s.c.seqs[worker] = snap.SeqLast
	return nil
}

// endpoints lists the endpoints of the phase's own target, and those of its other targets by name.
func (s *step) endpoints() (own []string, others map[string][]string) {
	own, others = s.c.endpoints(s.ph)
	for target, nodes := range s.found {
		if target == s.ph.Target {
			own = nodes
		} else {
			others[target] = nodes
		}
	}
	return own, others
}

// endpoints lists the endpoints of a phase's targets that are known before workers report the nodes they found.
func (c *coordinator) endpoints(ph *plan.Phase) (own []string, others map[string][]string) {
	others = map[string][]string{}
	for _, name := range ph.Targets()[1:] {
		others[name] = c.endpointsOf(c.Plan.Target(name))
	}
	return c.endpointsOf(c.Plan.Target(ph.Target)), others
}

// rows is the number of endpoints that requests are counted for. A cluster with slots has one more row, for nodes that join it during the phase.
func (s *step) rows() int {
	own, others := s.endpoints()
	n := len(own)
	for target := range s.found {
		if s.c.Plan.Target(target).Placement == plan.Slots {
			n++
		}
	}
	for _, endpoints := range others {
		n += len(endpoints)
	}
	return n
}

func (c *coordinator) isLost(worker int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost[worker]
}

// left is the number of workers that are not lost.
func (c *coordinator) left() (n int) {
	for i := range c.Workers {
		if !c.isLost(i) {
			n++
		}
	}
	return n
}

// missing lists the losses that cost the step some of its load, or ended part of it early.
func (s *step) missing() (list []worker.Loss) {
	for n, l := range s.c.result.Losses {
		i := s.c.of[n]
		if part := s.steps[i]; part.From < part.To && !s.sources[i].whole && !slices.Contains(s.c.of[n+1:], i) {
			list = append(list, l)
		}
	}
	return list
}

// lose carries on without a worker. Its counts so far stand; what it may have done since is bounded or estimated. lose returns an error when no
// worker is left.
func (s *step) lose(worker int, lost *worker.Loss) error {
	s.mu.Lock()
	src := &s.sources[worker]
	loss := *lost
	loss.Phase, loss.Seq, loss.KnownSeconds = s.ph.Name, src.seq, time.Duration(src.upTo).Seconds()
	loss.LoadedSeconds = max(loss.KnownSeconds, min(loss.LoadedSeconds, (s.over()+s.unsure[worker]).Seconds()))
	if s.joiner != nil && !src.final {
		loss.UnseenOps, loss.UnseenEstimated = s.unseen(worker, time.Duration(loss.LoadedSeconds*1e9))
	}
	s.strike(worker)
	s.mu.Unlock()
	err := s.c.lose(worker, loss)
	if err == nil && s.c.AbortOnLoss {
		s.stop(stopped(byLoss))
	}
	return err
}

// strike lets the other workers go on without a lost one. The caller holds the lock.
func (s *step) strike(worker int) {
	if s.joiner == nil {
		return
	}
	s.leave(worker)
	if part := s.steps[worker]; s.onFiles() && s.logs[worker] == nil && part.From < part.To {
		s.unread = append(s.unread, s.c.Workers[worker].Name)
	}
}

// leave lets the counts of other workers no longer wait for this one. The caller holds the lock.
func (s *step) leave(worker int) {
	src := &s.sources[worker]
	if !src.final {
		s.joiner.Add(worker, src.upTo, true, &measure.Totals{})
		s.advance()
	}
	known := src.counted.Counters()
	s.unfinished.Merge(&known)
	src.lost = true
}

// lose marks a worker as lost. It returns an error when no worker is left and none can replace it.
func (c *coordinator) lose(worker int, loss worker.Loss) error {
	c.mu.Lock()
	c.lost[worker] = true
	c.result.Losses, c.of = append(c.result.Losses, loss), append(c.of, worker)
	c.note(entry{Loss: &lossEntry{Worker: worker, Is: loss}})
	left := slices.Contains(c.lost, false)
	c.mu.Unlock()
	c.Logger.Warn("worker lost", "worker", loss.Worker, "why", loss.Why)
	if !left && c.Replace == nil {
		return errNobody
	}
	return nil
}

var errNobody = errors.New("no worker is left")

// fastest is the shortest time an op is assumed to take before any has been measured.
const fastest = time.Microsecond

// unseen returns how many ops a worker may have sent between its last snapshot and the end of its lease: a bound if the plan sets one, otherwise an
// estimate.
func (s *step) unseen(worker int, until time.Duration) (n uint64, estimated bool) {
	part, src := s.steps[worker], &s.sources[worker]
	if until <= time.Duration(src.upTo) || part.From == part.To {
		return 0, false
	}
	until += s.unsure[worker] // the worker's clock may be ahead by this much
	most, bounded := s.most(worker, until)
	if !bounded {
		most = s.likely(worker, until)
	}
	return most - min(most, src.due()), !bounded
}

// due is the number of ops that the worker has counted as due.
func (src *source) due() (n uint64) {
	for _, l := range src.counted.Counters().Ops {
		n += l.Due
	}
	return n
}

// dueOf is the number of ops due in some totals.
func dueOf(t *measure.Totals) (n uint64) {
	for _, o := range t.Ops {
		if o != nil {
			n += o.Due
		}
	}
	return n
}

// over returns when the step's load must have ended by the plan, on the run clock; a time long after any run if the plan sets none.
func (s *step) over() time.Duration {
	const never = math.MaxInt64 / 2
	c, o := s.ph.Closed, s.ph.Schedule()
	switch {
	case !s.steps[0].Kind.Timed():
		return never
	case o != nil && s.ph.Trace() != nil:
		return s.at + pace.Shape(s.ph.Open.Shape()).Duration + o.Drain
	case o != nil:
		return s.at + s.steps[0].Shape.Duration + o.Drain
	case c != nil && c.Duration > 0 && s.ph.MostSteps() == 1: // scenarios go on to their ends
		return s.at + c.Duration
	}
	return never
}

// most returns the most ops that the plan lets a worker start by the given time; false if that depends on the target or on chance.
func (s *step) most(worker int, until time.Duration) (n uint64, bounded bool) {
	part, c, o := s.steps[worker], s.ph.Closed, s.ph.Schedule()
	planned := s.ready[worker].Ops
	steps, sessions := uint64(s.ph.MostSteps()), uint64(part.To-part.From)
	switch t := s.ph.Trace(); {
	case planned > 0 || !part.Kind.Timed():
		return planned, true
	case t != nil && t.Lines > 0 && !t.Loop:
		return s.lines(worker, until), true
	case c != nil && c.Iterations > 0:
		return sessions * uint64(c.Iterations) * steps, true
	case c != nil && c.Duration > 0 && time.Duration(s.sources[worker].upTo) >= s.at+c.Duration: // ops in progress go on, but none begins
		return s.sources[worker].due() + sessions*uint64(s.ph.Pipeline())*(steps-1), true
	case o != nil && t == nil && !o.Poisson():
		return steps * turns(part.Shape.Until(int64(until-s.at)), o.Sessions, part.From, part.To), true
	}
	return 0, false
}

// turns returns how many of n arrivals, dealt round-robin to all sessions, go to sessions from ≤ i < to.
func turns(n int64, sessions, from, to int) uint64 {
	all, rest := n/int64(sessions), int(n%int64(sessions))
	return uint64(all)*uint64(to-from) + uint64(min(max(rest-from, 0), to-from))
}

// lines returns the most trace lines that a worker may have started by the given time: all lines that no other worker has started, since keys decide
// which worker gets a line.
func (s *step) lines(worker int, until time.Duration) uint64 {
	t, part := s.ph.Trace(), s.steps[worker]
	n := uint64(t.Lines)
	for i := range s.sources {
		if i != worker {
			n -= min(n, s.sources[i].due())
		}
	}
	if c := s.ph.Closed; c != nil && c.Iterations > 0 {
		n = min(n, uint64(part.To-part.From)*uint64(c.Iterations))
	}
	if t.Even {
		n = min(n, uint64(pace.Shape(s.ph.Open.Shape()).Until(int64(until-s.at)))+1) // plus 1 for rounding
	}
	return n
}

// likely estimates how many ops a worker has started by the given time. For a schedule that is the Poisson mean plus six standard deviations. For a
// closed load, it assumes that all slots run ops back to back, each as fast as the worker's fastest op so far. If the worker itself was well, because
// the coordinator ended first, it assumes at most twice the rate of the worker's fastest second.
func (s *step) likely(worker int, until time.Duration) uint64 {
	part, src := s.steps[worker], &s.sources[worker]
	if o := s.ph.Schedule(); o != nil {
		shape := part.Shape
		if s.ph.Trace() != nil {
			shape = pace.Shape(s.ph.Open.Shape())
		}
		shape.Duration = min(until-s.at, shape.Duration)
		n := float64(part.To-part.From) / float64(o.Sessions) * shape.Expected()
		return uint64(math.Ceil(n+6*math.Sqrt(n))) * uint64(s.ph.MostSteps())
	}
	least := fastest
	if quickest := src.counted.Quickest(); quickest != math.MaxInt64 {
		least = max(least, time.Duration(quickest))
	}
	if c := s.ph.Closed; c != nil {
		if c.Thinks == nil {
			least += c.Think
		}
		if c.Duration > 0 {
			until = min(until, s.at+c.Duration)
		}
	}
	window := float64(max(0, until-time.Duration(src.upTo)))
	slots := float64(part.To-part.From) * float64(s.ph.Pipeline())
	more := slots * math.Ceil(window/float64(least))
	if c, k := s.ph.Closed, s.c.past; k != nil && k.over && src.fastest > 0 && c != nil {
		if whole, _ := c.Whole(); time.Duration(src.upTo) >= s.at+whole {
			more = min(more, math.Ceil(2*window*src.fastest))
		}
	}
	return src.due() + uint64(slots*float64(s.ph.MostSteps())+more)
}
