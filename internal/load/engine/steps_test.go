package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest/ticket"
	"github.com/loadgen/loadgen/pkg/plan"
)

// assigned is an engine that a plan has been assigned to.
func assigned(t testing.TB, cfg Config, p *plan.Plan) *Engine {
	t.Helper()
	cfg.Spin = -1
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Drivers == nil {
		cfg.Drivers = drivers.All()
	}
	e := New(cfg)
	t.Cleanup(e.Close)
	require.NoError(t, e.Assign(t.Context(), assignment(t, p)))
	return e
}

// assignment is that of a run with one worker.
func assignment(t testing.TB, p *plan.Plan) worker.Assignment {
	t.Helper()
	canonical, err := p.Canonical()
	require.NoError(t, err)
	return worker.Assignment{RunID: "r1", Plan: canonical, Digest: plan.Digest(canonical), Zero: time.Now(), WallNS: int64(time.Hour), Workers: 1}
}

// takeAll is a sink.
func takeAll(s *measure.Snapshot) (func() error, error) { return s.CheckValid, nil }

// prepared has an engine prepare a step.
func prepared(t testing.TB, e *Engine, step worker.Step) worker.Ready {
	t.Helper()
	ready, err := e.Prepare(t.Context(), step)
	require.NoError(t, err)
	return ready
}

// loaded has an engine prepare the load of its plan's first phase.
func loaded(t testing.TB, e *Engine) worker.Ready {
	t.Helper()
	return prepared(t, e, stepOf(e.plan.Phases[0], worker.Load))
}

// ran has an engine carry out, at once, the step that is prepared.
func ran(t testing.TB, e *Engine) worker.Final {
	t.Helper()
	final, err := e.Run(t.Context(), e.now(), takeAll)
	require.NoError(t, err)
	require.NoError(t, final.Totals.CheckValid())
	return final
}

// tracePlan is a plan whose phase replays a trace, and the directory of it.
func tracePlan(t *testing.T, text string) (p *plan.Plan, dir string) {
	t.Helper()
	p = nullPlan(t, 1, "", "open {\n trace { file = \"trace.csv\" }\n sessions = 2\n pipeline = 4\n}")
	p.Phases[0].Open.Duration = time.Minute
	return p, keepTrace(t, p.Phases[0].Trace(), text)
}

// keepTrace keeps a trace's text in a directory, and what it is in the plan.
func keepTrace(t *testing.T, trace *plan.Trace, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "trace.csv"), []byte(text), 0o600))
	sum := sha256.Sum256([]byte(text))
	lines := int64(strings.Count(text, "\n"))
	trace.Form, trace.SHA256, trace.Length, trace.Lines = "cache", hex.EncodeToString(sum[:]), int64(len(text)), lines
	trace.Ops = []plan.TraceCount{{Op: "get", Lines: lines}}
	return dir
}

// A phase's trace is opened when a step is prepared, and only if it is the file that the plan was checked with; it is read while the step runs.
func TestStepOfATrace(t *testing.T) {
	const text = "70.0,key:1,5,10,1,get,0\n70.1,key:2,5,10,1,get,0\n70.2,key:1,5,10,1,get,0\n"
	p, dir := tracePlan(t, text)
	e := assigned(t, Config{Loops: 2, Open: in(dir)}, p)
	ready := loaded(t, e)
	require.Equal(t, worker.Ready{Sessions: 2, Executor: plan.EventLoop, Loops: 2}, ready, "how many ops a worker has is found out by reading")
	final := ran(t, e)
	require.EqualValues(t, 3, final.Totals.Ops[driver.Get].Due)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "trace.csv"), []byte(strings.ToUpper(text)), 0o600))
	e = assigned(t, Config{Loops: 2, Open: in(dir)}, p)
	_, err := e.Prepare(t.Context(), stepOf(p.Phases[0], worker.Load))
	require.ErrorContains(t, err, `trace "trace.csv" is not the file that the plan was checked with`)
	require.Equal(t, isSpent, e.stage)

	p, dir = tracePlan(t, text+"what\n")
	e = assigned(t, Config{Loops: 2, Open: in(dir)}, p)
	loaded(t, e)
	_, err = e.Run(t.Context(), e.now(), takeAll)
	require.ErrorContains(t, err, "trace trace.csv:4:1: ", "it was read while the step ran")

	p = nullPlan(t, 1, "", "closed {\n trace {\n file = \"trace.csv\"\n loop = true\n }\n sessions = 2\n iterations = 5\n}")
	e = assigned(t, Config{Loops: 1, Open: in(keepTrace(t, p.Phases[0].Trace(), text))}, p)
	ready = loaded(t, e)
	require.Zero(t, ready.Ops)
}

// A setup does not replay its phase's trace, though a load has opened it.
func TestSetupBesideATrace(t *testing.T) {
	p := parsePlan(t, `
		target "t" {
			driver = "null"
		}
		dataset "d" {
			keys {
				count = 10
				scope = "session"
			}
			values { size = 30 }
		}
		phase "load" {
			target  = target.t
			dataset = dataset.d
			max_bad = 1
			setup { ops = { put = 1 } }
			open {
				sessions = 2
				trace { file = "trace.csv" }
			}
		}`)
	p.Phases[0].Open.Duration = time.Minute
	dir := keepTrace(t, p.Phases[0].Trace(), "70.0,key:1,5,10,1,get,0\n")
	e := assigned(t, Config{Loops: 1, Open: in(dir)}, p)
	for _, kind := range []worker.StepKind{worker.Setup, worker.Load, worker.Setup} {
		step := stepOf(p.Phases[0], kind)
		step.Last = false
		ready := prepared(t, e, step)
		final := ran(t, e)
		if kind == worker.Setup {
			require.EqualValues(t, 20, ready.Ops)
			require.EqualValues(t, 20, final.Totals.Ops[driver.Put].Due)
		} else {
			require.EqualValues(t, 1, final.Totals.Ops[driver.Get].Due)
			require.NoError(t, os.Remove(filepath.Join(dir, "trace.csv")))
		}
	}
}

// A setup is not part of the load: it has no schedule, and no number of errors ends it.
func TestSetupOfALoad(t *testing.T) {
	p := parsePlan(t, `
		target "t" {
			driver      = "null"
			error_every = 1
		}
		dataset "d" {
			keys {
				count = 10
				scope = "session"
			}
			values { size = 30 }
		}
		phase "load" {
			target     = target.t
			dataset    = dataset.d
			ops        = { get = 1 }
			setup { ops = { put = 1 } }
			stop_after = 1
			open {
				sessions = 3
				rate     = 1000
				duration = "1h"
			}
		}`)
	e := assigned(t, Config{Loops: 1}, p)
	step := stepOf(p.Phases[0], worker.Setup)
	step.Last = false
	ready := prepared(t, e, step)
	require.EqualValues(t, 30, ready.Ops)
	final := ran(t, e)
	require.EqualValues(t, 30, final.Totals.Ops[driver.Put].Outcomes[driver.Error])
	require.False(t, final.Stopped)
	ready = loaded(t, e)
	require.Zero(t, ready.Ops)
	final = ran(t, e)
	require.True(t, final.Stopped)
}

// A step whose keys are in a file that is not there is not prepared.
func TestStepWhoseKeysAreNotThere(t *testing.T) {
	p := nullPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 1 }")
	e := assigned(t, Config{Loops: 1, Open: in(t.TempDir())}, p)
	e.plan.Dataset("d").Keys.File = &plan.EntryFile{Path: "keys.txt"}
	_, err := e.Prepare(t.Context(), stepOf(p.Phases[0], worker.Load))
	require.ErrorContains(t, err, `file of keys "keys.txt": open`)
}

// A step that the phase does not have is not prepared.
func TestStepThatAPhaseLacks(t *testing.T) {
	p := nullPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 1 }")
	e := assigned(t, Config{Loops: 1}, p)
	_, err := e.Prepare(t.Context(), stepOf(p.Phases[0], worker.Clear))
	require.ErrorContains(t, err, `phase "load" has no clear step`)
	require.Equal(t, isSpent, e.stage)
}

// A step ends early once the target has answered with as many errors as the plan bears.
func TestStepThatStopsAfterErrors(t *testing.T) {
	p := nullPlan(t, 1, "error_every = 1", "ops = { get = 1 }\nstop_after = 20\nclosed {\n sessions = 2\n iterations = 1000\n}")
	e := assigned(t, Config{Loops: 1}, p)
	loaded(t, e)
	final := ran(t, e)
	require.True(t, final.Stopped)
	require.Less(t, final.Totals.Ops[driver.Get].Due, uint64(1000))
}

// A step begins at the time that it was told, unless it is called off or the lease ends before.
func TestStepBeginsWhenItIsDue(t *testing.T) {
	for name, meanwhile := range map[string]func(e *Engine, cancel func()){
		"begins":        func(*Engine, func()) {},
		"called off":    func(_ *Engine, cancel func()) { cancel() },
		"lease is over": func(e *Engine, _ func()) { e.SetLease(e.now()) },
	} {
		p := nullPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 10 }")
		e := assigned(t, Config{Loops: 2}, p)
		loaded(t, e)
		ctx, cancel := context.WithCancel(t.Context())
		wait := time.Hour
		if name == "begins" {
			wait = 300 * time.Millisecond
		}
		at := e.now() + wait
		time.AfterFunc(100*time.Millisecond, func() { meanwhile(e, cancel) })
		final, err := e.Run(ctx, at, takeAll)
		cancel()
		require.NoError(t, err)
		require.Equal(t, name == "lease is over", final.Expired, name)
		if name == "begins" {
			require.GreaterOrEqual(t, final.Totals.Span.First, int64(at))
			require.EqualValues(t, 10, final.Totals.Ops[driver.Get].Due)
			continue
		}
		require.Nil(t, final.Totals.Ops[driver.Get], name)
	}
}

// What else ran on the machine is watched while something is measured, and not otherwise.
func TestWhichStepsAreWatched(t *testing.T) {
	for phase, kind := range map[string]worker.StepKind{"ops = { get = 1 }\nclosed { iterations = 1 }": worker.Load, "populate {}": worker.Populate} {
		p := nullPlan(t, 1, "", phase)
		e := assigned(t, Config{Loops: 1}, p)
		prepared(t, e, stepOf(p.Phases[0], kind))
		final := ran(t, e)
		said := final.Generator.Machine != nil || final.Generator.MachineUnknown != ""
		require.Equal(t, kind.Timed(), said)
	}
}

// Before something is measured the heap is tidied, and while event loops are measured it is left alone. Clients that block leave garbage.
func TestGarbageOfSteps(t *testing.T) {
	room := make([]byte, 16<<20)
	defer runtime.KeepAlive(room)
	defer debug.SetGCPercent(debug.SetGCPercent(77))
	for name, tt := range map[string]struct {
		target, phase string
		kind          worker.StepKind
		tidied        uint32
		percent       int
	}{
		"event loop": {"", "ops = { get = 1 }\nclosed { iterations = 1 }", worker.Load, 1, -1},
		"blocking":   {onBlocking, "ops = { get = 1 }\nclosed { iterations = 1 }", worker.Load, 1, 77},
		"populate":   {"", "populate {}", worker.Populate, 0, 77},
	} {
		p := nullPlan(t, 1, tt.target, tt.phase)
		e := assigned(t, Config{Loops: 1}, p)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		prepared(t, e, stepOf(p.Phases[0], tt.kind))
		runtime.ReadMemStats(&after)
		require.Equal(t, tt.tidied, after.NumForcedGC-before.NumForcedGC, name)
		_, err := e.Run(t.Context(), e.now(), func(*measure.Snapshot) (func() error, error) {
			percent := debug.SetGCPercent(77)
			debug.SetGCPercent(percent)
			require.Equal(t, tt.percent, percent, name)
			return func() error { return nil }, nil
		})
		require.NoError(t, err)
	}
}

// A loop may be held while a load over sockets is measured, and at no other time: what else a loop waits for may park it.
func TestWhichLoopsAreHeld(t *testing.T) {
	const load = "closed {\n sessions = 2\n iterations = 5\n}"
	text := ticketPlan(serveTickets(t, nil).addr, "", load) + "\nphase \"wipe\" {\n target = target.t\n dataset = dataset.d\n clear {}\n}"
	all := append(drivers.All(), ticket.Driver{})
	for name, c := range map[string]struct {
		p    *plan.Plan
		kind worker.StepKind
		held bool
	}{
		"sockets":                {parsePlanFor(t, all, text), worker.Load, true},
		"sockets, not measured":  {parsePlanFor(t, all, text), worker.Clear, false},
		"sockets, by goroutines": {ticketsOf(t, plan.Blocking, load), worker.Load, false},
		"timers":                 {nullPlan(t, 1, "", "ops = { get = 1 }\n"+load), worker.Load, false},
	} {
		e := assigned(t, Config{Loops: 1, Drivers: all}, c.p)
		phase := c.p.Phases[0]
		if c.kind == worker.Clear {
			phase = c.p.Phase("wipe")
		}
		prepared(t, e, stepOf(phase, c.kind))
		l := e.group.loops[0]
		ran(t, e)
		require.Equal(t, c.held, l.hold.may, name)
		require.False(t, l.hold.held, name)
	}
}

// A loop runs on the CPU that it is pinned to.
func TestStepOnAPinnedLoop(t *testing.T) {
	var may unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &may))
	cpu := 0
	for !may.IsSet(cpu) {
		cpu++
	}
	p := nullPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 1 }")
	e := assigned(t, Config{Loops: 1, Pin: []int{cpu}}, p)
	loaded(t, e)
	var on atomic.Int64
	e.group.loops[0].lanes[0].tr = &watched{transport: e.group.loops[0].lanes[0].tr, look: func() { on.Store(int64(onCPU())) }}
	e.group.loops[0].tr = e.group.loops[0].lanes[0].tr
	ran(t, e)
	require.EqualValues(t, cpu, on.Load())
}

// watched is a transport with a look at each wait.
type watched struct {
	transport
	look func()
}

func (w *watched) wait(d time.Duration) bool {
	w.look()
	return w.transport.wait(d)
}

// A loop that does not get its CPU any more runs anywhere, says so, and is not held.
func TestStepWhoseCPUIsGone(t *testing.T) {
	var said strings.Builder
	e := assigned(t, Config{Loops: 1, Drivers: []driver.Driver{ticket.Driver{}}, Logger: slog.New(slog.NewTextHandler(&said, nil))},
		ticketsOf(t, plan.EventLoop, "closed {\n iterations = 1\n}"))
	e.cfg.Pin = []int{1023}
	loaded(t, e)
	l := e.group.loops[0]
	ran(t, e)
	require.False(t, l.hold.may)
	require.Contains(t, said.String(), `msg="event loop runs anywhere" error="run a thread on CPU 1023: `)

	e, _ = localEngine(t, logPlan(t, "", logPhase("write", "ops = { append = 1 }\n closed { iterations = 1 }")))
	e.cfg.Pin = []int{1023}
	require.False(t, carryOut(t, e, "write", nil).Log.Threads[0].Pinned)
}

// The thread of an event loop goes on with other work after the step.
func TestLoopsReleaseTheirThreads(t *testing.T) {
	const steps = 60
	p := nullPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 1 }")
	e := assigned(t, Config{Loops: 1}, p)
	step := stepOf(p.Phases[0], worker.Load)
	step.Last = false
	seen := map[int64]bool{}
	for range steps {
		prepared(t, e, step)
		var on atomic.Int64
		l := e.group.loops[0]
		l.feed = &beginning{l.feed, func() { on.Store(int64(unix.Gettid())) }}
		ran(t, e)
		seen[on.Load()] = true
	}
	require.Less(t, len(seen), steps/2)
}

// beginning is a feed with something to do when its step begins.
type beginning struct {
	feed
	note func()
}

func (n *beginning) begin() {
	n.note()
	n.feed.begin()
}

// A driver that panics again and again ends the step in all loops, with the reason, unless something else was the first to fail.
func TestStepWhoseDriverPanics(t *testing.T) {
	full := errors.New("the disk is full")
	for _, first := range []error{nil, full} {
		p := nullPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 2\n duration = \"1h\"\n}")
		d := nullBefore{do: func(*driver.Request) { panic("blown") }}
		e := assigned(t, Config{Loops: 2, Drivers: []driver.Driver{d}}, p)
		loaded(t, e)
		final, err := e.Run(t.Context(), e.now(), func(*measure.Snapshot) (func() error, error) {
			return func() error { return nil }, first
		})
		require.True(t, final.Stopped)
		if first == nil {
			require.ErrorContains(t, err, "4 panics within a minute")
		} else {
			require.Equal(t, first, err)
		}
	}
}

// The lease need not end all loops for a step to have expired: some may be done by then.
func TestLeaseThatEndsOneLoop(t *testing.T) {
	for lapsed := range 2 {
		p := nullPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 2\n iterations = 5\n}")
		e := assigned(t, Config{Loops: 2}, p)
		loaded(t, e)
		endless := new(lease)
		endless.set(never)
		e.group.loops[1-lapsed].lease = endless
		e.SetLease(e.now())
		final := ran(t, e)
		require.True(t, final.Expired)
		require.EqualValues(t, 5, final.Totals.Ops[driver.Get].Due)
	}
}

// How busy clients keep the processors counts from when their step begins.
func TestBusyFromTheBeginningOfAStep(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		p := nullPlan(t, 1, onBlocking+`latency = "1us"`, "ops = { get = 1 }\nclosed { iterations = 1000 }")
		e := assigned(t, Config{Loops: 1, Sleep: time.Sleep}, p)
		loaded(t, e)
		final, err := e.Run(t.Context(), 100*time.Second, takeAll)
		require.NoError(t, err)
		require.Greater(t, final.Generator.Busy, 0.01, "real processor time in a virtual millisecond")
	})
}

// An engine that is closed leaves nothing behind: no file, no connection and no goroutine, whatever it has loaded.
func TestClosedEngineLeavesNothingBehind(t *testing.T) {
	const load = "closed {\n sessions = 3\n iterations = 50\n}"
	trace, dir := tracePlan(t, strings.Repeat("70.0,key:1,5,10,1,get,0\n", 3000))
	for name, p := range map[string]*plan.Plan{
		"null":                 nullPlan(t, 2, "", "ops = { get = 1 }\n"+load),
		"null, blocking":       nullPlan(t, 2, onBlocking, "ops = { get = 1 }\n"+load),
		"a trace":              trace,
		"log":                  logPlan(t, "", logPhase("load", "ops = { append = 1 }\n"+load)),
		"tickets":              ticketsOf(t, plan.EventLoop, load),
		"tickets, blocking":    ticketsOf(t, plan.Blocking, load),
		"tickets, and no time": ticketsOf(t, plan.EventLoop, "open {\n sessions = 3\n rate = 1000\n duration = \"1h\"\n}"),
	} {
		t.Run(name, func(t *testing.T) {
			files, goroutines := openFiles(t), runtime.NumGoroutine()
			root := t.TempDir()
			e := assigned(t, Config{
				Loops: 2, Open: in(dir), LogRoot: func() (string, error) { return root, nil }, Drivers: append(drivers.All(), ticket.Driver{}),
			}, p)
			rounds := 2
			if name == "log" {
				rounds = 1 // its files are gone after the last phase that has them
			}
			for range rounds {
				prepared(t, e, stepOf(p.Phase("load"), worker.Load))
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				_, err := e.Run(ctx, e.now(), takeAll)
				cancel()
				require.NoError(t, err)
				e.halt.Store(goOn)
			}
			if rounds > 1 { // a step that is prepared and never run
				prepared(t, e, stepOf(p.Phase("load"), worker.Load))
			}
			e.Close()
			left := []string{}
			if !assert.Eventually(t, func() bool {
				left = slices.DeleteFunc(openFiles(t), func(file string) bool { return slices.Contains(files, file) })
				return len(left) == 0 && runtime.NumGoroutine() <= goroutines+1 // the one that this runs on
			}, 10*time.Second, 10*time.Millisecond) {
				stacks := make([]byte, 1<<20)
				t.Logf("%v\n%s", left, stacks[:runtime.Stack(stacks, true)])
			}
		})
	}
}

// ticketsOf is a plan with a load on a ticket server.
func ticketsOf(t *testing.T, executor, load string) *plan.Plan {
	t.Helper()
	text := ticketPlan(serveTickets(t, nil).addr, fmt.Sprintf("executor = %q", executor), load)
	return parsePlanFor(t, []driver.Driver{ticket.Driver{}}, text)
}

// openFiles lists what this process has open.
func openFiles(t *testing.T) (files []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && !strings.HasPrefix(to, "/proc/self/fd") {
			files = append(files, to)
		}
	}
	return files
}

// A sink that fails ends the step, whether it fails at once or when what it took is to be kept. The first failure is the cause.
func TestStepWhoseSinkFails(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		causes := []error{errors.New("the disk is full"), errors.New("it still is"), errors.New("and still is")}
		n := 0
		fail := func() error {
			n++
			return causes[min(n, len(causes))-1]
		}
		p := nullPlan(t, 1, `latency = "1500ms"`, "ops = { get = 1 }\nclosed {\n sessions = 2\n duration = \"1h\"\n}")
		e := assigned(t, Config{Loops: 2}, p)
		loaded(t, e)
		_, err := e.Run(t.Context(), e.now(), func(*measure.Snapshot) (func() error, error) {
			if atOnce {
				return nil, fail()
			}
			return fail, nil
		})
		require.Greater(t, n, 1)
		require.Equal(t, causes[0], err)
	}
}

// tidying is the ticket driver with something on its servers that is made before a load and removed after a clear phase.
type tidying struct {
	ticket.Driver
	made, removed *atomic.Int64
	fails         bool
}

func (d tidying) Prepare(context.Context, net.Conn, driver.Link) error {
	d.made.Add(1)
	return nil
}

func (d tidying) CleanUp(context.Context, net.Conn, driver.Link) error {
	d.removed.Add(1)
	if d.fails {
		return errors.New("not now")
	}
	return nil
}

// What a driver has made is removed after a clear phase that ran to its end, and made again before the next load.
func TestCleaningUp(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		d := tidying{made: new(atomic.Int64), removed: new(atomic.Int64), fails: fails}
		p := parsePlanFor(t, []driver.Driver{d}, ticketPlan(serveTickets(t, nil).addr, "", ticketLoad)+
			"\nphase \"wipe\" {\n target = target.t\n dataset = dataset.d\n clear {}\n}")
		var said strings.Builder
		e := assigned(t, Config{Loops: 1, Drivers: []driver.Driver{d}, Logger: slog.New(slog.NewTextHandler(&said, nil))}, p)
		for _, step := range []struct {
			phase         int
			kind          worker.StepKind
			idle, stop    bool
			made, removed int64
		}{
			{0, worker.Load, false, false, 1, 0},
			{0, worker.Load, false, false, 1, 0},
			{1, worker.Clear, false, true, 1, 0},
			{1, worker.Clear, true, false, 1, 0},
			{1, worker.Clear, false, false, 1, 1},
			{0, worker.Load, false, false, 2, 1},
		} {
			e.halt.Store(goOn)
			order := stepOf(p.Phases[step.phase], step.kind)
			if step.idle { // the sessions are other workers'
				order.To = 0
			}
			prepared(t, e, order)
			if step.stop {
				e.Drain()
			}
			ran(t, e)
			require.Equal(t, [2]int64{step.made, step.removed}, [2]int64{d.made.Load(), d.removed.Load()}, "%+v", step)
		}
		require.Equal(t, fails, strings.Contains(said.String(), `msg="server is not cleaned up" target=t error=`), said.String())
	}
}
