package coord_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// levelsPlan has one phase of ten sessions, whose load is to be filled in.
func levelsPlan(load string) string {
	return `
plan "test" {}
target "t" {
	driver    = "null"
	endpoints = ["a"]
}
dataset "d" {
	keys { count = 10 }
	values { size = 10 }
}
phase "p" {
	target  = target.t
	dataset = dataset.d
	ops     = { put = 1 }
	` + load + `
}`
}

const threeStages = `stages {
	sessions = 10
	stage {
		rate     = "1k/s"
		duration = "1s"
	}
	stage {
		rate     = "3k/s"
		duration = "2s"
		ramp     = "1s"
	}
	stage {
		rate     = "2k/s"
		duration = "1s"
	}
}`

const aSearch = `search {
	sessions      = 10
	step_duration = "1s"
	slo { response_p99 = "5ms" }
}`

// queue makes each worker count what a single server would do with its share of the load, if all servers together had the given capacity per second. It
// keeps the steps.
func queue(capacity float64, steps *[]worker.Step) func(context.Context, *fakeWorker, worker.Step, *measure.Totals) {
	return func(_ context.Context, _ *fakeWorker, step worker.Step, t *measure.Totals) {
		*steps = append(*steps, step)
		part := float64(step.To-step.From) / 10
		service := int64(1e9 / (capacity * part))
		shape := step.Shape
		if shape.Rate == 0 {
			closedQueue(service, step, t)
			return
		}
		shape.Rate, shape.From = part*shape.Rate, part*shape.From
		free := t.Origin
		pacer := pace.NewConstant(shape, 1, 0)
		for due, ok := pacer.Next(); ok; due, ok = pacer.Next() {
			due += t.Origin
			free = max(free, due) + service
			t.AddDue(driver.Put)
			t.Record(&measure.Sample{Verb: driver.Put, Due: due, Start: due, End: free})
			r := t.Request(0, driver.Put)
			r.Sent, r.Answered = r.Sent+1, r.Answered+1
		}
		if step.To > step.From {
			t.Span.Session(t.Origin, free)
		}
	}
}

// closedQueue makes a worker count what a single server does whose every session has an op in flight.
func closedQueue(service int64, step worker.Step, t *measure.Totals) {
	n := step.To - step.From
	free, last := t.Origin, make([]int64, n)
	for i := range last {
		last[i] = t.Origin
	}
	for i := 0; n > 0 && last[i%n] < t.Origin+int64(step.Shape.Duration); i++ {
		due := last[i%n]
		free += service
		last[i%n] = free
		t.AddDue(driver.Put)
		t.Record(&measure.Sample{Verb: driver.Put, Due: due, Start: due, End: free})
		r := t.Request(0, driver.Put)
		r.Sent, r.Answered = r.Sent+1, r.Answered+1
	}
	for _, end := range last {
		turn := service * int64(n)
		t.Span.Busy(t.Origin, end-turn, end, turn)
	}
}

func TestStages(t *testing.T) { overBoth(t, testStages) }

func testStages(t *testing.T, join joiner) {
	a, b := newFake(), newFake()
	var steps, others []worker.Step
	a.count, b.count = queue(10_000, &steps), queue(10_000, &others)
	cfg := configOf(t, levelsPlan(threeStages), join, a, b)
	var updates []run.Update
	cfg.Progress = func(u run.Update) { updates = append(updates, u) }
	r := coord.Run(context.Background(), cfg)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)

	shape := func(from, rate float64, ramp, lasts time.Duration) pace.Shape {
		return pace.Shape{Rate: rate, From: from, Ramp: ramp, Duration: lasts}
	}
	require.Equal(t, []worker.Step{
		{Seq: 0, Phase: "p", Kind: worker.Load, To: 5, Level: 0, Shape: shape(0, 1000, 0, time.Second)},
		{Seq: 1, Phase: "p", Kind: worker.Load, To: 5, Level: 1, Shape: shape(1000, 3000, time.Second, 2*time.Second)},
		{Seq: 2, Phase: "p", Kind: worker.Load, To: 5, Level: 2, Last: true, Shape: shape(3000, 2000, 0, time.Second)},
	}, steps)
	p := r.Phase["p"]
	require.EqualValues(t, "stages", p.Model)
	requireNoDoubt(t, p)
	require.EqualValues(t, 8000, p.Op["put"].OK)
	require.EqualValues(t, 8000, p.Requests[0].Answered)
	require.Nil(t, p.Op["put"].Rate)
	require.Equal(t, "the rate differs from level to level", r.Why("phase", "p", "op", "put", "rate").Text)
	require.Len(t, p.Levels, 3)
	for i, want := range []struct {
		ok   uint64
		rate float64
	}{{1000, 1000}, {5000, 3000}, {2000, 2000}} {
		l := p.Levels[i]
		require.Equal(t, want.ok, l.Op["put"].OK)
		require.InEpsilon(t, want.rate, *l.OfferedRate, 0.002)
		require.InEpsilon(t, want.rate, *l.AchievedRate, 0.005)
		require.InEpsilon(t, want.rate, *l.Op["put"].Rate, 0.005)
	}
	require.InDelta(t, p.Series[0].T+p.Levels[1].StartSeconds, p.Series[1].T, 1e-9)
	require.Equal(t, 2, updates[1].Level)
	require.Equal(t, 3, updates[1].Levels)
	require.InDelta(t, 2000, updates[1].Offered, 1e-9, "the first second is a ramp from 1,000 to 3,000")
	require.InDelta(t, 2000, updates[2].Offered, 1e-9)
}

// requireNoDoubt checks that a phase is valid, apart from doubts about the clocks of remote workers on a busy machine.
func requireNoDoubt(t *testing.T, p *run.Phase) {
	t.Helper()
	for _, why := range p.Reasons {
		require.Equal(t, run.Reason{Validity: run.Suspect, Code: reason.ClocksApart, Text: why.Text, Touches: why.Touches}, why)
	}
}

func TestSearch(t *testing.T) { overBoth(t, testSearch) }

func testSearch(t *testing.T, join joiner) {
	a, b := newFake(), newFake()
	var steps, others []worker.Step
	a.count, b.count = queue(9000, &steps), queue(9000, &others)
	r := coord.Run(context.Background(), configOf(t, levelsPlan(aSearch), join, a, b))
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	p := r.Phase["p"]
	requireNoDoubt(t, p)
	require.Len(t, steps, len(p.Levels))
	require.Len(t, p.Steps, len(p.Levels))
	require.IsIncreasing(t, p.Steps)
	require.Equal(t, []string{"closed", "held", "held", "held"}, outcomesOf(p.Levels[:4]))
	require.InEpsilon(t, 9000, *p.Levels[0].AchievedRate, 0.02)
	require.InEpsilon(t, 9000.0/8, p.Levels[1].Rate, 0.02, "an eighth of what the closed load reached")
	s := p.Search
	require.InEpsilon(t, *s.Low, *s.Rate, 0.05)
	require.LessOrEqual(t, *s.Rate, 9000/0.995, "99.5 % of what was offered is enough")
	require.Greater(t, *s.FirstFailed, 9000.0)
	require.Nil(t, s.ClientBound)
	require.NotEmpty(t, r.Why("phase", "p", "search", "client_bound").Text)
	require.Equal(t, "the precision was reached", s.Ended)
	require.LessOrEqual(t, *s.High, *s.Low*1.05)
	require.Zero(t, s.Tries, "a fresh level confirmed it")
	require.GreaterOrEqual(t, *s.High, 8900.0)
	require.LessOrEqual(t, *s.Low, 9000.0)
	best := p.Levels[*s.Level]
	require.InDelta(t, best.Rate, *s.Rate, 0, "as asked, like the interval")
	require.Equal(t, best.Op, p.Op)
	require.Equal(t, best.OfferedRate, p.OfferedRate)
	var sent, due uint64
	for _, l := range p.Levels {
		due += l.Op["put"].Due
	}
	for _, q := range p.Requests {
		sent += q.Sent
	}
	require.Equal(t, due, sent, "requests are those of all levels")
}

func outcomesOf(levels []run.Level) []string {
	var all []string
	for _, l := range levels {
		all = append(all, l.Outcome)
	}
	return all
}

// A target that is too slow for the lowest rate leaves the phase without figures, and with the reason.
func TestSearchFindsNothing(t *testing.T) {
	w := newFake()
	var steps []worker.Step
	w.count = queue(950, &steps)
	r := coord.Run(context.Background(), configOf(t, levelsPlan(aSearch), local, w))
	require.Equal(t, exit.Invalid, r.ExitCode)
	p := r.Phase["p"]
	require.Equal(t, []string{"closed", "failed", "failed"}, outcomesOf(p.Levels), "the second time for long")
	require.Len(t, p.Reasons, 1)
	require.Regexp(t, "^no rate held: at 1,000/s, sustained 95[01]/s; the generator's loop was busy 0 % of the time: it is not to blame$", p.Reasons[0].Text)
	require.Nil(t, p.Search.Rate)
	require.Nil(t, p.Op["put"].Response.P99)
	require.Equal(t, "no rate was confirmed", r.Why("phase", "p", "op", "put", "response", "p99").Text)
	require.Equal(t, "no rate was confirmed", r.Why("phase", "p", "search", "rate").Text)
	require.Equal(t, "the lowest rate does not hold", p.Search.Ended)
	require.InDelta(t, 950+1200+7500, p.Requests[0].Sent, 20)
}

// When the budget is spent, the search says how far it got.
func TestSearchOutOfBudget(t *testing.T) {
	w := newFake()
	var steps []worker.Step
	w.count = queue(9000, &steps)
	cfg := configOf(t, levelsPlan(`search {
	sessions      = 10
	step_duration = "1s"
	budget        = "1s"
	slo { response_p99 = "5ms" }
}`), local, w)
	r := coord.Run(context.Background(), cfg)
	p := r.Phase["p"]
	require.Len(t, p.Levels, 2, "the closed load, and one rate")
	require.Equal(t, run.Suspect, p.Validity)
	require.Len(t, p.Reasons, 1)
	require.Regexp(t, "^cannot be told: the budget was spent; the limit lies between [0-9,]+/s and [0-9,]+/s$", p.Reasons[0].Text)
}

// A lost worker's share of the load is missing, so nothing more is tried.
func TestSearchLosesAWorker(t *testing.T) {
	a, b := newFake(), newFake()
	var steps, others []worker.Step
	a.count = queue(9000, &steps)
	gone := &leaving{fakeWorker: b, after: 2}
	b.count = queue(9000, &others)
	cfg := configOf(t, levelsPlan(aSearch), local, a, b)
	cfg.Workers[1].Worker = gone
	r := coord.Run(context.Background(), cfg)
	require.Equal(t, run.Degraded, r.Verdict.Completeness)
	p := r.Phase["p"]
	require.Len(t, p.Levels, 3)
	require.Equal(t, "a worker was lost", p.Search.Ended)
	require.Equal(t, run.Suspect, p.Validity, p.Reasons)
}

// leaving is a worker that is lost after some steps.
type leaving struct {
	*fakeWorker
	after int
}

func (w *leaving) Run(ctx context.Context, at time.Duration, sink worker.Sink) (worker.Final, error) {
	if w.after == 0 {
		return worker.Final{}, &worker.Loss{Worker: "w1", Why: "it is gone"}
	}
	w.after--
	return w.fakeWorker.Run(ctx, at, sink)
}

// The user's wish to end ends a search, too; what was tried is in the result.
func TestSearchIsStopped(t *testing.T) {
	w := newFake()
	var steps []worker.Step
	drain := make(chan struct{})
	count := queue(9000, &steps)
	w.count = func(ctx context.Context, f *fakeWorker, step worker.Step, t *measure.Totals) {
		count(ctx, f, step, t)
		if step.Level == 2 {
			close(drain)
		}
	}
	cfg := configOf(t, levelsPlan(aSearch), local, w)
	cfg.Drain = drain
	r := coord.Run(context.Background(), cfg)
	require.Equal(t, run.Aborted, r.Verdict.Completeness)
	require.Len(t, r.Phase["p"].Levels, 3)
	require.Equal(t, "stopped by the user", r.Phase["p"].Search.Ended)
}

// The stage in which too many ops fail is the last, and says why it is short.
func TestErrorsEndStages(t *testing.T) {
	w := newFake()
	var steps []worker.Step
	count := queue(10_000, &steps)
	w.count = func(ctx context.Context, f *fakeWorker, step worker.Step, t *measure.Totals) {
		count(ctx, f, step, t)
		if step.Level == 1 {
			for range 3 {
				t.AddDue(driver.Put)
				t.Record(&measure.Sample{Verb: driver.Put, Outcome: driver.Timeout, Due: t.Origin, Start: t.Origin, End: t.Origin})
			}
		}
	}
	r := coord.Run(context.Background(), configOf(t, levelsPlan("stop_after = 3\n"+threeStages), local, w))
	require.Equal(t, run.Aborted, r.Verdict.Completeness)
	p := r.Phase["p"]
	require.Len(t, p.Levels, 2)
	require.Empty(t, p.Levels[0].Reasons)
	require.Equal(t, run.Suspect, p.Levels[1].Validity)
	require.Equal(t, "ended early, by stop_after = 3", p.Levels[1].Reasons[0].Text)
	require.Equal(t, "stage 2, 3,000/s: ended early, by stop_after = 3", p.Reasons[0].Text)
}

// A level that cannot be prepared fails the run; those before it are in the result.
func TestStageCannotStart(t *testing.T) {
	w := newFake()
	var steps []worker.Step
	count := queue(9000, &steps)
	w.count = func(ctx context.Context, f *fakeWorker, step worker.Step, t *measure.Totals) {
		count(ctx, f, step, t)
		if step.Level == 1 {
			f.prepareErr = errors.New("too many open files")
		}
	}
	r := coord.Run(context.Background(), configOf(t, levelsPlan(threeStages), local, w))
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Len(t, r.Phase["p"].Levels, 2)
}
