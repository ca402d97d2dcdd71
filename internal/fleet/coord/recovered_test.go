package coord_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// telling is a worker that says more when it is ready.
type telling struct {
	*fakeWorker
	ready worker.Ready
}

func (w *telling) Prepare(ctx context.Context, step worker.Step) (worker.Ready, error) {
	r, err := w.fakeWorker.Prepare(ctx, step)
	w.ready.Step, w.ready.Sessions, w.ready.Nodes = r.Step, r.Sessions, r.Nodes
	return w.ready, err
}

// builtIn are nodes whose flush is counted.
type builtIn struct{ flushed int }

func (b *builtIn) Start(context.Context, *plan.Target) ([]string, error) {
	return []string{"127.0.0.1:7", "127.0.0.1:8"}, nil
}

func (b *builtIn) Flush(context.Context, string) error {
	b.flushed++
	return nil
}

// severalKinds has a phase that empties its nodes, and two loads of it.
const severalKinds = `
plan "test" {}
target "t" {
	driver = "redis"
	builtin {}
}
target "u" {
	driver    = "redis"
	cluster   = true
	endpoints = ["10.0.0.1:1"]
}
dataset "d" {
	keys { count = 10 }
	values { size = 10 }
}
phase "before" {
	target  = target.t
	dataset = dataset.d
	ops     = { put = 1 }
	closed {
		sessions   = 2
		iterations = 1
	}
}
phase "empty" {
	target  = target.t
	dataset = dataset.d
	clear {}
}
phase "after" {
	target  = target.u
	dataset = dataset.d
	ops     = { put = 1 }
	closed {
		sessions   = 2
		iterations = 1
	}
}`

// kindsOfRuns are runs that leave each kind of record behind.
func kindsOfRuns() map[string]func(t *testing.T) coord.Config {
	two := func(t *testing.T, text string) (coord.Config, *fakeWorker, *fakeWorker) {
		a, b := newFake(), newFake()
		return configOf(t, text, local, a, b), a, b
	}
	counting := func(capacity float64, workers ...*fakeWorker) {
		for _, w := range workers {
			w.count = queue(capacity, new([]worker.Step))
		}
	}
	cut := func(change func(*worker.Final)) func(t *testing.T) coord.Config {
		return func(t *testing.T) coord.Config {
			cfg, _, b := two(t, twoPhases)
			b.lie = change
			return cfg
		}
	}
	return map[string]func(t *testing.T) coord.Config{
		"observations": func(t *testing.T) coord.Config {
			return observing(t, observed, local, &fakeProbe{w: newFake()})
		},
		"nodes, and what servers and clocks say": func(t *testing.T) coord.Config {
			cfg, a, b := two(t, severalKinds)
			cfg.Nodes = new(builtIn)
			a.nodes, b.nodes = []string{"10.0.0.1:1", "10.0.0.2:1"}, []string{"10.0.0.1:1", "10.0.0.2:1"}
			for i, w := range []*fakeWorker{a, b} {
				ready := worker.Ready{Remote: i == 1, Offset: 3 * time.Second, Uncertainty: time.Millisecond, Ops: uint64(7 + i)}
				ready.Servers = map[string]map[string]map[string]string{
					"t": {"127.0.0.1:" + string(rune('7'+i)): {"version": "1"}}, "x": {"of no target of the plan": {}},
				}
				cfg.Workers[i].Worker = &telling{fakeWorker: w, ready: ready}
				w.lie = func(f *worker.Final) { f.Uncertainty = time.Duration(2+i) * time.Millisecond }
			}
			return cfg
		},
		"what generators say": func(t *testing.T) coord.Config {
			cfg, a, b := two(t, twoPhases)
			a.lie = func(f *worker.Final) {
				f.Generator = measure.Generator{CPUSeconds: 2, Executor: "event loop", Loops: 1, MachineUnknown: "it was not read"}
			}
			b.lie = func(f *worker.Final) {
				f.Generator = measure.Generator{CPUSeconds: 1, Loops: 2, Machine: &measure.Machine{OthersShare: 0.4, IdleShare: 0.01, Seconds: 10, Host: "b"}}
			}
			return cfg
		},
		"stages, and a loss": func(t *testing.T) coord.Config {
			cfg, a, b := two(t, levelsPlan(threeStages))
			counting(10_000, a, b)
			cfg.Workers[1].Worker = &leaving{fakeWorker: b, after: 1}
			return cfg
		},
		"a search": func(t *testing.T) coord.Config {
			cfg, a, b := two(t, levelsPlan(aSearch))
			counting(9000, a, b)
			return cfg
		},
		"a search out of budget": func(t *testing.T) coord.Config {
			cfg, a, b := two(t, levelsPlan(strings.Replace(aSearch, "step_duration", "budget = \"1s\"\n\tstep_duration", 1)))
			counting(9000, a, b)
			return cfg
		},
		"an end that the plan wants": func(t *testing.T) coord.Config {
			cfg, a, _ := two(t, strings.Replace(twoPhases, "closed {", "stop_after = 1\n\tclosed {", 1))
			a.count = func(_ context.Context, _ *fakeWorker, step worker.Step, t *measure.Totals) {
				done(t, step.To-step.From)
				if step.Kind.Timed() {
					t.AddDue(driver.Put)
					t.Record(&measure.Sample{Verb: driver.Put, Outcome: driver.Error, Due: t.Origin, Start: t.Origin, End: t.Origin})
				}
			}
			return cfg
		},
		"an end for a loss": func(t *testing.T) coord.Config {
			cfg, _, b := two(t, twoPhases)
			cfg.Workers[1].Worker = &leaving{fakeWorker: b, after: 1}
			cfg.AbortOnLoss = true
			return cfg
		},
		"a loss before a step": func(t *testing.T) coord.Config {
			cfg, _, b := two(t, twoPhases)
			cfg.Workers[1].Worker = &absent{fakeWorker: b, after: 2}
			return cfg
		},
		"a worker that was stopped":     cut(func(f *worker.Final) { f.Stopped = true }),
		"a worker whose lease was over": cut(func(f *worker.Final) { f.Expired = true }),
		"keys that are not put": func(t *testing.T) coord.Config {
			cfg, _, b := two(t, twoPhases)
			b.count = func(_ context.Context, _ *fakeWorker, _ worker.Step, t *measure.Totals) { done(t, 1) }
			return cfg
		},
	}
}

// absent is a worker that is lost when it is told to prepare a step, after some others.
type absent struct {
	*fakeWorker
	after int
}

func (w *absent) Prepare(ctx context.Context, step worker.Step) (worker.Ready, error) {
	if w.after--; w.after < 0 {
		return worker.Ready{}, &worker.Loss{Worker: "w1", Why: "it is gone"}
	}
	return w.fakeWorker.Prepare(ctx, step)
}

// upTo is the latest time that a snapshot reaches.
func upTo(t *testing.T, records []kept) (at time.Duration) {
	for _, r := range records {
		var s measure.Snapshot
		if r.worker != "" {
			_, err := s.Decode(r.record)
			require.NoError(t, err)
			at = max(at, time.Duration(s.To))
		}
	}
	return at
}

// TestRecoveredIsWhatTheRunCameTo compares, for each kind of run, the coordinator's own result with the one recovered from its records. It also
// recovers a result from prefixes of them.
func TestRecoveredIsWhatTheRunCameTo(t *testing.T) {
	for name, of := range kindsOfRuns() {
		t.Run(name, func(t *testing.T) {
			cfg := of(t)
			live := coord.Run(t.Context(), cfg)
			if nodes, ok := cfg.Nodes.(*builtIn); ok {
				require.Equal(t, 1, nodes.flushed, "by the phase that clears them")
			}
			records := cfg.Store.(*memory).records
			for n := 0; n < len(records); n += 1 + len(records)/6 {
				_, err := coord.Recover(ofKept(cfg, records[:n]))
				if !errors.Is(err, coord.ErrNothingKept) {
					require.NoError(t, err, "%d of %d records", n, len(records))
				}
			}
			kept, err := coord.Recover(ofKept(cfg, records))
			require.NoError(t, err)
			require.Equal(t, live.PhaseOrder, kept.PhaseOrder)
			require.Equal(t, live.Phase, kept.Phase)
			require.Equal(t, live.Fleet, kept.Fleet)
			require.Equal(t, live.Losses, kept.Losses)
			require.Equal(t, live.Workers, kept.Workers)
			require.Equal(t, live.Environment, kept.Environment)
			want := live.Verdict.Completeness
			switch want {
			case run.Complete:
				want = run.Degraded
			case run.Aborted, run.Failed:
				require.Equal(t, live.Verdict.Reasons[0], kept.Verdict.Reasons[0])
			}
			require.Equal(t, want, kept.Verdict.Completeness, kept.Verdict.Reasons)
			require.True(t, kept.Recovered)
			requireReplayed(t, cfg, live)
			require.InDelta(t, upTo(t, records).Seconds(), kept.Seconds, 1e-9, "fakes say that each step takes a second")
		})
	}
}

// requireReplayed keeps how a run ended, and makes its result again.
func requireReplayed(t *testing.T, cfg coord.Config, live *run.Run) {
	t.Helper()
	live.CoordinatorCPUSeconds = 7
	require.NoError(t, coord.End(cfg.Store, live))
	again, err := coord.Replay(ofKept(cfg, cfg.Store.(*memory).records))
	require.NoError(t, err)
	require.Empty(t, rundir.Differences(live, again))
}

// TestReplayOfRunsThatEndedEarly: however a run ended, its records make its result.
func TestReplayOfRunsThatEndedEarly(t *testing.T) {
	stop := func(t *testing.T, how func(cfg *coord.Config) context.CancelFunc) (coord.Config, *run.Run) {
		w := newFake()
		cfg := config(t, local, w, newFake())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		end := how(&cfg)
		if end == nil {
			end = cancel
		}
		w.count = func(ctx context.Context, w *fakeWorker, step worker.Step, t *measure.Totals) {
			if done(t, step.To-step.From); step.Kind.Timed() {
				end()
				select {
				case <-w.drained:
				case <-ctx.Done():
				}
			}
		}
		return cfg, coord.Run(ctx, cfg)
	}
	for name, of := range map[string]func(t *testing.T) (coord.Config, *run.Run){
		"by the user": func(t *testing.T) (coord.Config, *run.Run) {
			return stop(t, func(cfg *coord.Config) context.CancelFunc {
				drain := make(chan struct{})
				cfg.Drain = drain
				return func() { close(drain) }
			})
		},
		"at once": func(t *testing.T) (coord.Config, *run.Run) {
			return stop(t, func(*coord.Config) context.CancelFunc { return nil })
		},
		"by a failure": func(t *testing.T) (coord.Config, *run.Run) {
			a, b := newFake(), newFake()
			b.runErr = errors.New("session 7: 4 panics within a minute")
			cfg := config(t, local, a, b)
			return cfg, coord.Run(t.Context(), cfg)
		},
		"by a contradiction": func(t *testing.T) (coord.Config, *run.Run) {
			a, b := newFake(), newFake()
			b.lie = func(f *worker.Final) { f.Totals.Reconnects++ }
			cfg := config(t, local, a, b)
			return cfg, coord.Run(t.Context(), cfg)
		},
		"before a load": func(t *testing.T) (coord.Config, *run.Run) {
			a := newFake()
			a.prepareErr = errors.New("connection refused")
			cfg := config(t, local, a)
			return cfg, coord.Run(t.Context(), cfg)
		},
		"by the loss of all": func(t *testing.T) (coord.Config, *run.Run) {
			a := newFake()
			a.count = func(_ context.Context, w *fakeWorker, step worker.Step, t *measure.Totals) {
				done(t, step.To-step.From)
				w.open = step.Kind.Timed()
			}
			cfg := config(t, local, a)
			cfg.Workers[0].Worker = losing{a}
			return cfg, coord.Run(t.Context(), cfg)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, live := of(t)
			require.True(t, run.Degraded.Better(live.Verdict.Completeness), live.Verdict.Completeness)
			requireReplayed(t, cfg, live)
		})
	}
}

// TestReplayRefusesABetterEnd than what was kept before it came to.
func TestReplayRefusesABetterEnd(t *testing.T) {
	a, b := newFake(), newFake()
	cfg := config(t, local, a, b)
	cfg.Workers[1].Worker = &leaving{fakeWorker: b, after: 1}
	live := coord.Run(t.Context(), cfg)
	require.Equal(t, run.Degraded, live.Verdict.Completeness)
	live.Conclude(run.Complete)
	require.NoError(t, coord.End(cfg.Store, live))
	_, err := coord.Replay(ofKept(cfg, cfg.Store.(*memory).records))
	require.ErrorContains(t, err, "the run ended complete, but by the records before that it was degraded at best")

	_, err = coord.Replay(ofKept(cfg, cfg.Store.(*memory).records[:5]))
	require.ErrorContains(t, err, "its records do not say how the run ended")
}

// edited is a copy of a coordinator's entry with the field at a path set to the given value; nil: removed.
func edited(t *testing.T, r kept, value any, path ...string) kept {
	var all map[string]any
	require.NoError(t, json.Unmarshal(r.record, &all))
	at := all
	for _, name := range path[:len(path)-1] {
		at = at[name].(map[string]any)
	}
	require.Contains(t, at, path[len(path)-1], "a field that is there")
	at[path[len(path)-1]] = value
	b, err := json.Marshal(all)
	require.NoError(t, err)
	return kept{"", b}
}

// TestRecoverRefusesEachClause breaks each rule for records on its own, next to what is just allowed.
func TestRecoverRefusesEachClause(t *testing.T) {
	a, b := newFake(), newFake()
	b.count = func(_ context.Context, w *fakeWorker, step worker.Step, t *measure.Totals) {
		done(t, step.To-step.From)
		w.open = step.Kind.Timed()
	}
	cfg := config(t, local, a, b)
	cfg.Workers[1].Worker = losing{b}
	come := []worker.Member{{Name: "w2", Worker: newFake()}}
	cfg.Replace = func(context.Context) (worker.Member, error) { return come[0], nil }
	cfg.ReplaceWithin = time.Second
	live := coord.Run(t.Context(), cfg)
	require.Equal(t, run.Degraded, live.Verdict.Completeness, live.Verdict.Reasons)
	records := cfg.Store.(*memory).records

	// at is the index of the first entry of a kind, starting at some record.
	at := func(kind string, from int) int {
		for i := from; i < len(records); i++ {
			if kind == "snapshot" && records[i].worker != "" || kind != "snapshot" && records[i].worker == "" && strings.HasPrefix(string(records[i].record), `{"`+kind+`"`) {
				return i
			}
		}
		require.FailNow(t, "no record", kind)
		return 0
	}
	step, loss, member := at("step", 0), at("loss", 0), at("member", 0)
	began, snapshot, final := at("began", step), at("snapshot", step), at("final", step)
	load := at("began", began+1)
	instead := func(i int, with ...kept) []kept {
		return append(append(append([]kept{}, records[:i]...), with...), records[i+1:]...)
	}
	set := func(i int, value any, path ...string) []kept {
		return instead(i, edited(t, records[i], value, path...))
	}
	invalid := func() kept {
		var s measure.Snapshot
		_, err := s.Decode(records[snapshot].record)
		require.NoError(t, err)
		s.Delta.Ops[driver.Put].Due++
		s.Running.Ops[driver.Put].Due++
		b, err := s.AppendBinary(nil)
		require.NoError(t, err)
		return kept{records[snapshot].worker, b}
	}
	shape := func(name string, value any) []kept { return set(step, value, "step", "step", "Shape", name) }
	const times = "step 0 has impossible times or rates"
	for name, c := range map[string]struct {
		records []kept
		want    string // "": it is allowed
	}{
		"as it was":                       {records, ""},
		"a step's number":                 {set(step, 1, "step", "step", "Seq"), `step 1 is one of phase "first"`},
		"a step's kind":                   {set(step, "load", "step", "step", "Kind"), "is one of phase"},
		"a step's level":                  {set(step, 1, "step", "step", "Level"), "is one of phase"},
		"a step that is the last":         {set(step, true, "step", "step", "Last"), "is one of phase"},
		"a step with a rate":              {shape("Rate", 1), "is one of phase"},
		"more parts than workers":         {set(step, []any{map[string]any{}, map[string]any{}, map[string]any{}}, "step", "facts", "parts"), "3 of 2 workers were ready for step 0"},
		"fewer parts than workers":        {set(step, []any{map[string]any{}}, "step", "facts", "parts"), "1 of 2 workers were ready for step 0"},
		"an order before the run":         {set(step, -1, "step", "after"), times},
		"an order at its first moment":    {set(step, 0, "step", "after"), ""},
		"no beginning of a step":          {instead(began), "step 0 has no beginning"},
		"a beginning before the order":    {instead(began, kept{"", []byte(`{"began":0}`)}), "step 0 has no beginning"},
		"bytes behind a snapshot":         {instead(snapshot, kept{records[snapshot].worker, append(append([]byte{}, records[snapshot].record...), 0)}), "something comes after it"},
		"a snapshot cut short":            {instead(snapshot, kept{records[snapshot].worker, records[snapshot].record[:20]}), "worker w"},
		"a snapshot out of balance":       {instead(snapshot, invalid()), "due"},
		"a last word of worker −1":        {set(final, -1, "final", "worker"), "has no place there"},
		"a last word of worker 2 of 2":    {set(final, 2, "final", "worker"), "has no place there"},
		"a beginning in mid-step":         {instead(snapshot, records[0], records[snapshot]), "an entry in step 0 that has no place there"},
		"worker −1 is lost":               {set(loss, -1, "loss", "worker"), "worker -1 of 2 is lost"},
		"worker 2 of 2 is lost":           {set(loss, 2, "loss", "worker"), "worker 2 of 2 is lost"},
		"a worker is lost twice":          {instead(loss, records[loss], records[loss]), "worker 1 of 2 is lost"},
		"a worker in place −1":            {set(member, -1, "member", "index"), `worker "w2" takes the place -1 of 2`},
		"a worker in place 2 of 2":        {set(member, 2, "member", "index"), `worker "w2" takes the place 2 of 2`},
		"a worker in one's place":         {set(member, 0, "member", "index"), `worker "w2" takes the place 0 of 2`},
		"a snapshot of who is lost":       {instead(load, records[load], records[loss], kept{"w1", records[snapshot].record}), "which is not a worker of step 1"},
		"a loss of nobody between steps":  {instead(member, kept{"", []byte(`{"loss":{"worker":-1,"is":{}}}`)}), "worker -1 of 2 is lost"},
		"a place of nobody between steps": {instead(member, kept{"", []byte(`{"member":{"index":7,"is":{"name":"x"}}}`)}), "takes the place 7 of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := coord.Recover(ofKept(cfg, c.records))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestRecoverWhatCannotBeRead says so, and does not mistake it for the end.
func TestRecoverWhatCannotBeRead(t *testing.T) {
	cfg := config(t, local, newFake(), newFake())
	coord.Run(t.Context(), cfg)
	records := cfg.Store.(*memory).records
	why := errors.New("input/output error")
	for n := range records {
		from := ofKept(cfg, records[:n])
		whole := from.Records
		from.Records = func(f func(worker, record []byte) error) error {
			if err := whole(f); err != nil {
				return err
			}
			return why
		}
		_, err := coord.Recover(from)
		require.ErrorIs(t, err, why, "behind %d records", n)
	}
	from := ofKept(cfg, records)
	from.Probes = func(func(run.Probe) error) error { return why }
	_, err := coord.Recover(from)
	require.ErrorIs(t, err, why)
}
