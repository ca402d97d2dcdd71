package coord

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// counted is a worker that returns the given counts.
type counted struct {
	worker.Worker
	drains int
}

func (w *counted) Drain() { w.drains++ }

// stepOf is a step of a phase, given as in a plan, with some workers, at the moment it begins on the run clock.
func stepOf(t *testing.T, load string, workers int) *step {
	t.Helper()
	text := "plan \"test\" {}\ntarget \"t\" {\n driver = \"null\"\n endpoints = [\"a\"]\n}\n" +
		"dataset \"d\" {\n keys { count = 10 }\n values { size = 10 }\n}\nphase \"p\" {\n target = target.t\n dataset = dataset.d\n ops = { put = 1 }\n" + load + "\n}"
	file, diags := plan.Parse([]byte(text), "test.hcl", drivers.All())
	require.Empty(t, diags)
	p, diags := file.Resolve(plan.Vars{})
	require.Empty(t, diags)
	c := &coordinator{
		Config: Config{Plan: p, Logger: slog.New(slog.DiscardHandler), Drain: make(chan struct{})},
		result: run.New(run.Header{}, run.Environment{}), seqs: make([]uint64, workers), lost: make([]bool, workers), zero: time.Now(),
	}
	s := &step{
		c: c, ph: p.Phases[0], at: time.Second, totals: &measure.Totals{}, passed: make(chan struct{}), sources: make([]source, workers), ready: make([]worker.Ready, workers),
		unsure: make([]time.Duration, workers), generators: make([]measure.Generator, workers), logs: make([]*worker.Log, workers),
	}
	for i := range workers {
		c.Workers = append(c.Workers, worker.Member{Name: string(rune('a' + i)), Worker: &counted{}})
		c.enlist(c.Workers[i])
		from, to := share(s.ph.Sessions(), i, workers)
		s.steps = append(s.steps, worker.Step{Kind: worker.Load, From: from, To: to})
		s.sources[i].upTo = int64(s.at)
	}
	if s.ph.Open != nil {
		for i := range s.steps {
			s.steps[i].Shape = pace.Shape(s.ph.Open.Shape())
		}
	}
	return s
}

// of returns n puts of each outcome, each of the given duration.
func of(took time.Duration, n map[driver.Outcome]int) *measure.Totals {
	t := measure.NewTotals(int64(time.Second), 1)
	for outcome, n := range n {
		for range n {
			t.AddDue(driver.Put)
			t.Record(&measure.Sample{Verb: driver.Put, Outcome: outcome, Due: t.Origin, Start: t.Origin, End: t.Origin + int64(took)})
		}
	}
	return t
}

// An update's figures cover its interval; its counts cover the step so far.
func TestUpdates(t *testing.T) {
	s := stepOf(t, "closed {\n sessions = 4\n duration = \"30s\"\n}", 2)
	s.ops = 77
	s.ended, s.bad = 50, 7
	s.sources[0].upTo, s.sources[1].upTo = 7e9, 7e9-1
	joint := measure.Interval{From: 3e9, To: 7e9, Delta: of(2*time.Millisecond, map[driver.Outcome]int{driver.OK: 90, driver.Miss: 9, driver.Error: 1})}
	u := s.update(joint)
	require.InEpsilon(t, 2*time.Millisecond, u.P50, 0.01)
	require.InEpsilon(t, 2*time.Millisecond, u.P99, 0.01, "the 99th of a hundred, of which one failed")
	u.P50, u.P99 = 0, 0
	require.Equal(t, run.Update{
		Phase: "p", Kind: worker.Load, Elapsed: 6 * time.Second, Expected: 30 * time.Second, Achieved: 25, Done: 50, Bad: 7, Total: 77, Awaited: []string{"b"}, Verdict: u.Verdict,
	}, u)

	s.sources[1].lost = true
	require.Empty(t, s.update(joint).Awaited, "nothing more comes of one that is lost")
	s.sources[1].lost, s.sources[1].final = false, true
	require.Empty(t, s.update(joint).Awaited, "nor of one that has ended")
	joint.Delta = of(2*time.Millisecond, map[driver.Outcome]int{driver.OK: 90, driver.Miss: 8, driver.Error: 2})
	joint.Final = true
	u = s.update(joint)
	require.Zero(t, u.P99, "that op failed")
	require.NotZero(t, u.P50)
	require.True(t, u.Final)
	joint.Delta, joint.From = &measure.Totals{}, joint.To
	u = s.update(joint)
	require.Zero(t, u.Achieved, "an interval of no length")
	require.Zero(t, u.P50)
}

// Quantiles of an update are nearest ranks: here of 1 to 1,000 ms, and including failed ops, which are slower.
func TestQuantilesOfUpdates(t *testing.T) {
	for _, c := range []struct{ answered, failed, p50, p99 int }{{1000, 0, 500, 990}, {990, 10, 500, 990}, {989, 11, 500, 0}, {500, 500, 500, 0}, {499, 501, 0, 0}, {1, 0, 1, 1}, {}} {
		s := stepOf(t, "closed {\n sessions = 4\n duration = \"30s\"\n}", 1)
		delta := of(time.Millisecond, map[driver.Outcome]int{driver.Error: c.failed})
		for i := range c.answered {
			delta.AddDue(driver.Put) // ok and miss in turn
			delta.Record(&measure.Sample{Verb: driver.Put, Outcome: driver.Outcome(i % 2), Due: delta.Origin, Start: delta.Origin, End: delta.Origin + int64(i+1)*1e6})
		}
		u := s.update(measure.Interval{From: 3e9, To: 7e9, Delta: delta})
		for want, is := range map[*int]time.Duration{&c.p50: u.P50, &c.p99: u.P99} {
			require.InEpsilon(t, 1+*want, 1+is.Seconds()*1e3, 0.01, "%+v", c)
		}
	}
}

// What the plan lets a worker start, computed by hand: two workers share ten sessions evenly.
func TestMostOfAPlan(t *testing.T) {
	const until = 12 * time.Second // eleven after the start
	of := func(load string, change func(s *step)) (uint64, bool) {
		s := stepOf(t, load, 2)
		if change != nil {
			change(s)
		}
		return s.most(0, until)
	}
	check := func(name string, n uint64, bounded bool, load string, change func(s *step)) {
		t.Helper()
		got, is := of(load, change)
		require.Equal(t, bounded, is, name)
		require.Equal(t, n, got, name)
	}
	once, timed := "closed {\n sessions = 10\n iterations = 1\n}", "closed {\n sessions = 10\n duration = \"5s\"\n}"
	check("one iteration each", 5, true, once, nil)
	check("one that the worker said", 1, true, timed, func(s *step) { s.ready[0].Ops = 1 })
	check("what the worker said", 123, true, timed, func(s *step) { s.ready[0].Ops = 123 })
	check("another kind of step", 0, true, timed, func(s *step) { s.steps[0].Kind = worker.Populate })
	check("duration", 0, false, timed, nil)
	check("a nanosecond before its end", 0, false, timed, func(s *step) { s.sources[0].upTo = 6e9 - 1 })
	check("its end", 0, true, timed, func(s *step) { s.sources[0].upTo = 6e9 })
	scenes := func(s *step) { // of which the longest has three ops
		three := []plan.ScenarioStep{{Op: "put"}, {Op: "put"}, {Op: "put"}}
		s.ph.Scenarios = []plan.Scenario{{Steps: three[:2]}, {Steps: three}, {Steps: three[:1]}}
	}
	check("iterations of scenarios", 15, true, once, scenes)
	check("the end of scenarios", 10, true, timed, func(s *step) { scenes(s); s.sources[0].upTo = 6e9 })
	check("the end of scenarios side by side", 40, true, timed, func(s *step) { scenes(s); s.sources[0].upTo, s.ph.Closed.Pipeline = 6e9, 4 })
	check("constant scenarios", 1650, true, "open {\n sessions = 10\n rate = 100\n duration = \"30s\"\n}", scenes)
	check("trace without lines", 5, true, once, func(s *step) { s.ph.Closed.Trace = &plan.Trace{} })
	check("trace of one line", 1, true, once, func(s *step) { s.ph.Closed.Trace = &plan.Trace{Lines: 1} })
	check("one iteration of a long trace", 5, true, once, func(s *step) { s.ph.Closed.Trace = &plan.Trace{Lines: 100} })
	check("constant", 550, true, "open {\n sessions = 10\n rate = 100\n duration = \"30s\"\n}", nil)
	check("poisson", 0, false, "open {\n sessions = 10\n rate = 100\n duration = \"30s\"\n arrivals = \"poisson\"\n}", nil)
}

// Each slot of each session is as fast as the fastest op so far, and pauses as the plan says.
func TestLikelyOfAClosedLoad(t *testing.T) {
	of := func(load string, change func(s *step)) uint64 {
		s := stepOf(t, load, 2)
		s.sources[0].upTo = 3e9
		if change != nil {
			change(s)
		}
		return s.likely(0, 5*time.Second)
	}
	counting := func(s *step) { s.sources[0].counted.Add(measureOf(10*time.Millisecond, 6)) }
	require.EqualValues(t, 5*(1+2_000_000), of("closed {\n sessions = 10\n duration = \"30s\"\n}", nil), "a microsecond each")
	require.EqualValues(t, 6+5*(1+200), of("closed {\n sessions = 10\n duration = \"30s\"\n}", counting))
	require.EqualValues(t, 6+5*(1+100), of("closed {\n sessions = 10\n duration = \"3s\"\n}", counting), "not beyond the end of the phase")
	require.EqualValues(t, 6+20*(1+200), of("closed {\n sessions = 10\n pipeline = 4\n duration = \"30s\"\n}", counting), "each slot of a session by itself")
	three := make([]plan.ScenarioStep, 3)
	require.EqualValues(t, 6+5*(3+200), of("closed {\n sessions = 10\n duration = \"30s\"\n}", func(s *step) {
		counting(s)
		s.ph.Scenarios = []plan.Scenario{{Steps: three[:1]}, {Steps: three}}
	}), "a scenario goes on to its end")
	require.EqualValues(t, 6+5*(1+20), of("closed {\n sessions = 10\n duration = \"30s\"\n think = \"90ms\"\n}", counting), "with a pause behind each")
}

// For a random schedule, it is the mean plus six standard deviations: with the step's own shape, and for a trace with the phase's.
func TestLikelyOfASchedule(t *testing.T) {
	const open = "open {\n sessions = 10\n rate = 100\n duration = \"30s\"\n}"
	of := func(change func(s *step)) uint64 {
		s := stepOf(t, open, 2)
		change(s)
		return s.likely(0, 9*time.Second) // eight seconds of it, and half of the sessions: 400 on average
	}
	none := func(s *step) { s.steps[0].Shape = pace.Shape{} }
	require.EqualValues(t, 400+6*20, of(func(*step) {}))
	require.EqualValues(t, 0, of(none))
	require.EqualValues(t, 400+6*20, of(func(s *step) { none(s); s.ph.Open.Trace = &plan.Trace{} }))
	require.EqualValues(t, 3*(400+6*20), of(func(s *step) {
		s.ph.Scenarios = []plan.Scenario{{Steps: make([]plan.ScenarioStep, 3)}}
	}))
	require.EqualValues(t, 100+6*10, of(func(s *step) { s.steps[0].Shape.Duration = 2 * time.Second }), "not beyond its end")
}

func measureOf(took time.Duration, n int) *measure.Totals {
	return of(took, map[driver.Outcome]int{driver.OK: n})
}

// plodding is a worker that is slow to report its progress, except the first time.
type plodding struct {
	worker.Worker
	asked  int
	saying atomic.Bool
}

func (p *plodding) Progress() int64 {
	if p.asked++; p.asked > 1 {
		p.saying.Store(true)
		time.Sleep(10 * time.Second)
		p.saying.Store(false)
	}
	return 0
}

// TestNothingGoesOnBehindARelease: every function that starts a goroutine and returns its release must wait for the goroutine, even in mid-action.
func TestNothingGoesOnBehindARelease(t *testing.T) {
	long := func(busy *atomic.Bool) {
		busy.Store(true)
		time.Sleep(10 * time.Second)
		busy.Store(false)
	}
	for name, begin := range map[string]func(t *testing.T, busy *atomic.Bool) (release func()){
		"whileMoving": func(t *testing.T, _ *atomic.Bool) func() {
			w := new(plodding)
			_, cancel := whileMoving(t.Context(), w, answerWithin)
			return func() {
				require.True(t, w.saying.Load())
				cancel()
				require.False(t, w.saying.Load())
			}
		},
		"tell": func(t *testing.T, busy *atomic.Bool) func() {
			s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 1)
			begun := make(chan struct{})
			close(begun)
			return s.tell(begun, func() string { long(busy); return "" })
		},
		"foresee": func(t *testing.T, busy *atomic.Bool) func() {
			s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 1)
			s.at, s.joiner = 0, measure.NewJoiner(1, 0)
			s.c.Progress = func(run.Update) { long(busy) }
			return s.foresee()
		},
		"onDrain": func(t *testing.T, busy *atomic.Bool) func() {
			s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 1)
			drain := make(chan struct{})
			s.c.Drain = drain
			close(drain)
			return s.c.onDrain(func() { long(busy) })
		},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			var busy atomic.Bool
			release := begin(t, &busy)
			time.Sleep(5 * time.Second)
			require.True(t, busy.Load() || name == "whileMoving", name)
			release()
			require.False(t, busy.Load(), name)
			synctest.Wait()
			require.False(t, busy.Load(), name)
		})
	}
}

// kept is a store that records when it was synced.
type kept struct {
	appended, syncs int
	err             error
}

func (k *kept) Append(string, []byte) error { k.appended++; return k.err }
func (k *kept) Observe([]byte) error        { k.appended++; return k.err }
func (k *kept) Sync() error                 { k.syncs++; return nil }
