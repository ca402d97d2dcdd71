// Package coord carries a plan out: it hands its steps to workers, one after another, joins what they count and concludes.
//
// A [worker.Worker] is told the plan once (Assign), then each step twice: Prepare, which all workers must answer before any starts, and Run, which
// starts all of them at the same time on the run clock. The first step of a phase opens its connections and the last one closes
// them. Whether workers are in this process or on other machines makes no difference here.
//
// The coordinator knows neither disks nor child processes: where snapshots are kept and how built-in nodes are started it is
// given as a [Store] and as [Nodes].
package coord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loadgen/loadgen/internal/judge"
	"github.com/loadgen/loadgen/internal/reason"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	answerWithin = 30 * time.Second // to an assignment, and without progress to the order to prepare: with the usual lease, a loss is found before
	startNodes   = 15 * time.Second
	flushWithin  = 10 * time.Second
	startAhead   = 2 * time.Millisecond // between the order to start and the start: loops are in place by then
)

// Store keeps snapshots, and what was observed.
type Store interface {
	// Append takes the binary form of a snapshot; it is kept once Sync has returned.
	Append(worker string, snapshot []byte) error
	// Observe takes the JSON of a run.Probe; it is kept once Sync has returned.
	Observe(probe []byte) error
	Sync() error
}

// Nodes starts built-in cache nodes. Who made it stops them.
type Nodes interface {
	// Start starts the target's nodes and returns their endpoints.
	Start(ctx context.Context, t *plan.Target) ([]string, error)
	// Flush empties the nodes of a target.
	Flush(ctx context.Context, target string) error
}

// Probe reads the figures of one observation.
type Probe interface {
	// Of says what is looked at, in words.
	Of() string
	// Take reads all fields once. It returns the values by field, and why others are missing; under "" why all are. It is called by one
	// goroutine at a time, and returns when ctx ends.
	Take(ctx context.Context) (value map[string]float64, missing map[string]string)
	// Close ends it. A Take that is under way returns.
	Close()
}

// Config is what a run needs.
type Config struct {
	Header      run.Header
	Environment run.Environment
	Plan        *plan.Plan
	Canonical   []byte // the plan's bytes
	Workers     []worker.Member
	Store       Store
	Nodes       Nodes
	Observe     func(o *plan.Observe, endpoints []string) Probe // makes what reads an observation; the endpoints are those of its target
	Progress    func(run.Update)                                // called from one goroutine at a time
	Logger      *slog.Logger
	Drain       <-chan struct{} // closed when the user asks for an early end

	// AbortOnLoss ends the run when a worker is lost. Without it the others go on, and the run is degraded.
	AbortOnLoss bool

	// Replace returns a worker that takes the place of a lost one in the phases to come, and waits for one until ctx ends; nil: nobody does.
	// ReplaceWithin is for how long it is waited for before a phase.
	Replace       func(ctx context.Context) (worker.Member, error)
	ReplaceWithin time.Duration

	// Lease is for how long a worker may load without a word from here; 0: no longer than this process lives. Whoever recovers the run wants to know.
	Lease time.Duration
}

// byLoss is the end of a run that was to end so.
var byLoss = reason.Why{Code: reason.WorkerLost, Text: "a worker was lost, and the run was to end then"}

// coordinator is a run under way.
type coordinator struct {
	Config
	zero    time.Time // of the run clock
	nodes   map[string][]string
	probes  []*asked // by observation of the plan
	result  *run.Run
	journal *journal // nil: nothing more is kept, because the run is read back
	past    *past    // that it is read back from; nil: it goes on
	seq     int
	rows    int      // that the series of a load may have
	seqs    []uint64 // of each worker's last snapshot

	stopped atomic.Pointer[string] // why the plan wants no more; nil while it does

	fleet []int // by worker: which of the result's it is

	mu   sync.Mutex // of what follows: workers are lost at any time
	lost []bool     // by worker
	of   []int      // whose losses the result's are, by loss
}

// Run carries the plan out and returns its result, also when it fails; the verdict says so. Asserts are left to the caller. When ctx
// ends, it returns within a second with what there is, but not while the store is in the middle of something.
func Run(ctx context.Context, cfg Config) *run.Run {
	for _, m := range cfg.Workers {
		cfg.Header.Workers = append(cfg.Header.Workers, m.Name)
	}
	c := newCoordinator(cfg)
	c.journal = newJournal(cfg.Store)
	for _, m := range cfg.Workers {
		c.enlist(m)
	}
	c.note(entry{Begin: &beginning{Header: cfg.Header, Environment: cfg.Environment, Fleet: c.result.Fleet, Lease: cfg.Lease, Abort: cfg.AbortOnLoss}})
	err := c.begin(ctx)
	if err == nil {
		err = c.all(ctx)
	}
	c.journal.close()
	c.result.Seconds = time.Since(c.zero).Seconds()
	c.conclude(ctx, err)
	return c.result
}

func newCoordinator(cfg Config) *coordinator {
	c := &coordinator{
		Config: cfg, zero: time.Now(), nodes: map[string][]string{}, result: run.New(cfg.Header, cfg.Environment),
		seqs: make([]uint64, len(cfg.Workers)), lost: make([]bool, len(cfg.Workers)),
	}
	loads := 0
	for _, ph := range cfg.Plan.Phases {
		loads += ph.Levels()
	}
	c.rows = judge.RowsEach(loads)
	return c
}

// enlist enters a worker in the result.
func (c *coordinator) enlist(m worker.Member) {
	c.fleet = append(c.fleet, len(c.result.Fleet))
	c.result.Fleet = append(c.result.Fleet, run.Worker{Name: m.Name, Host: m.Host, Loadgen: m.Version})
}

// fleetOf is what the result says of a worker.
func (c *coordinator) fleetOf(worker int) *run.Worker { return &c.result.Fleet[c.fleet[worker]] }

// conclude says how far the run got.
func (c *coordinator) conclude(ctx context.Context, err error) {
	losses := c.lossesOf()
	because := func(why reason.Why) []reason.Why { return append([]reason.Why{why}, losses...) }
	switch why := c.stopped.Load(); {
	case why != nil:
		c.result.Conclude(run.Aborted, because(reason.Why{Code: reason.StoppedByPlan, Text: *why})...)
	case c.interrupted(ctx):
		c.result.Conclude(run.Aborted, because(reason.User)...)
	case err != nil:
		c.result.Conclude(run.Failed, because(whyOf(err))...)
	case len(losses) > 0 && c.AbortOnLoss:
		c.result.Conclude(run.Aborted, because(byLoss)...)
	case len(losses) > 0:
		c.result.Conclude(run.Degraded, losses...)
	default:
		c.result.Conclude(run.Complete)
	}
}

// lossesOf says of each worker that was lost how it was.
func (c *coordinator) lossesOf() (all []reason.Why) {
	for i := range c.result.Losses {
		all = append(all, reason.Why{Code: reason.WorkerLost, Text: c.result.Losses[i].Error()})
	}
	return all
}

// whyOf is the error that a run has ended with.
func whyOf(err error) reason.Why {
	code := reason.NotCarriedOut
	var short *shortfallError
	switch {
	case errors.As(err, &short):
		code = reason.SetupFailed
	case errors.Is(err, errNobody):
		code = reason.WorkerLost
	}
	return reason.Why{Code: code, Text: err.Error()}
}

// begin makes all ready that phases need.
func (c *coordinator) begin(ctx context.Context) error {
	if err := c.start(ctx); err != nil {
		return err
	}
	return c.assign(ctx)
}

// all runs every phase in turn.
func (c *coordinator) all(ctx context.Context) error {
	defer c.observe()()
	for _, ph := range c.Plan.Phases {
		if c.stopping(ctx) {
			return nil
		}
		if err := c.replace(ctx, ph); err != nil {
			return fmt.Errorf("before phase %q: %w", ph.Name, err)
		}
		if c.stopping(ctx) { // while a worker was waited for
			return nil
		}
		if err := c.phase(ctx, ph); err != nil {
			return fmt.Errorf("phase %q: %w", ph.Name, err)
		}
	}
	if c.past == nil && c.left() == 0 {
		return errNobody
	}
	return nil
}

// stopping says whether the user has asked for an end, or has asked for one in a case that has come.
func (c *coordinator) stopping(ctx context.Context) bool {
	return c.stopped.Load() != nil || c.interrupted(ctx) || c.AbortOnLoss && len(c.result.Losses) > 0
}

// interrupted says whether the user has asked for an end.
func (c *coordinator) interrupted(ctx context.Context) bool {
	if c.past != nil {
		return c.past.stopped != reason.Why{}
	}
	select {
	case <-c.Drain:
		return true
	default:
		return ctx.Err() != nil
	}
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
	if len(c.nodes) > 0 {
		c.note(entry{Nodes: c.nodes})
	}
	return nil
}

// assign gives every worker its part in the run.
func (c *coordinator) assign(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerWithin, fmt.Errorf("no answer to the plan within %v", answerWithin))
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for i := range c.Workers {
		group.Go(func() error { return c.assignTo(ctx, i) })
	}
	return group.Wait()
}

// assignTo gives a worker its part.
func (c *coordinator) assignTo(ctx context.Context, i int) error {
	m := c.Workers[i]
	err := m.Worker.Assign(ctx, worker.Assignment{
		RunID: c.Header.ID, Plan: c.Canonical, Digest: c.Header.PlanDigest, Nodes: c.nodes,
		WallNS: c.zero.UnixNano(), Zero: c.zero,
		Index: i, Workers: len(c.Workers),
	})
	var lost *worker.Loss
	if errors.As(err, &lost) {
		return c.lose(i, worker.Loss{Worker: m.Name, Why: lost.Why + ", before it had taken the plan"})
	}
	return c.blame(m, err)
}

// blame names the worker in an error where there are several.
func (c *coordinator) blame(m worker.Member, err error) error {
	var lost *worker.Loss // says it itself
	if err == nil || len(c.Workers) == 1 || errors.As(err, &lost) {
		return err
	}
	return fmt.Errorf("worker %s: %w", m.Name, err)
}

// share returns the sessions From ≤ i < To that worker i of n has; every session falls to exactly one.
func share(sessions, i, n int) (from, to int) { return sessions * i / n, sessions * (i + 1) / n }
