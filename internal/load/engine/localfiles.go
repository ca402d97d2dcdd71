package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"slices"

	"github.com/loadgen/loadgen/internal/base/panics"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/policy"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// files are the local files that a phase's sessions load.
type files struct {
	store  localfile.Store
	driver localfile.Driver
	keep   bool // a later phase needs them
	device *device
	of     *localTarget
	log    *slog.Logger
}

// localTarget holds a run's state of a target that consists of files on this machine.
type localTarget struct {
	had    map[int]bool      // sessions that have loaded it
	held   map[string]bool   // datasets that it was loaded with
	bytes  int64             // the most that its files take
	left   []localfile.Store // closed stores whose files are not removed yet
	failed string            // the phase in which it failed; "" if it has not
}

// remove deletes all files of a target, including those of phases with other sessions.
func (t *localTarget) remove(log *slog.Logger) {
	for _, store := range t.left {
		if err := store.Remove(); err != nil {
			log.Warn("remove log files", "err", err)
		}
	}
	t.left, t.bytes = nil, 0
}

// openStore opens the files of a phase's sessions, each of which gets a thread.
func (g *group) openStore(ctx context.Context, e *Engine, d localfile.Driver, step worker.Step) error {
	if e.cfg.LogRoot == nil {
		return errors.New("this worker has no directory for log files")
	}
	root, err := e.cfg.LogRoot()
	if err != nil {
		return err
	}
	values := g.plan.Dataset(g.phase.Dataset).Values
	value, err := values.Value()
	if err != nil {
		return err
	}
	of := e.locals[g.target.Name]
	fresh := of == nil
	if fresh {
		of = &localTarget{had: map[int]bool{}, held: map[string]bool{}}
	}
	if of.failed != "" { // the kernel may return data that never reached the disk
		return fmt.Errorf("its files must not be used any more: they failed in phase %q", of.failed)
	}
	var sizes *driver.Sizes // the sizes of entries, for drivers that are not given each value's
	if !localfile.Keyed(d) {
		if sizes, err = values.Drawn(localfile.StampSize); err != nil {
			return err
		}
	}
	site := localfile.Site{
		Root: root, Name: g.target.Name, Worker: e.run.Index, From: step.From, To: step.To, Sessions: g.phase.Sessions(), Fresh: fresh, Had: of.had, Held: of.held[g.phase.Dataset],
		Epoch:  EpochOf(e.run.RunID, g.phase.Name),
		Value:  value,
		Sizes:  sizes,
		Memory: available,
		Wrote:  func(n int64) { e.progress.Add(n) },
		Keys:   g.plan.Dataset(g.phase.Dataset).Keys.Count, Pools: g.plan.Dataset(g.phase.Dataset).Keys.PerSession(),
	}
	if localfile.Keyed(d) && e.run.Workers > 1 && !site.Pools {
		return fmt.Errorf("each of %d workers has files of its own, and all share the keys of dataset %q: write keys { scope = \"session\" } there, or use one worker",
			e.run.Workers, g.phase.Dataset)
	}
	need, err := d.Need(g.target.Config, site)
	if err != nil {
		return err
	}
	if err := e.cfg.Policy.Check(policy.Need{LogBytes: e.localBytes() + need.Bytes}); err != nil {
		return err
	}
	var store localfile.Store
	err = panics.Safely(func() (err error) {
		store, err = d.Open(ctx, g.target.Config, site)
		return err
	})
	if err != nil {
		return err
	}
	e.locals[g.target.Name] = of
	of.bytes += need.Bytes
	of.held[g.phase.Dataset] = true
	for i := step.From; i < step.To; i++ {
		of.had[i] = true
	}
	g.files = &files{store: store, driver: d, keep: laterUse(g.plan, g.phase), of: of, log: e.cfg.Logger}
	g.files.device = watchDevice(ctx, store, quietBefore(g.phase))
	g.parts = g.sessions
	leaveRoom(g.parts)
	return nil
}

// localBytes returns the most that the run's files take.
func (e *Engine) localBytes() (sum int64) {
	for _, of := range e.locals {
		sum += of.bytes
	}
	return sum
}

// available returns how much memory this process may still take.
func available() int64 { return machine.Available(os.DirFS("/")) }

// EpochOf returns a number that tells what a phase of a run writes to files from what all others write.
func EpochOf(runID, phase string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\n%s", runID, phase)
	return h.Sum64()
}

// laterUse reports whether a later phase has the same target.
func laterUse(p *plan.Plan, ph *plan.Phase) bool {
	i := slices.Index(p.Phases, ph)
	return slices.ContainsFunc(p.Phases[i+1:], func(later *plan.Phase) bool { return later.Target == ph.Target })
}

// settle ends the phase's use of its files, has another process verify what they hold, and returns the result; nil if the phase has no files.
func (g *group) settle(ctx context.Context, verify func(context.Context, string, []byte) (localfile.Proof, error)) *worker.Log {
	f := g.files
	if f == nil {
		return nil
	}
	g.files = nil
	account := &worker.Log{Log: f.store.Log(), Threads: g.threads()}
	account.Devices = f.device.stop(ctx)
	claim, err := f.close()
	if account.Failure != "" || err != nil {
		f.of.failed = g.phase.Name
	}
	switch {
	case err != nil:
		account.Unproven = err.Error()
	case claim == nil && account.Failure != "":
		account.Unproven = "the log failed, and entries were at risk"
	case claim == nil:
		account.Unproven = "the layout keeps nothing that could be verified"
	case verify == nil:
		account.Unproven = "this worker starts no process to verify with"
	default:
		proof, err := verify(ctx, f.driver.Name(), claim)
		switch {
		case ctx.Err() != nil:
			account.Unproven = "the worker was stopped"
		case err != nil:
			account.Unproven = err.Error()
		default:
			account.Proof = &proof
		}
	}
	f.remove()
	return account
}

// close ends the sessions. The files stay until remove is called, or the run ends.
func (f *files) close() ([]byte, error) {
	f.of.left = append(f.of.left, f.store)
	return f.store.Close()
}

// remove deletes the files unless a later phase needs them.
func (f *files) remove() {
	if !f.keep {
		f.of.remove(f.log)
	}
}

// closeStore gives up files that were not settled because the phase did not finish.
func (g *group) closeStore() {
	f := g.files
	if f == nil {
		return
	}
	if _, err := f.close(); err != nil {
		f.log.Warn("close log files", "err", err)
	}
	f.remove()
}
