package runner

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// Local is the name of a worker in this process or in a child process.
const Local = "local"

// FleetConfig says where a run's workers come from. If Workers is 0, there is one, in this process or in a Child.
type FleetConfig struct {
	Version string                     // of this program
	Drivers map[string]string          // of its own, those that the run uses: where each comes from, by name
	New     func(keep []int) rpc.Local // makes the worker of this process, whose event loops keep to these CPUs, or run anywhere if there are none
	Keep    []int                      // CPUs for the loops of the worker that this process makes or starts; none for anywhere
	CPU     func() time.Duration       // CPU time used by this process, user + system; called from any goroutine

	Child []string // arguments that make this program a worker, without its place; nil to start none

	Workers int            // number of workers from elsewhere; 0 for none
	Listen  string         // the place they connect to, as identity.Means reads it
	Means   identity.Means // what they prove themselves with; its Dir also holds the Child's socket
	Spares  bool           // more workers may join during a run, to replace lost ones
	Refused *slog.Logger   // logs workers from other machines that are refused

	Wait  time.Duration // how long all workers may take to join
	TTL   time.Duration // how long a token is valid; at least Wait
	Lease time.Duration // a worker that hears nothing for this long stops loading, and is given up

	Words  io.Writer // prints how to start workers, and who has joined
	Logger *slog.Logger
}

// Fleet is the workers of a run, with what must end with it.
type Fleet struct {
	cfg     FleetConfig
	server  *rpc.Server // where they connect; nil if the only worker is in this process
	members []worker.Member
	release []func()
}

// OpenFleet prepares for the workers of a run. Close the returned Fleet.
func OpenFleet(run string, c FleetConfig) (*Fleet, error) {
	f := &Fleet{cfg: c}
	if c.Workers == 0 && c.Child == nil {
		local := c.New(c.Keep)
		f.release = append(f.release, local.Close)
		f.members = []worker.Member{{Name: Local, Version: c.Version, Worker: local}}
		return f, nil
	}
	cfg := rpc.Config{Run: run, Version: c.Version, Drivers: c.Drivers, Timing: rpc.TimingOf(c.Lease), Logger: c.Logger, Spares: c.Spares}
	var err error
	if c.Workers > 0 {
		f.release = append(f.release, rpc.Frugal())
		err = f.await(&cfg)
	} else {
		cfg.Place, err = childPlace(c.Means.Dir)
	}
	if err == nil {
		f.server, err = rpc.Listen(cfg)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	f.release = append(f.release, f.server.Close)
	return f, nil
}

// await prepares for workers that are started elsewhere, and says how to start each.
func (f *Fleet) await(cfg *rpc.Config) error {
	var err error
	if cfg.Place, err = f.cfg.Means.ListenAt(f.cfg.Listen); err != nil {
		return fmt.Errorf("--listen %w", err)
	}
	token := ""
	if cfg.Place.Beyond {
		cfg.Logger = f.cfg.Refused // a refused connection may be one of the workers
		if token, err = f.invite(cfg.Place); err != nil {
			return err
		}
	}
	told := ""
	cfg.Waiting = func(come []string, of int, refused string) {
		if refused != told {
			told = refused
			fmt.Fprintln(f.cfg.Words, refused)
		} else if len(come) == 0 {
			fmt.Fprintf(f.cfg.Words, "0 of %d workers; start each with loadgen worker%s%s\n", of, joinFlag(f.server.Addr()), token)
		} else {
			fmt.Fprintf(f.cfg.Words, "%d of %d workers: %s\n", len(come), of, strings.Join(come, ", "))
		}
	}
	return nil
}

// invite makes a token for the workers of a run, which ends with the run, and returns it in the form to give to a worker.
func (f *Fleet) invite(place identity.Place) (string, error) {
	if !place.Tokens {
		return " --tls-ca FILE --tls-cert FILE --tls-key FILE", nil
	}
	tokens, err := identity.OpenTokens(f.cfg.Means.Dir)
	if err != nil {
		return "", err
	}
	uses := f.cfg.Workers
	if f.cfg.Spares {
		uses *= 2 // a replacement may come from another machine
	}
	token, err := tokens.Create(max(f.cfg.TTL, f.cfg.Wait), uses)
	if err != nil {
		return "", err
	}
	f.release = append(f.release, func() {
		if err := tokens.Revoke(token.ID()); err != nil {
			f.cfg.Refused.Warn("revoke the token of this run", "err", err)
		}
	})
	return " --token " + token.Text(), nil
}

// joinFlag is the flag that a worker needs to find a place.
func joinFlag(name string) string {
	if name == identity.DefaultName {
		return ""
	}
	return " --join " + name
}

// Listen returns where workers will look for the next run of an experiment: this run's place, with the actual port.
func (f *Fleet) Listen() string {
	if f.server == nil || strings.HasPrefix(f.cfg.Listen, "socket:") {
		return f.cfg.Listen
	}
	host, _, err := net.SplitHostPort(f.cfg.Listen)
	if err != nil {
		return f.cfg.Listen
	}
	_, port, err := net.SplitHostPort(f.server.Addr())
	if err != nil {
		return f.cfg.Listen
	}
	return net.JoinHostPort(host, port)
}

// Gather returns the workers once all have joined. If ctx or drain ends first, or they do not come in time, it returns an error.
func (f *Fleet) Gather(ctx context.Context, drain <-chan struct{}) ([]worker.Member, error) {
	if f.server == nil {
		return f.members, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Wait)
	defer cancel()
	ended := make(<-chan struct{})
	if f.cfg.Workers == 0 {
		var end func()
		var err error
		if ended, end, err = startChild(slices.Concat(f.cfg.Child, []string{"--join", f.server.Addr(), "--name", Local, "--keep", machine.List(f.cfg.Keep)})); err != nil {
			return nil, fmt.Errorf("start a worker: %w", err)
		}
		f.release = append([]func(){end}, f.release...) // runs after the server has told the child
	}
	go endWith(ctx, drain, cancel) // both end with ctx
	go endWith(ctx, ended, cancel)
	return f.server.Wait(ctx, max(f.cfg.Workers, 1))
}

// Spares says whether workers may join during the run, to replace lost ones.
func (f *Fleet) Spares() bool { return f.cfg.Spares && f.cfg.Workers > 0 }

// Spare returns a worker that has joined during the run, and waits for one until ctx ends.
func (f *Fleet) Spare(ctx context.Context) (worker.Member, error) { return f.server.Spare(ctx) }

// Lease is how long a worker may load without hearing from the coordinator; 0 if it ends with this process.
func (f *Fleet) Lease() time.Duration {
	if f.server == nil {
		return 0
	}
	return f.cfg.Lease
}

// Status returns the state of the workers that have joined so far. Safe for concurrent use.
func (f *Fleet) Status() []worker.Status {
	if f.server == nil {
		return []worker.Status{{Name: Local, Up: true, CPU: f.cfg.CPU()}}
	}
	return f.server.Status()
}

// Close ends what was started, last first.
func (f *Fleet) Close() {
	for i := len(f.release) - 1; i >= 0; i-- {
		f.release[i]()
	}
}
