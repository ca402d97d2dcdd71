package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/loadgen/loadgen/internal/coord"
	"github.com/loadgen/loadgen/internal/drivers"
	"github.com/loadgen/loadgen/internal/engine"
	"github.com/loadgen/loadgen/internal/rpc"
)

// childWithin is how long a worker that this process has started may take to end after the run.
const childWithin = 3 * time.Second

// A lease is ten heartbeats long: shorter ones are lost on a busy machine, and longer ones leave load behind that nobody watches.
const (
	minLease = 500 * time.Millisecond
	maxLease = 5 * time.Minute
)

// fleetFlags say where the load comes from.
type fleetFlags struct {
	listen  string
	workers int
	wait    time.Duration
	process bool
	lease   time.Duration
	onLoss  string
}

func (f *fleetFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, "listen", "127.0.0.1:7464", "address that workers come to; loopback, port 0 for any free one")
	flags.IntVar(&f.workers, "workers", 0, "wait for `N` workers (loadgen worker --join) instead of loading from this process")
	flags.DurationVar(&f.wait, "wait", time.Minute, "how long to wait for them")
	flags.BoolVar(&f.process, "worker-process", false, "load from one worker in a process of its own, so that nothing here disturbs it")
	flags.DurationVar(&f.lease, "lease", rpc.DefaultTiming().Lease, "how long a worker may load, and is not given up, without a word from the other end")
	flags.StringVar(&f.onLoss, "on-worker-loss", "continue", "when a worker is lost, \"continue\" with the others or \"abort\"")
}

// check finds contradictions. Loops are those of a worker in this process or started by it.
func (f *fleetFlags) check(loops int) error {
	switch {
	case f.workers < 0:
		return fmt.Errorf("--workers %d: write a number above 0", f.workers)
	case f.workers > 0 && f.process:
		return errors.New("--workers waits for workers that were started elsewhere, --worker-process starts one: use one of them")
	case f.workers > 0 && loops > 0:
		return errors.New("--loops is for the worker in this process: give it to each loadgen worker")
	case f.wait <= 0:
		return fmt.Errorf("--wait %v: write a duration above 0", f.wait)
	case f.lease < minLease || f.lease > maxLease:
		return fmt.Errorf("--lease %v: write a duration from %v to %v", f.lease, minLease, maxLease)
	case f.onLoss != "continue" && f.onLoss != "abort":
		return fmt.Errorf("--on-worker-loss %q: write continue or abort", f.onLoss)
	}
	return nil
}

// fleet is the workers of a run and what has to end with it.
type fleet struct {
	members []coord.Member
	release []func()
}

// close ends what was started, the last first.
func (f *fleet) close() {
	for i := len(f.release) - 1; i >= 0; i-- {
		f.release[i]()
	}
}

// gather returns the workers of a run once they are there. When ctx or drain ends before, or they do not come, the error says so.
func (f *runFlags) gather(ctx context.Context, drain <-chan struct{}, id string, words io.Writer, log *slog.Logger) (*fleet, error) {
	all := &fleet{}
	if f.fleet.workers == 0 && !f.fleet.process {
		worker := engine.New(engine.Config{Drivers: drivers.All(), Secrets: environmentSecrets, Loops: f.loops, Logger: log})
		all.release = append(all.release, worker.Close)
		all.members = []coord.Member{{Name: "local", Version: version(), Worker: worker}}
		return all, nil
	}
	cfg := rpc.Config{Address: f.fleet.listen, Run: id, Version: version(), Timing: rpc.TimingOf(f.fleet.lease), Logger: log}
	if f.fleet.process {
		cfg.Address = "127.0.0.1:0"
	}
	var server *rpc.Server
	if !f.fleet.process {
		cfg.Waiting = func(come []string, of int) {
			if len(come) == 0 {
				fmt.Fprintf(words, "waiting for %d workers: loadgen worker --join %s\n", of, server.Addr())
			} else {
				fmt.Fprintf(words, "%d of %d workers: %s\n", len(come), of, strings.Join(come, ", "))
			}
		}
	}
	server, err := rpc.Listen(cfg)
	if err != nil {
		return all, err
	}
	all.release = append(all.release, server.Close)
	ctx, cancel := context.WithTimeout(ctx, f.fleet.wait)
	defer cancel()
	ended := make(<-chan struct{})
	if f.fleet.process {
		var end func()
		if ended, end, err = startWorker(server.Addr(), f.loops); err != nil {
			return all, fmt.Errorf("start a worker: %w", err)
		}
		all.release = append([]func(){end}, all.release...) // after the server has told it
	}
	go func() { // ends with ctx
		select {
		case <-drain:
		case <-ended:
		case <-ctx.Done():
		}
		cancel()
	}()
	all.members, err = server.Wait(ctx, max(f.fleet.workers, 1))
	return all, err
}

// startWorker starts a worker as a child. It ends with its standard input, so also when this process is killed; ended is closed when it
// has, and end sees to it.
func startWorker(addr string, loops int) (ended <-chan struct{}, end func(), err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(exe, "worker", "--join", addr, "--name", "local", "--once", "--parent-pipe", "--loops", strconv.Itoa(loops))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the coordinator
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() { // ends with the child, which end sees to
		defer close(done)
		_ = cmd.Wait() // its part in the run says how it went
	}()
	return done, func() {
		_ = stdin.Close() // it may have ended
		late := time.AfterFunc(childWithin, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		<-done
	}, nil
}

func newWorker() *cobra.Command {
	var join, name string
	var loops int
	var once, parentPipe, debug bool
	c := &cobra.Command{
		Use:   "worker",
		Short: "Load for a coordinator",
		Long: `Load for a coordinator: come to it, take part in its run, and come again for the next. It may be started before the coordinator,
and tries until that is there. It opens no port.

Load stops when the coordinator has not been heard of for 10 s (its --lease). Ctrl-C stops at once; the run then goes on without this worker.`,
		Example: `  loadgen worker --join 127.0.0.1:7464 --name w1
  loadgen worker --join 127.0.0.1:7464 --name w2 --once`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if join == "" {
				return errors.New("--join: write the coordinator's address, such as 127.0.0.1:7464")
			}
			if loops < 0 {
				return fmt.Errorf("--loops %d: write a number above 0", loops)
			}
			level := slog.LevelInfo
			if debug {
				level = slog.LevelDebug
			} else if parentPipe {
				level = slog.LevelError // the parent reports
			}
			host, err := os.Hostname()
			if err != nil {
				return failed("name of this machine: %w", err)
			}
			if name == "" {
				name = host
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			cfg := rpc.JoinConfig{
				Address: join, Name: name, Version: version(), Host: host, Once: once, Logger: log,
				New: func() rpc.Local {
					return engine.New(engine.Config{Drivers: drivers.All(), Secrets: environmentSecrets, Loops: loops, Logger: log})
				},
			}
			return work(cmd.Context(), cfg, parentPipe)
		},
	}
	f := c.Flags()
	f.StringVar(&join, "join", "", "`ADDRESS` of the coordinator (its --listen)")
	f.StringVar(&name, "name", "", "what to be called; no two workers of a run share a name (default: this machine's name)")
	f.IntVar(&loops, "loops", 0, "use `N` event loops, one thread each (default: one less than there are processors)")
	f.BoolVar(&once, "once", false, "end after one run")
	f.BoolVar(&debug, "debug", false, "log what happens beside the load")
	f.BoolVar(&parentPipe, "parent-pipe", false, "end with standard input")
	if err := f.MarkHidden("parent-pipe"); err != nil {
		panic(err) // no such flag
	}
	return c
}

// work takes part in runs until interrupted, or until the parent's pipe ends.
func work(parent context.Context, cfg rpc.JoinConfig, parentPipe bool) error {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if parentPipe {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() { // ends with the process: a read of standard input cannot be called off
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	if err := rpc.Join(ctx, cfg); err != nil {
		return failed("worker %s: %w", cfg.Name, err)
	}
	return nil
}
