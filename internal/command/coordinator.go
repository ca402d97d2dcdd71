package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/fleet/runner"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/result/push"
	"github.com/loadgen/loadgen/internal/result/report"
	reportpage "github.com/loadgen/loadgen/internal/result/report/page"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/internal/target/observe"
	"github.com/loadgen/loadgen/pkg/plan"
)

// runFlags are the flags of coordinator run.
type runFlags struct {
	planFlags
	runs   string
	out    string
	report string
	loops  loopFlags
	strict bool
	full   bool
	debug  bool
	once   bool
	budget time.Duration
	resume string
	nth    int // --repetition
	page   pageFlags
	push   pushFlags
	fleet  fleetFlags

	progress   string
	timeout    time.Duration
	labelTexts []string
	labels     map[string]string
	receiver   *push.Receiver // of --remote-write; nil for none

	restart runner.Restart                                                  // of --variant
	show    func(w io.Writer, x *run.Experiment, opts report.Options) error // of an experiment; report.Experiment
	begun   func(id string)                                                 // called with the run's name before its load; may be nil

	allow   []string // --allow-exec
	allowed hooks
}

// runsOf returns the flags of a command that finds drivers in known.
func runsOf(known *drivers.Set) *runFlags {
	return &runFlags{planFlags: planFlags{known: known}, loops: loopFlags{known: known}}
}

func newRun(known *drivers.Set) *cobra.Command {
	flags := runsOf(known)
	c := &cobra.Command{
		Use:   "run PLAN.hcl",
		Short: "Run a plan and report",
		Long: `Run a plan and report the results. The plan - is standard input. loadgen run and loadgen coordinator run are the same.

The load comes from a worker in this process or, with --workers, from that many workers that join (loadgen worker --join). Targets
that name no endpoints get built-in cache nodes, which end with the run. All measurements are kept in a run directory (loadgen runs list).

A plan with an experiment is run repeatedly: each variant as often as the experiment says, each time with fresh built-in nodes and its
own run directory. At the end the variants are compared. --variant NAME runs one variant once; --once runs the plan once with the
variables' own values.

Each repetition of an experiment draws keys, values, the mix of ops and Poisson arrivals anew; all variants of a repetition draw the same.
A run outside an experiment draws as repetition 1, or as --repetition says: number runs that you repeat by hand.

Variables take their values from -var, then --var-file, then LOADGEN_VAR_NAME in the environment, then their defaults. Passwords that
the plan names with secret("NAME") are read from LOADGEN_SECRET_NAME.

After Ctrl-C no op is started, outstanding ones are awaited while answers arrive, and the run is reported. A second Ctrl-C ends at once and reports what
there is. --timeout acts like a first Ctrl-C at a set time. SIGTERM does too, and so does SIGHUP, unless it was ignored at the start
(nohup). If nobody reads the progress any more, the run goes on without it.`,
		Example: `  loadgen run plans/hydra.hcl
  loadgen run plans/hydra.hcl -var endpoints=127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003,127.0.0.1:7004
  loadgen run plans/hydra.hcl --var w=1 --out run.json
  loadgen run plans/open.hcl --timeout 1m --progress json 2>progress.jsonl
  loadgen run plans/hydra.hcl --label branch=main --label ticket=42
  loadgen run plans/open.hcl --repetition 2
  loadgen run - --out - <mine.hcl | jq .verdict
  loadgen run plans/nwr.hcl
  loadgen run plans/nwr.hcl --variant w=2,r=1`,
		Args: one("plan"),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	flags.addTo(c.Flags())
	return c
}

// addTo adds the flags of a run.
func (f *runFlags) addTo(set *pflag.FlagSet) {
	f.planFlags.add(set)
	set.StringVar(&f.runs, "runs", "", "keep runs in `DIR` (default: in the user's state directory)")
	set.StringVar(&f.out, "out", "", "also write the result as JSON to `FILE`, overwriting it; - is standard output, and the text goes to standard error")
	set.StringVar(&f.report, "report", "", "also write an HTML page on the run or experiment to `FILE`, overwriting it; - is standard output (other formats: loadgen report)")
	f.loops.add(set)
	addFull(set, &f.full)
	set.BoolVar(&f.strict, "strict", false, "treat suspect figures as invalid (exit code 4)")
	f.page.addLive(set)
	f.push.add(set)
	f.fleet.add(set)
	set.StringVar(&f.worse, "worse", "", "gate an experiment of a baseline and one variant: fail (1) if it is worse, pass (0) if not by this `SHARE`, such as 3%, else 7")
	set.DurationVar(&f.budget, "budget", 0, "let a gate take at most `DURATION` (default: as many pairs of runs as the plan says)")
	set.BoolVar(&f.once, "once", false, "run a plan with an experiment once, with the variables' own values")
	set.IntVar(&f.nth, "repetition", 0, "draw keys, values and arrivals as repetition `N` of the plan, from 1 (default: 1)")
	set.StringVar(&f.resume, "resume", "", "resume an `EXPERIMENT` that was cut off: keep the finished runs, run the rest")
	set.StringVar(&f.progress, "progress", "auto", "show progress as `FORM`: auto (redrawn in place on a terminal), lines, json (docs/result.md) or none")
	set.DurationVar(&f.timeout, "timeout", 0, "end after `DURATION`, as by Ctrl-C (default: when the plan ends)")
	set.StringArrayVar(&f.labelTexts, "label", nil, "label the run with `NAME=VALUE`; repeatable")
	set.StringArrayVar(&f.allow, "allow-exec", nil, "let the plan run a command as hook.NAME: `NAME=COMMAND`, then its arguments; repeatable; no shell")
	set.BoolVar(&f.debug, "debug", false, "log debug messages")
}

// run runs the plan at path.
func (f *runFlags) run(cmd *cobra.Command, path string) error {
	if f.once && f.variant != "" {
		return errors.New("--once runs the variables' own values, --variant those of a variant: use one of them")
	}
	if f.resume != "" && (f.once || f.variant != "") {
		return errors.New("--resume continues an experiment, --once and --variant run its plan once: use one of them")
	}
	if cmd.Flags().Changed("repetition") && (f.nth < 1 || f.nth > math.MaxInt32) {
		return fmt.Errorf("--repetition %d: write a number from 1 to %d", f.nth, math.MaxInt32)
	}
	if f.timeout < 0 {
		return fmt.Errorf("--timeout %v: write a positive duration, such as 10m", f.timeout)
	}
	err := cmp.Or(f.page.check(), errors.Join(f.checkProgress(), f.checkOutputs()), f.loops.check(), f.fleet.check(&f.loops))
	if err != nil {
		return err
	}
	if f.receiver, err = f.push.receiver(); err != nil {
		return err
	}
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
			if f.page.linger > 0 {
				return errors.New("--linger keeps the page of a single run up, and an experiment has many, each with its own: leave it out, or add --variant NAME or --once")
			}
			if f.nth > 0 {
				return errors.New("--repetition numbers a single run, and an experiment numbers its own: leave it out, or add --variant NAME or --once")
			}
			if err := errors.Join(f.fleet.checkLoss(t.Plans...), f.fleet.checkSecrets(t.Plans...), f.allowed.satisfy(t.Hooks(), cmd.ErrOrStderr())); err != nil {
				return err
			}
			if t.Budget = f.budget; t.Gate == nil && f.budget != 0 {
				return errors.New("--budget bounds a gate, and the experiment has none: write --worse 3%, or gate { worse = \"3%\" } in it")
			}
			return f.experiment(cmd, t)
		}
	}
	if f.worse != "" || f.budget != 0 {
		return errors.New("--worse and --budget are for an experiment of a baseline and one variant: leave --once and --variant out")
	}
	p, err := text.plan(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if f.resume != "" {
		return errors.New("--resume continues an experiment, and the plan has none")
	}
	hooks := p.Hooks()
	if e, _ := text.file.Experiment(); f.variant != "" && e.Restart != "" {
		if _, ok := f.allowed[e.Restart]; ok {
			f.restart = runner.RestartOf(e, f.variant)
			hooks = append(hooks, e.Restart)
		} else {
			fmt.Fprintf(cmd.ErrOrStderr(), "the targets are not restarted: that takes --allow-exec '%s=COMMAND ARGUMENT…'\n", e.Restart)
		}
	}
	if err := errors.Join(f.fleet.checkLoss(p), f.fleet.checkSecrets(p), f.allowed.satisfy(hooks, cmd.ErrOrStderr())); err != nil {
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
	result, err := f.finish(cmd, p)
	f.page.stay(cmd.Context(), words)
	if err != nil {
		return err
	}
	return exitWith(result.ExitCode)
}

// finish runs a plan once to its end, and shows the result.
func (f *runFlags) finish(cmd *cobra.Command, p *plan.Plan) (*run.Run, error) {
	words := f.wordsOn(cmd.ErrOrStderr())
	result, dir, err := f.end(cmd, p, words)
	if err != nil {
		return nil, err
	}
	return result, f.text(f.textOn(cmd, words), result, dir)
}

// text shows the result of a run.
func (f *runFlags) text(w io.Writer, result *run.Run, dir string) error {
	return orFailed(report.Text(w, result, optionsFor(w, dir, f.full)))
}

// end runs a plan once to its end, and writes the result where the flags say. It returns the run's directory, too.
func (f *runFlags) end(cmd *cobra.Command, p *plan.Plan, words io.Writer) (*run.Run, string, error) {
	cfg, err := f.config(words)
	if err != nil {
		return nil, "", err
	}
	drain, ctx, release := interrupts(cmd.Context())
	defer release()
	cfg.Drain = drain
	result, dir, err := runner.Run(ctx, cfg, p, f.variant)
	if err != nil {
		return nil, "", failed("%w", err)
	}
	if f.out != "" {
		if err := writeTo(cmd, f.out, safefile.JSON(result)); err != nil {
			result.NotKept(err)
		}
	}
	if f.report != "" {
		if err := f.writePage(cmd, dir, words); err != nil {
			result.NotKept(err)
		}
	}
	tell(words, result, dir)
	return result, dir, nil
}

// experiment runs every variant of a plan's experiment as often as it says, and reports the comparison.
func (f *runFlags) experiment(cmd *cobra.Command, t *runner.Trial) error {
	if t.Fork && f.fleet.workers > 0 {
		return errors.New("the plan's experiment says fork = true, which is for a worker that is started here: leave --workers out, or fork")
	}
	f.fleet.process = f.fleet.process || t.Fork
	words := f.wordsOn(cmd.ErrOrStderr())
	cfg, err := f.config(words)
	if err != nil {
		return err
	}
	var src timeline.Source
	t.Ended = func(r *run.Run, dir string) { tell(words, r, dir) }
	t.Latencies = func(x *run.Experiment) expr.Latencies {
		src = timeline.Source{Study: timeline.NewStudy(x)}
		if f.report != "" || len(t.Charts) > 0 {
			src = loadStudy(f.known, cfg.Root, x, words)
		}
		return src.Study.Latency
	}
	drain, ctx, release := interrupts(cmd.Context())
	defer release()
	cfg.Drain = drain
	x, dir, err := runner.Experiment(ctx, cfg, t)
	if _, ok := errors.AsType[*experiment.ChangedError](err); ok {
		return err
	}
	if err != nil {
		return failed("%w", err)
	}
	if f.out != "" {
		err = writeTo(cmd, f.out, safefile.JSON(x))
	}
	text := f.textOn(cmd, words)
	show := report.Experiment
	if f.show != nil {
		show = f.show
	}
	err = errors.Join(err, show(text, x, optionsFor(text, dir, f.full)))
	if f.report != "" {
		err = errors.Join(err, writeTo(cmd, f.report, func(w io.Writer) error { return reportpage.Write(w, []timeline.Source{src}) }))
	}
	if err != nil {
		return failed("%w", err)
	}
	return exitWith(x.ExitCode)
}

// exitWith returns an error that ends this process with an exit code and no further message.
func exitWith(code int) error {
	if code == exit.OK {
		return nil
	}
	return &exitError{code: code}
}

// config says how to run plans, and checks in advance that the requested files can be written.
func (f *runFlags) config(words io.Writer) (runner.Config, error) {
	cfg := runner.Config{
		Samples: keepSamples,
		Version: version(), Strict: f.strict, Labels: f.labels, Resume: f.resume, Repetition: f.nth, Restart: f.restart, Timeout: f.timeout, Page: f.page.door(), Push: f.receiver, OnWorkerLoss: f.fleet.onLoss,
		Allowed: f.allowed, Means: f.means(), Protocol: f.known.Protocol, Words: words,
		Environment: func() machine.Environment { return machine.Read(os.DirFS("/")) }, Halves: f.loops.halves,
		Progress: func(id string) runner.Progress {
			if f.begun != nil {
				f.begun(id)
			}
			return f.newProgress(words, id)
		},
		Logger: slog.New(slog.DiscardHandler),
	}
	refused := slog.New(slog.NewTextHandler(words, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if f.debug {
		cfg.Logger = slog.New(slog.NewTextHandler(words, &slog.HandlerOptions{Level: slog.LevelDebug}))
		refused = cfg.Logger
	}
	var err error
	if cfg.Origins, err = f.known.Origins(); err != nil {
		return cfg, failed("%w", err)
	}
	if cfg.Root, err = f.root(); err != nil {
		return cfg, err
	}
	cfg.Source = func(id string) (timeline.Source, error) { return loadSource(f.known, cfg.Root, id, words) }
	if f.page.linger > 0 {
		cfg.Stay = func(end func(context.Context)) { f.page.end = end }
	}
	if cfg.Fleet, err = f.fleet.config(&f.loops, words, cfg.Logger, refused); err != nil {
		return cfg, err
	}
	if err := errors.Join(checkFile("--out", f.out), checkFile("--report", f.report)); err != nil {
		return cfg, failed("%w", err)
	}
	return cfg, nil
}

// means returns what observations need.
func (f *runFlags) means() observe.Means {
	return observe.Means{
		Drivers: f.known.All, Secrets: environmentSecrets,
		Dial: func(ctx context.Context, t *plan.Target, addr string) (net.Conn, error) {
			return engine.Dial(ctx, t, addr, f.loops.open(), f.loops.secrets.allow(f.loops.foreign))
		},
	}
}

func (f *runFlags) root() (string, error) {
	if f.runs != "" {
		return f.runs, nil
	}
	return rundir.DefaultRoot(os.Getenv)
}
