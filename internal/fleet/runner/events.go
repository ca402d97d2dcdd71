package runner

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/target/cachenode"
	"github.com/loadgen/loadgen/pkg/plan"
)

// happens returns a function that carries out events of a run's phases, or undoes them.
func (c *Config) happens(j job, started *nodes) func(ctx context.Context, ph *plan.Phase, ev *plan.Event, undo bool) error {
	return func(ctx context.Context, ph *plan.Phase, ev *plan.Event, undo bool) error {
		switch {
		case ev.Do == plan.HookEvent:
			_, err := c.Allowed[ev.Hook].Run(ctx, append(told(j.header, nil), toldOf(ev)...))
			return err
		case ev.Do != plan.FlushEvent:
			return started.happen(ctx, j.plan.Target(ev.Target), ev, undo)
		}
		switch t := j.plan.Flushed(ev); {
		case t == nil: // a target without a cache, which the plan compares others with
			return nil
		case t.Builtin != nil:
			return started.Flush(ctx, t.Name)
		default:
			return c.emptied(ctx, j, j.plan.Deleting(ph, ev))
		}
	}
}

// toldOf returns the environment variables that tell a hook about an event.
func toldOf(ev *plan.Event) []string {
	list := []string{"LOADGEN_EVENT=" + ev.Name, "LOADGEN_TARGET=" + ev.Target}
	if ev.Node != nil {
		list = append(list, fmt.Sprintf("LOADGEN_NODE=%d", *ev.Node))
	}
	return list
}

// happen carries out an event on built-in nodes, or undoes it.
func (n *nodes) happen(ctx context.Context, t *plan.Target, ev *plan.Event, undo bool) error {
	fleet := n.fleets[t.Name]
	if fleet == nil {
		return fmt.Errorf("target %q has no built-in nodes", t.Name)
	}
	var errs []error
	for i := range t.Builtin.Nodes {
		if ev.Node == nil || *ev.Node == i {
			errs = append(errs, n.happenTo(ctx, fleet, i, t.Builtin, ev, undo))
		}
	}
	return errors.Join(errs...)
}

// happenTo carries out or undoes an event on one node.
func (n *nodes) happenTo(ctx context.Context, fleet *cachenode.Fleet, node int, as *plan.Builtin, ev *plan.Event, undo bool) error {
	delay, drop := ev.Delay, ev.Drop
	if undo {
		delay, drop = as.Delay, 0
	}
	switch ev.Do {
	case plan.DelayEvent:
		return fleet.Command(ctx, node, "delay "+delay.String())
	case plan.DropEvent:
		return fleet.Command(ctx, node, fmt.Sprintf("drop %g", drop))
	case plan.StopEvent, plan.ContinueEvent:
		if undo || ev.Do == plan.ContinueEvent {
			return fleet.Signal(node, syscall.SIGCONT)
		}
		return fleet.Signal(node, syscall.SIGSTOP)
	}
	if ev.Do == plan.KillEvent && !undo {
		return fleet.End(ctx, node)
	}
	return machine.On(n.cpus, func() error { return fleet.Restart(ctx, node) })
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
		final, err := w.Run(ctx, time.Since(zero), worker.Forget)
		if err != nil {
			return fmt.Errorf("delete the keys of target %q: %w", ph.Target, err)
		}
		if short := judge.Shortfall(worker.Clear, p.Words(), p.Once(ph, false), copies, final.Totals); short != "" {
			return fmt.Errorf("delete the keys of target %q: %s", ph.Target, short)
		}
	}
	return nil
}
