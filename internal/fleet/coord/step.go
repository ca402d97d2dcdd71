package coord

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/pkg/plan"
)

// remoteAhead is startAhead for workers reached over a network.
const remoteAhead = 50 * time.Millisecond

// step is one step in progress.
type step struct {
	c       *coordinator
	ph      *plan.Phase
	steps   []worker.Step  // by worker
	ready   []worker.Ready // by worker
	facts   facts
	found   map[string][]string // nodes of each cluster target, which all workers agree on
	at      time.Duration
	before  []int64     // each worker's progress before it was told to prepare
	asked   atomic.Bool // workers were told to end the step early
	failure string      // the failure that ended the step, as a worker reported it; "" if there was none
	aborted bool        // the step ended early, or when the run ended

	passed chan struct{} // closed when all ops of all workers have ended

	mu         sync.Mutex // workers' sinks run concurrently
	sources    []source   // by worker
	joiner     *measure.Joiner
	bounds     *measure.Limits
	totals     *measure.Totals
	history    history          // of a timed step
	unfinished measure.Counters // counts of lost workers
	ended      uint64           // ops that ended
	bad        uint64           // those of them that ended neither ok nor as a miss
	failed     uint64           // those of them that the target failed
	shown      int64            // progress has been shown up to here, on the run clock
	series     judge.Series
	happened   map[int]*judge.Happening // events, by number in the phase
	response   measure.Times            // of the interval being shown
	generators []measure.Generator
	unsure     []time.Duration // uncertainty of each worker's clock
	logs       []*worker.Log   // by worker; nil if it loaded no log
	unread     []string        // workers lost before they reported on their log
	ops        uint64          // number of ops that the plan fixes; 0 if it fixes none
	buf        []byte
	err        error // from the store
}

// step makes each worker carry out its part of one step. It returns what they counted even if the step failed, and nil if they could not start. It
// calls ready once they can.
func (c *coordinator) step(ctx context.Context, ph *plan.Phase, part worker.Step, ready func()) (*step, error) {
	s := c.newStep(ph, part)
	if c.past != nil {
		return c.past.step(s)
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	ready()
	part.Seq = s.steps[0].Seq
	if err := c.noteNow(entry{Step: &begun{Step: part, After: time.Since(c.zero), Facts: s.facts}}); err != nil {
		return nil, fmt.Errorf("keep the order to start: %w", err)
	}
	s.begin(time.Since(c.zero) + s.ahead())
	c.note(entry{Began: &s.at})
	err := s.run(ctx)
	s.close()
	if s.aborted = s.err != nil || c.stopping(ctx); c.interrupted(ctx) && !s.asked.Load() { // it was not told to end early, but counts as if it had been
		user := stopped(reason.User)
		c.note(entry{Stop: &user})
	}
	return s, err
}

// newStep divides a step among the workers.
func (c *coordinator) newStep(ph *plan.Phase, part worker.Step) *step {
	n := len(c.Workers)
	s := &step{c: c, ph: ph, totals: &measure.Totals{}, happened: map[int]*judge.Happening{}, passed: make(chan struct{}), ready: make([]worker.Ready, n), sources: make([]source, n), generators: make([]measure.Generator, n), unsure: make([]time.Duration, n), logs: make([]*worker.Log, n)}
	for i := range c.Workers {
		part.Seq = c.seq
		part.From, part.To = share(ph.Sessions(), i, n)
		s.steps = append(s.steps, part)
		if w := c.fleetOf(i); !c.isLost(i) {
			w.Sessions = max(w.Sessions, part.To-part.From)
		}
	}
	c.seq++
	s.series.Most, s.series.Quantiles = c.rows, c.Plan.QuantileNames()
	return s
}

// begin sets the time at which the step begins to count.
func (s *step) begin(at time.Duration) {
	s.at = at
	s.joiner, s.bounds = measure.NewJoiner(len(s.steps), int64(at)), s.limits()
	s.history.after = int64(at + s.ph.WarmUp())
	for i := range s.sources {
		s.sources[i].upTo = int64(at)
		if s.c.isLost(i) {
			s.joiner.Add(i, int64(at), true, &measure.Totals{})
		}
	}
}

// each calls f concurrently for every worker that is not lost, and returns the first error.
func (s *step) each(group *errgroup.Group, f func(i int, m worker.Member) error) error {
	for i, m := range s.c.Workers {
		if !s.c.isLost(i) {
			group.Go(func() error { return f(i, m) })
		}
	}
	return group.Wait()
}

// prepare returns once every worker is ready or lost, or the user asks for an early end.
func (s *step) prepare(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, m := range s.c.Workers {
		s.before = append(s.before, worker.Progress(m.Worker))
	}
	defer s.c.onDrain(cancel)()
	defer s.tell(nil, s.preparing)()
	group, ctx := errgroup.WithContext(ctx)
	err := s.each(group, func(i int, m worker.Member) (err error) {
		ctx, cancel := whileMoving(ctx, m.Worker, answerWithin)
		defer cancel()
		s.ready[i], err = m.Worker.Prepare(ctx, s.steps[i])
		if lost, ok := errors.AsType[*worker.Loss](err); ok {
			return s.lose(i, lost)
		}
		return s.c.blame(m, err)
	})
	if err != nil {
		return err
	}
	if err := s.agreeOnNodes(); err != nil {
		return err
	}
	s.facts = s.answers()
	s.enter()
	return s.distinct()
}

// answers collects the facts that the workers reported when they were ready.
func (s *step) answers() facts {
	f := facts{Found: s.found}
	for i, r := range s.ready {
		f.Parts = append(f.Parts, partFacts{Ops: r.Ops, Remote: r.Remote, Offset: r.Offset, Uncertainty: r.Uncertainty})
		for target, said := range r.Servers {
			if !slices.Contains(s.ph.Targets(), target) {
				continue
			}
			if f.Servers == nil {
				f.Servers = map[string]map[string]map[string]string{}
			}
			if f.Servers[target] == nil {
				f.Servers[target] = map[string]map[string]string{}
			}
			worker.MergeServers(f.Servers[target], said, s.c.Workers[i].Name)
		}
	}
	return f
}

// distinct returns an error if endpoints that should be replicas are one server, which would count as several, whatever N, W and R.
func (s *step) distinct() error {
	for _, name := range s.ph.Targets() {
		t := s.c.Plan.Target(name)
		if t.Replication == nil {
			continue
		}
		for _, same := range worker.OneServer(t.Endpoints, s.facts.Servers[name]) {
			return fmt.Errorf("target %q: %s are one server, which replication would count as %d replicas: write each server once",
				name, strings.Join(same, ", "), len(same))
		}
	}
	return nil
}

// enter adds the workers' answers to the result.
func (s *step) enter() {
	servers := s.c.result.Environment.Servers
	for target, said := range s.facts.Servers {
		if servers[target] == nil {
			servers[target] = map[string]map[string]string{}
		}
		maps.Copy(servers[target], said)
	}
	for i, p := range s.facts.Parts {
		s.ops += p.Ops
		if p.Remote {
			s.c.fleetOf(i).ClockOffsetSeconds = p.Offset.Seconds()
			s.clock(i, p.Uncertainty)
		}
	}
}

// clock records how far off a worker's clock may be.
func (s *step) clock(worker int, uncertainty time.Duration) {
	s.unsure[worker] = uncertainty
	s.c.fleetOf(worker).ClockUncertaintySeconds = uncertainty.Seconds()
}

// apart is the most that the clocks of two workers with a part in the step can differ.
func (s *step) apart() time.Duration {
	var most, second time.Duration
	for i, u := range s.unsure {
		switch part := s.steps[i]; {
		case part.From == part.To:
		case u > most:
			most, second = u, most
		case u > second:
			second = u
		}
	}
	return most + second
}

// agreeOnNodes takes clusters' nodes from the workers. All must have found the same ones in the same order, because requests are counted by that order.
func (s *step) agreeOnNodes() error {
	for _, name := range s.ph.Targets() {
		if !s.c.Plan.Target(name).Discovers() {
			continue
		}
		if err := s.agreeOn(name); err != nil {
			return err
		}
	}
	return nil
}

// agreeOn takes the nodes of one target.
func (s *step) agreeOn(target string) error {
	var found []string
	of := 0
	for i, r := range s.ready {
		switch nodes := r.Nodes[target]; {
		case len(nodes) == 0: // the worker has no sessions, or is lost
		case found == nil:
			found, of = nodes, i
		case !slices.Equal(found, nodes):
			return fmt.Errorf("workers %s and %s found different nodes in the cluster, %s and %s: run again when no node joins or leaves",
				s.c.Workers[of].Name, s.c.Workers[i].Name, strings.Join(found, ", "), strings.Join(nodes, ", "))
		}
	}
	if found != nil {
		if s.found == nil {
			s.found = map[string][]string{}
		}
		s.found[target] = found
	}
	return nil
}

// ahead returns how long before the start the order to start is sent.
func (s *step) ahead() time.Duration {
	ahead := startAhead
	for _, r := range s.ready {
		if r.Remote {
			ahead = max(ahead, remoteAhead, 4*r.RTT+r.Uncertainty)
		}
	}
	return ahead
}

// run starts all workers at the same time and returns when each is done or lost.
func (s *step) run(ctx context.Context) error {
	defer s.c.onDrain(func() { s.stop(stopped(reason.User)) })()
	defer s.tell(s.passed, s.settling)()
	defer s.foresee()()
	defer s.happen(ctx)()
	attending, end := context.WithCancel(ctx)
	defer end()
	var busy atomic.Int64
	busy.Store(int64(s.c.left()))
	err := s.each(new(errgroup.Group), func(i int, m worker.Member) error {
		err := s.carryOut(ctx, i, m)
		if busy.Add(-1) == 0 {
			end()
		}
		if err != nil || s.c.isLost(i) {
			return err
		}
		return s.attend(attending, i, m)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err // the workers' errors follow from it
	}
	return err
}

// carryOut makes one worker carry out its part of the step.
func (s *step) carryOut(ctx context.Context, i int, m worker.Member) error {
	final, err := m.Worker.Run(ctx, s.at, func(snap *measure.Snapshot) (func() error, error) { return s.take(i, snap) })
	var lost *worker.Loss
	switch {
	case errors.As(err, &lost):
		return s.lose(i, lost)
	case err != nil:
		return s.endedBy(ctx, i, err)
	}
	cut := (final.Expired || final.Stopped) && ctx.Err() == nil && !s.asked.Load()
	s.conclude(i, &final)
	s.c.note(entryOf(i, &final, cut))
	if err := s.agrees(i, &final); err != nil {
		return s.endedBy(ctx, i, err)
	}
	switch {
	case !cut:
	case final.Expired:
		return s.lose(i, &worker.Loss{Worker: m.Name, Why: "it stopped by itself, because it had not heard from the coordinator for the length of its lease"})
	default:
		return s.lose(i, &worker.Loss{Worker: m.Name, Why: "it was stopped on its own machine"})
	}
	return nil
}

// endedBy ends the step for all workers because one has reported a failure. If the run is ending anyway, or something else failed before, the failure
// is a consequence of that.
func (s *step) endedBy(ctx context.Context, i int, why error) error {
	err := s.c.blame(s.c.Workers[i], why)
	s.mu.Lock()
	first := s.err == nil && ctx.Err() == nil
	if first {
		s.failedBy(i, why, err)
		s.c.note(entry{Failed: &failure{Worker: i, Why: why.Error()}})
	}
	s.mu.Unlock()
	if first {
		s.drain()
	}
	return err
}

// failedBy records the failure that a worker has reported, and err as the step's error.
func (s *step) failedBy(i int, why, err error) {
	s.err, s.failure = err, err.Error()
	s.c.fleetOf(i).Failed = why.Error()
}

// close ends the counting, once every worker has ended or never will. The counts of workers that did not end stand.
func (s *step) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.sources {
		if src := &s.sources[i]; !src.final && !src.lost && !s.c.isLost(i) {
			s.leave(i)
		}
	}
	if s.totals.Span.Sessions == 0 { // no worker has reported when its sessions were at work
		for i := range s.sources {
			s.estimateSpan(i)
		}
	}
}

// estimateSpan estimates when the sessions of a worker that has not reported it were at work.
func (s *step) estimateSpan(i int) {
	if src, part := &s.sources[i], s.steps[i]; !src.final && src.due() > 0 {
		span := judge.Span(s.ph, s.totals, part.To-part.From, src.upTo)
		s.totals.Span.Merge(&span)
	}
}

// conclude takes a worker's final report, except its totals.
func (s *step) conclude(i int, final *worker.Final) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generators[i], s.logs[i] = final.Generator, final.Log
	s.clock(i, final.Uncertainty)
	s.c.fleetOf(i).AddSpent(&final.Generator)
}

// attend watches a worker that has done its part, or has none, while others are still at work.
func (s *step) attend(ctx context.Context, i int, m worker.Member) error {
	s.sources[i].whole = true
	if m.Attend == nil {
		return nil
	}
	if lost := m.Attend(ctx); lost != nil {
		return s.lose(i, lost)
	}
	return nil
}

// onDrain calls f when the user asks for an early end. The returned function ends that, and waits for f.
func (c *coordinator) onDrain(f func()) (release func()) {
	return meanwhile(func(done <-chan struct{}) {
		select {
		case <-c.Drain:
			f()
		case <-done:
		}
	})
}

// stop ends the step early, and the run with it, and records why.
func (s *step) stop(why stopped) {
	s.c.note(entry{Stop: &why})
	s.drain()
}

func (s *step) drain() {
	s.asked.Store(true)
	for i, m := range s.c.Workers {
		if !s.c.isLost(i) {
			m.Worker.Drain()
		}
	}
}

// agrees checks a worker's final report on the step against its snapshots. They must have reached the end, or the other workers' counts would wait
// for them, and they must add up to its totals.
func (s *step) agrees(worker int, final *worker.Final) error {
	s.mu.Lock()
	src := &s.sources[worker]
	s.mu.Unlock()
	own := final.Account
	if own == nil {
		own = new(measure.Account)
		own.Add(final.Totals)
	}
	switch {
	case final.Step != s.steps[worker].Seq:
		return fmt.Errorf("it has ended step %d, not %d", final.Step, s.steps[worker].Seq)
	case !src.final:
		return fmt.Errorf("it has ended step %d, and its snapshots have not", final.Step)
	case !src.counted.Equal(own):
		return errors.New("the sum of its snapshots is not its total")
	}
	return nil
}

// take merges a worker's snapshot with the others'. The function it returns waits until the snapshot is on disk.
func (s *step) take(from int, snap *measure.Snapshot) (kept func() error, err error) {
	commit, whole, err := s.join(from, snap)
	var lost *worker.Loss
	switch {
	case errors.As(err, &lost): // the worker's counts were bounded when it was lost
		return nil, err
	case err != nil:
		return nil, s.fail(err)
	}
	s.stopOnErrors()
	first, step := snap.SeqFirst, snap.Step
	return func() error {
		if whole {
			commit.hurry()
		}
		if err := commit.wait(); err != nil {
			return s.fail(fmt.Errorf("store snapshot %d of step %d: %w", first, step, err))
		}
		return nil
	}, nil
}

// stopOnErrors ends the step early once the plan's limit on failed ops is reached.
func (s *step) stopOnErrors() {
	s.mu.Lock()
	failed, ended := s.failed, s.ended
	s.mu.Unlock()
	stop := s.ph.Stop
	if stop == nil || !s.steps[0].Kind.Timed() || !stop.Reached(failed, ended) {
		return
	}
	why := fmt.Sprintf("phase %s: ended by %v: %d of %d ops had failed", s.ph.Name, stop, failed, ended)
	if s.c.stopped.CompareAndSwap(nil, &why) {
		s.stop(stopped{Code: reason.StoppedByPlan, Text: why})
	}
}

// fail ends the step early because of err, and returns err. The first such error becomes the step's error.
func (s *step) fail(err error) error {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = err
	}
	s.mu.Unlock()
	if first {
		s.drain()
	}
	return err
}

// join adds a snapshot to the journal and to the step's counts. whole says that the snapshot completed an interval of all workers, so the commit need
// not wait for more.
func (s *step) join(from int, snap *measure.Snapshot) (kept *commit, whole bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sources[from].lost {
		return nil, false, &worker.Loss{Worker: s.c.Workers[from].Name, Why: fmt.Sprintf("snapshot %d came too late", snap.SeqFirst)}
	}
	if err := s.follows(from, snap); err != nil {
		return nil, false, s.c.blame(s.c.Workers[from], err)
	}
	if s.buf, err = snap.AppendBinary(s.buf[:0]); err != nil {
		return nil, false, err
	}
	kept = s.c.journal.add(s.c.Workers[from].Name, s.buf)
	whole = s.fold(from, snap)
	if err := s.fits(snap); err != nil {
		return nil, false, s.c.blame(s.c.Workers[from], err)
	}
	return kept, whole, nil
}

// fold adds a checked snapshot to the step's counts; see join. The caller holds the lock.
func (s *step) fold(worker int, snap *measure.Snapshot) (whole bool) {
	ended, bad, failed := snap.Delta.Ended()
	s.ended += ended
	s.bad += bad
	s.failed += failed
	s.joiner.Add(worker, snap.To, snap.Final, &snap.Delta)
	return s.advance()
}

// advance takes the intervals that all workers have completed, and says whether there were any.
func (s *step) advance() (some bool) {
	for joint, ok := s.joiner.Next(); ok; joint, ok = s.joiner.Next() {
		s.pass(joint)
		some = true
	}
	return some
}

// pass takes an interval that all workers have completed.
func (s *step) pass(joint measure.Interval) {
	s.totals.Merge(joint.Delta)
	if s.steps[0].Kind.Timed() {
		s.history.add(&joint)
	}
	s.series.Add(time.Duration(joint.To-int64(s.at)).Seconds(), joint.Delta)
	s.show(joint)
	if joint.Final {
		close(s.passed)
	}
}
