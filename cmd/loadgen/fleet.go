package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/loadgen/loadgen/internal/identity"
	"github.com/loadgen/loadgen/internal/prom"
	"github.com/loadgen/loadgen/internal/rpc"
	"github.com/loadgen/loadgen/internal/worker"
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
	tls     identity.Files
}

func (f *fleetFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, "listen", identity.DefaultName, "`PLACE` that workers come to: socket:NAME in your state directory, or HOST:PORT of this machine, such as 0.0.0.0:7464 for all its addresses")
	flags.IntVar(&f.workers, "workers", 0, "wait for `N` workers (loadgen worker) instead of loading from this process")
	flags.DurationVar(&f.wait, "wait", time.Minute, "fail when the workers have not come within a `DURATION`")
	flags.BoolVar(&f.process, "worker-process", false, "load from one worker in a process of its own, so that nothing here disturbs it")
	flags.DurationVar(&f.lease, "lease", rpc.DefaultTiming().Lease, "after a `DURATION` without a word from the other, a worker stops loading and the coordinator gives it up")
	addFiles(flags, &f.tls)
	flags.StringVar(&f.onLoss, "on-worker-loss", "continue", "`WHAT` to do when a worker is lost: continue with the others, or abort")
}

// check finds contradictions. Loops are those of a worker in this process or started by it.
func (f *fleetFlags) check(loops *loopFlags) error {
	switch {
	case f.workers < 0:
		return fmt.Errorf("--workers %d: write a number above 0", f.workers)
	case f.workers > 0 && f.process:
		return errors.New("--workers waits for workers that were started elsewhere, --worker-process starts one: use one of them")
	case f.workers > 0 && loops.given():
		return errors.New("--loops, --spin and --pin are for the worker in this process: give them to each loadgen worker")
	case f.wait <= 0:
		return fmt.Errorf("--wait %v: write a duration above 0", f.wait)
	case f.lease < minLease || f.lease > maxLease:
		return fmt.Errorf("--lease %v: write a duration from %v to %v", f.lease, minLease, maxLease)
	case f.onLoss != "continue" && f.onLoss != "abort":
		return fmt.Errorf("--on-worker-loss %q: write continue or abort", f.onLoss)
	case f.workers == 0 && !f.tls.IsZero():
		return errors.New("--tls-ca, --tls-cert and --tls-key are for workers that come by TCP: give --workers and --listen HOST:PORT, too")
	case f.workers == 0:
		return nil
	}
	if _, err := f.listenAt(); err != nil {
		return fmt.Errorf("--listen %w", err)
	}
	return nil
}

// fleet is the workers of a run and what has to end with it.
type fleet struct {
	server  *rpc.Server // where they come to; nil: the only one is in this process
	members []worker.Member
	release []func()
}

// close ends what was started, the last first.
func (f *fleet) close() {
	for i := len(f.release) - 1; i >= 0; i-- {
		f.release[i]()
	}
}

// status says how the workers are now, those that have come so far. It may be called from any goroutine.
func (f *fleet) status() []prom.Worker {
	if f.server == nil {
		return []prom.Worker{{Name: inProcess, Up: true, CPUSeconds: cpuSeconds()}}
	}
	var list []prom.Worker
	for _, s := range f.server.Status() {
		list = append(list, prom.Worker{
			Name: s.Worker, Metrics: s.Metrics, Up: s.Up, LastSeen: s.Silent.Seconds(),
			ClockOffset: s.Offset.Seconds(), ClockUncertainty: s.Uncertainty.Seconds(), CPUSeconds: s.CPU.Seconds(),
		})
	}
	return list
}

// inProcess is the name of a worker that this process is, or starts.
const inProcess = "local"

// open makes ready for the workers of a run. What it returns is to be closed, also when there is an error.
func (f *runFlags) open(id string, words io.Writer, log *slog.Logger) (*fleet, error) {
	all := &fleet{}
	if f.fleet.workers == 0 && !f.fleet.process {
		local := newEngine(&f.loops, log)
		all.release = append(all.release, local.Close)
		all.members = []worker.Member{{Name: inProcess, Version: version(), Worker: local}}
		return all, nil
	}
	cfg := rpc.Config{Run: id, Version: version(), Timing: rpc.TimingOf(f.fleet.lease), Logger: log}
	if f.fleet.process {
		dir, err := fleetDir()
		if err != nil {
			return all, err
		}
		if cfg.Place, err = identity.At(dir, fmt.Sprintf("socket:child-%d", os.Getpid())); err != nil {
			return all, err
		}
	} else if err := f.await(all, &cfg, words); err != nil {
		return all, err
	}
	server, err := rpc.Listen(cfg)
	if err != nil {
		return all, err
	}
	all.server = server
	all.release = append(all.release, server.Close)
	if f.fleet.workers > 0 {
		f.fleet.listen = again(f.fleet.listen, server.Addr()) // where they will look for the next run of an experiment
	}
	return all, nil
}

// await makes ready for workers that are started elsewhere, and says how each is to be started.
func (f *runFlags) await(all *fleet, cfg *rpc.Config, words io.Writer) error {
	var err error
	if cfg.Place, err = f.fleet.listenAt(); err != nil {
		return fmt.Errorf("--listen %w", err)
	}
	token := ""
	if cfg.Place.Beyond {
		if !f.debug { // who is refused is shown: it may be one of the workers
			cfg.Logger = slog.New(slog.NewTextHandler(words, &slog.HandlerOptions{Level: slog.LevelWarn}))
		}
		if token, err = f.invite(all, cfg.Place, cfg.Logger); err != nil {
			return err
		}
	}
	cfg.Waiting = func(come []string, of int) {
		if len(come) == 0 {
			fmt.Fprintf(words, "0 of %d workers; start each with loadgen worker%s%s\n", of, joinFlag(all.server.Addr()), token)
		} else {
			fmt.Fprintf(words, "%d of %d workers: %s\n", len(come), of, strings.Join(come, ", "))
		}
	}
	return nil
}

// invite makes a token for the workers of a run, which ends with the run, and returns it as a worker is to be given it.
func (f *runFlags) invite(all *fleet, place identity.Place, log *slog.Logger) (string, error) {
	if !place.Tokens {
		return " --tls-ca FILE --tls-cert FILE --tls-key FILE", nil
	}
	tokens, err := ownTokens()
	if err != nil {
		return "", err
	}
	token, err := tokens.Create(max(defaultTTL, f.fleet.wait), f.fleet.workers)
	if err != nil {
		return "", err
	}
	all.release = append(all.release, func() {
		if err := tokens.Revoke(token.ID()); err != nil {
			log.Warn("revoke the token of this run", "err", err)
		}
	})
	return " --token " + token.Text(), nil
}

// again returns where to listen for the next run: at the place of this one, with the port that was free.
func again(place, addr string) string {
	host, _, err := net.SplitHostPort(place)
	if err != nil || strings.HasPrefix(place, "socket:") {
		return place
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return place
	}
	return net.JoinHostPort(host, port)
}

// joinFlag is what a worker has to be told to find a place.
func joinFlag(name string) string {
	if name == identity.DefaultName {
		return ""
	}
	return " --join " + name
}

// gather returns once the workers are there. When ctx or drain ends before, or they do not come, the error says so.
func (f *runFlags) gather(ctx context.Context, drain <-chan struct{}, all *fleet) error {
	if all.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.fleet.wait)
	defer cancel()
	ended := make(<-chan struct{})
	if f.fleet.process {
		var end func()
		var err error
		if ended, end, err = startWorker(all.server.Addr(), &f.loops); err != nil {
			return fmt.Errorf("start a worker: %w", err)
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
	var err error
	all.members, err = all.server.Wait(ctx, max(f.fleet.workers, 1))
	return err
}

// startWorker starts a worker as a child. It ends with its standard input, so also when this process is killed; ended is closed when it
// has, and end sees to it.
func startWorker(addr string, loops *loopFlags) (ended <-chan struct{}, end func(), err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	args := append([]string{"worker", "--join", addr, "--name", inProcess, "--once", "--parent-pipe", "--lease-max", maxLease.String()}, loops.args()...)
	cmd := exec.Command(exe, args...)
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
