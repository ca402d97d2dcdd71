package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/coord"
	"github.com/loadgen/loadgen/internal/machine"
	"github.com/loadgen/loadgen/internal/report"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/rundir"
	"github.com/loadgen/loadgen/internal/table"
	"github.com/loadgen/loadgen/pkg/plan"
)

// drainWithin is how long an interrupted run may take to end what is outstanding, though answers still come.
const drainWithin = 5 * time.Second

func newCoordinator() *cobra.Command { return group("coordinator", "Run plans", newRun()) }

// runFlags are the flags of coordinator run.
type runFlags struct {
	planFlags
	runs   string
	out    string
	report string
	loops  loopFlags
	strict bool
	debug  bool
	once   bool
	http   string
	fleet  fleetFlags

	progress   string
	timeout    time.Duration
	labelTexts []string
	labels     map[string]string

	allow   []string // --allow-exec
	allowed hooks
}

func newRun() *cobra.Command {
	var flags runFlags
	c := &cobra.Command{
		Use:   "run PLAN.hcl",
		Short: "Run a plan and report",
		Long: `Run a plan and report what was measured.

The load comes from a worker in this process, or with --workers from as many that come to it (loadgen worker --join). Targets of the
plan that name no endpoints get built-in cache nodes, which end with the run. Everything measured is kept in a run directory
(loadgen runs list).

A plan with an experiment is run again and again: every variant as often as the experiment says, each time with built-in nodes started
anew and a run directory of its own. At the end the variants are compared. --variant NAME runs one of them once, --once the variables'
own values.

Variables of the plan take their values from -var, then --var-file, then LOADGEN_VAR_NAME in the environment, then their defaults.
Passwords that the plan names with secret("NAME") are looked up in LOADGEN_SECRET_NAME.

Ctrl-C stops starting ops, awaits what is outstanding while answers come, and reports; a second one ends at once with what there is.
--timeout is a first Ctrl-C at a time that is known beforehand.`,
		Example: `  loadgen coordinator run plans/hydra.hcl
  loadgen coordinator run plans/hydra.hcl -var nodes='["127.0.0.1:7001","127.0.0.1:7002","127.0.0.1:7003","127.0.0.1:7004"]'
  loadgen coordinator run plans/hydra.hcl --var w=1 --out run.json
  loadgen coordinator run plans/open.hcl --timeout 1m --progress json 2>progress.jsonl
  loadgen coordinator run plans/hydra.hcl --label branch=main --label ticket=42
  loadgen coordinator run plans/nwr.hcl
  loadgen coordinator run plans/nwr.hcl --variant w=2,r=1`,
		Args: one("plan"),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	flags.add(c.Flags())
	f := c.Flags()
	f.StringVar(&flags.runs, "runs", "", "keep runs in `DIR` (default: in the user's state directory)")
	f.StringVar(&flags.out, "out", "", "write the result as JSON to `FILE` too; what was there is replaced")
	f.StringVar(&flags.report, "report", "", "write a page on the run or the experiment to `FILE` too, likewise (loadgen report writes other formats)")
	flags.loops.add(f)
	f.BoolVar(&flags.strict, "strict", false, "take suspect figures for invalid ones: exit code 4")
	f.StringVar(&flags.http, "http", "", "serve metrics for Prometheus at `ADDRESS` while the run goes on; loopback, port 0 for any free one")
	flags.fleet.add(f)
	f.BoolVar(&flags.once, "once", false, "run a plan that has an experiment once, with the variables' own values")
	f.StringVar(&flags.progress, "progress", "auto", "show progress as `FORM`: auto (drawn again and again on a terminal), lines, json (docs/result.md) or none")
	f.DurationVar(&flags.timeout, "timeout", 0, "end after a `DURATION` as by Ctrl-C (default: when the plan ends)")
	f.StringArrayVar(&flags.labelTexts, "label", nil, "keep the label `NAME=VALUE` with the run; may be given several times")
	f.StringArrayVar(&flags.allow, "allow-exec", nil, "let the plan run a command that it calls hook.NAME: `NAME=COMMAND`, its arguments behind it; repeatable, no shell")
	f.BoolVar(&flags.debug, "debug", false, "log what happens beside the load")
	return c
}

// run runs the plan at path.
func (f *runFlags) run(cmd *cobra.Command, path string) error {
	if f.once && f.variant != "" {
		return errors.New("--once runs the variables' own values, --variant those of a variant: use one of them")
	}
	if f.timeout < 0 {
		return fmt.Errorf("--timeout %v: write a positive duration, such as 10m", f.timeout)
	}
	if err := f.checkProgress(); err != nil {
		return err
	}
	if err := f.loops.check(); err != nil {
		return err
	}
	if err := f.fleet.check(&f.loops); err != nil {
		return err
	}
	var err error
	if f.labels, err = parseLabels(f.labelTexts); err != nil {
		return err
	}
	if f.allowed, err = parseHooks(f.allow); err != nil {
		return err
	}
	f.loops.files = cmp.Or(f.loops.files, filepath.Dir(path))
	f.planFlags.files = f.loops.files
	text, err := f.planFlags.open(path)
	if err != nil {
		return err
	}
	if !f.once && f.variant == "" {
		t, err := text.trial(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if t != nil {
			if err := f.allowed.satisfy(t.hooks(), cmd.ErrOrStderr()); err != nil {
				return err
			}
			return f.experiment(cmd, t)
		}
	}
	p, err := text.plan(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if err := f.allowed.satisfy(p.Hooks(), cmd.ErrOrStderr()); err != nil {
		return err
	}
	return f.single(cmd, p)
}

// single runs a plan once and reports.
func (f *runFlags) single(cmd *cobra.Command, p *plan.Plan) error {
	words := f.wordsOn(cmd.ErrOrStderr())
	switch {
	case f.variant != "":
		fmt.Fprintf(words, "running variant %s of the plan's experiment once\n", f.variant)
	case f.once:
		fmt.Fprintln(words, "running the plan once, with the variables' own values")
	}
	root, err := f.root()
	if err != nil {
		return err
	}
	job, err := newJob(p, run.Header{ID: rundir.NewID(time.Now(), p.Name), Strict: f.strict, Variant: f.variant, Labels: f.labels})
	if err != nil {
		return err
	}
	if err := errors.Join(checkOut("--out", f.out), checkOut("--report", f.report)); err != nil {
		return failed("%w", err)
	}
	dir, err := rundir.Create(root, job.header.ID, job.canonical)
	if err != nil {
		return failed("%w", err)
	}
	drain, ctx, release := interrupts(cmd.Context())
	defer release()
	limit, timedOut := limited(drain, f.timeout, f.timeout)
	result := f.execute(ctx, limit, words, job, dir, func(r *run.Run) {
		if timedOut() && r.Verdict.Completeness == run.Aborted {
			r.Conclude(run.Aborted, fmt.Sprintf("ended by --timeout %v", f.timeout))
		}
	})
	return f.finish(cmd.OutOrStdout(), words, dir, result)
}

// job is a plan to be run, and the run's header.
type job struct {
	plan      *plan.Plan
	canonical []byte
	header    run.Header
}

// newJob completes a header that has what the run alone knows.
func newJob(p *plan.Plan, header run.Header) (job, error) {
	canonical, err := p.Canonical()
	if err != nil {
		return job{}, err
	}
	header.Plan, header.PlanDigest, header.StartedAt, header.Loadgen = p.Name, plan.Digest(canonical), time.Now().UTC(), version()
	return job{plan: p, canonical: canonical, header: header}, nil
}

func (f *runFlags) root() (string, error) {
	if f.runs != "" {
		return f.runs, nil
	}
	return rundir.DefaultRoot(os.Getenv)
}

// execute carries the plan out, from this process. The end of drain ends the load early, that of ctx all at once. Conclude has the last word on the
// result, once nothing listens to drain any more and before the verdict is shown.
func (f *runFlags) execute(ctx context.Context, drain <-chan struct{}, words io.Writer, job job, dir *rundir.Dir, conclude func(*run.Run)) *run.Run {
	log := slog.New(slog.DiscardHandler)
	if f.debug {
		log = slog.New(slog.NewTextHandler(words, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	environment := machine.Read(os.DirFS("/"))
	unable := func(err error) *run.Run {
		result := run.New(job.header, environment).Fail(err.Error())
		conclude(result)
		return result
	}
	all, err := f.open(job.header.ID, words, log)
	defer all.close()
	if err != nil {
		return unable(err)
	}
	shown, err := f.serve(job.header.ID, job.plan, all.status, words, log)
	if err != nil {
		return unable(err)
	}
	var result *run.Run
	if err := f.gather(ctx, drain, all); err != nil {
		result = unstarted(ctx, drain, job.header, environment, err)
	} else {
		result = f.coordinate(ctx, shown, words, coord.Config{
			Header: job.header, Environment: environment, Plan: job.plan, Canonical: job.canonical, Workers: all.members, Store: dir, Logger: log, Drain: drain,
		})
	}
	conclude(result)
	if err := shown.close(ctx, result.Verdict); err != nil {
		log.Warn("end metrics", "err", err)
	}
	return result
}

// coordinate has the workers carry the plan out.
func (f *runFlags) coordinate(ctx context.Context, shown *metrics, words io.Writer, cfg coord.Config) *run.Run {
	started := newNodes()
	progress := f.newProgress(words, cfg.Header.ID)
	cfg.Observe = f.probes(cfg.Plan, cfg.Header)
	cfg.Workers, cfg.Nodes, cfg.AbortOnLoss = shown.watch(cfg.Workers), started, f.fleet.onLoss == "abort"
	cfg.Progress = func(u run.Update) {
		progress.Show(u)
		shown.judge(u.Verdict)
	}
	result := coord.Run(ctx, cfg)
	progress.Clear()
	for _, err := range started.ended() {
		fmt.Fprintf(words, "loadgen: %v\n", err)
	}
	unhurried := context.AfterFunc(ctx, started.Kill) // a second Ctrl-C waits for nothing
	defer unhurried()
	if err := started.Close(); err != nil {
		cfg.Logger.Warn("end built-in nodes", "err", err)
	}
	result.CoordinatorCPUSeconds = cpuSeconds()
	result.SetAsserts(table.Evaluate(cfg.Plan, result))
	return result
}

// unstarted is the result of a run whose workers are not there.
func unstarted(ctx context.Context, drain <-chan struct{}, header run.Header, env run.Environment, err error) *run.Run {
	select {
	case <-drain:
	default:
		if ctx.Err() == nil {
			return run.New(header, env).Fail(err.Error())
		}
	}
	r := run.New(header, env)
	r.Conclude(run.Aborted, "stopped by the user", err.Error())
	return r
}

// cpuSeconds is what this process has used, user + system.
func cpuSeconds() float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // only for a wrong selector
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// finish keeps the result, shows it, and turns its exit code into an error.
func (f *runFlags) finish(w, words io.Writer, dir *rundir.Dir, result *run.Run) error {
	err := dir.Finish(result)
	if err != nil {
		result.Conclude(run.Failed, err.Error())
	}
	if f.out != "" {
		if err := writeJSON(f.out, result); err != nil {
			result.Conclude(run.Failed, err.Error())
		}
	}
	if f.report != "" {
		if err := f.writePage(dir.Path(), words); err != nil {
			result.Conclude(run.Failed, err.Error())
		}
	}
	tell(words, result, dir)
	if err := report.Text(w, result, report.Options{Dir: dir.Path(), Width: columnsOf(w)}); err != nil {
		return failed("%w", err)
	}
	if result.ExitCode != run.ExitOK {
		return &exitError{code: result.ExitCode}
	}
	return nil
}

// interrupts turns the first Ctrl-C or SIGTERM into the end of drain, and the second, or drainWithin after the first, into the end
// of ctx. release ends it.
func interrupts(parent context.Context) (drain chan struct{}, ctx context.Context, release func()) {
	ctx, cancel := context.WithCancel(parent)
	drain = make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() { // ends with release
		defer close(done)
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		close(drain)
		select {
		case <-signals:
		case <-time.After(drainWithin):
		case <-ctx.Done():
		}
		cancel()
	}()
	return drain, ctx, func() {
		signal.Stop(signals)
		cancel()
		<-done
	}
}
