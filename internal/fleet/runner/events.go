package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/loadgen/loadgen/internal/count/judge"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/pkg/plan"
)

// happens returns a function that carries out events of a run's phases.
func (c *Config) happens(j job, started *nodes) func(ctx context.Context, ph *plan.Phase, ev *plan.Event) error {
	return func(ctx context.Context, ph *plan.Phase, ev *plan.Event) error {
		switch t := j.plan.Flushed(ev); {
		case t == nil: // a target without a cache: the plan compares others with it
			return nil
		case t.Builtin != nil:
			return started.Flush(ctx, t.Name)
		default:
			return c.emptied(ctx, j, j.plan.Deleting(ph, ev))
		}
	}
}

// emptied runs a plan of clear phases beside the load, by a worker of this process.
func (c *Config) emptied(ctx context.Context, j job, p *plan.Plan) error {
	canonical, err := p.Canonical()
	if err != nil {
		return err
	}
	w := c.Fleet.New(nil)
	defer w.Close()
	zero := time.Now()
	if err := w.Assign(ctx, worker.Assignment{
		RunID: j.header.ID, Plan: canonical, Digest: plan.Digest(canonical), WallNS: zero.UnixNano(), Zero: zero, Workers: 1, DrawsAs: j.header.DrawsAs,
	}); err != nil {
		return err
	}
	copies := 1
	if r := p.Targets[0].Replication; r != nil {
		copies = r.N
	}
	for i, ph := range p.Phases {
		if _, err := w.Prepare(ctx, worker.Step{Seq: i, Phase: ph.Name, Kind: worker.Clear, Last: true, To: ph.Sessions()}); err != nil {
			return fmt.Errorf("delete the keys of target %q: %w", ph.Target, err)
		}
		none := func(*measure.Snapshot) (func() error, error) { return func() error { return nil }, nil }
		final, err := w.Run(ctx, time.Since(zero), none)
		if err != nil {
			return fmt.Errorf("delete the keys of target %q: %w", ph.Target, err)
		}
		if short := judge.Shortfall(worker.Clear, p.Once(ph, false), copies, final.Totals); short != "" {
			return fmt.Errorf("delete the keys of target %q: %s", ph.Target, short)
		}
	}
	return nil
}
