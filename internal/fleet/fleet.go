package fleet

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/identity"
	"github.com/loadgen/loadgen/internal/rpc"
	"github.com/loadgen/loadgen/internal/worker"
)

// Local is the name of a worker that this process is, or starts.
const Local = "local"

// Config says where the workers of a run come from. With no Workers asked for, there is one, in this process or in a Child.
type Config struct {
	Version string               // of this program
	New     func() rpc.Local     // makes the worker of this process
	CPU     func() time.Duration // that this process has used, user + system; called from any goroutine

	Child []string // arguments of this program that make it a worker, but for where it is to come; nil: none is started

	Workers int            // that come from elsewhere; 0: none
	Listen  string         // the place they come to, as identity.Means reads it
	Means   identity.Means // by which they prove who they are; its Dir holds the Child's socket, too
	Spares  bool           // others may come while a run goes on, to take the places of those that are lost
	Refused *slog.Logger   // hears of those that come from another machine and may not

	Wait  time.Duration // for all to come
	TTL   time.Duration // a token can be used for so long, and while they are waited for
	Lease time.Duration // after such a silence a worker stops loading, and is given up

	Words  io.Writer // how workers are to be started, and who has come
	Logger *slog.Logger
}

// Fleet is the workers of a run and what has to end with it.
type Fleet struct {
	cfg     Config
	server  *rpc.Server // where they come to; nil: the only one is in this process
	members []worker.Member
	release []func()
}

// Open makes ready for the workers of a run. What it returns is to be closed.
func Open(run string, c Config) (*Fleet, error) {
	f := &Fleet{cfg: c}
	if c.Workers == 0 && c.Child == nil {
		local := c.New()
		f.release = append(f.release, local.Close)
		f.members = []worker.Member{{Name: Local, Version: c.Version, Worker: local}}
		return f, nil
	}
	cfg := rpc.Config{Run: run, Version: c.Version, Timing: rpc.TimingOf(c.Lease), Logger: c.Logger, Spares: c.Spares}
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

// await makes ready for workers that are started elsewhere, and says how each is to be started.
func (f *Fleet) await(cfg *rpc.Config) error {
	var err error
	if cfg.Place, err = f.cfg.Means.ListenAt(f.cfg.Listen); err != nil {
		return fmt.Errorf("--listen %w", err)
	}
	token := ""
	if cfg.Place.Beyond {
		cfg.Logger = f.cfg.Refused // it may be one of the workers
		if token, err = f.invite(cfg.Place); err != nil {
			return err
		}
	}
	cfg.Waiting = func(come []string, of int) {
		if len(come) == 0 {
			fmt.Fprintf(f.cfg.Words, "0 of %d workers; start each with loadgen worker%s%s\n", of, joinFlag(f.server.Addr()), token)
		} else {
			fmt.Fprintf(f.cfg.Words, "%d of %d workers: %s\n", len(come), of, strings.Join(come, ", "))
		}
	}
	return nil
}

// invite makes a token for the workers of a run, which ends with the run, and returns it as a worker is to be given it.
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
		uses *= 2 // a place may be taken from another machine
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

// joinFlag is what a worker has to be told to find a place.
func joinFlag(name string) string {
	if name == identity.DefaultName {
		return ""
	}
	return " --join " + name
}

// Listen returns where workers will look for the next run of an experiment: at the place of this one, with the port that was free.
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

// Gather returns the workers once they are there. When ctx or drain ends before, or they do not come, the error says so.
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
		if ended, end, err = startChild(slices.Concat(f.cfg.Child, []string{"--join", f.server.Addr(), "--name", Local})); err != nil {
			return nil, fmt.Errorf("start a worker: %w", err)
		}
		f.release = append([]func(){end}, f.release...) // after the server has told it
	}
	go func() { // ends with ctx
		select {
		case <-drain:
		case <-ended:
		case <-ctx.Done():
		}
		cancel()
	}()
	return f.server.Wait(ctx, max(f.cfg.Workers, 1))
}

// Spares says whether workers may come to take the places of those that are lost.
func (f *Fleet) Spares() bool { return f.cfg.Spares && f.cfg.Workers > 0 }

// Spare returns a worker that has come while the run goes on, and waits for one until ctx ends.
func (f *Fleet) Spare(ctx context.Context) (worker.Member, error) { return f.server.Spare(ctx) }

// Lease is for how long a worker may load without a word from here; 0 when it ends with this process.
func (f *Fleet) Lease() time.Duration {
	if f.server == nil {
		return 0
	}
	return f.cfg.Lease
}

// Status says how the workers are now, those that have come so far. It may be called from any goroutine.
func (f *Fleet) Status() []worker.Status {
	if f.server == nil {
		return []worker.Status{{Name: Local, Up: true, CPU: f.cfg.CPU()}}
	}
	return f.server.Status()
}

// Close ends what was started, the last first.
func (f *Fleet) Close() {
	for i := len(f.release) - 1; i >= 0; i-- {
		f.release[i]()
	}
}
