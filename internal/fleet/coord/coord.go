// Package coord carries out the steps of a plan: it hands them to the workers, one after another, merges what they count, and reaches a verdict.
// Package runner does what comes before and after, such as making the run's directory and getting its workers.
//
// A [worker.Worker] gets the plan once (Assign) and then two calls per step: Prepare, which every worker must answer before any starts, and Run,
// which starts them all at the same time on the run clock. The first step of a phase opens its connections and the last one closes them. The
// coordinator treats workers in this process and workers on other machines alike.
//
// The coordinator knows nothing of disks or child processes. A [Store] keeps the snapshots, and [Nodes] starts the built-in nodes.
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
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	answerWithin = 30 * time.Second // time limit for an answer to Assign, and for a Prepare without progress; with the usual lease, a loss is detected sooner
	startNodes   = 15 * time.Second
	flushWithin  = 10 * time.Second
	startAhead   = 2 * time.Millisecond // time from the order to start until the start, in which the loops get into place
)

// Store keeps snapshots and probes.
type Store interface {
	// Append takes the binary form of a snapshot, which is durable once Sync has returned.
	Append(worker string, snapshot []byte) error
	// Observe takes the JSON of a run.Probe, which is durable once Sync has returned.
	Observe(probe []byte) error
	Sync() error
}

// Nodes starts built-in cache nodes. Whoever created the Nodes stops them.
type Nodes interface {
	// Start starts the target's nodes and returns their endpoints.
	Start(ctx context.Context, t *plan.Target) ([]string, error)
	// Flush empties the nodes of a target.
	Flush(ctx context.Context, target string) error
}

// Probe reads the figures of one observation.
type Probe interface {
	// Of describes in words what the probe looks at.
	Of() string
	// Take reads all fields once. It returns the values by field and, for the other fields, why they are missing; the key "" stands for all fields.
	// It is called by one goroutine at a time, and returns when ctx ends.
	Take(ctx context.Context) (value map[string]float64, missing map[string]string)
	// Close ends the probe. A Take in progress returns.
	Close()
}

// Config holds the parameters of a run.
type Config struct {
	Header      run.Header
	Environment machine.Environment
	Plan        *plan.Plan
	Canonical   []byte // the plan's bytes
	Workers     []worker.Member
	Store       Store
	Nodes       Nodes
	Observe     func(o *plan.Observe, endpoints []string) Probe // makes the reader of an observation; endpoints are its target's
	Progress    func(run.Update)                                // called from one goroutine at a time
	Probed      func(*run.Probe)                                // called for each probe that is kept, from several goroutines at once; may be nil
	Watched     func(soFar func() *run.Run)                     // called after each Progress that has figures; soFar returns the run as it stands, and is valid until Watched returns; may be nil
	Logger      *slog.Logger
	Drain       <-chan struct{} // closed when the user asks for an early end

	// Happen carries out an event of a phase that workers do not carry out themselves, or undoes it. It is nil if the plan has none.
	Happen func(ctx context.Context, ph *plan.Phase, ev *plan.Event, undo bool) error

	// AbortOnLoss ends the run when a worker is lost. Without it the others go on, and the run is degraded.
	AbortOnLoss bool

	// Replace returns a worker to take a lost one's place in later phases, and waits for one until ctx ends. If nil, lost workers are not replaced.
	// ReplaceWithin is how long to wait for a replacement before a phase.
	Replace       func(ctx context.Context) (worker.Member, error)
	ReplaceWithin time.Duration

	// Lease is how long a worker may load without hearing from the coordinator; 0 for as long as this process runs. It is recorded for [Recover].
	Lease time.Duration
}

// byLoss is why a run with AbortOnLoss ends when a worker is lost.
var byLoss = reason.Why{Code: reason.WorkerLost, Text: "a worker was lost, and on_worker_loss is abort"}

// coordinator is a run in progress.
type coordinator struct {
	Config
	zero    time.Time // zero of the run clock
	nodes   map[string][]string
	probes  []*asked // in the order of the plan's observations
	result  *run.Run
	earlier []judge.Earlier // phases of this run that are over
	journal *journal        // nil when a run is read back, since nothing more is kept
	past    *past           // the records of a run that is read back; nil for a live run
	seq     int
	rows    int      // limit on the rows of a load's series
	seqs    []uint64 // by worker: sequence number of its last snapshot

	stopped atomic.Pointer[string] // why the plan ended the run; nil if it has not

	active  *activePhase // the phase in progress; it changes between steps only
	seeking *seeking     // the search in progress, or nil; it changes between steps only

	fleet []int // by worker: its index in result.Fleet

	mu   sync.Mutex // guards the fields below: a worker can be lost at any time
	lost []bool     // by worker
	of   []int      // for each loss in the result, the worker's index
}

// Run carries out the plan and returns its result, even when it fails; the verdict says so. It leaves asserts to the caller. When ctx ends, it
// returns what it has within a second, unless the store is in the middle of an operation.
func Run(ctx context.Context, cfg Config) *run.Run {
	for _, m := range cfg.Workers {
		cfg.Header.Workers = append(cfg.Header.Workers, m.Name)
	}
	c := newCoordinator(cfg)
	c.journal = newJournal(cfg.Store)
	for _, m := range cfg.Workers {
		c.enlist(m)
	}
	c.note(entry{Begin: &beginning{Header: cfg.Header, Environment: cfg.Environment, Fleet: c.result.Fleet, Lease: cfg.Lease, Abort: cfg.AbortOnLoss, Replace: cfg.Replace != nil}})
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
	c.rows = judge.RowsEach(loads, len(c.Plan.Quantiles))
	return c
}

// enlist adds a worker to the result.
func (c *coordinator) enlist(m worker.Member) {
	c.fleet = append(c.fleet, len(c.result.Fleet))
	c.result.Fleet = append(c.result.Fleet, run.Worker{Name: m.Name, Host: m.Host, Loadgen: m.Version})
}

// fleetOf returns a worker's entry in the result.
func (c *coordinator) fleetOf(worker int) *run.Worker { return &c.result.Fleet[c.fleet[worker]] }

// conclude sets the verdict: how far the run got, and why.
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

// lossesOf returns the reason for each worker loss.
func (c *coordinator) lossesOf() (all []reason.Why) {
	for i := range c.result.Losses {
		all = append(all, reason.Why{Code: reason.WorkerLost, Text: c.result.Losses[i].Error()})
	}
	return all
}

// whyOf turns the error that ended a run into a reason.
func whyOf(err error) reason.Why {
	code := reason.NotCarriedOut
	switch {
	case errors.As(err, new(*shortfallError)):
		code = reason.SetupFailed
	case errors.Is(err, errNobody):
		code = reason.WorkerLost
	case errors.Is(err, unix.EADDRNOTAVAIL):
		code = judge.NoLocalPort
	}
	return reason.Why{Code: code, Text: err.Error()}
}

// begin starts the built-in nodes and assigns the plan.
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
		if c.stopping(ctx) { // a replacement may have taken a while
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

// stopping says whether the run is to end early: the plan or the user stopped it, or a worker was lost and AbortOnLoss is set.
func (c *coordinator) stopping(ctx context.Context) bool {
	return c.stopped.Load() != nil || c.interrupted(ctx) || c.AbortOnLoss && len(c.result.Losses) > 0
}

// interrupted says whether the user has stopped the run; when a run is read back, whether anything has.
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

// assign gives every worker its part of the run.
func (c *coordinator) assign(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range c.Workers {
		group.Go(func() error { return c.assignTo(ctx, i) })
	}
	return group.Wait()
}

// assignTo gives one worker its part.
func (c *coordinator) assignTo(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerWithin, fmt.Errorf("no answer to the plan within %v", answerWithin))
	defer cancel()
	m := c.Workers[i]
	err := m.Worker.Assign(ctx, worker.Assignment{
		RunID: c.Header.ID, Plan: c.Canonical, Digest: c.Header.PlanDigest, Nodes: c.nodes,
		WallNS: c.zero.UnixNano(), Zero: c.zero,
		Index: i, Workers: len(c.Workers), DrawsAs: c.Header.DrawsAs,
	})
	if lost, ok := errors.AsType[*worker.Loss](err); ok {
		return c.lose(i, worker.Loss{Worker: m.Name, Why: lost.Why + ", before it had taken the plan"})
	}
	if err != nil && m.Host != "" && len(c.Workers) == 1 {
		return fmt.Errorf("worker %s: %w", m.Name, err)
	}
	return c.blame(m, err)
}

// blame adds the worker's name to an error if there are several workers.
func (c *coordinator) blame(m worker.Member, err error) error {
	if err == nil || len(c.Workers) == 1 || errors.As(err, new(*worker.Loss)) { // its text names the worker already
		return err
	}
	return fmt.Errorf("worker %s: %w", m.Name, err)
}

// share returns the sessions from ≤ i < to of worker i of n. Each session belongs to exactly one worker.
func share(sessions, i, n int) (from, to int) { return sessions * i / n, sessions * (i + 1) / n }
