package command

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	"github.com/loadgen/loadgen/internal/fleet/runner"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/pkg/plan"
)

// A lease is ten heartbeats long. A shorter one may run out on a busy machine, and a longer one leaves load that nobody watches.
const (
	minLease = 500 * time.Millisecond
	maxLease = 5 * time.Minute
)

// fleetFlags say which workers make the load.
type fleetFlags struct {
	listen  string
	workers int
	wait    time.Duration
	process bool
	lease   time.Duration
	onLoss  string
	tls     identity.Files
}

func (f *fleetFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, "listen", identity.DefaultName, "let workers join at `PLACE`: socket:NAME in your state directory, or HOST:PORT on this machine, such as 0.0.0.0:7464 for all addresses")
	flags.IntVar(&f.workers, "workers", 0, "wait for `N` workers (loadgen worker) instead of loading from this process")
	flags.DurationVar(&f.wait, "wait", time.Minute, "fail if the workers have not joined within `DURATION`")
	flags.BoolVar(&f.process, "worker-process", false, "run one worker in its own process, so that nothing here disturbs it")
	flags.DurationVar(&f.lease, "lease", rpc.DefaultTiming().Lease, "after `DURATION` of silence, a worker stops its load and the coordinator counts it as lost")
	addFiles(flags, &f.tls)
	flags.StringVar(&f.onLoss, "on-worker-loss", "", "`WHAT` to do when a worker is lost: continue without it, abort, or replace it before the next phase by one that joins within --wait (default: what the plan says, or continue)")
}

// check finds contradictions. loops are the flags of a worker in this process or started by it.
func (f *fleetFlags) check(loops *loopFlags) error {
	switch {
	case f.workers < 0:
		return fmt.Errorf("--workers %d: write a number above 0", f.workers)
	case f.workers > 0 && f.process:
		return errors.New("--workers waits for workers started elsewhere, --worker-process starts one: use one of them")
	case f.workers > 0 && loops.given():
		return errors.New("--loops, --spin, --pin, --log-root, --files and --secret are for the worker in this process: give them to each loadgen worker")
	case f.wait <= 0:
		return fmt.Errorf("--wait %v: write a duration above 0", f.wait)
	case f.lease < minLease || f.lease > maxLease:
		return fmt.Errorf("--lease %v: write a duration from %v to %v", f.lease, minLease, maxLease)
	case !slices.Contains([]string{"", plan.Continue, plan.Abort, plan.Replace}, f.onLoss):
		return fmt.Errorf("--on-worker-loss %q: write continue, abort or replace", f.onLoss)
	case f.onLoss == plan.Replace && f.workers == 0:
		return errors.New("--on-worker-loss replace is for workers that join: add --workers")
	case f.workers == 0 && !f.tls.IsZero():
		return errors.New("--tls-ca, --tls-cert and --tls-key are for workers that join over TCP: add --workers and --listen HOST:PORT")
	case f.workers == 0:
		return nil
	}
	if _, err := f.listenAt(); err != nil {
		return fmt.Errorf("--listen %w", err)
	}
	return nil
}

// config returns the configuration of the runs' workers.
func (f *fleetFlags) config(loops *loopFlags, words io.Writer, log, refused *slog.Logger) (runner.FleetConfig, error) {
	cfg := runner.FleetConfig{
		Version: version(), CPU: machine.ProcessorTime, New: func(keep []int) rpc.Local { return newEngine(loops, keep, log) }, Workers: f.workers, Listen: f.listen, Refused: refused,
		Wait: f.wait, TTL: defaultTTL, Lease: f.lease, Words: words, Logger: log,
	}
	if f.process {
		cfg.Child = append([]string{"worker", "--once", "--parent-pipe", "--lease-max", maxLease.String()}, loops.args()...)
	}
	if f.workers == 0 && !f.process {
		return cfg, nil
	}
	dir, err := fleetDir()
	cfg.Means = identity.Means{Dir: dir, TLS: f.tls}
	return cfg, err
}

// checkLoss refuses to replace workers if a later phase needs their files.
func (f *fleetFlags) checkLoss(plans ...*plan.Plan) error {
	for _, p := range plans {
		if phase, earlier, what := p.Irreplaceable(); phase != "" && f.onLoss == plan.Replace {
			return fmt.Errorf("--on-worker-loss replace: phase %q needs the %s that phase %q leaves on a worker's machine: write continue or abort", phase, what, earlier)
		}
	}
	return nil
}

// checkSecrets checks that a worker started here has the plans' secrets. Workers that join have their own.
func (f *fleetFlags) checkSecrets(plans ...*plan.Plan) error {
	for _, p := range plans {
		for _, name := range engine.Secrets(p) {
			if _, err := environmentSecrets(name); err != nil && f.workers == 0 {
				return fmt.Errorf("%w, and a target of the plan names it", err)
			}
		}
	}
	return nil
}
