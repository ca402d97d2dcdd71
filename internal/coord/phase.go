package coord

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/loadgen/loadgen/internal/judge"
	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/search"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/plan"
)

// phase runs the steps of a phase and adds it to the result. A step that must succeed whole and does not is an error; the
// phase is in the result then, too, as far as it got.
func (c *coordinator) phase(ctx context.Context, ph *plan.Phase) error {
	t := c.Plan.Target(ph.Target)
	if ph.Clear != nil && t.Builtin != nil {
		return c.flush(ctx, ph)
	}
	p := activePhase{c: c, ph: ph, route: newRoute(ph), m: judge.Measured{Endpoints: t.Endpoints}, watch: c.watch(ph)}
	if t.Builtin != nil {
		p.m.Endpoints = c.nodes[t.Name]
	}
	began, err := p.all(ctx)
	err = errors.Join(err, p.watch.end(ctx))
	p.m.Observed = p.watch.observed()
	if began {
		c.add(ph, p.m)
	}
	return err
}

// activePhase is a phase under way.
type activePhase struct {
	c     *coordinator
	ph    *plan.Phase
	route *route
	m     judge.Measured
	begun time.Duration // when its first level did, on the run clock; 0: not yet
	watch *watch
}

// all carries out the steps of the phase. It says whether any was begun.
func (p *activePhase) all(ctx context.Context) (began bool, err error) {
	for {
		var spent time.Duration
		if p.begun > 0 {
			spent = time.Since(p.c.zero) - p.begun
		}
		next, more := p.route.next(&p.m, spent)
		if !more {
			return began, nil
		}
		s, err := p.c.step(ctx, p.ph, next, func() {
			if next.Kind != run.Setup {
				p.watch.begin(ctx)
			}
		})
		if s == nil {
			return len(p.m.Levels) > 0, err
		}
		began = true
		p.m.Endpoints = s.endpoints()
		p.take(s, p.c.stopping(ctx))
		if err == nil && next.Kind != run.Load && !p.m.Aborted {
			err = p.shortfall(next.Kind, s.totals)
		}
		if next.Kind == run.Load && err == nil {
			err = p.settle(s)
		}
		if err != nil || p.m.Aborted {
			p.m.Ended = search.Stopped
			return began, err
		}
	}
}

// take enters what a step has counted.
func (p *activePhase) take(s *step, aborted bool) {
	p.m.Aborted, p.m.Losses = aborted, s.missing()
	if why := p.c.braked.Load(); why != nil {
		p.m.Braked = p.ph.Stop.String()
	}
	if s.steps[0].Kind != run.Setup && p.m.Origin == 0 {
		p.m.Origin = s.at.Seconds()
	}
	switch step := s.steps[0]; {
	case step.Kind == run.Setup:
		p.m.Setup = s.totals
	case p.ph.Stages == nil && p.ph.Search == nil:
		p.m.Load, p.m.Series, p.m.Generators, p.m.Unfinished = s.totals, s.series.Rows(), s.generators, s.unfinished
		p.m.Logs, p.m.Unread, p.m.Apart = s.logs, s.unread, s.apart()
	default:
		p.level(s, step)
	}
}

// level enters what a step has counted that is one level of several.
func (p *activePhase) level(s *step, step worker.Step) {
	if p.begun == 0 {
		p.begun = s.at
	}
	since := s.at - p.begun
	for _, row := range s.series.Rows() {
		row.T += since.Seconds()
		p.m.Series = append(p.m.Series, row)
	}
	p.m.AddLevel(p.c.Plan, p.ph, judge.Measured{
		Endpoints: p.m.Endpoints, Load: s.totals, Shape: step.Shape, Generators: s.generators,
		Aborted: p.m.Aborted, Braked: p.m.Braked, Losses: p.m.Losses, Unfinished: s.unfinished, Apart: s.apart(),
	}, since)
}

// settle finds the warm-up of a load that has one level, and what was counted after it.
func (p *activePhase) settle(s *step) error {
	if p.ph.Stages != nil || p.ph.Search != nil {
		return nil
	}
	w := judge.FindWarmUp(p.ph, s.totals, s.series.Rows())
	if w.Seconds > 0 {
		settled, from, err := s.history.since(int64(s.at) + int64(math.Round(w.Seconds*1e9)))
		if err != nil {
			return fmt.Errorf("leave the warm-up out: %w", err)
		}
		if p.m.Settled = settled; settled == nil {
			w = run.WarmUp{By: "none", Reason: "the load ended before its warm-up did"}
		} else {
			w.Seconds = time.Duration(from - int64(s.at)).Seconds()
		}
	}
	p.m.WarmUp = w
	return nil
}

func (c *coordinator) add(ph *plan.Phase, m judge.Measured) {
	if m.Load == nil {
		m.Load = &measure.Totals{}
	}
	c.result.Add(ph.Name, judge.NewPhase(c.Plan, ph, m))
}

// shortfall is the error of a step that must succeed whole and did not.
func (p *activePhase) shortfall(kind run.StepKind, totals *measure.Totals) error {
	copies := 1
	if r := p.c.Plan.Target(p.ph.Target).Replication; r != nil {
		copies = r.N
	}
	var planned int64 // of a setup: what the workers have that are left, whose sessions alone will use it
	if kind != run.Setup {
		planned = p.c.Plan.Once(p.ph, false)
	}
	if short := judge.Shortfall(kind, planned, copies, totals); short != "" {
		return errors.New(short)
	}
	return nil
}

// flush is a clear phase on built-in nodes.
func (c *coordinator) flush(ctx context.Context, ph *plan.Phase) error {
	w := c.watch(ph)
	w.begin(ctx)
	origin := time.Since(c.zero).Seconds()
	flushing, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	err := errors.Join(c.Nodes.Flush(flushing, ph.Target), w.end(ctx))
	if err != nil {
		return err
	}
	c.add(ph, judge.Measured{Endpoints: c.nodes[ph.Target], Origin: origin, Observed: w.observed()})
	return nil
}
