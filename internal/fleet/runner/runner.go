package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/fleet/hook"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/result/push"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/internal/target/observe"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Config says how to run plans.
type Config struct {
	Root    string            // where runs are kept
	Version string            // of this program
	Origins map[string]string // of its own drivers: where each comes from, by name
	Strict  bool              // treat suspect figures as invalid
	Labels  map[string]string
	Samples func(dir *rundir.Dir, p *plan.Plan, r *run.Run) error // keeps a finished run's single ops, if its plan wants them
	Resume  string                                                // an experiment that was cut off, to resume; "" for none
	Timeout time.Duration                                         // ends the load as Drain does; 0 for never
	Page    func() (prom.Door, error)                             // opens the port for metrics and the live page; nil for none
	Source  func(id string) (timeline.Source, error)              // opens a kept run for the page
	Stay    func(end func(context.Context))                       // receives, after the run, the function that ends the page; if nil, the page ends with the run
	Push    *push.Receiver                                        // takes metrics; nil for none

	Repetition int     // of a run outside an experiment, from 1; 0 if not numbered
	Restart    Restart // before a run outside an experiment

	Fleet        FleetConfig
	OnWorkerLoss string // plan.Continue, plan.Abort or plan.Replace; "" for what the plan says, or else plan.Continue

	Allowed map[string]hook.Hook // commands that plans may call, by name; must include those that the plan names
	Means   observe.Means        // for probes; its Hook is set here

	Protocol func(driver string) (string, error) // the protocol that a built-in node must speak to serve a driver

	Environment func() machine.Environment  // of this machine, at the time of the call
	Halves      func() (loops, nodes []int) // CPUs for the loops of a worker that this process makes or starts, and for built-in nodes; none if they share all

	Words    io.Writer                // messages during a run
	Progress func(id string) Progress // shows a run's progress
	Logger   *slog.Logger

	Drain <-chan struct{} // closed when the user asks for an early end
}

// Progress shows a run's progress.
type Progress interface {
	// Show is called from one goroutine at a time.
	Show(run.Update)
	// Clear is called after the last Show.
	Clear()
}

// Run runs a plan once, with its variables' own values or a variant's. It returns the result, which has been kept, and the run's directory, or an
// error if there is no result. When ctx ends, everything ends at once.
func Run(ctx context.Context, c Config, p *plan.Plan, variant string) (*run.Run, string, error) {
	drain, timedOut := limited(c.Drain, c.Timeout, c.Timeout)
	j := job{drain: drain, restart: c.Restart, header: run.Header{ID: rundir.NewID(time.Now(), p.Name), Variant: variant, Repetition: c.Repetition}}
	dir, err := c.begin(&j, p)
	if err != nil {
		timedOut()
		return nil, "", err
	}
	result := c.execute(ctx, j, dir, func(r *run.Run) {
		if timedOut() && r.Verdict.Completeness == run.Aborted {
			r.Conclude(run.Aborted, endedBy(r, timedOutAfter(c.Timeout))...)
		}
	})
	return result, dir.Path(), nil
}

// timedOutAfter is the reason for the end of a run that --timeout cut short.
func timedOutAfter(t time.Duration) reason.Why {
	return reason.Why{Code: reason.TimedOut, Text: fmt.Sprintf("ended by --timeout %v", t)}
}

// endedBy returns the reasons of a run that was aborted by something other than the user. That reason takes the user's place; if something else had
// ended the run before, it comes last.
func endedBy(r *run.Run, what reason.Why) []reason.Why {
	all := slices.Clone(r.Stopped())
	if i := slices.Index(all, reason.User); i >= 0 {
		all[i] = what
		return all
	}
	return append(all, what)
}

// keep keeps a result in its run's directory, and before it the single ops that its plan wants. If that fails, the result says so.
func (c *Config) keep(dir *rundir.Dir, p *plan.Plan, result *run.Run) {
	samples, ended, finished := c.Samples(dir, p, result), coord.End(dir, result), dir.Finish(result)
	if err := errors.Join(samples, cmp.Or(finished, ended)); err != nil {
		result.NotKept(err)
	}
}

// job is a plan to be run once.
type job struct {
	plan      *plan.Plan
	canonical []byte
	header    run.Header
	restart   Restart
	drain     <-chan struct{} // closed when its load is to end early
}

// begin completes a job and creates the run's directory.
func (c *Config) begin(j *job, p *plan.Plan) (*rundir.Dir, error) {
	var err error
	if j.canonical, err = p.Canonical(); err != nil {
		return nil, err
	}
	j.plan = p
	h := &j.header
	h.DrawsAs = max(h.Repetition, 1)
	h.Plan, h.PlanDigest, h.StartedAt, h.Loadgen, h.Strict, h.Labels = p.Name, plan.Digest(j.canonical), time.Now().UTC(), c.Version, c.Strict, c.Labels
	h.Drivers = maps.Clone(c.Origins)
	maps.DeleteFunc(h.Drivers, func(name, _ string) bool {
		return !slices.ContainsFunc(p.Targets, func(t *plan.Target) bool { return t.Driver == name })
	})
	return rundir.Create(c.Root, h.ID, j.canonical)
}

// execute runs the plan from this process, and keeps the result. It calls conclude to finish the result once nothing listens to the job's drain any
// more, and before the verdict is shown.
func (c *Config) execute(ctx context.Context, j job, dir *rundir.Dir, conclude func(*run.Run)) *run.Run {
	environment := c.Environment()
	unable := func(err error) *run.Run {
		result := unstarted(ctx, j, environment, err)
		conclude(result)
		c.keep(dir, j.plan, result)
		return result
	}
	if err := c.restart(ctx, j, dir); err != nil {
		return unable(err)
	}
	onLoss := cmp.Or(c.OnWorkerLoss, j.plan.OnWorkerLoss, plan.Continue)
	c.Fleet.Spares = onLoss == plan.Replace
	nodes := newNodes(c.divide(j.plan, &environment), c.Protocol)
	c.Fleet.Drivers = j.header.Drivers
	workers, err := OpenFleet(j.header.ID, c.Fleet)
	if err != nil {
		return unable(err)
	}
	defer workers.Close()
	c.Fleet.Listen = workers.Listen() // for the next run of an experiment
	shown, err := c.serve(j, workers)
	if err != nil {
		return unable(err)
	}
	var result *run.Run
	if members, err := workers.Gather(ctx, j.drain); err != nil {
		result = unstarted(ctx, j, environment, err)
		conclude(result)
	} else {
		cfg := coord.Config{
			Header: j.header, Environment: environment, Plan: j.plan, Canonical: j.canonical, Workers: shown.watch(members...), Store: shown.keeps(dir),
			Observe: c.probes(j), Probed: shown.probed, Watched: shown.watched(), Happen: shown.happens(c.happens(j, nodes)), AbortOnLoss: onLoss == plan.Abort, Lease: workers.Lease(), Logger: c.Logger, Drain: j.drain,
		}
		if workers.Spares() {
			cfg.ReplaceWithin, cfg.Replace = c.Fleet.Wait, func(ctx context.Context) (worker.Member, error) {
				m, err := workers.Spare(ctx)
				return shown.watch(m)[0], err
			}
		}
		result = c.coordinate(ctx, shown, nodes, cfg)
		conclude(result)
		result.SetAsserts(expr.Evaluate(j.plan, result))
	}
	c.keep(dir, j.plan, result)
	shown.end(ctx, c, result)
	return result
}

// divide separates the CPUs of this process's own worker from those of the plan's built-in nodes, if it has any, and returns those of the nodes.
func (c *Config) divide(p *plan.Plan, e *machine.Environment) (nodes []int) {
	c.Fleet.Keep = nil
	if c.Fleet.Workers == 0 && slices.ContainsFunc(p.Targets, func(t *plan.Target) bool { return t.Builtin != nil }) {
		c.Fleet.Keep, nodes = c.Halves()
		e.LoopCPUs, e.NodeCPUs = machine.List(c.Fleet.Keep), machine.List(nodes)
	}
	return nodes
}

// coordinate makes the workers run the plan.
func (c *Config) coordinate(ctx context.Context, shown *metrics, started *nodes, cfg coord.Config) *run.Run {
	progress := c.Progress(cfg.Header.ID)
	cfg.Nodes = started
	cfg.Progress = func(u run.Update) {
		progress.Show(u)
		shown.show(u)
	}
	result := coord.Run(ctx, cfg)
	progress.Clear()
	for _, err := range started.ended() {
		fmt.Fprintf(c.Words, "loadgen: %v\n", err)
	}
	unhurried := context.AfterFunc(ctx, started.kill) // a second Ctrl-C waits for nothing
	defer unhurried()
	if err := started.close(); err != nil {
		cfg.Logger.Warn("end built-in nodes", "err", err)
	}
	result.CoordinatorCPUSeconds = c.Fleet.CPU().Seconds()
	return result
}

// unstarted is the result of a run whose workers did not come.
func unstarted(ctx context.Context, j job, env machine.Environment, err error) *run.Run {
	r := run.New(j.header, env)
	if !interrupted(ctx, j.drain) {
		return r.Fail(err)
	}
	r.Conclude(run.Aborted, reason.User, reason.Why{Code: reason.NotCarriedOut, Text: err.Error()})
	return r
}

// probes returns a function that makes a plan's probes.
func (c *Config) probes(j job) func(o *plan.Observe, endpoints []string) coord.Probe {
	means := c.Means
	means.Same, means.Hook = worker.OneServer, c.observed(j.header)
	return func(o *plan.Observe, endpoints []string) coord.Probe {
		return means.New(o, j.plan.Target(o.Target), endpoints)
	}
}
