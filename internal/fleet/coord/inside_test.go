package coord

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/judge"
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
			delta.Merge(of(time.Duration(i+1)*time.Millisecond, map[driver.Outcome]int{driver.Outcome(i % 2): 1})) // ok and miss
		}
		u := s.update(measure.Interval{From: 3e9, To: 7e9, Delta: delta})
		for want, is := range map[*int]time.Duration{&c.p50: u.P50, &c.p99: u.P99} {
			require.InEpsilon(t, 1+*want, 1+is.Seconds()*1e3, 0.01, "%+v", c)
		}
	}
}

// Offered is what the schedule has in the interval, and levels count from 1.
func TestUpdatesOfSchedules(t *testing.T) {
	nothing := measure.Interval{From: 3e9, To: 5e9, Delta: &measure.Totals{}}
	open := stepOf(t, "open {\n sessions = 4\n rate = 100\n duration = \"30s\"\n}", 1)
	u := open.update(nothing)
	require.InDelta(t, 100, u.Offered, 1e-9)
	require.Equal(t, 30*time.Second, u.Expected)
	require.Zero(t, u.Level)

	stages := stepOf(t, "stages {\n sessions = 4\n stage {\n rate = 100\n duration = \"2s\"\n }\n stage {\n rate = 300\n duration = \"3s\"\n }\n}", 1)
	stages.steps[0].Level, stages.steps[0].Shape = 1, pace.Shape(stages.ph.Stages.Shapes()[1])
	u = stages.update(nothing)
	require.Equal(t, []int{2, 2}, []int{u.Level, u.Levels})
	require.Equal(t, 3*time.Second, u.Expected)

	found := stepOf(t, "search {\n sessions = 4\n step_duration = \"1s\"\n slo { response_p99 = \"5ms\" }\n}", 1)
	found.steps[0].Level, found.at = 4, 10*time.Second
	found.c.seeking = &seeking{best: 2000, begun: time.Second, budget: time.Minute}
	u = found.update(nothing)
	require.Equal(t, &run.Seeking{Best: 2000, Spent: time.Duration(nothing.To) - time.Second, Left: time.Minute - time.Duration(nothing.To) + time.Second}, u.Search)
	require.Equal(t, []int{5, 0}, []int{u.Level, u.Levels})

	setup := stepOf(t, "open {\n sessions = 4\n rate = 100\n duration = \"30s\"\n}", 1)
	setup.steps[0].Kind = worker.Setup
	u = setup.update(nothing)
	require.Zero(t, u.Offered)
	require.Zero(t, u.Expected)
}

// A search ends when the rest of its budget has no room for another step and its drain; if it fits exactly, the search goes on.
func TestSearchBudget(t *testing.T) {
	s := stepOf(t, "search {\n sessions = 4\n step_duration = \"1s\"\n slo { response_p99 = \"5ms\" }\n}", 1)
	f := s.ph.Search
	one := &judge.Measured{Levels: []*judge.Level{{Level: run.Level{Rate: f.From}}}}
	lasts := s.ph.Try(f.From).Duration
	_, more := newRoute(s.ph).next(&judge.Measured{}, f.Budget+time.Hour)
	require.True(t, more, "the first step is always made")
	_, more = newRoute(s.ph).next(one, f.Budget-lasts-f.Drain)
	require.True(t, more)
	m := *one
	_, more = newRoute(s.ph).next(&m, f.Budget-lasts-f.Drain+1)
	require.False(t, more)
	require.Equal(t, judge.Spent, m.Ended)
	m = *one
	m.Losses = make([]worker.Loss, 1)
	_, more = newRoute(s.ph).next(&m, 0)
	require.False(t, more)
	require.Equal(t, judge.Shrunk, m.Ended)
	_, more = newRoute(s.ph).next(&judge.Measured{Losses: make([]worker.Loss, 1)}, 0)
	require.True(t, more, "who was lost before the first level has no part in any")
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

// Unseen is what may have been started, minus what was counted; none if the lease was over or the worker had no sessions.
func TestUnseen(t *testing.T) {
	unseen := func(change func(s *step), until time.Duration) []any {
		s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 2)
		s.sources[0].counted.Add(measureOf(time.Millisecond, 4))
		if change != nil {
			change(s)
		}
		n, estimated := s.unseen(0, until)
		return []any{n, estimated}
	}
	require.Equal(t, []any{uint64(11), false}, unseen(nil, 2*time.Second))
	require.Equal(t, []any{uint64(0), false}, unseen(nil, time.Second), "its last snapshot came at the end of its lease")
	require.Equal(t, []any{uint64(11), false}, unseen(nil, time.Second+1))
	require.Equal(t, []any{uint64(0), false}, unseen(func(s *step) { s.steps[0].To = s.steps[0].From }, 2*time.Second), "it had no sessions")
	require.Equal(t, []any{uint64(0), false}, unseen(func(s *step) { s.sources[0].counted.Add(measureOf(1, 90)) }, 2*time.Second), "never less than none")

	open := stepOf(t, "open {\n sessions = 10\n rate = 100\n duration = \"30s\"\n}", 2)
	n, _ := open.unseen(0, 3*time.Second)
	open.unsure[0] = time.Second
	later, _ := open.unseen(0, 3*time.Second)
	require.Equal(t, []uint64{100, 150}, []uint64{n, later}, "a clock that may be ahead")
}

// The order to start allows for four round trips to the slowest remote worker, plus the uncertainty of its clock.
func TestStartAhead(t *testing.T) {
	s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 3)
	require.Equal(t, 2*time.Millisecond, s.ahead())
	s.ready[0].RTT = time.Second // of one in this process: nothing
	require.Equal(t, 2*time.Millisecond, s.ahead())
	s.ready[1] = worker.Ready{Remote: true, RTT: time.Millisecond}
	require.Equal(t, 50*time.Millisecond, s.ahead())
	s.ready[2] = worker.Ready{Remote: true, RTT: 100 * time.Millisecond, Uncertainty: 7 * time.Millisecond}
	require.Equal(t, 407*time.Millisecond, s.ahead())
	s.ready[1], s.ready[2] = s.ready[2], s.ready[1]
	require.Equal(t, 407*time.Millisecond, s.ahead())
}

// Two workers with a part in a step differ at most by the sum of their clock uncertainties, in any order.
func TestClocksApart(t *testing.T) {
	for _, unsure := range [][]time.Duration{{1, 2, 3}, {3, 2, 1}, {2, 3, 1}, {3, 1, 2}} {
		s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 3)
		s.unsure = unsure
		require.EqualValues(t, 5, s.apart(), "%v", unsure)
		for i := range unsure {
			if unsure[i] == 3 {
				s.steps[i].To = s.steps[i].From
			}
		}
		require.EqualValues(t, 3, s.apart(), "%v: one has no sessions", unsure)
	}
	s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 2)
	s.unsure = []time.Duration{4, 4}
	require.EqualValues(t, 8, s.apart(), "equal ones count twice")
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

// A commit waits 50 ms for others, unless hurried, and includes what came meanwhile.
func TestCommitsWaitForOthers(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		k := &kept{}
		j := newJournal(k)
		begun := time.Now()
		first := j.add("a", []byte("1"))
		require.Same(t, first, j.add("b", []byte("2")))
		require.NoError(t, first.wait())
		require.Equal(t, 50*time.Millisecond, time.Since(begun))
		require.Equal(t, []int{2, 1}, []int{k.appended, k.syncs})

		begun = time.Now()
		second := j.add("a", []byte("3"))
		require.NotSame(t, first, second)
		second.hurry()
		require.NoError(t, second.wait())
		require.Zero(t, time.Since(begun))
		require.Equal(t, []int{3, 2}, []int{k.appended, k.syncs})
		second.hurry() // it is done
		time.Sleep(time.Second)
		require.Equal(t, []int{3, 2}, []int{k.appended, k.syncs})

		k.err = errors.New("full")
		third := j.put(record{probe: []byte("{}")})
		begun = time.Now()
		j.close()
		require.Zero(t, time.Since(begun), "the end is no time to wait")
		require.Equal(t, k.err, third.wait())
		require.Equal(t, 2, k.syncs)
	})
}

// A store is used by one commit at a time, however long that takes.
func TestTheStoreIsUsedByOneAtATime(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		var one oneUser
		j := newJournal(&one)
		var all []*commit
		for range 3 {
			c := j.add("a", []byte("1"))
			c.hurry()
			synctest.Wait()
			all = append(all, c)
		}
		j.close()
		for _, c := range all {
			require.NoError(t, c.wait())
		}
		require.EqualValues(t, 1, one.most.Load())
	})
}

// oneUser is a slow store that counts how many use it at the same time.
type oneUser struct{ now, most atomic.Int64 }

func (*oneUser) Append(string, []byte) error { return nil }
func (*oneUser) Observe([]byte) error        { return nil }

func (o *oneUser) Sync() error {
	o.most.Store(max(o.most.Load(), o.now.Add(1)))
	time.Sleep(time.Second)
	o.now.Add(-1)
	return nil
}

// An error from any call to the store belongs to its commit only.
func TestEachRefusalOfTheStoreIsTold(t *testing.T) {
	for at := 1; at <= 4; at++ {
		r := &refuses{at: at}
		j := newJournal(r)
		commit := j.add("a", []byte("1"))
		j.add("b", []byte("2"))
		j.put(record{probe: []byte("{}")})
		commit.hurry()
		require.ErrorIs(t, commit.wait(), errRefuses, "call %d", at)
		again := j.add("a", []byte("3"))
		again.hurry()
		require.NoError(t, again.wait())
		j.close()
	}
}

var errRefuses = errors.New("refused")

// refuses is a store whose at-th call fails.
type refuses struct{ calls, at int }

func (r *refuses) call() error {
	if r.calls++; r.calls == r.at {
		return errRefuses
	}
	return nil
}

func (r *refuses) Append(string, []byte) error { return r.call() }
func (r *refuses) Observe([]byte) error        { return r.call() }
func (r *refuses) Sync() error                 { return r.call() }

// nodes are built-in ones.
type nodes struct {
	flushed string
	within  time.Duration
	err     error
}

func (n *nodes) Start(ctx context.Context, _ *plan.Target) ([]string, error) {
	end, _ := ctx.Deadline()
	n.within = time.Until(end)
	return []string{"x:1", "y:2"}, n.err
}

func (n *nodes) Flush(ctx context.Context, target string) error {
	end, _ := ctx.Deadline()
	n.flushed, n.within = target, time.Until(end)
	return n.err
}
