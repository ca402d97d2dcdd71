package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/pace"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/search"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

func searchPhase() *plan.Phase {
	ph := openPhase()
	ph.Search = &plan.Search{
		Schedule: ph.Open.Schedule, From: 1000, To: 1e6, StepDuration: 4 * time.Second, Precision: 0.05, Budget: time.Minute,
		SLOs: []plan.SLO{{ResponseP99: 5 * time.Millisecond}},
	}
	ph.Open = nil
	return ph
}

// level is one of a search: openLoad brings 1,000 ops a second for 4 s.
func level(ph *plan.Phase, load *measure.Totals, g measure.Generator) *Level {
	var m Measured
	g.Executor, g.Loops = "event loop", 1
	m.AddLevel(testPlan(), ph, Measured{
		Endpoints: endpoints, Load: load, Shape: pace.Shape{Rate: 1000, Duration: 4 * time.Second}, Generators: []measure.Generator{g},
	}, 0)
	return m.Levels[0]
}

// TestWhoseDoingItIs has a level miss its objective: what is known of the generator stands beside that.
func TestWhoseDoingItIs(t *testing.T) {
	late := measure.NewTotals(origin, len(endpoints)) // ops start 5 ms late, and take 1 ms
	for i := range int64(4000) {
		due := origin + i*ms
		record(late, measure.Sample{Verb: driver.Get, Due: due, Start: due + 5*ms, End: due + 6*ms})
	}
	late.Span.Session(origin, origin+4006*ms)
	slow, stalled := openLoad(6*ms, 0), openLoad(6*ms, 0)
	stalled.Stalls, stalled.MaxStall = 1, 300*ms
	share := func(f float64) *float64 { return &f }
	tests := []struct {
		load    *measure.Totals
		g       measure.Generator
		outcome string
		whose   string
	}{
		{slow, measure.Generator{Busy: 0.5, RunQueueWait: share(0.002)}, "failed", "was busy 50 % of the time: it is not to blame"},
		{slow, measure.Generator{Busy: 0.8}, "failed", "was busy 80 % of the time"},
		{slow, measure.Generator{Busy: 0.9, RunQueueWait: share(0.2)}, "client-bound", "was busy 90 % of the time"},
		{late, measure.Generator{Busy: 0.5}, "failed", "was busy 50 % of the time: ops had no room, or it woke late"},
		{slow, measure.Generator{Busy: 0.5, RunQueueWait: share(0.05)}, "failed", "waited 5 % of the time for a processor: it may be to blame"},
		{late, measure.Generator{Busy: 0.5, RunQueueWait: share(0.2)}, "client-bound", "waited 20 % of the time for a processor: it may be to blame"},
		{slow, measure.Generator{Busy: 0.5, Throttled: &measure.Throttled{Periods: 1}}, "client-bound", "a CPU quota kept the generator from running"},
		{stalled, measure.Generator{Busy: 0.5}, "client-bound", "the generator stood still for 300 ms"},
		{
			slow,
			measure.Generator{Busy: 0.5, Interrupted: &measure.Interrupted{Times: 3, Seconds: 0.03, MaxSeconds: 0.02, OthersSeconds: 0.03}},
			"failed", "was kept from its processor 3 times, for 30.0 ms in all, at most 20.0 ms: other threads had it for 30.0 ms of these",
		},
	}
	for _, tt := range tests {
		l := level(searchPhase(), tt.load, tt.g)
		what, whose, _ := strings.Cut(l.Why, "; ")
		require.Equal(t, map[bool]string{true: "get: p99 response 6.00 ms (service 1.00 ms, lag 5.00 ms)", false: "get: p99 response 6.00 ms (service 6.00 ms, lag 0 s)"}[tt.load == late], what)
		require.Equal(t, tt.whose, strings.TrimPrefix(whose, "the generator's loop "))
		require.Equal(t, tt.outcome, l.Outcome, tt.whose)
	}
}

func TestWhatComesOfALevel(t *testing.T) {
	const idle = "; the generator's loop was busy 0 % of the time: it is not to blame"
	shed := func() *measure.Totals {
		t := openLoad(ms, 0)
		t.AddDue(driver.Get)
		t.Shed(driver.Get, 1)
		return t
	}
	tests := []struct {
		name    string
		load    *measure.Totals
		busy    float64
		change  func(*plan.Phase)
		outcome string
		why     string
	}{
		{name: "quick enough", load: openLoad(ms, 0), outcome: "held"},
		{name: "quick enough although the generator is busy", load: openLoad(ms, 0), busy: 0.9, outcome: "held"},
		{name: "too slow", load: openLoad(6*ms, 0), outcome: "failed", why: `get: p99 response 6.00 ms \(service 6.00 ms, lag 0 s\)` + idle},
		{name: "too slow, and the generator is busy", load: openLoad(6*ms, 0), busy: 0.9, outcome: "client-bound", why: `get: p99 response 6.00 ms \(service 6.00 ms, lag 0 s\); the generator's loop was busy 90 % of the time`},
		{name: "a little too much", load: openLoad(ms, 1020*ms/1000), outcome: "failed", why: "sustained 98[0-9]/s" + idle},
		{name: "far too much", load: openLoad(ms, 2*ms), outcome: "overloaded", why: "sustained 50[0-9]/s" + idle},
		{name: "something was shed", load: shed(), outcome: "failed", why: "1 get of 4,001 was shed" + idle},
		{
			name: "an objective of another quantile", load: openLoad(ms, 0), outcome: "failed", why: `get: p50 response 1.00 ms \(service 1.00 ms, lag 0 s\)` + idle,
			change: func(ph *plan.Phase) {
				ph.Search.SLOs = append(ph.Search.SLOs, plan.SLO{Op: "get", ResponseP50: 500 * time.Microsecond})
			},
		},
		{
			name: "an objective of another op", load: openLoad(ms, 0), outcome: "held",
			change: func(ph *plan.Phase) { ph.Search.SLOs[0] = plan.SLO{Op: "put", ResponseP50: 1} },
		},
		{
			name: "not what was expected", load: openLoad(ms, 0), outcome: "failed", why: "get: 100 % were hits, fewer than expect_hits = 200 %",
			change: func(ph *plan.Phase) { hits := 2.0; ph.ExpectHits = &hits },
		},
		{name: "nothing at all", load: &measure.Totals{}, outcome: "failed", why: "no plateau: no op was started"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ph := searchPhase()
			if tt.change != nil {
				tt.change(ph)
			}
			l := level(ph, tt.load, measure.Generator{Busy: tt.busy})
			require.Equal(t, tt.outcome, l.Outcome, l.Why)
			require.Regexp(t, "^"+tt.why+"$", l.Why)
		})
	}
}

// searched is a search whose levels came out so, at 1,000 a second, 2,000 and so on; one that did not hold was tried twice. Power falls with
// the rate.
func searched(ended search.End, outcomes ...string) *run.Phase {
	ph := searchPhase()
	m := Measured{Endpoints: endpoints, Ended: ended}
	for i, outcome := range outcomes {
		l := level(ph, openLoad(ms, 0), measure.Generator{Busy: 0.1})
		l.Rate, l.Outcome, l.power = float64(1000*(i+1)), outcome, 1/float64(i+1)
		for o := search.Held; o <= search.Limited; o++ {
			if o.String() == outcome {
				l.outcome = o
			}
		}
		m.Levels = append(m.Levels, l)
		if outcome != "held" {
			m.Levels = append(m.Levels, l)
		}
	}
	return NewPhase(testPlan(), ph, m)
}

func TestWhatASearchIsWorth(t *testing.T) {
	rate := func(f float64) *float64 { return &f }
	tests := []struct {
		name                       string
		ended                      search.End
		outcomes                   []string
		validity                   run.Validity
		reason                     string
		found, failed, bound, knee *float64
	}{
		{"found", search.Precise, []string{"held", "held", "overloaded"}, run.Valid, "", rate(2000), rate(3000), nil, rate(1000)},
		{"the highest holds", search.AtTo, []string{"held", "held"}, run.Valid, "", rate(2000), nil, nil, rate(1000)},
		{
			"client-bound", search.Precise,
			[]string{"held", "client-bound"},
			run.Suspect, "client-bound at 2,000/s: the target may hold more than 1,000/s", rate(1000), nil, rate(2000), rate(1000),
		},
		{
			"out of time", search.Spent,
			[]string{"held", "overloaded"},
			run.Suspect, "the budget was spent: the answer lies between 1,000/s and 2,000/s", rate(1000), rate(2000), nil, rate(1000),
		},
		{
			"out of time early", search.Spent,
			[]string{"held"},
			run.Suspect, "the budget was spent before a rate failed: the target may hold more than 1,000/s", rate(1000), nil, nil, nil,
		},
		{"the generator at its end at once", search.BelowFrom, []string{"client-bound"}, run.Invalid, "no rate held: at 1,000/s, ", nil, nil, rate(1000), nil},
		{"nothing holds", search.BelowFrom, []string{"overloaded"}, run.Invalid, "no rate held: at 1,000/s, ", nil, rate(1000), nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := searched(tt.ended, tt.outcomes...)
			require.Equal(t, tt.validity, p.Validity, p.Reasons)
			if tt.reason != "" {
				require.Equal(t, []string{tt.reason}, texts(p))
			}
			require.Equal(t, tt.found, p.Search.Rate)
			require.Equal(t, tt.failed, p.Search.FirstFailed)
			require.Equal(t, tt.bound, p.Search.ClientBound)
			require.Equal(t, tt.knee, p.Search.Knee)
			require.InDelta(t, 0.1, p.Generator.Busy, 0, "where nothing held, that of the lowest level")
			r := run.New(run.Header{ID: "x"}, run.Environment{})
			r.Add("get", p)
			for _, path := range nullPaths(t, r) {
				if path[0] == "phase" {
					require.NotEmpty(t, r.Why(path...), path)
				}
			}
			require.NoError(t, r.CheckValid())
		})
	}
}

// The ramp of a stage begins at a rate of its own: 3 s up from 500 to 1,500 a second and 1 s there are 4,500 ops.
func TestOfferedAfterARampFromARate(t *testing.T) {
	ph := openPhase()
	ph.Stages, ph.Open = &plan.Stages{Schedule: ph.Open.Schedule}, nil
	shape := pace.Shape{Rate: 1500, From: 500, Ramp: 3 * time.Second, Duration: 4 * time.Second}
	load := measure.NewTotals(origin, len(endpoints))
	pacer := pace.NewConstant(shape, 1, 0)
	for due, ok := pacer.Next(); ok; due, ok = pacer.Next() {
		record(load, measure.Sample{Verb: driver.Get, Due: origin + due, Start: origin + due, End: origin + due + ms})
	}
	load.Span.Session(origin, origin+4001*ms)
	require.EqualValues(t, 4500, load.Ops[driver.Get].Due)
	m := Measured{Endpoints: endpoints}
	for range 2 {
		m.AddLevel(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Shape: shape, Generators: []measure.Generator{{Loops: 2, CPUSeconds: 1}}}, 0)
	}
	l := m.Levels[0]
	require.InEpsilon(t, 1500, *l.OfferedRate, 0.002)
	require.InEpsilon(t, 1500, *l.AchievedRate, 0.004)
	require.Empty(t, l.Outcome)
	p := NewPhase(testPlan(), ph, m)
	require.Equal(t, run.Valid, p.Validity, p.Reasons)
	require.EqualValues(t, 9000, p.Op["get"].OK)
	require.InDelta(t, 8, p.Load.DurationSeconds, 1e-9)
	require.InDelta(t, 6, p.Load.RampSeconds, 1e-9)
	require.Equal(t, 2, p.Generator.Loops)
	require.InDelta(t, 2, p.Generator.CPUSeconds, 1e-9)
}
