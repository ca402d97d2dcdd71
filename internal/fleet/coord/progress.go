package coord

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// grace is how long after its end to wait for all workers' counts of an interval. After that, progress is shown without the missing ones.
const grace = time.Second

// foresee shows partial progress each second while a worker is silent, until the returned function is called, which waits for foresee to end. Only
// progress is partial: whatever is kept, judged or exported waits until every worker has reported or is lost.
func (s *step) foresee() (release func()) {
	return meanwhile(func(done <-chan struct{}) {
		next := time.Since(s.c.zero).Truncate(time.Second) + time.Second
		for {
			select {
			case <-time.After(next + grace - time.Since(s.c.zero)):
				s.provisional(int64(next))
			case <-s.passed:
				return
			case <-done:
				return
			}
			next += time.Second
		}
	})
}

// meanwhile runs f until the returned function is called, which closes done and waits for f to end.
func meanwhile(f func(done <-chan struct{})) (release func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { f(done) })
	return func() {
		close(done)
		running.Wait()
	}
}

// provisional shows the counts received so far of the second that ends at to on the run clock, unless that second was shown already.
func (s *step) provisional(to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to <= max(s.shown, int64(s.at)) {
		return
	}
	ahead, there := s.joiner.Ahead(to)
	if !there {
		ahead = measure.Interval{From: max(to-int64(time.Second), int64(s.at)), To: to, Delta: &measure.Totals{}}
	}
	s.show(ahead)
}

// awaitedAt lists the workers that have not reported up to the given time on the run clock.
func (s *step) awaitedAt(to int64) (names []string) {
	for i := range s.sources {
		if src := &s.sources[i]; !src.final && !src.lost && src.upTo < to {
			names = append(names, s.c.Workers[i].Name)
		}
	}
	return names
}

// show shows the step as it stands after an interval. Late counts of an interval already shown are not shown again.
func (s *step) show(joint measure.Interval) {
	if s.c.Progress != nil && (joint.To > s.shown || joint.Final) {
		s.shown = joint.To
		s.c.Progress(s.update(joint))
		if s.c.Watched != nil {
			s.c.Watched(s.soFar)
		}
	}
}

// update describes the step as it stands after an interval.
func (s *step) update(joint measure.Interval) run.Update {
	u := run.Update{
		Phase: s.ph.Name, Kind: s.steps[0].Kind, Total: s.ops, Elapsed: time.Duration(joint.To) - s.at, Final: joint.Final, Verdict: s.c.soFar(),
		Done: s.ended, Bad: s.bad, Awaited: s.awaitedAt(joint.To),
	}
	if u.Kind.Timed() {
		step, ph := s.steps[0], s.ph
		u.Offered, u.Expected = ph.StepsPerArrival()*step.Shape.Between(time.Duration(joint.From)-s.at, u.Elapsed), step.Shape.Duration
		switch {
		case ph.Closed != nil:
			u.Expected = ph.Closed.Duration
		case ph.Stages != nil:
			u.Level, u.Levels = step.Level+1, len(ph.Stages.Stages)
		}
		if k := s.c.seeking; k != nil {
			u.Level, u.Search = step.Level+1, k.at(time.Duration(joint.To), s.at)
		}
	}
	ended, bad, _ := joint.Delta.Ended()
	if span := time.Duration(joint.To - joint.From); span > 0 {
		u.Achieved = float64(ended) / span.Seconds()
	}
	response := &s.response
	response.Answered.Reset()
	for _, o := range joint.Delta.Ops {
		if o != nil {
			response.Answered.Merge(&o.Response[measure.ClassOK])
			response.Answered.Merge(&o.Response[measure.ClassMiss])
		}
	}
	response.Failed = bad
	if ns, known := response.Quantile(0.5); known {
		u.P50 = time.Duration(ns)
	}
	if ns, known := response.Quantile(0.99); known {
		u.P99 = time.Duration(ns)
	}
	return u
}

// patience is how long a step may be busy with something other than its load before progress says so.
const patience = time.Second

// tell says each second what the step is doing, at once or when begun is closed, until the returned function is called, which waits for tell to end.
func (s *step) tell(begun <-chan struct{}, doing func() string) (release func()) {
	return meanwhile(func(done <-chan struct{}) {
		if begun != nil {
			select {
			case <-begun:
			case <-done:
				return
			}
		}
		since, tick := time.Now(), time.Tick(patience)
		for {
			select {
			case <-tick:
				s.say(time.Since(since), doing())
			case <-done:
				return
			}
		}
	})
}

func (s *step) say(since time.Duration, doing string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c.Progress != nil {
		s.c.Progress(run.Update{Phase: s.ph.Name, Kind: s.steps[0].Kind, Elapsed: since, Doing: doing, Verdict: s.c.soFar()})
	}
}

// whileMoving returns a context that ends when a worker has made no progress for the given time. A terabyte file takes long to prepare; one that is
// no longer being read or written is stuck.
func whileMoving(parent context.Context, w worker.Worker, within time.Duration) (ctx context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(parent)
	seen := worker.Progress(w)
	release := meanwhile(func(done <-chan struct{}) {
		tick := time.Tick(min(patience, within))
		for since := time.Now(); ; {
			select {
			case <-done:
				return
			case <-tick:
			}
			switch now := worker.Progress(w); {
			case now != seen:
				seen, since = now, time.Now()
			case time.Since(since) >= within:
				end(fmt.Errorf("not ready, and no progress for %v", within))
				return
			}
		}
	})
	return ctx, func() {
		release()
		end(nil)
	}
}

// preparing describes what workers do before a step, and how far they have got.
func (s *step) preparing() string {
	done := int64(0)
	for i, m := range s.c.Workers {
		done += worker.Progress(m.Worker) - s.before[i]
	}
	if done <= 0 {
		return s.awaited()
	}
	return fmt.Sprintf("%s: %d MiB so far", s.awaited(), done>>20)
}

// awaited describes what workers do before a step.
func (s *step) awaited() string {
	local, stop := s.onFiles(), s.c.soFar().Completeness == run.Aborted
	switch {
	case local && stop:
		return "stopping: its log files are being deleted"
	case local:
		return "its log files are being made ready"
	case stop:
		return "stopping"
	}
	return "getting ready"
}

// onFiles says whether the step's target is files on the workers' own machines.
func (s *step) onFiles() bool { return s.c.Plan.Target(s.ph.Target).Executor == plan.Thread }

// settling describes what workers do after a step.
func (s *step) settling() string {
	if s.onFiles() {
		return "its log files are being verified, and deleted unless a later phase has them"
	}
	return "ending"
}

// soFar is the verdict so far, from the phases that have ended and the workers that were lost.
func (c *coordinator) soFar() run.Verdict {
	v := c.result.Verdict // changes between steps only
	v.Reasons, v.Codes = nil, nil
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stopping(context.Background()):
		v.Completeness = run.Aborted
	case len(c.result.Losses) > 0:
		v.Completeness = run.Degraded
	}
	return v
}
