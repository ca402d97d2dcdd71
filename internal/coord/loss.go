package coord

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/pace"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/plan"
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
// and do not overlap, count nothing that the plan does not have, and their sum is what the worker says it has counted.
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
		return fmt.Errorf("snapshot %d counts requests to more than %d endpoints", snap.SeqFirst, s.rows()-len(s.found))
	}
	if err := snap.CheckWithin(s.bounds); err != nil {
		return err
	}
	src.counted.Add(&snap.Delta)
	if !src.counted.HasCounted(&snap.Running) {
		return fmt.Errorf("snapshot %d: the sum of the intervals is not what it says the step has counted", snap.SeqFirst)
	}
	src.seq, src.upTo, src.final = snap.SeqLast, snap.To, snap.Final
	s.c.seqs[worker] = snap.SeqLast
	return nil
}

// endpoints lists those of the phase's own target, and those of its others by their names.
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

// endpoints lists those of a phase's targets that are known before workers have said which nodes they found.
func (c *coordinator) endpoints(ph *plan.Phase) (own []string, others map[string][]string) {
	of := func(name string) []string {
		if nodes, ok := c.nodes[name]; ok {
			return nodes
		}
		return c.Plan.Target(name).Endpoints
	}
	others = map[string][]string{}
	for _, name := range ph.Targets()[1:] {
		others[name] = of(name)
	}
	return of(ph.Target), others
}

// rows is how many endpoints requests are counted for: nodes that join a cluster in mid-phase are one more.
func (s *step) rows() int {
	own, others := s.endpoints()
	n := len(own) + len(s.found)
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
func (s *step) missing() (list []worker.Loss) {
	for n, l := range s.c.result.Losses {
		i := s.c.of[n]
		if part := s.steps[i]; part.From < part.To && !s.sources[i].whole && !slices.Contains(s.c.of[n+1:], i) {
			list = append(list, l)
		}
	}
	return list
}

// lose goes on without a worker: what it has counted so far stands, and what it may have done since is bounded, or estimated. It
// returns an error when nobody is left.
func (s *step) lose(worker int, lost *worker.Loss) error {
	s.mu.Lock()
	src := &s.sources[worker]
	loss := *lost
	loss.Phase, loss.Seq, loss.KnownSeconds = s.ph.Name, src.seq, time.Duration(src.upTo).Seconds()
	loss.LoadedSeconds = max(loss.KnownSeconds, loss.LoadedSeconds)
	if s.joiner != nil && !src.final {
		loss.UnseenOps, loss.UnseenEstimated = s.unseen(worker, time.Duration(lost.LoadedSeconds*1e9))
	}
	s.strike(worker)
	s.mu.Unlock()
	err := s.c.lose(worker, loss)
	if err == nil && s.c.AbortOnLoss {
		s.stop(stopped(byLoss))
	}
	return err
}

// strike has the others go on without a worker that was lost. The caller holds the lock.
func (s *step) strike(worker int) {
	if s.joiner == nil {
		return
	}
	src := &s.sources[worker]
	if !src.final {
		s.joiner.Add(worker, src.upTo, true, &measure.Totals{})
		s.advance()
	}
	known := src.counted.Counters()
	s.unfinished.Merge(&known)
	src.lost = true
	if part := s.steps[worker]; s.logs[worker] == nil && part.From < part.To {
		s.unread = append(s.unread, s.c.Workers[worker].Name)
	}
}

// lose takes a worker off the list. It returns an error when nobody is left.
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

// fastest is the least time that an op is believed to take, when none has shown what it takes.
const fastest = time.Microsecond

// unseen says how many ops a worker may have sent after its last snapshot, until its lease was over. That is a bound where the plan sets one, and
// else an estimate.
func (s *step) unseen(worker int, until time.Duration) (n uint64, estimated bool) {
	part, src := s.steps[worker], &s.sources[worker]
	if until <= time.Duration(src.upTo) || part.From == part.To {
		return 0, false
	}
	until += s.unsure[worker] // by which the worker's clock may be ahead
	most, bounded := s.most(worker, until)
	if !bounded {
		most = s.likely(worker, until)
	}
	return most - min(most, src.due()), !bounded
}

// due is how many ops the worker has counted.
func (src *source) due() (n uint64) {
	for _, l := range src.counted.Counters().Ops {
		n += l.Due
	}
	return n
}

// most is how many ops the plan lets a worker start until a time, from the start of the step; false where that hangs on the target or on chance.
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
	case c != nil && c.Duration > 0 && time.Duration(s.sources[worker].upTo) >= s.at+c.Duration: // what has begun goes on, and nothing begins
		return s.sources[worker].due() + sessions*uint64(s.ph.Pipeline())*(steps-1), true
	case o != nil && t == nil && !o.Poisson():
		return steps * turns(part.Shape.Until(int64(until-s.at)), o.Sessions, part.From, part.To), true
	}
	return 0, false
}

// turns is how many of n arrivals, which sessions take in turn, are those of a part of the sessions.
func turns(n int64, sessions, from, to int) uint64 {
	all, rest := n/int64(sessions), int(n%int64(sessions))
	return uint64(all)*uint64(to-from) + uint64(min(max(rest-from, 0), to-from))
}

// lines is how many lines of a trace a worker may have started until a time: those that no other has. They are anyone's, as their keys have it.
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
		n = min(n, uint64(pace.Shape(s.ph.Open.Shape()).Until(int64(until-s.at)))+1) // one by rounding
	}
	return n
}

// likely estimates how many ops a worker has started until a time: six standard deviations more than a Poisson schedule has on average, or as many
// as all its slots do one after the other, each at the speed of its fastest so far.
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
		least += c.Think
		if c.Duration > 0 {
			until = min(until, s.at+c.Duration)
		}
	}
	window := until - time.Duration(src.upTo)
	slots := uint64(part.To-part.From) * uint64(s.ph.Pipeline())
	return src.due() + slots*uint64(s.ph.MostSteps()+int(math.Ceil(float64(window)/float64(least))))
}
