package coord

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// phase runs the steps of a phase and adds the phase to the result. If a step fails that must succeed completely, phase returns an error, and the
// result holds the phase as far as it got.
func (c *coordinator) phase(ctx context.Context, ph *plan.Phase) error {
	t := c.Plan.Target(ph.Target)
	if ph.Clear != nil && t.Builtin != nil {
		return c.flush(ctx, ph)
	}
	p := activePhase{c: c, ph: ph, ahead: planned(ph), watch: c.watch(ph)}
	p.m.Endpoints, p.m.Others = c.endpoints(ph)
	began, err := p.all(ctx)
	err = errors.Join(err, p.watch.end(ctx))
	p.m.Observed = p.watch.observed()
	if began {
		c.add(ph, p.m)
	}
	return err
}

// activePhase is a phase in progress.
type activePhase struct {
	c     *coordinator
	ph    *plan.Phase
	ahead []worker.Step // steps decided so far, without the workers' shares
	m     judge.Measured
	begun time.Duration // when its first level began, on the run clock; 0 before that
	watch *watch
}

// all carries out the steps of the phase, and says whether any began.
func (p *activePhase) all(ctx context.Context) (began bool, err error) {
	for {
		next, more := p.next(p.spent())
		if !more {
			if p.ph.Search != nil {
				p.c.note(entry{Over: p.ph.Name})
			}
			return began, nil
		}
		p.c.active, p.c.seeking = p, p.seeking()
		s, err := p.c.step(ctx, p.as(next), next, func() {
			if next.Kind != worker.Setup {
				p.watch.begin(ctx)
			}
		})
		if s == nil {
			if errors.Is(err, errEnded) && !p.c.past.whole {
				p.m.Stop()
				return began, err
			}
			return len(p.m.Levels) > 0, err
		}
		began = true
		p.m.Endpoints, p.m.Others = s.endpoints()
		p.take(s, s.totals)
		if !next.Kind.Timed() && p.c.past != nil && p.c.past.over { // the step fell short because the coordinator ended
			err = errEnded
		}
		if err == nil && !next.Kind.Timed() && !p.m.Aborted {
			err = p.shortfall(next.Kind, s.totals)
		}
		if err == nil {
			err = p.settle(s, s.totals)
		}
		if err != nil || p.m.Aborted {
			p.m.Stop()
			return began, err
		}
	}
}

// seeking holds how far a search had got before a step.
type seeking struct {
	middle, low, high float64
	begun             time.Duration // when it began, on the run clock; 0 before that
	budget            time.Duration
}

func (p *activePhase) seeking() *seeking {
	if p.ph.Search == nil {
		return nil
	}
	k := &seeking{begun: p.begun, budget: p.ph.Search.Budget}
	k.middle, k.low, k.high = p.m.Belief(p.ph)
	return k
}

// at returns how far the search has got at a time on the run clock, in a step that began at start.
func (k *seeking) at(now, start time.Duration) *run.Seeking {
	begun := k.begun
	if begun == 0 {
		begun = start
	}
	spent := max(now-begun, 0)
	return &run.Seeking{Rate: k.middle, Low: k.low, High: k.high, Spent: spent, Left: max(k.budget-spent, 0)}
}

// as returns the phase as a step carries it out.
func (p *activePhase) as(s worker.Step) *plan.Phase {
	if !s.Kind.Timed() {
		return p.ph
	}
	return p.ph.As(plan.Shape(s.Shape))
}

// spent is the time since the phase's first level began. When a run is read back, it is 0 while the phase goes on and otherwise longer than any plan
// allows, so that every decision comes out as it did in the run.
func (p *activePhase) spent() time.Duration {
	switch k := p.c.past; {
	case k != nil && k.goesOn(p.ph.Name), p.begun == 0:
		return 0
	case k != nil:
		return math.MaxInt64 / 2
	}
	return time.Since(p.c.zero) - p.begun
}

// take adds the counts of a step.
func (p *activePhase) take(s *step, counted *measure.Totals) {
	p.m.Aborted, p.m.Failed, p.m.Losses = s.aborted, s.failure, s.missing()
	if why := p.c.stopped.Load(); why != nil {
		p.m.StoppedOn = p.ph.Stop.String()
	}
	if s.facts.Servers != nil { // only a phase's first step has these facts
		p.m.Servers = s.facts.Servers
	}
	if s.steps[0].Kind != worker.Setup && p.m.Origin == 0 {
		p.m.Origin = s.at.Seconds()
	}
	if s.steps[0].Kind != worker.Setup {
		p.m.Steps = append(p.m.Steps, s.steps[0].Seq)
	}
	switch step := s.steps[0]; {
	case step.Kind == worker.Setup:
		p.m.Setup = counted
	case p.ph.Stages == nil && p.ph.Search == nil:
		p.m.Load, p.m.Series, p.m.Generators, p.m.Unfinished = counted, s.series.Rows(), s.generators, s.unfinished
		p.m.Logs, p.m.Unread, p.m.Apart = s.logs, s.unread, s.apart()
		p.m.Over, p.m.Happened = &s.series, s.happened
	default:
		p.level(s, step, counted)
	}
}

// level adds the counts of a step as one level of several.
func (p *activePhase) level(s *step, step worker.Step, counted *measure.Totals) {
	if p.begun == 0 {
		p.begun = s.at
	}
	since := s.at - p.begun
	for _, row := range s.series.Rows() {
		row.T += since.Seconds()
		p.m.Series = append(p.m.Series, row)
	}
	p.m.AddLevel(p.c.Plan, p.ph, judge.Measured{
		Endpoints: p.m.Endpoints, Others: p.m.Others, Servers: p.m.Servers, Load: counted, Shape: step.Shape, Generators: s.generators,
		Aborted: p.m.Aborted, StoppedOn: p.m.StoppedOn, Losses: p.m.Losses, Unfinished: s.unfinished, Apart: s.apart(),
	}, since)
}

// settle finds the warm-up of a single-level load, and the counts after it.
func (p *activePhase) settle(s *step, counted *measure.Totals) error {
	if !s.steps[0].Kind.Timed() || p.ph.Stages != nil || p.ph.Search != nil {
		return nil
	}
	w := judge.FindWarmUp(p.ph, counted, s.series.Rows())
	if w.Seconds > 0 {
		settled, from, err := s.history.since(int64(s.at) + int64(math.Round(w.Seconds*1e9)))
		if err != nil {
			return fmt.Errorf("leave the warm-up out: %w", err)
		}
		if p.m.Settled = settled; settled == nil {
			w = run.WarmUp{By: "none", Code: reason.CutShort, Reason: "the load ended before its warm-up did"}
		} else {
			w.Seconds = time.Duration(from - int64(s.at)).Seconds()
		}
	}
	p.m.WarmUp = w
	return nil
}

func (c *coordinator) add(ph *plan.Phase, m judge.Measured) {
	is := c.judged(ph, m)
	c.result.Add(ph.Name, is)
	c.earlier = append(c.earlier, judge.Earlier{Name: ph.Name, Origin: m.Origin, Away: is.AwaySeconds, Events: is.Event, Unanswered: is.Unanswered()})
}

// judged makes the result of a phase.
func (c *coordinator) judged(ph *plan.Phase, m judge.Measured) *run.Phase {
	if m.Load == nil {
		m.Load = &measure.Totals{}
	}
	m.DrawsAs = c.Header.DrawsAs
	m.Earlier = c.earlier
	return judge.NewPhase(c.Plan, ph, m)
}

// shortfallError reports a step that had to succeed completely and did not.
type shortfallError struct{ text string }

func (e *shortfallError) Error() string { return e.text }

// shortfall returns an error if a step that must succeed completely did not.
func (p *activePhase) shortfall(kind worker.StepKind, totals *measure.Totals) error {
	copies := 1
	if r := p.c.Plan.Target(p.ph.Target).Replication; r != nil {
		copies = r.N
	}
	var planned int64 // 0 for a setup, of which only the ops that were due count: only the remaining workers' sessions use its keys
	if kind != worker.Setup {
		planned = p.c.Plan.Once(p.ph, false)
	}
	if short := judge.Shortfall(kind, p.c.Plan.Words(), planned, copies, totals); short != "" {
		return &shortfallError{short}
	}
	return nil
}

// flush carries out a clear phase on built-in nodes.
func (c *coordinator) flush(ctx context.Context, ph *plan.Phase) error {
	w := c.watch(ph)
	w.begin(ctx)
	origin, err := c.empty(ctx, ph)
	if err := errors.Join(err, w.end(ctx)); err != nil {
		return err
	}
	c.add(ph, judge.Measured{Endpoints: c.nodes[ph.Target], Origin: origin, Observed: w.observed()})
	return nil
}

// empty empties the built-in nodes of a phase's target and returns when it began to.
func (c *coordinator) empty(ctx context.Context, ph *plan.Phase) (origin float64, err error) {
	if c.past != nil {
		return c.past.flush(ph)
	}
	origin = time.Since(c.zero).Seconds()
	flushing, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if err := c.Nodes.Flush(flushing, ph.Target); err != nil {
		return origin, err
	}
	c.note(entry{Flush: &flushed{Phase: ph.Name, Origin: origin}})
	return origin, nil
}
