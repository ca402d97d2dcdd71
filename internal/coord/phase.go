package coord

import (
	"context"
	"errors"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// phase runs the steps of a phase and adds it to the result. A step that must succeed whole and does not is an error; the
// phase is in the result then, too, as far as it got.
func (c *coordinator) phase(ctx context.Context, ph *plan.Phase) error {
	t := c.Plan.Target(ph.Target)
	if ph.Clear != nil && t.Builtin != nil {
		return c.flush(ctx, ph)
	}
	m := run.Measured{Endpoints: t.Endpoints}
	if t.Builtin != nil {
		m.Endpoints = c.nodes[t.Name]
	}
	kinds := stepsOf(ph)
	for i, kind := range kinds {
		s, err := c.step(ctx, ph, kind, i == len(kinds)-1)
		if s == nil {
			return err
		}
		if kind == run.Setup {
			m.Setup = s.totals
		} else {
			m.Load, m.Series = s.totals, s.rows
		}
		m.Generators, m.Aborted = s.generators, c.stopping(ctx)
		m.Losses, m.Unfinished = c.result.Losses, s.unfinished
		if err == nil && kind != run.Load && !m.Aborted {
			err = shortfall(kind, t, s.totals)
		}
		if err != nil || m.Aborted {
			c.add(ph, m)
			return err
		}
	}
	c.add(ph, m)
	return nil
}

func (c *coordinator) add(ph *plan.Phase, m run.Measured) {
	if m.Load == nil {
		m.Load = &measure.Totals{}
	}
	c.result.Add(ph.Name, run.NewPhase(c.Plan, ph, m))
}

func shortfall(kind run.StepKind, t *plan.Target, totals *measure.Totals) error {
	copies := 1
	if t.Replication != nil {
		copies = t.Replication.N
	}
	if short := run.Shortfall(kind, copies, totals); short != "" {
		return errors.New(short)
	}
	return nil
}

// stepsOf lists the steps of a phase, in order.
func stepsOf(ph *plan.Phase) []run.StepKind {
	switch {
	case ph.Populate != nil:
		return []run.StepKind{run.Populate}
	case ph.Clear != nil:
		return []run.StepKind{run.Clear}
	case len(ph.Setup) > 0:
		return []run.StepKind{run.Setup, run.Load}
	}
	return []run.StepKind{run.Load}
}

// flush is a clear phase on built-in nodes.
func (c *coordinator) flush(ctx context.Context, ph *plan.Phase) error {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if err := c.Nodes.Flush(ctx, ph.Target); err != nil {
		return err
	}
	c.add(ph, run.Measured{Endpoints: c.nodes[ph.Target]})
	return nil
}
