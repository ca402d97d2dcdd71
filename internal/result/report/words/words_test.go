package words

import (
	"testing"
	"unicode/utf8"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/stretchr/testify/require"
)

// A row's unit is that of its median, or a larger one if the maximum would not fit.
func TestUnitOf(t *testing.T) {
	for _, tt := range []struct {
		p50, max float64
		unit     string
		text     string // of p50
	}{
		{0, 0, "µs", "0.0"},
		{120e-6, 999e-6, "µs", "120.0"},
		{120e-6, 0.9999, "µs", "120.0"},
		{120e-6, 10, "ms", "0.120"},
		{1e-3, 2e-3, "ms", "1.000"},
		{1e-3, 10, "ms", "1.000"},
		{1e-3, 10_000, "s", "0.001"},
		{1, 2, "s", "1.000"},
	} {
		u := unitOf(run.Latency{Min: &tt.p50, P50: &tt.p50, Max: &tt.max})
		require.Equal(t, tt.unit, u.name)
		require.Equal(t, tt.text, u.text(tt.p50))
		require.Less(t, utf8.RuneCountInString(u.text(tt.max)), CellWidth)
	}
}

// What a search found, in a line.
func TestFound(t *testing.T) {
	of, level := func(v float64) *float64 { return &v }, new(int)
	untold := []run.Reason{{Code: reason.CannotTell}}
	for _, tt := range []struct {
		search  run.Search
		reasons []run.Reason
		want    string
	}{
		{run.Search{Rate: of(62_400), Low: of(62_100), High: of(66_300)}, nil, "62,400/s hold response p95 ≤ 5.00 ms (fresh 7.50 s level); the limit lies between 62,100 and 66,300/s (95 %)"},
		{run.Search{Rate: of(62_400), Low: of(62_100), ClientBound: of(63_700)}, nil, "at least 62,400/s were served within response p95 ≤ 5.00 ms, loadgen's delays included; above that, the client was the bound"},
		{run.Search{Rate: of(62_400), Low: of(62_100), High: of(66_300), Held: 2, Tries: 3}, nil, "62,400/s hold response p95 ≤ 5.00 ms (held 2 of 3); the limit lies between 62,100 and 66,300/s (95 %)"},
		{run.Search{Low: of(8000), High: of(9600), End: "spent", From: 10}, untold, "cannot be told in 10.0 s: response p95 ≤ 5.00 ms up to a limit between 8,000/s and 9,600/s; about 2m for ± 3 %"},
		{run.Search{Low: of(80), High: of(9600), End: "stopped", From: 10}, untold, "cannot be told: response p95 ≤ 5.00 ms up to a limit between 80.0/s and 9,600/s; an hour or more for ± 3 %"},
		{run.Search{Low: of(8000), ClientBound: of(9000), End: "spent"}, untold, "cannot be told in 10.0 s: response p95 ≤ 5.00 ms up to a limit at least 8,000/s"},
		{run.Search{Low: of(2), High: of(500), End: "spent", From: 536}, untold, "cannot be told in 10.0 s: response p95 ≤ 5.00 ms up to a limit below 500/s: search for longer, or from a lower rate than 536/s"},
		{run.Search{End: "spent", Ended: "the budget was spent"}, untold, "cannot be told: the budget was spent before any rate held response p95 ≤ 5.00 ms"},
		{run.Search{Low: of(2), High: of(500), End: "below_from"}, nil, "no rate holds response p95 ≤ 5.00 ms"},
	} {
		s := tt.search
		s.Budget, s.Objectives = 10, []run.Objective{{Quantile: "p95", LimitSeconds: 5e-3}}
		if s.Rate != nil {
			s.Level = level
		}
		ph := &run.Phase{Search: &s, Reasons: tt.reasons, Levels: []run.Level{{Rate: 62_400, DurationSeconds: 7.5}}}
		require.Equal(t, tt.want, Found(ph)[0])
	}
}

// What a phase was asked to do, in words.
func TestLoad(t *testing.T) {
	for _, tt := range []struct {
		ph   run.Phase
		want string
	}{
		{
			run.Phase{Kind: "load", Model: "closed", Load: run.Load{Sessions: 1, Pipeline: 1, Iterations: 5, DurationSeconds: 60}},
			"closed, 1 session, 5 ops each, at most 1m 0s",
		},
		{
			run.Phase{Kind: "load", Model: "closed", Load: run.Load{Sessions: 2, Pipeline: 16, DurationSeconds: 30, RampSeconds: 1, ThinkSeconds: 0.01}},
			"closed, 2 sessions × 16 in flight, 30.0 s, ramp 1.00 s, think 10.0 ms",
		},
		{
			run.Phase{Kind: "load", Model: "closed", Load: run.Load{Sessions: 2, Pipeline: 1}},
			"closed, 2 sessions, every key once",
		},
		{
			run.Phase{Kind: "load", Model: "open", Load: run.Load{Rate: 20000, Arrivals: "constant", DurationSeconds: 30, Sessions: 16, Pipeline: 4, InFlight: 64, OnFull: "wait"}},
			"open, 20,000/s constant, 30.0 s, 16 sessions × 4 in flight, at most 64 in flight, more wait",
		},
		{run.Phase{Kind: "clear", Model: "closed", Seconds: 1, Load: run.Load{Sessions: 4, Pipeline: 2}}, "clear, 4 sessions × 2 in flight"},
	} {
		require.Equal(t, tt.want, Load(&tt.ph))
	}
}

// TestDataset says nothing about keys if the layout of a log does not use them.
func TestDataset(t *testing.T) {
	ph := &run.Phase{}
	ph.Dataset.Name, ph.Dataset.Keys, ph.Dataset.Pick, ph.Dataset.Scope, ph.Dataset.ValueBytes = "d", 100, "uniform", "shared", 1024
	require.Equal(t, "d: 100 keys shared, uniform, values of 1 KiB", Dataset(ph))
	for layout, want := range map[string]string{
		"append": "d: values of 1 KiB", "channel": "d: values of 1 KiB", "raw": "d: values of 1 KiB", "array": "d: 100 slots shared, uniform, values of 1 KiB",
	} {
		ph.Log = &worker.Log{Log: localfile.Log{Layout: layout}}
		require.Equal(t, want, Dataset(ph), layout)
	}
}

func TestTarget(t *testing.T) {
	ph := func(fanout, from string, op string) *run.Phase {
		p := &run.Phase{Op: map[string]*run.Op{op: {}}}
		p.Target.Name, p.Target.Driver, p.Target.Endpoints = "space", "redis", []string{"a:1", "b:1", "c:1"}
		p.Target.Replication = &run.Replication{Coordinate: "client", N: 3, W: 2, R: 2, ReadFanout: fanout, ReadFrom: from}
		return p
	}
	const head = "space: redis, 3 endpoints, N=3 W=2 R=2 by the client"
	require.Equal(t, head, Target(ph("n", "", "put")))
	require.Equal(t, head+", a get asks 3 nodes", Target(ph("n", "", "get")))
	require.Equal(t, head+", a get asks 2 nodes", Target(ph("r", "first", "get")))
	require.Equal(t, head+", a get asks 2 nodes at random", Target(ph("r", "random", "get")))
}

func TestThreadsOf(t *testing.T) {
	l := &worker.Log{Threads: []measure.Thread{
		{Session: 0, Sessions: 1, Pinned: true, CPU: 2, CPUAtEnd: 2, Node: 1, NodeAtEnd: 1},
		{Session: 1, Sessions: 1, CPU: 3, CPUAtEnd: 0, Node: 1, NodeAtEnd: 0},
		{Session: 2, Sessions: 2, CPU: 3, CPUAtEnd: 3, Node: -1, NodeAtEnd: -1},
		{Session: 4, Sessions: 1, CPU: -1, CPUAtEnd: -1, Node: -1, NodeAtEnd: -1},
	}}
	named := []string{
		"session 0 on CPU 2 of node 1 (pinned)", "session 1 on CPU 3 of node 1 (at the end CPU 0 of node 0)", "sessions 2 to 3 on CPU 3",
		"session 4 on a CPU that the kernel does not name",
	}
	require.Equal(t, named, threadsOf(&run.Phase{Log: l}))
	l.Threads = append(append(l.Threads, l.Threads...), l.Threads[0], l.Threads[1])
	require.Len(t, threadsOf(&run.Phase{Log: l}), maxThreads+1)
	require.Equal(t, "2 more threads (the JSON has all)", threadsOf(&run.Phase{Log: l})[maxThreads])
}

// Growth is one statement from the order near the end and the drift over all: neither stands beside the other unexplained.
func TestGrownSaysOneThing(t *testing.T) {
	for _, tt := range []struct {
		low, high, drift float64
		says             string
	}{
		{0.8, 0.9, 16, "so ops cost more as their number grows"},
		{0.8, 0.9, 0.5, "so ops got quicker at first; in the second half ops cost more as their number grows"},
		{-0.9, -0.8, 0.1, "so ops got quicker, as in a program that warms up, such as a JVM"},
		{-0.9, -0.8, 2, "so ops got slower at first; in the second half they got quicker"},
		{-0.1, 0.1, 1.1, "so no growth is shown"},
		{-0.1, 0.1, 4.78, "so ops got slower at first; in the second half no growth is shown"},
		{-0.1, 0.1, 0.5, "so ops got quicker at first; in the second half no growth is shown"},
		{-0.6, 0.9, 4.78, "growth cannot be told from none: the interval is too wide"},
		{-0.6, 0.9, 1, "growth cannot be told from none: the interval is too wide"},
	} {
		order := (tt.low + tt.high) / 2
		g := &run.Growth{Ops: 1000, Order: &order, OrderLo: &tt.low, OrderHi: &tt.high, Drift: &tt.drift}
		g.Judge()
		ph := &run.Phase{Op: map[string]*run.Op{"get": {Figures: run.Figures{Growth: g}}}}
		lines := DoneIn(ph)[0].Grown()
		require.Len(t, lines, 3)
		require.Equal(t, tt.says, lines[2], "%+v", tt)
	}
}

// Servers that copy and do not say how leave it to the plan, once for each target.
func TestUnsaid(t *testing.T) {
	r := &run.Run{PhaseOrder: []string{"a", "b", "c"}, Phase: map[string]*run.Phase{}}
	for name, by := range map[string]string{"a": "server", "b": "server", "c": "client"} {
		r.Phase[name] = &run.Phase{Target: run.Target{Name: "of-" + by, Replication: &run.Replication{Coordinate: by, N: 3, W: 2, R: 1}}}
	}
	silent := map[string]map[string]string{"127.0.0.1:1": {"note": "…"}, "127.0.0.1:2": {"note": "…"}}
	r.Environment.Servers = map[string]map[string]map[string]string{"of-server": silent, "of-client": silent}
	require.Equal(t, []string{"of-server: N, W and R are what the plan expects: not all of its servers say theirs"}, Unsaid(r))
	r.Environment.Servers["of-server"] = map[string]map[string]string{"127.0.0.1:1": {"n": "3", "w": "2", "r": "1"}}
	require.Empty(t, Unsaid(r))
}

// TestTheAnswerComesFirst: what faults cost if the plan asks that, else how the asserts came out beside the figures.
func TestTheAnswerComesFirst(t *testing.T) {
	rate, away, yes, no := 1000.0, 3.2, true, false
	r := run.New(run.Header{}, machine.Environment{})
	r.Add("load", &run.Phase{Kind: worker.Load, Validity: run.Valid, Op: map[string]*run.Op{"get": {Figures: run.Figures{Rate: &rate, Ledger: run.Ledger{Due: 5000, OK: 5000}}}}})
	r.Asserts = []run.AssertResult{
		{Name: "fast", OK: &yes, Value: "1.2 ms < 5 ms"}, {Name: "much", OK: &no, Value: "1,000/s < 2,000/s"}, {Name: "open"}, {Name: "long", OK: &yes, Value: "phase.load.op.get.ok = 5"},
	}
	require.Equal(t, []string{"get: 1,000/s; fast holds: 1.2 ms < 5 ms; much FAILS: 1,000/s < 2,000/s"}, Answers(r))
	r.Add("verify", &run.Phase{Kind: worker.Verify, Validity: run.Valid, Verify: &run.Verify{Keys: 100, Lost: 2, Missing: 2}})
	r.Phase["load"].Event = map[string]*run.Event{"kill": {HappenedSeconds: &rate, RecoveredSeconds: &away}, "later": {AtSeconds: 9}, "stop": {AtSeconds: 8, HappenedSeconds: &rate}}
	require.Equal(t, []string{"away for 3.20 s after kill; not recovered after stop; 2 ACKNOWLEDGED WRITES LOST, of 100 keys put and acknowledged", "get: 1,000/s"}, Answers(r))
}
