package engine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/policy"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/keyfile"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Config is what an engine needs from its process.
type Config struct {
	Drivers []driver.Driver
	Secrets func(name string) (string, error)
	Allow   Allow
	Policy  *policy.Policy // limits on what this worker may do, whatever the coordinator asks; nil for none
	Budget  *policy.Budget // what the policy's rates still allow this process, in all its runs; nil if the engine is to make its own
	Loops   int            // number of event loops; 0 for one less than there are processors, at least one, and no more than the CPUs in Keep
	Spin    time.Duration  // time before an op of an open load in which loops watch the clock and do not sleep; 0 for 50 µs, or 200 µs if pinned; negative for none
	Pin     []int          // CPUs that loops run on: loop i on the i-th, wrapping around; empty if the kernel chooses
	Keep    []int          // CPUs that loops keep to, each on any of them; empty if the kernel chooses. Pin takes precedence
	Logger  *slog.Logger

	// LogRoot returns the existing directory that log files go below. If nil, a plan with a log target is refused.
	LogRoot func() (string, error)

	// Open opens a file that a plan names, without waiting; it must be a regular file. If nil, this worker opens none. Its errors may reach the
	// coordinator.
	Open func(path string) (File, error)

	// Verify checks, in another process, whether a claim about a driver's log files is true (localfile.Driver).
	Verify func(ctx context.Context, driver string, claim []byte) (localfile.Proof, error)

	// Suspended returns how long this machine has been suspended since it booted. It must not block. nil stands for machine.Suspended.
	Suspended func() time.Duration

	// Sleep waits on behalf of loops without sockets. If nil, their threads sleep, which a testing/synctest bubble does not see.
	Sleep func(time.Duration)
}

// Engine carries out steps in this process. Call Assign first, then Prepare and Run in turn for each step. One goroutine at a time, except for Drain,
// SetLease and Progress.
type Engine struct {
	cfg     Config
	run     worker.Assignment
	plan    *plan.Plan
	clock   clock
	wall    int64
	apart   int64                    // the run clock's zero on the clock of the policy's budget
	group   *group                   // of the current phase
	locals  map[string]*localTarget  // opened in this run
	caches  map[string]*caches       // by target: what its sessions keep
	ready   map[string]bool          // targets whose servers the driver has prepared in this run
	written map[[2]string]*written   // by target that holds the values, and dataset: what its sessions wrote
	lists   map[listing]*keyfile.Set // files that the current phase takes keys and values from
	seq     uint64                   // of the last snapshot
	stage   stage
	halt    atomic.Int32
	lease   lease

	keeps    bool         // loops keep their threads while they wait
	progress atomic.Int64 // bytes of files that Prepare has read and written

	newPoller func() (sockets.Poller, error)
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	resolve   func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// New returns an engine that has no assignment.
func New(cfg Config) *Engine {
	if cfg.Loops <= 0 {
		cfg.Loops = DefaultLoops()
		if n := len(cfg.Keep); n > 0 {
			cfg.Loops = min(cfg.Loops, n)
		}
	}
	if cfg.Spin == 0 {
		cfg.Spin = DefaultSpin
		if len(cfg.Pin) > 0 {
			cfg.Spin = PinnedSpin
		}
	}
	if cfg.Budget == nil {
		cfg.Budget = cfg.Policy.Budget()
	}
	if cfg.Suspended == nil {
		cfg.Suspended = machine.Suspended
	}
	keeps := cfg.Sleep == nil
	if keeps {
		cfg.Sleep = napThread
	}
	e := &Engine{cfg: cfg, keeps: keeps, newPoller: func() (sockets.Poller, error) { return sockets.NewEpoll() }}
	e.dial, e.resolve = e.dialer(), net.DefaultResolver.LookupNetIP
	e.lease.suspended = cfg.Suspended
	e.lease.until.Store(never)
	return e
}

// SetLease sets until when the engine may load its targets: the run clock plus what Config.Suspended returns by then. A loop that finds the lease
// over starts and sends nothing more, and returns as if its context had ended. Without a call the lease never ends. Any goroutine may call it.
func (e *Engine) SetLease(until time.Duration) { e.lease.set(until) }

// Progress returns how many bytes of files Prepare has read and written so far. It tells a Prepare that has much to do from one that is stuck. Any
// goroutine may call it.
func (e *Engine) Progress() int64 { return e.progress.Load() }

// Assign takes on a run. It fails if the plan's bytes are not a valid plan of this version, or do not match the digest.
func (e *Engine) Assign(_ context.Context, a worker.Assignment) error {
	if e.stage != unassigned {
		return errAssigned
	}
	p, err := plan.Decode(a.Plan, e.cfg.Drivers)
	if err != nil {
		return fmt.Errorf("plan of run %s: %w", a.RunID, err)
	}
	if digest := plan.Digest(a.Plan); digest != a.Digest {
		return fmt.Errorf("plan of run %s: digest is %s, not %s", a.RunID, digest, a.Digest)
	}
	for loop := range max(1, len(e.cfg.Pin)) {
		release, err := ownThread(e.cpus(loop))
		if err != nil {
			return err
		}
		release()
	}
	if e.keeps {
		leaveRoom(e.cfg.Loops)
	}
	e.run, e.plan, e.locals, e.ready, e.lists = a, p, map[string]*localTarget{}, map[string]bool{}, nil
	e.written = map[[2]string]*written{}
	spin := time.Duration(0)
	if slices.ContainsFunc(p.Targets, func(t *plan.Target) bool { return t.Executor == plan.EventLoop }) {
		spin = oversleep
	}
	e.clock = &wallClock{zero: a.Zero, spin: spin, nap: e.cfg.Sleep}
	e.wall = a.WallNS
	if e.cfg.Budget != nil {
		e.apart = int64(e.cfg.Budget.Since(a.Zero))
	}
	e.stage = isIdle
	return nil
}

// leaveRoom makes sure that busy loops never keep the rest of the process from running. It sets GOMAXPROCS even if the value is large enough: a value
// that nobody set follows the CPUs that the process may use, and would fall mid-run if those became fewer.
func leaveRoom(loops int) {
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), loops+1))
}

// cpus returns the CPUs that a loop may run on, none for any, and whether it is pinned there.
func (e *Engine) cpus(loop int) (list []int, pinned bool) {
	if len(e.cfg.Pin) == 0 {
		return e.cfg.Keep, false
	}
	return e.cfg.Pin[loop%len(e.cfg.Pin):][:1], true
}

// Prepare makes ready to carry out a step. Before the first step of a phase, it closes what another phase has left open and opens the phase's
// connections; it gives up when ctx ends. After an error, the only thing left to do with the engine is to close it.
func (e *Engine) Prepare(ctx context.Context, step worker.Step) (worker.Ready, error) {
	if err := e.checkOrder(step); err != nil {
		return worker.Ready{}, err
	}
	ready, err := e.prepare(ctx, step)
	if e.stage = isReady; err != nil {
		e.stage = isSpent
	}
	return ready, err
}

// prepare is Prepare for a step that is in order.
func (e *Engine) prepare(ctx context.Context, step worker.Step) (worker.Ready, error) {
	if e.group != nil && e.group.phase.Name != step.Phase {
		e.closeGroup()
	}
	if e.group == nil {
		stop := context.AfterFunc(ctx, func() { e.halt.Store(abandon) })
		g, err := e.openGroup(ctx, step)
		stop()
		if err != nil {
			return worker.Ready{}, err
		}
		e.group = g
	}
	files, err := e.filesOf(ctx, e.group.phase)
	if err != nil {
		return worker.Ready{}, err
	}
	source, err := workload.New(e.plan, e.group.phase, workload.Step{Kind: workload.Kind(step.Kind), Level: step.Level, Shape: step.Shape, Files: files, Repetition: e.run.DrawsAs})
	if err != nil {
		return worker.Ready{}, err
	}
	if t := e.group.phase.Trace(); t != nil && step.Kind.Timed() {
		if e.group.trace, err = e.openTrace(ctx, t); err != nil {
			return worker.Ready{}, err
		}
	}
	var stop *errorStop
	if s := e.group.phase.Stop; s != nil && step.Kind.Timed() {
		stop = newErrorStop(s.Errors, &e.halt)
	}
	for _, l := range e.group.loops {
		l.errorStop = stop
		e.group.equip(l, source, step)
	}
	e.group.step = step
	e.group.traffic() // later counts are from here
	if step.Kind.Timed() {
		tidy()
	}
	return e.group.ready(source), nil
}

// Run carries out the prepared step, beginning at a time on the run clock, and returns when all its ops have ended. Each second it passes what
// happened in that second to sink, one call at a time. When ctx ends, it returns within 100 ms and still counts what is in flight as in flight. When
// sink fails, the step ends early as by Drain, and Run returns that error.
func (e *Engine) Run(ctx context.Context, at time.Duration, sink worker.Sink) (worker.Final, error) {
	g := e.group
	if e.stage != isReady {
		return worker.Final{}, errUnprepared
	}
	e.stage = isIdle
	stop := context.AfterFunc(ctx, func() { e.halt.Store(abandon) })
	defer stop()
	measured := g.step.Kind.Timed()
	if g.files != nil {
		g.files.device.start()
	}
	use := startUsage(os.DirFS("/"), measured, g.executor == plan.Blocking)
	var others *neighbours
	if measured {
		others = watchNeighbours(os.DirFS("/"), g.hosted)
	}
	c := collector{g: g, begin: int64(at), seq: &e.seq, policy: e.cfg.Policy, end: e.Drain}
	c.sink = func(s *measure.Snapshot) {
		kept, err := sink(s)
		if err == nil {
			err = kept()
		}
		if err != nil && c.err == nil {
			c.err = err
			e.Drain()
		}
	}
	parts := make(chan part, 4*len(g.loops)+4)
	var loops errgroup.Group
	for _, l := range g.loops {
		l.begin(int64(at), parts)
		loops.Go(func() error {
			if g.executor != plan.Blocking {
				cpus, pinned := e.cpus(l.index)
				release, err := ownThread(cpus, pinned)
				if err != nil {
					e.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "event loop runs anywhere", slog.Any("error", err)) // it worked in Assign
				} else {
					defer release()
				}
				l.meter = newMeter()
				defer l.meter.close()
				l.hold.may = l.wired() && measured && err == nil // a goroutine without its own thread may be moved
				if t, ok := l.tr.(*thread); ok {
					t.ran.take(err == nil && pinned)
					defer t.ran.leave()
				}
			}
			l.run()
			if g.step.Last {
				l.leave()
			}
			if f, ok := l.feed.(reading); ok {
				return cmp.Or(l.fault, f.close())
			}
			return l.fault
		})
	}
	totals := c.collect(parts)
	c.err = cmp.Or(c.err, loops.Wait())
	final := worker.Final{Step: g.step.Seq, Totals: &totals, Generator: use.stop(), Stopped: e.halt.Load() != goOn}
	for _, l := range g.loops {
		final.Expired = final.Expired || l.lapsed
		final.Generator.NoLocalPort += l.noPort
		final.Generator.Abandoned += l.abandoned
	}
	final.Generator.Executor, final.Generator.Loops, final.Generator.TCP = g.executor, len(g.loops), g.traffic()
	others.enter(&final.Generator)
	c.use.enter(&final.Generator, time.Duration(e.clock.now()-int64(at)).Seconds())
	if measured && !final.Expired && (g.step.Last || g.phase.Search != nil) {
		e.watch(g, &totals)
	}
	final.Generator.Unasked = g.unasked()
	if g.step.Last {
		final.Log = g.settle(ctx, e.cfg.Verify)
		e.closeGroup()
		e.cleanUp(ctx, g, &final)
	}
	return final, c.err
}

// Drain ends the current step, and any later one, early: nothing more is started. Run returns when what is outstanding has ended, or when no answer
// has come for 300 ms; it then still counts what is in flight as in flight. Any goroutine may call it.
func (e *Engine) Drain() { e.halt.CompareAndSwap(goOn, drain) }

// Close closes the connections of the current phase and deletes the files of the run.
func (e *Engine) Close() {
	e.closeGroup()
	for _, of := range e.locals {
		of.remove(e.cfg.Logger)
	}
}

// closeGroup closes the connections of the current phase.
func (e *Engine) closeGroup() {
	if e.group != nil {
		e.group.close()
		e.group = nil
	}
}

// collector joins what the loops seal into the worker's snapshots.
type collector struct {
	g      *group
	sink   func(*measure.Snapshot)
	begin  int64   // of the step
	seq    *uint64 // of the run's snapshots
	use    joined  // of the loops
	totals *measure.Totals
	drawn  measure.Samples  // since the last snapshot
	snap   measure.Snapshot // the last one; the next reuses its memory
	policy *policy.Policy
	end    func() // of the step, early
	err    error  // of the caller's sink, or of the policy
}

// collect returns the totals of the step once every loop has finished.
func (c *collector) collect(parts <-chan part) measure.Totals {
	c.totals = measure.NewTotals(c.begin, c.g.rows())
	joiner := measure.NewJoiner(len(c.g.loops), c.begin)
	for running := len(c.g.loops); running > 0; {
		p := <-parts
		if p.final {
			running--
			c.use.add(p.use)
		}
		c.drawn.Add(c.g.phase.Samples, p.drawn)
		joiner.Add(p.loop, p.upTo, p.final, p.totals)
		for at := p.upTo; at < p.still; {
			at = min(at+stride(p.still-p.upTo), p.still)
			nothing := new(measure.Totals)
			nothing.Origin = c.begin
			joiner.Add(p.loop, at, false, nothing)
		}
		for joint, ok := joiner.Next(); ok; joint, ok = joiner.Next() {
			c.snapshot(joint)
		}
		c.g.recycle(p)
	}
	if len(c.g.loops) == 0 {
		c.snapshot(measure.Interval{From: c.begin, To: c.begin, Delta: measure.NewTotals(c.begin, c.g.rows()), Final: true})
	}
	return *c.totals
}

// mostIdle is the most intervals that a loop's standstill is divided into.
const mostIdle = 64

// stride returns the length of the intervals that a standstill of a loop is divided into.
func stride(still int64) int64 {
	return interval * max(1, (still/interval+mostIdle-1)/mostIdle)
}

func (c *collector) snapshot(joint measure.Interval) {
	c.totals.Merge(joint.Delta)
	if err := c.policy.Watch(time.Duration(joint.To-c.begin), heldBytes); err != nil && c.err == nil {
		c.err = err
		c.end()
	}
	*c.seq++
	running := c.snap.Running // its memory is reused: a run of days leaves no garbage each second
	running.Reset()
	running.Add(c.totals)
	c.snap = measure.Snapshot{
		Step: c.g.step.Seq, SeqFirst: *c.seq, SeqLast: *c.seq,
		From: joint.From, To: joint.To,
		Delta: *joint.Delta, Running: running, Samples: c.drawn, Final: joint.Final,
	}
	c.sink(&c.snap)
	c.drawn.Reset()
}
