package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/target/drivers"
)

// workerFlags are the flags of worker.
type workerFlags struct {
	join       joinFlags
	name       string
	loops      loopFlags
	once       bool
	page       pageFlags
	debug      bool
	parentPipe bool
	keep       string // CPUs
	leaseMax   time.Duration
	policy     string
	print      bool
}

func newWorker(known *drivers.Set) *cobra.Command {
	flags := workerFlags{loops: loopFlags{known: known}}
	c := &cobra.Command{
		Use:   "worker",
		Short: "Send load for a coordinator",
		Long: `Join a coordinator, take part in its run, then wait for the next one. The worker may start before the coordinator, and keeps trying
until it is there. It opens no port unless --http asks for one.

The two meet in the user's state directory, through a socket that nobody else can use. A coordinator on another machine prints the
command to type here, with --join HOST:PORT and a --token. Since other users of this machine can see command lines, the token may also
come from a --token-file, or from LOADGEN_TOKEN in the environment. The worker gets a certificate for its --name and one day, renews
it, and needs no token when it restarts. Over TCP on the loopback without a token, a key in the state directory proves that both belong
to the same user.

With --policy the owner of this machine limits what a plan may ask for. A plan that asks for more is refused before any load, and the limit is
named. A load that would exceed the policy's rates waits, and its figures are then invalid.

Load stops when the coordinator has been silent for 10 s (its --lease). Ctrl-C, SIGTERM and
SIGHUP stop at once, SIGHUP unless it was ignored at the start (nohup); the run then continues without this worker.`,
		Example: `  loadgen worker --name w1
  loadgen worker --name w2 --once
  loadgen worker --join 10.0.0.7:7464 --token-file token --policy /etc/loadgen/policy.hcl
  loadgen worker --join 127.0.0.1:7464 --name w3 --http 127.0.0.1:0`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	f := c.Flags()
	flags.join.add(f)
	f.StringVar(&flags.name, "name", "", "join as `NAME`, unique within a run (default: this machine's name)")
	flags.loops.add(f)
	f.DurationVar(&flags.leaseMax, "lease-max", rpc.DefaultMaxLease, "stop the load after `DURATION` of silence from the coordinator, even if its --lease is longer")
	f.StringVar(&flags.policy, "policy", "", "do no more than `FILE` allows, whatever a plan asks for: targets, rate, sessions, directories (docs/security.md)")
	f.BoolVar(&flags.print, "print-policy", false, "print what --policy allows, and exit")
	f.BoolVar(&flags.once, "once", false, "exit after one run")
	flags.page.add(f, "of this worker for Prometheus")
	f.BoolVar(&flags.debug, "debug", false, "log debug messages")
	f.BoolVar(&flags.parentPipe, "parent-pipe", false, "exit when standard input ends")
	f.StringVar(&flags.keep, "keep", "", "keep event loops to these `CPUS`")
	for _, own := range []string{"parent-pipe", "keep"} { // for a worker that a coordinator starts
		if err := f.MarkHidden(own); err != nil {
			panic(err) // no such flag
		}
	}
	return c
}

// run takes part in runs.
func (f *workerFlags) run(cmd *cobra.Command) error {
	if f.leaseMax < minLease || f.leaseMax > maxLease {
		return fmt.Errorf("--lease-max %v: write a duration from %v to %v", f.leaseMax, minLease, maxLease)
	}
	if err := f.readPolicy(cmd.ErrOrStderr(), cmd.OutOrStdout()); err != nil || f.print {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return failed("name of this machine: %w", err)
	}
	if f.name == "" {
		f.name = host
	}
	if err := identity.CheckName(f.name); err != nil {
		return fmt.Errorf("--name %q: %w", f.name, err)
	}
	place, err := f.join.joinAt(f.name)
	if err != nil {
		return err
	}
	if err := f.page.check(); err != nil {
		return err
	}
	f.loops.foreign = !f.parentPipe // a parent and its child belong to the same user, on one machine
	if err := f.loops.check(); err != nil {
		return err
	}
	keep, err := machine.ParseList(f.keep)
	if err != nil {
		return fmt.Errorf("--keep: %w", err)
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: f.level()}))
	origins, err := f.loops.known.Origins()
	if err != nil {
		return failed("%w", err)
	}
	cfg := rpc.JoinConfig{
		Place: place, Name: f.name, Version: version(), Drivers: origins, Host: host, Once: f.once, Logger: log, MaxLease: f.leaseMax,
		New: func() rpc.Local {
			return newEngine(&f.loops, keep, log)
		},
		CPU: machine.ProcessorTime, Suspended: machine.Suspended,
	}
	if f.page.means.Address == "" {
		return work(cmd.Context(), cfg, nil, f.parentPipe)
	}
	door, err := f.page.open()
	if err != nil {
		return failed("worker %s: --http: %w", f.name, err)
	}
	collector := prom.NewPart()
	shown := prom.Serve(door, collector, log, nil)
	fmt.Fprint(cmd.ErrOrStderr(), door.Words())
	create := cfg.New
	cfg.Metrics = door.Address()
	cfg.New = func() rpc.Local { return showOn(f.loops.known, collector, create()) }
	return work(cmd.Context(), cfg, shown, f.parentPipe)
}

// level is the log level.
func (f *workerFlags) level() slog.Level {
	switch {
	case f.debug:
		return slog.LevelDebug
	case f.parentPipe:
		return slog.LevelError // the parent reports
	}
	return slog.LevelInfo
}

// work takes part in runs until interrupted, or until the parent's pipe ends. It also ends the page that shows them, which may be nil.
func work(parent context.Context, cfg rpc.JoinConfig, shown *prom.Page, parentPipe bool) error {
	ctx, stop := signal.NotifyContext(parent, endings()...)
	defer stop()
	defer outliveReaders()()
	if parentPipe {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() { // ends with the process: a read of standard input cannot be cancelled
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	err := rpc.Join(ctx, cfg)
	if shown != nil {
		again, cancel := signal.NotifyContext(parent, endings()...) // an interrupted worker is scraped, too; the next interrupt ends the wait for that
		defer cancel()
		if err := shown.Close(again); err != nil {
			cfg.Logger.Warn("end metrics", "err", err)
		}
	}
	if err != nil {
		return failed("worker %s: %w", cfg.Name, err)
	}
	return nil
}
