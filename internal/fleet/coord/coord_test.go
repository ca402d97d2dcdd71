package coord_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// fakeWorker runs no ops, but counts as told.
type fakeWorker struct {
	mu      sync.Mutex
	once    sync.Once
	calls   []string
	drained chan struct{}

	prepare    func(ctx context.Context) // may wait
	prepareErr error
	runErr     error    // that it reports, after what it has counted
	nodes      []string // that it finds in a cluster
	// count fills in what a step counted; it may wait.
	count func(ctx context.Context, w *fakeWorker, step worker.Step, t *measure.Totals)
	// lie changes the final report on a step.
	lie  func(f *worker.Final)
	open bool // no snapshot says that it is the last
	step worker.Step
	seq  uint64
}

func newFake() *fakeWorker { return &fakeWorker{drained: make(chan struct{})} }

func (w *fakeWorker) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, fmt.Sprintf(format, args...))
}

// noted returns the calls so far; over a connection, one may still come in.
func (w *fakeWorker) noted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

func (w *fakeWorker) Assign(_ context.Context, a worker.Assignment) error {
	w.note("assign %d of %d", a.Index, a.Workers)
	return nil
}

func (w *fakeWorker) Prepare(ctx context.Context, step worker.Step) (worker.Ready, error) {
	if w.prepare != nil {
		w.prepare(ctx)
	}
	w.note("prepare %s %s %d–%d last=%t", step.Phase, step.Kind, step.From, step.To, step.Last)
	w.step = step
	ready := worker.Ready{Step: step.Seq, Sessions: step.To - step.From}
	if w.nodes != nil {
		ready.Nodes = map[string][]string{"t": w.nodes}
	}
	return ready, w.prepareErr
}

func (w *fakeWorker) Run(ctx context.Context, at time.Duration, sink worker.Sink) (worker.Final, error) {
	w.note("run %s %s", w.step.Phase, w.step.Kind)
	t := measure.NewTotals(int64(at), 1)
	if w.count != nil {
		w.count(ctx, w, w.step, t)
	} else {
		done(t, w.step.To-w.step.From)
	}
	w.seq++
	kept, err := sink(&measure.Snapshot{
		Step: w.step.Seq, SeqFirst: w.seq, SeqLast: w.seq, From: int64(at), To: int64(at) + 1e9,
		Delta: *t, Running: t.Counters(), Final: !w.open,
	})
	if err == nil {
		err = kept()
	}
	final := worker.Final{Step: w.step.Seq, Totals: t}
	if w.lie != nil {
		w.lie(&final)
	}
	return final, cmp.Or(err, w.runErr)
}

func (w *fakeWorker) Drain() { w.once.Do(func() { close(w.drained) }) }

// SetLease and Close are what the worker's end of a connection asks for.
func (w *fakeWorker) SetLease(time.Duration) {}
func (w *fakeWorker) Close()                 {}

// done counts n puts that went well.
func done(t *measure.Totals, n int) { doneAs(t, driver.Put, n) }

// appended counts an append of each session, as a worker's count.
func appended(_ context.Context, _ *fakeWorker, step worker.Step, t *measure.Totals) {
	doneAs(t, driver.Append, step.To-step.From)
}

// doneAs counts n ops that went well.
func doneAs(t *measure.Totals, verb driver.Verb, n int) {
	for i := range n {
		t.AddDue(verb)
		at := t.Origin + int64(i)*1e6
		t.Record(&measure.Sample{Verb: verb, Outcome: driver.OK, Due: at, Start: at, End: at + 1e6})
		*t.Request(0, verb) = measure.Requests{Sent: uint64(i + 1), Answered: uint64(i + 1)}
	}
	t.Span.Session(t.Origin, t.Origin+int64(n)*1e6)
}

// memory is a Store.
type memory struct {
	snapshots int // of workers
	records   []kept
	probes    []string
	err       error
}

// kept is a record as it was kept; without a worker's name it is the coordinator's own.
type kept struct {
	worker string
	record []byte
}

func (m *memory) Append(worker string, record []byte) error {
	m.records = append(m.records, kept{worker, bytes.Clone(record)})
	if worker == "" { // the coordinator's own
		return nil
	}
	m.snapshots++
	return m.err
}

func (m *memory) Observe(probe []byte) error {
	m.probes = append(m.probes, string(probe))
	return m.err
}

func (m *memory) Sync() error { return nil }

const twoPhases = `
plan "test" {}
target "t" {
	driver    = "null"
	endpoints = ["a"]
}
dataset "pools" {
	keys {
		count = 1
		scope = "session"
	}
	values { size = 10 }
}
phase "first" {
	target  = target.t
	dataset = dataset.pools
	ops     = { put = 1 }
	setup { ops = { put = 1 } }
	closed {
		sessions   = 10
		iterations = 1
	}
}
phase "second" {
	target  = target.t
	dataset = dataset.pools
	ops     = { put = 1 }
	closed {
		sessions   = 3
		iterations = 1
	}
}`

func config(t *testing.T, join joiner, workers ...*fakeWorker) coord.Config {
	return configOf(t, twoPhases, join, workers...)
}

func configOf(t *testing.T, text string, join joiner, workers ...*fakeWorker) coord.Config {
	servertest.Deadline(t)
	file, diags := plan.Parse([]byte(text), "test.hcl", drivers.All())
	require.Empty(t, diags)
	p, diags := file.Resolve(plan.Vars{})
	require.Empty(t, diags)
	canonical, err := p.Canonical()
	require.NoError(t, err)
	cfg := coord.Config{
		Header: run.Header{ID: "id", PlanDigest: plan.Digest(canonical)}, Environment: machine.Environment{Servers: map[string]map[string]map[string]string{}},
		Plan: p, Canonical: canonical, Store: &memory{}, Logger: slog.New(slog.DiscardHandler), Drain: make(chan struct{}),
	}
	cfg.Workers = join(t, workers)
	return cfg
}

func TestStepsInOrder(t *testing.T) { overBoth(t, testStepsInOrder) }

func testStepsInOrder(t *testing.T, join joiner) {
	a, b := newFake(), newFake()
	a.lie = func(f *worker.Final) { f.Generator.CPUSeconds = 2 }
	b.lie = a.lie
	cfg := config(t, join, a, b)
	cfg.AbortOnLoss = true // and nobody is lost
	var updates []run.Update
	cfg.Progress = func(u run.Update) { updates = append(updates, u) }
	r := coord.Run(context.Background(), cfg)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	require.Equal(t, []string{
		"assign 0 of 2",
		"prepare first setup 0–5 last=false", "run first setup",
		"prepare first load 0–5 last=true", "run first load",
		"prepare second load 0–1 last=true", "run second load",
	}, a.noted())
	require.Contains(t, b.noted(), "prepare second load 1–3 last=true")
	require.Equal(t, []string{"w0", "w1"}, r.Workers)
	for _, w := range r.Fleet {
		require.Equal(t, 5, w.Sessions, "the most that it had in a phase")
		require.InDelta(t, 6, w.CPUSeconds, 1e-9, "of three steps")
	}
	require.EqualValues(t, 10, r.Phase["first"].Op["put"].OK)
	require.EqualValues(t, 10, r.Phase["first"].Setup.Op["put"].OK)
	require.EqualValues(t, 3, r.Phase["second"].Op["put"].OK)
	require.Equal(t, 6, cfg.Store.(*memory).snapshots)
	require.Len(t, updates, 3)
	require.EqualValues(t, 10, updates[1].Done)
	require.Zero(t, updates[1].Bad)
	require.Equal(t, run.Verdict{Completeness: run.Complete, Validity: run.Valid, Assertions: run.None}, updates[1].Verdict)
	require.Equal(t, r.Phase["first"].Validity, updates[2].Verdict.Validity, "of the phase that has ended")
}

// TestOpsWithoutRequestsAreInvalid has a worker count a million puts and no request.
func TestOpsWithoutRequestsAreInvalid(t *testing.T) { overBoth(t, testOpsWithoutRequests) }

func testOpsWithoutRequests(t *testing.T, join joiner) {
	w := newFake()
	w.count = func(_ context.Context, w *fakeWorker, step worker.Step, t *measure.Totals) {
		if done(t, w.step.To-w.step.From); step.Phase == "second" {
			const more = 1_000_000
			t.AddDueN(driver.Put, more)
			t.RecordN(&measure.Sample{Verb: driver.Put, Outcome: driver.OK, Due: t.Origin, Start: t.Origin, End: t.Origin + 1e6}, more)
		}
	}
	r := coord.Run(context.Background(), config(t, join, w))
	require.Equal(t, run.Invalid, r.Verdict.Validity)
	require.Equal(t, exit.Invalid, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons, "phase second: put: 1,000,003 ops ended ok or miss, which takes 1,000,003 answered requests, and 3 were")
	require.NoError(t, r.CheckValid())
}

func TestPrepareFails(t *testing.T) { overBoth(t, testPrepareFails) }

func testPrepareFails(t *testing.T, join joiner) {
	a, b := newFake(), newFake()
	b.prepareErr = errors.New("connect to n0: connection refused")
	r := coord.Run(context.Background(), config(t, join, a, b))
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Equal(t, []string{`phase "first": worker w1: connect to n0: connection refused`}, r.Verdict.Reasons)
	require.Empty(t, r.PhaseOrder)
	require.NotContains(t, a.noted(), "run first setup")
}

func TestSetupFallsShort(t *testing.T) { overBoth(t, testSetupFallsShort) }

func testSetupFallsShort(t *testing.T, join joiner) {
	w := newFake()
	w.count = func(_ context.Context, _ *fakeWorker, _ worker.Step, t *measure.Totals) {
		done(t, 9)
		t.AddDue(driver.Put)
		t.Record(&measure.Sample{Verb: driver.Put, Outcome: driver.Error, Due: t.Origin, Start: t.Origin, End: t.Origin})
	}
	r := coord.Run(context.Background(), config(t, join, w))
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], `phase "first": setup: 9 of 10 put ops were done`)
	require.Equal(t, reason.SetupFailed, r.Verdict.Codes[0])
	require.NotContains(t, w.noted(), "run first load")
}

// TestASetupHasItsOwnOps, which need not be those of the load.
func TestASetupHasItsOwnOps(t *testing.T) {
	w := newFake()
	w.count = func(_ context.Context, _ *fakeWorker, step worker.Step, t *measure.Totals) {
		verb := driver.Put
		if step.Phase == "first" && step.Kind.Timed() {
			verb = driver.Get
		}
		doneAs(t, verb, step.To-step.From)
	}
	r := coord.Run(t.Context(), configOf(t, strings.Replace(twoPhases, "put = 1 }\n	setup", "get = 1 }\n	setup", 1), local, w))
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
}

// Only a lost worker would have read what it was to put for its own sessions, so the others go on.
func TestSetupLosesAWorker(t *testing.T) {
	a, b := newFake(), newFake()
	cfg := config(t, local, a, b)
	cfg.Workers[1].Worker = &leaving{fakeWorker: b}
	r := coord.Run(context.Background(), cfg)
	require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
	require.Contains(t, a.noted(), "run first load")
}

// fillAndRead fills a dataset that all sessions of a load share.
const fillAndRead = `
plan "test" {}
target "t" {
	driver    = "null"
	endpoints = ["a"]
}
dataset "shared" {
	keys { count = 10 }
	values { size = 10 }
}
phase "fill" {
	target  = target.t
	dataset = dataset.shared
	populate { sessions = 10 }
}
phase "read" {
	target  = target.t
	dataset = dataset.shared
	ops     = { get = 1 }
	closed {
		sessions   = 10
		iterations = 1
	}
}`

// Keys that all sessions share, and that a lost worker was to put, are missing from every later load.
func TestPopulateLosesAWorker(t *testing.T) {
	a, b := newFake(), newFake()
	cfg := configOf(t, fillAndRead, local, a, b)
	cfg.Workers[1].Worker = &leaving{fakeWorker: b}
	r := coord.Run(context.Background(), cfg)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, strings.Join(r.Verdict.Reasons, "\n"), "5 of 10 put ops were done: 5 were never begun")
	require.NotContains(t, a.noted(), "run read load")
}

// A lost worker of a cache leaves no files that nobody has read back.
func TestALostWorkerOfACacheWroteNoLog(t *testing.T) {
	a, b := newFake(), newFake()
	cfg := configOf(t, fillAndRead, local, a, b)
	cfg.Workers[1].Worker = &leaving{fakeWorker: b, after: 1}
	r := coord.Run(context.Background(), cfg)
	require.Len(t, r.Losses, 1)
	require.Nil(t, r.Phase["read"].Log)
	require.NotContains(t, strings.Join(r.Verdict.Reasons, "\n"), "was not verified")
}

func TestWorkerContradictsItself(t *testing.T) { overBoth(t, testWorkerContradictsItself) }

func testWorkerContradictsItself(t *testing.T, join joiner) {
	w := newFake()
	w.lie = func(f *worker.Final) { f.Totals.Reconnects++ }
	r := coord.Run(context.Background(), config(t, join, w))
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], "the sum of its snapshots is not its total")

	w = newFake()
	w.lie = func(f *worker.Final) { f.Step = 7 }
	r = coord.Run(context.Background(), config(t, join, w))
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], "it has ended step 7, not 0")
}

// TestAFailureEndsThePhaseForAll at once, in a load of an hour: a worker has reported one. The result names the worker, and has what the other counted
// until then.
func TestAFailureEndsThePhaseForAll(t *testing.T) { overBoth(t, testAFailureEndsThePhaseForAll) }

func testAFailureEndsThePhaseForAll(t *testing.T, join joiner) {
	a, b := newFake(), newFake()
	text, _, _ := strings.Cut(onePhase, "closed {")
	cfg := configOf(t, text+"closed {\n sessions = 10\n duration = \"1h\"\n}\n}", join, a, b)
	began := make(chan struct{})
	a.count = func(ctx context.Context, w *fakeWorker, step worker.Step, t *measure.Totals) {
		done(t, 70)
		close(began)
		select {
		case <-w.drained:
		case <-ctx.Done():
		}
	}
	b.count = func(context.Context, *fakeWorker, worker.Step, *measure.Totals) { <-began }
	b.runErr = errors.New("session 7: 4 panics within a minute")
	r := coord.Run(t.Context(), cfg)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Equal(t, []string{`phase "only": worker w1: session 7: 4 panics within a minute`}, r.Verdict.Reasons[:1])
	require.Equal(t, reason.NotCarriedOut, r.Verdict.Codes[0])
	require.Equal(t, []string{"", "session 7: 4 panics within a minute"}, []string{r.Fleet[0].Failed, r.Fleet[1].Failed})
	require.Empty(t, r.Losses)
	require.EqualValues(t, 70, r.Phase["only"].Op["put"].OK)
	require.Equal(t, run.EndStopped, r.Phase["only"].Ended)
	require.Equal(t, run.Invalid, r.Phase["only"].Validity)
	require.Equal(t, run.Reason{Code: reason.NotCarriedOut, Text: "ended early because of a failure: worker w1: session 7: 4 panics within a minute", Validity: run.Invalid, Touches: r.Phase["only"].Reasons[0].Touches}, r.Phase["only"].Reasons[0])
	require.NoError(t, r.CheckValid())
}

// TestWorkerEndsWithoutItsLastSnapshot: that must not pass for a run in which the other workers counted nothing.
func TestWorkerEndsWithoutItsLastSnapshot(t *testing.T) {
	overBoth(t, testWorkerEndsWithoutItsLastSnapshot)
}

func testWorkerEndsWithoutItsLastSnapshot(t *testing.T, join joiner) {
	w, hasty := newFake(), newFake()
	hasty.open = true
	r := coord.Run(context.Background(), config(t, join, w, hasty))
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], "it has ended step 0, and its snapshots have not")
}

// TestWorkerThatEndsByItself counts as lost, for whatever reason it ended, unless it was told to end.
func TestWorkerThatEndsByItself(t *testing.T) {
	stopped, expired := func(f *worker.Final) { f.Stopped = true }, func(f *worker.Final) { f.Expired = true }
	for name, c := range map[string]struct {
		says  func(*worker.Final)
		drain bool // the user wants an end meanwhile
		want  string
	}{
		"stopped":              {says: stopped, want: "it was stopped on its own machine"},
		"expired":              {says: expired, want: "it stopped by itself, because it had not heard from the coordinator for the length of its lease"},
		"neither":              {says: func(*worker.Final) {}},
		"stopped when told to": {says: stopped, drain: true},
		"expired when told to": {says: expired, drain: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newFake(), newFake()
			cfg := configOf(t, onePhase, local, a, b)
			drain := make(chan struct{})
			cfg.Drain = drain
			b.lie = c.says
			if c.drain {
				b.count = func(_ context.Context, w *fakeWorker, step worker.Step, t *measure.Totals) {
					done(t, step.To-step.From)
					close(drain)
					<-w.drained
				}
			}
			r := coord.Run(t.Context(), cfg)
			if c.want == "" {
				require.Empty(t, r.Losses)
				return
			}
			require.Len(t, r.Losses, 1)
			require.Equal(t, []string{"w1", c.want}, []string{r.Losses[0].Worker, r.Losses[0].Why})
			require.Zero(t, r.Losses[0].UnseenOps, "it has said all")
			require.EqualValues(t, 10, r.Phase["only"].Op["put"].OK)
		})
	}
}

func TestStoreFails(t *testing.T) { overBoth(t, testStoreFails) }

func testStoreFails(t *testing.T, join joiner) {
	w := newFake()
	cfg := config(t, join, w)
	cfg.Store = &memory{err: errors.New("no space left on device")}
	r := coord.Run(context.Background(), cfg)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], "no space left on device")
	<-w.drained
	require.NotContains(t, w.noted(), "run first load")
}

// stuck is a Store on a disk that hangs.
type stuck struct {
	memory
	inUse atomic.Bool
}

func (s *stuck) Sync() error {
	s.inUse.Store(true)
	time.Sleep(time.Minute)
	s.inUse.Store(false)
	return nil
}

// TestStoreHangs for longer than a run waits: the run fails, and returns only once it no longer uses the store, which its owner then closes.
func TestStoreHangs(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		cfg, store := config(t, local, newFake()), &stuck{}
		cfg.Store = store
		r := coord.Run(context.Background(), cfg)
		require.Equal(t, exit.Failed, r.ExitCode)
		require.Contains(t, r.Verdict.Reasons[0], "not kept after 30s")
		require.False(t, store.inUse.Load())
	})
}

func TestDrain(t *testing.T) { overBoth(t, testDrain) }

func testDrain(t *testing.T, join joiner) {
	w := newFake()
	cfg := config(t, join, w)
	drain := make(chan struct{})
	cfg.Drain = drain
	w.count = func(_ context.Context, w *fakeWorker, step worker.Step, t *measure.Totals) {
		done(t, step.To-step.From)
		if step.Kind.Timed() {
			close(drain)
			<-w.drained
		}
	}
	r := coord.Run(context.Background(), cfg)
	require.Equal(t, exit.Aborted, r.ExitCode)
	require.Equal(t, []string{"first"}, r.PhaseOrder)
	require.EqualValues(t, 10, r.Phase["first"].Op["put"].OK)
}

func TestHardStop(t *testing.T) { overBoth(t, testHardStop) }

func testHardStop(t *testing.T, join joiner) {
	w := newFake()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.count = func(ctx context.Context, _ *fakeWorker, step worker.Step, t *measure.Totals) {
		done(t, step.To-step.From)
		cancel()
		<-ctx.Done()
	}
	r := coord.Run(ctx, config(t, join, w))
	require.Equal(t, exit.Aborted, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons, "stopped by the user")
	require.Contains(t, r.Verdict.Codes, reason.User.Code)
}

// When the ops of all workers together have failed as often as the plan tolerates, all are told to stop, and no further phase follows.
func TestErrorsEndTheRun(t *testing.T) { overBoth(t, testErrorsEndTheRun) }

func testErrorsEndTheRun(t *testing.T, join joiner) {
	for stop, enough := range map[string]int{"stop_after = 12": 12, `on_error = "stop"`: 1, `stop_after = "5%"`: 11} {
		a, b := newFake(), newFake()
		fails := func(n int) func(context.Context, *fakeWorker, worker.Step, *measure.Totals) {
			return func(_ context.Context, w *fakeWorker, step worker.Step, t *measure.Totals) {
				done(t, 200)
				if !step.Kind.Timed() {
					return
				}
				for range n {
					t.AddDue(driver.Put)
					t.Record(&measure.Sample{Verb: driver.Put, Outcome: driver.Timeout, Due: t.Origin, Start: t.Origin, End: t.Origin})
				}
				if w == b {
					select { // it goes on until it is told to stop
					case <-w.drained:
					case <-time.After(5 * time.Second):
					}
				}
			}
		}
		a.count, b.count = fails(enough), fails(0)
		text := strings.Replace(twoPhases, "closed {", stop+"\n\tclosed {", 1)
		r := coord.Run(context.Background(), configOf(t, text, join, a, b))
		require.Equal(t, exit.Aborted, r.ExitCode, stop)
		require.Equal(t, []string{"first"}, r.PhaseOrder)
		require.Contains(t, r.Verdict.Reasons[0], fmt.Sprintf("phase first: ended by %s: %d of ", stop, enough))
		require.Equal(t, reason.StoppedByPlan, r.Verdict.Codes[0])
		put := r.Phase["first"].Op["put"]
		require.EqualValues(t, enough, put.Timeout)
		require.EqualValues(t, 400, put.OK)
		require.Contains(t, r.Phase["first"].Reasons[0].Text, "ended early, by "+stop)
		require.Less(t, r.Seconds, 4.0)
	}
}

// One failure fewer changes nothing, nor does a conflict.
func TestFewerErrorsThanAreTooMany(t *testing.T) { overBoth(t, testFewerErrorsThanAreTooMany) }

func testFewerErrorsThanAreTooMany(t *testing.T, join joiner) {
	w := newFake()
	w.count = func(_ context.Context, _ *fakeWorker, step worker.Step, t *measure.Totals) {
		done(t, 50)
		if step.Kind.Timed() {
			for _, outcome := range []driver.Outcome{driver.Timeout, driver.Error, driver.Conflict, driver.Conflict} {
				t.AddDue(driver.Put)
				t.Record(&measure.Sample{Verb: driver.Put, Outcome: outcome, Due: t.Origin, Start: t.Origin, End: t.Origin})
			}
		}
	}
	text := strings.Replace(twoPhases, "closed {", "stop_after = 3\n\tclosed {", 1)
	r := coord.Run(context.Background(), configOf(t, text, join, w))
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	require.Equal(t, []string{"first", "second"}, r.PhaseOrder)
}
