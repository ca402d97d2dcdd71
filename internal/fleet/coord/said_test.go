package coord

import (
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/judge"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// What workers say when they are ready is combined: ops add up, clocks stay per worker, and servers' words are by target and endpoint.
func TestWhatWorkersSayTogether(t *testing.T) {
	s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 3)
	s.c.result.Environment.Servers = map[string]map[string]map[string]string{"t": {"a": {"version": "1"}, "b": {"version": "2"}}}
	s.facts = facts{
		Servers: map[string]map[string]map[string]string{"t": {"b": {"version": "3"}}, "u": {"c": {"version": "4"}}},
		Parts: []partFacts{
			{Ops: 3, Offset: time.Hour, Uncertainty: time.Hour}, // in this process, where no clock differs
			{Ops: 4, Remote: true, Offset: -2 * time.Second, Uncertainty: 5 * time.Millisecond},
			{Ops: 8, Remote: true, Offset: 3 * time.Second, Uncertainty: 7 * time.Millisecond},
		},
	}
	s.enter()
	require.EqualValues(t, 15, s.ops)
	require.Equal(t, []time.Duration{0, 5 * time.Millisecond, 7 * time.Millisecond}, s.unsure)
	for i, want := range [][2]float64{{0, 0}, {-2, 0.005}, {3, 0.007}} {
		w := s.c.fleetOf(i)
		require.Equal(t, want, [2]float64{w.ClockOffsetSeconds, w.ClockUncertaintySeconds}, "worker %d", i)
	}
	require.Equal(t, map[string]map[string]map[string]string{
		"t": {"a": {"version": "1"}, "b": {"version": "3"}}, "u": {"c": {"version": "4"}},
	}, s.c.result.Environment.Servers)
}

// A search's age counts from its first level. Read back, its age is unknown, so it has all its time while levels follow, and none after the last.
func TestTimeThatAPhaseHasSpent(t *testing.T) {
	next := func(phase string) *keptRecord {
		return &keptRecord{entry: entry{Step: &begun{Step: worker.Step{Phase: phase}}}}
	}
	ended := func() (*keptRecord, error, bool) { return nil, nil, false }
	for name, c := range map[string]struct {
		past        *past
		begun, want time.Duration
	}{
		"not begun":                     {},
		"begun":                         {begun: 10 * time.Second, want: 90 * time.Second},
		"read back, and not begun":      {past: &past{ahead: next("q")}},
		"read back, and it goes on":     {past: &past{ahead: next("p")}, begun: time.Second},
		"read back, to where it ended":  {past: &past{pull: ended}, begun: time.Second},
		"read back, and another begins": {past: &past{ahead: next("q")}, begun: time.Second, want: math.MaxInt64 / 2},
		"read back, and it is emptied":  {past: &past{ahead: &keptRecord{entry: entry{Flush: &flushed{Phase: "p"}}}}, begun: time.Second, want: math.MaxInt64 / 2},
		"read back, to an error":        {past: &past{err: errors.New("damaged")}, begun: time.Second, want: math.MaxInt64 / 2},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			p := activePhase{c: &coordinator{past: c.past, zero: time.Now()}, ph: &plan.Phase{Name: "p"}, begun: c.begun}
			time.Sleep(100 * time.Second)
			require.Equal(t, c.want, p.spent(), name)
		})
	}
}

// Preparation progress is reported from the first byte on, and covers this step only.
func TestHowFarWorkersHaveCome(t *testing.T) {
	for _, c := range []struct {
		before, now [2]int64
		want        string
	}{
		{[2]int64{0, 0}, [2]int64{0, 0}, "getting ready"},
		{[2]int64{9, 5}, [2]int64{9, 5}, "getting ready"},
		{[2]int64{9, 5}, [2]int64{0, 5}, "getting ready"},
		{[2]int64{9, 5}, [2]int64{9, 6}, "getting ready: 0 MiB so far"},
		{[2]int64{9, 5}, [2]int64{10, 5}, "getting ready: 0 MiB so far"},
		{[2]int64{5, 0}, [2]int64{5 + 1<<20, 2<<20 - 1}, "getting ready: 2 MiB so far"},
		{[2]int64{5, 0}, [2]int64{5 + 1<<20, 2 << 20}, "getting ready: 3 MiB so far"},
	} {
		s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 2)
		for i := range c.now {
			s.before = append(s.before, c.before[i])
			s.c.Workers[i].Worker = &reading{now: c.now[i]}
		}
		require.Equal(t, c.want, s.preparing(), "%+v", c)
	}
}

// reading is a worker whose progress is given.
type reading struct {
	worker.Worker
	now int64
}

func (r *reading) Progress() int64 { return r.now }

// A figure that JSON cannot represent keeps only its own entry out of the log.
func TestEntriesThatCannotBeKept(t *testing.T) {
	k := &kept{}
	c := &coordinator{Config: Config{Logger: slog.New(slog.DiscardHandler)}}
	require.Nil(t, c.note(entry{}), "of a run that keeps none")
	require.NoError(t, c.noteNow(entry{}))
	c.journal = newJournal(k)
	f := worker.Final{Generator: measure.Generator{Busy: math.NaN()}}
	require.Nil(t, c.note(entryOf(0, &f, false)))
	require.NoError(t, c.noteNow(entryOf(0, &f, false)))
	f.Generator.Busy = 1
	require.NoError(t, c.noteNow(entryOf(0, &f, false)))
	c.journal.close()
	require.Equal(t, 1, k.appended)
}

// A planned warm-up ends at its time, to the nanosecond, or with the current stretch of intervals.
func TestWarmUpsEndWhenThePlanSays(t *testing.T) {
	for _, c := range []struct{ interval, want int64 }{{1e9, 5e9}, {1e9 - 1, 6e9 - 6}, {1e9 + 1, 5e9 + 5}, {3e9, 6e9}} {
		s := stepOf(t, "closed {\n sessions = 10\n duration = \"30s\"\n warmup = \"5s\"\n}", 1)
		s.history.after = int64(s.at)
		for i := range int64(20) {
			from := int64(s.at) + i*c.interval
			joint := measure.Interval{From: from, To: from + c.interval, Delta: measureOf(time.Millisecond, 1)}
			s.history.add(&joint)
			s.totals.Merge(joint.Delta)
			s.series.Add(time.Duration(joint.To-int64(s.at)).Seconds(), joint.Delta)
		}
		p := activePhase{c: s.c, ph: s.ph}
		require.NoError(t, p.settle(s))
		require.InDelta(t, float64(c.want)/1e9, p.m.WarmUp.Seconds, 1e-10)
		n, _, _ := p.m.Settled.Ended()
		require.EqualValues(t, 20-c.want/c.interval, n)
	}
}

// A snapshot belongs to the worker of that name that is not lost, whatever its index.
func TestWhoseSnapshotItIs(t *testing.T) {
	k := &past{c: &coordinator{lost: make([]bool, 5)}}
	for _, name := range []string{"a", "b", "a", "c", "a"} {
		k.c.Workers = append(k.c.Workers, worker.Member{Name: name})
	}
	for _, c := range []struct {
		lost []int
		want map[string]int
	}{
		{nil, map[string]int{"a": 0, "b": 1, "c": 3, "d": -1, "": -1}},
		{[]int{0}, map[string]int{"a": 2, "b": 1, "c": 3}},
		{[]int{0, 2}, map[string]int{"a": 4, "b": 1, "c": 3}},
		{[]int{0, 1, 2, 4}, map[string]int{"a": -1, "b": -1, "c": 3}},
	} {
		for _, i := range c.lost {
			k.c.lost[i] = true
		}
		for name, want := range c.want {
			require.Equal(t, want, k.sender(name), "%s without %v", name, c.lost)
		}
	}
}

// All loads of a plan, of which stages and searches have several, share the rows that a result has room for.
func TestRowsAreSharedByAllLoads(t *testing.T) {
	of := func(phases ...*plan.Phase) int { return newCoordinator(Config{Plan: &plan.Plan{Phases: phases}}).rows }
	load, four := &plan.Phase{Closed: &plan.Closed{}}, &plan.Phase{Stages: &plan.Stages{Stages: make([]plan.Stage, 4)}}
	require.Equal(t, judge.RowsEach(0), of())
	require.Equal(t, judge.RowsEach(1), of(load))
	require.Equal(t, judge.RowsEach(16), of(load, load, load, load, four, four, four))
	require.NotEqual(t, of(load), of(load, load, load, load, four, four, four))
}

// A run with AbortOnLoss ended because of its first loss, unless something else had ended it before.
func TestALossThatEndsARecoveredRun(t *testing.T) {
	user := reason.Why{Code: reason.User.Code, Text: "stopped by the user"}
	for name, c := range map[string]struct {
		abort         bool
		stopped, want reason.Why
	}{
		"it goes on":              {},
		"it goes on to its end":   {stopped: user, want: user},
		"it ends":                 {abort: true, want: byLoss},
		"it had been ended, then": {abort: true, stopped: user, want: user},
	} {
		s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 2)
		k := &past{c: s.c, abort: c.abort, stopped: c.stopped, done: make([]bool, 2)}
		require.NoError(t, k.lose(nil, &lossEntry{Worker: 1, Is: worker.Loss{Worker: "b"}}), name)
		require.Equal(t, c.want, k.stopped, name)
		require.Equal(t, []bool{false, true}, s.c.lost, name)
		require.Error(t, k.lose(nil, &lossEntry{Worker: 1}), "it is lost already")
	}
}

// Probes begin once per phase, however many loads it has, and never when a run is read back.
func TestProbesBeginOnce(t *testing.T) {
	ended := 0
	w := &watch{over: func() { ended++ }}
	w.begin(t.Context())
	require.NoError(t, w.end(t.Context()))
	require.Equal(t, 1, ended, "what was begun first is what ends")
	w = &watch{kept: true}
	w.begin(t.Context())
	require.Nil(t, w.over)
	require.NoError(t, w.end(t.Context()))
	w = &watch{}
	w.begin(t.Context())
	require.NotNil(t, w.over)
	require.NoError(t, w.end(t.Context()))
}
