// Package coord carries a plan out: it hands its steps to workers, one after another, joins what they count and concludes.
//
// A [Worker] is told the plan once (Assign), then each step twice: Prepare, which all workers must answer before any starts, and Run, which
// starts all of them at the same time on the run clock. The first step of a phase opens its connections and the last one closes
// them. Whether workers are in this process or on other machines makes no difference here.
//
// The coordinator knows neither disks nor child processes: where snapshots are kept and how built-in nodes are started it is
// given as a [Store] and as [Nodes].
package coord

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	assignWithin  = 10 * time.Second
	prepareWithin = 30 * time.Second
	startNodes    = 15 * time.Second
	flushWithin   = 10 * time.Second
	startAhead    = 2 * time.Millisecond // between the order to start and the start: loops are in place by then
)

// Worker carries out steps for its share of a plan's sessions.
type Worker interface {
	// Assign gives the worker its part in a run.
	Assign(ctx context.Context, a run.Assignment) error
	// Prepare makes ready to carry out a step.
	Prepare(ctx context.Context, step run.Step) (run.Ready, error)
	// Run carries out the prepared step from a time on the run clock on, passing a snapshot to sink each second, one at a time. When
	// ctx ends it returns soon, with what is in flight counted as that.
	Run(ctx context.Context, at time.Duration, sink func(measure.Snapshot)) (run.Final, error)
	// Drain ends the step at hand early, and those after it: nothing more is started, what is outstanding is awaited.
	Drain()
}

// Member is a worker and the name it goes by.
type Member struct {
	Name   string
	Worker Worker
}

// Store keeps snapshots.
type Store interface {
	// Append takes the binary form of a snapshot; it is kept once Sync has returned.
	Append(worker string, snapshot []byte) error
	Sync() error
}

// Nodes starts built-in cache nodes. Who made it stops them.
type Nodes interface {
	// Start starts the target's nodes and returns their endpoints.
	Start(ctx context.Context, t *plan.Target) ([]string, error)
	// Flush empties the nodes of a target.
	Flush(ctx context.Context, target string) error
}

// Config is what a run needs.
type Config struct {
	Header      run.Header
	Environment run.Environment
	Plan        *plan.Plan
	Canonical   []byte // the plan's bytes
	Workers     []Member
	Store       Store
	Nodes       Nodes
	Progress    func(run.Update) // called from one goroutine at a time
	Logger      *slog.Logger
	Drain       <-chan struct{} // closed when the user asks for an early end
}

// coordinator is a run under way.
type coordinator struct {
	Config
	zero    time.Time // of the run clock
	nodes   map[string][]string
	result  *run.Run
	seq     int
	drained bool
}

// Run carries the plan out and returns its result, also when it fails; the verdict says so. Asserts are left to the caller. When ctx
// ends, it returns within a second with what there is.
func Run(ctx context.Context, cfg Config) *run.Run {
	for _, m := range cfg.Workers {
		cfg.Header.Workers = append(cfg.Header.Workers, m.Name)
	}
	c := &coordinator{Config: cfg, zero: time.Now(), nodes: map[string][]string{}, result: run.New(cfg.Header, cfg.Environment)}
	err := c.all(ctx)
	c.result.Seconds = time.Since(c.zero).Seconds()
	switch {
	case ctx.Err() != nil || c.drained:
		c.result.Conclude(run.Aborted, "stopped by the user")
	case err != nil:
		c.result.Conclude(run.Failed, err.Error())
	default:
		c.result.Conclude(run.Complete)
	}
	return c.result
}

// all runs every phase in turn.
func (c *coordinator) all(ctx context.Context) error {
	if err := c.start(ctx); err != nil {
		return err
	}
	if err := c.assign(ctx); err != nil {
		return err
	}
	for _, ph := range c.Plan.Phases {
		if c.stopping(ctx) {
			return nil
		}
		if err := c.phase(ctx, ph); err != nil {
			return fmt.Errorf("phase %q: %w", ph.Name, err)
		}
	}
	return nil
}

// stopping says whether the user has asked for an end.
func (c *coordinator) stopping(ctx context.Context) bool {
	select {
	case <-c.Drain:
		c.drained = true
	default:
	}
	return c.drained || ctx.Err() != nil
}

// start starts the built-in nodes.
func (c *coordinator) start(ctx context.Context) error {
	for _, t := range c.Plan.Targets {
		if t.Builtin == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, startNodes)
		endpoints, err := c.Nodes.Start(ctx, t)
		cancel()
		if err != nil {
			return fmt.Errorf("target %q: start built-in nodes: %w", t.Name, err)
		}
		c.nodes[t.Name] = endpoints
	}
	return nil
}

func (c *coordinator) assign(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, assignWithin)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for i, m := range c.Workers {
		group.Go(func() error {
			err := m.Worker.Assign(ctx, run.Assignment{
				RunID: c.Header.ID, Plan: c.Canonical, Digest: c.Header.PlanDigest, Nodes: c.nodes,
				WallNS: c.zero.UnixNano(), Elapsed: time.Since(c.zero),
				Index: i, Workers: len(c.Workers),
			})
			return c.blame(m, err)
		})
	}
	return group.Wait()
}

// blame names the worker in an error where there are several.
func (c *coordinator) blame(m Member, err error) error {
	if err == nil || len(c.Workers) == 1 {
		return err
	}
	return fmt.Errorf("worker %s: %w", m.Name, err)
}

// share returns the sessions From ≤ i < To that worker i of n has; every session falls to exactly one.
func share(sessions, i, n int) (from, to int) { return sessions * i / n, sessions * (i + 1) / n }
