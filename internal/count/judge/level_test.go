package judge

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/run"
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

// level is a level of a search: openLoad brings 1,000 ops a second for 4 s.
func level(ph *plan.Phase, load *measure.Totals, g measure.Generator) *Level {
	var m Measured
	g.Executor, g.Loops = "event loop", 1
	m.AddLevel(testPlan(), ph, Measured{
		Endpoints: endpoints, Load: load, Shape: pace.Shape{Rate: 1000, Duration: 4 * time.Second}, Generators: []measure.Generator{g},
	}, 0)
	return m.Levels[0]
}

// TestWhoseDoingItIs: a level misses its objective, and the reason says what is known of the generator.
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
		{late, measure.Generator{Busy: 0.5}, "client-bound", "was busy 50 % of the time: it started ops late"},
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

// searched is a search with these outcomes of its levels, at 1,000 a second, 2,000 and so on; one that did not hold was tried twice. Power falls with
// the rate.
func searched(ended End, outcomes ...string) *run.Phase {
	ph := searchPhase()
	m := Measured{Endpoints: endpoints, Ended: ended}
	for i, outcome := range outcomes {
		l := level(ph, openLoad(ms, 0), measure.Generator{Busy: 0.1})
		l.Rate, l.Outcome, l.power = float64(1000*(i+1)), outcome, 1/float64(i+1)
		l.OfferedRate = number(l.Rate)
		for o := Held; o <= Limited; o++ {
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
		ended                      End
		outcomes                   []string
		validity                   run.Validity
		reason                     string
		found, failed, bound, knee *float64
	}{
		{"found", Precise, []string{"held", "held", "overloaded"}, run.Valid, "", rate(2000), rate(3000), nil, rate(1000)},
		{"the highest holds", AtTo, []string{"held", "held"}, run.Valid, "", rate(2000), nil, nil, rate(1000)},
		{
			"client-bound", Precise,
			[]string{"held", "client-bound"},
			run.Suspect, "client-bound at 2,000/s: the target may hold more than 1,000/s", rate(1000), nil, rate(2000), rate(1000),
		},
		{
			"out of time", Spent,
			[]string{"held", "overloaded"},
			run.Suspect, "the budget was spent: the answer lies between 1,023/s and 1,951/s", rate(1000), rate(2000), nil, rate(1000),
		},
		{
			"out of time early", Spent,
			[]string{"held"},
			run.Suspect, "the budget was spent before a rate failed: the target may hold more than 1,000/s", rate(1000), nil, nil, nil,
		},
		{"the generator at its end at once", BelowFrom, []string{"client-bound"}, run.Invalid, "no rate held: at 1,000/s, ", nil, nil, rate(1000), nil},
		{"nothing holds", BelowFrom, []string{"overloaded"}, run.Invalid, "no rate held: at 1,000/s, ", nil, rate(1000), nil, nil},
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

// The ramp of a stage has its own start: 3 s up from 500 to 1,500 a second and 1 s there are 4,500 ops.
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

// Each figure of the generator is named at its limit or above it, the worst first; nothing else is.
func TestLimitsOfWhoseDoingItIs(t *testing.T) {
	limit := func(f float64) *float64 { return &f }
	busy := func(share, rest string) string {
		return "; the generator's loop was busy " + share + " % of the time" + rest
	}
	const mine, late = ": it is not to blame", ": it started ops late"
	kept := func(seconds float64) *measure.Interrupted {
		return &measure.Interrupted{Times: 1, Seconds: seconds, MaxSeconds: seconds, OthersSeconds: seconds}
	}
	for name, c := range map[string]struct {
		g      measure.Generator
		stalls uint64
		late   bool
		want   string
	}{
		"idle":                     {measure.Generator{}, 0, false, busy("0", mine)},
		"busy":                     {measure.Generator{Busy: suspectBusy}, 0, false, busy("70", mine)},
		"rather busy":              {measure.Generator{Busy: *above(suspectBusy)}, 0, false, busy("70", "")},
		"very busy":                {measure.Generator{Busy: invalidBusy, Throttled: &measure.Throttled{Periods: 1}}, 0, false, "; a CPU quota kept the generator from running"},
		"too busy":                 {measure.Generator{Busy: *above(invalidBusy), Throttled: &measure.Throttled{Periods: 1}}, 0, false, busy("85", "")},
		"a quota that was kept":    {measure.Generator{Throttled: &measure.Throttled{}}, 0, false, busy("0", mine)},
		"a quota, and a stall":     {measure.Generator{Throttled: &measure.Throttled{Periods: 1}}, 1, false, "; a CPU quota kept the generator from running"},
		"a stall":                  {measure.Generator{RunQueueWait: limit(1)}, 1, false, "; the generator stood still for 2.00 s"},
		"queued":                   {measure.Generator{RunQueueWait: limit(suspectQueued)}, 0, false, busy("0", mine)},
		"queued for longer":        {measure.Generator{RunQueueWait: above(suspectQueued), Interrupted: kept(1)}, 0, true, "; the generator's loop waited 1 % of the time for a processor: it may be to blame"},
		"gaps":                     {measure.Generator{Interrupted: kept(0.05)}, 0, true, "; the generator's loop was kept from its processor 1 time, for 50.0 ms in all, at most 50.0 ms: other threads had it for 50.0 ms of these"},
		"short gaps":               {measure.Generator{Interrupted: kept(math.Nextafter(0.05, 0))}, 0, false, busy("0", mine)},
		"late":                     {measure.Generator{}, 0, true, busy("0", late)},
		"late, and the loop, busy": {measure.Generator{Busy: *above(suspectBusy)}, 0, true, busy("70", late)},
	} {
		p := modelled("search", c.g)
		p.Stalls, p.MaxStallSeconds = c.stalls, 2
		l := &Level{phase: p, late: c.late}
		require.Equal(t, c.want, l.whose(), name)
	}
}

// A level without the needed figures does not hold; it is overloaded below nine tenths of what was offered.
func TestHowFarALevelFallsShort(t *testing.T) {
	figure := func(f float64) *float64 { return &f }
	for name, c := range map[string]struct {
		offered, achieved *float64
		busy              float64
		outcome           string
		why               string
	}{
		"nothing":             {nil, nil, 0, "failed", "why not"},
		"nothing achieved":    {figure(1000), nil, 0, "failed", "why not"},
		"nothing offered":     {nil, figure(1000), 0, "failed", "why not"},
		"nothing, and busy":   {nil, nil, 1, "client-bound", "why not"},
		"all":                 {figure(1000), figure(1000), 0, "held", ""},
		"nine tenths":         {figure(1000), figure(900), 0, "failed", "sustained 900/s; the generator's loop was busy 0 % of the time: it is not to blame"},
		"less":                {figure(1000), figure(math.Nextafter(900, 0)), 0, "overloaded", "sustained 900/s; the generator's loop was busy 0 % of the time: it is not to blame"},
		"less, and too busy":  {figure(1000), figure(500), 1, "client-bound", "sustained 500/s; the generator's loop was busy 100 % of the time"},
		"all, though too bus": {figure(1000), figure(1000), 1, "held", ""},
	} {
		p := modelled("search", measure.Generator{Busy: c.busy})
		p.OfferedRate, p.AchievedRate, p.plateau, p.Nulls = c.offered, c.achieved, 1000, map[string]string{"achieved_rate": "why not"}
		l := &Level{Level: run.Level{OfferedRate: c.offered, AchievedRate: c.achieved, Op: p.Op}, phase: p}
		l.try(&plan.Phase{Search: &plan.Search{}})
		require.Equal(t, c.outcome, l.Outcome, name)
		require.Equal(t, c.why, l.Why, name)
	}
}

// Power is the rate divided by the mean response of all ops, in which a failed op counts as the slowest.
func TestPower(t *testing.T) {
	rate := 1000.0
	of := func(sets ...map[driver.Outcome][]int64) *measure.Totals {
		load := measure.NewTotals(origin, 1)
		for v, set := range sets {
			for outcome, all := range set {
				for _, took := range all {
					record(load, measure.Sample{Verb: driver.Verb(v), Outcome: outcome, Due: origin, Start: origin, End: origin + took})
				}
			}
		}
		return load
	}
	for name, c := range map[string]struct {
		rate *float64
		load *measure.Totals
		mean float64 // seconds; 0: none
	}{
		"no rate":                     {nil, of(map[driver.Outcome][]int64{driver.OK: {2 * ms}}), 0},
		"no op":                       {&rate, of(), 0},
		"no time":                     {&rate, of(map[driver.Outcome][]int64{driver.OK: {0, 0}}), 0},
		"a nanosecond":                {&rate, of(map[driver.Outcome][]int64{driver.OK: {1}}), 1e-9},
		"one op":                      {&rate, of(map[driver.Outcome][]int64{driver.OK: {2 * ms}}), 0.002},
		"two":                         {&rate, of(map[driver.Outcome][]int64{driver.OK: {2 * ms}, driver.Miss: {4 * ms}}), 0.003},
		"two verbs":                   {&rate, of(map[driver.Outcome][]int64{driver.OK: {2 * ms}}, map[driver.Outcome][]int64{driver.OK: {4 * ms, 6 * ms}}), 0.004},
		"one that failed at once":     {&rate, of(map[driver.Outcome][]int64{driver.OK: {2 * ms, 4 * ms}, driver.Error: {0}}), 0.010 / 3},
		"one that failed late":        {&rate, of(map[driver.Outcome][]int64{driver.OK: {2 * ms}, driver.Timeout: {10 * ms}}), 0.006},
		"those of the slowest verb":   {&rate, of(map[driver.Outcome][]int64{driver.OK: {2 * ms}, driver.Error: {0}}, map[driver.Outcome][]int64{driver.OK: {8 * ms}}), 0.006},
		"nothing but what has failed": {&rate, of(map[driver.Outcome][]int64{driver.Error: {4 * ms, 2 * ms}}), 0.004},
	} {
		got := powerOf(c.rate, c.load)
		if c.mean == 0 {
			require.Zero(t, got, name)
			continue
		}
		require.InEpsilon(t, rate/c.mean, got, 1e-12, name)
	}
}

// A search that had to end may not have reached its precision: the answer is then a range.
func TestHowCloseASearchCame(t *testing.T) {
	figure := func(f float64) *float64 { return &f }
	for name, c := range map[string]struct {
		ended               End
		rate, failed, bound *float64
		want                string
	}{
		"no rate":                       {Spent, nil, figure(1000), nil, ""},
		"precise":                       {Precise, figure(1000), figure(2000), nil, ""},
		"the highest":                   {AtTo, figure(1000), nil, nil, ""},
		"client-bound":                  {Precise, figure(1000), figure(3000), figure(2000), "client-bound at 2,000/s: the target may hold more than 1,000/s"},
		"spent, and as close":           {Spent, figure(1000), figure(1050), nil, ""},
		"spent, and not quite":          {Spent, figure(1000), figure(1051), nil, "the budget was spent: the answer lies between 1,000/s and 1,051/s"},
		"stopped, and nothing failed":   {Stopped, figure(1000), nil, nil, "stopped by the user before a rate failed: the target may hold more than 1,000/s"},
		"with a worker less, and close": {Shrunk, figure(1000), figure(1001), nil, ""},
	} {
		p := modelled("search", measure.Generator{})
		p.judgeSearch(Measured{Ended: c.ended}, &run.Search{Rate: c.rate, FirstFailed: c.failed, ClientBound: c.bound, Low: c.rate, High: c.failed, Precision: 0.05})
		require.Equal(t, c.want, strings.Join(texts(p.Phase), "; "), name)
	}
	var m Measured
	m.Stop()
	require.Equal(t, Stopped, m.Ended)
}

// A search has the figures of its best level, and the counts of all of them; its shape is the plan's, not a level's.
func TestASearchCountsAllOfItsLevels(t *testing.T) {
	p := searched(Precise, "held", "overloaded")
	require.EqualValues(t, 4000, p.Op["get"].OK, "of the best")
	require.Len(t, p.Levels, 3)
	require.EqualValues(t, 12_000, p.Requests[0].Sent)
	require.Empty(t, p.Finer)
	require.Equal(t, run.Load{Sessions: 2, Pipeline: 8, Arrivals: "constant", InFlight: 16, OnFull: "wait"}, p.Load)
	require.Equal(t, []int{0, 0}, []int{*p.Search.Level, *p.Search.KneeLevel})
	require.Equal(t, []float64{1000, 2000, 1000}, []float64{*p.Search.Rate, *p.Search.FirstFailed, *p.Search.Knee})
}

// Doubts about a stage name its number and rate, and affect its own figures and the phase's; loops are those of one stage.
func TestDoubtsOfStages(t *testing.T) {
	ph := openPhase()
	ph.Stages, ph.Open = &plan.Stages{Schedule: ph.Open.Schedule}, nil
	m := Measured{Endpoints: endpoints}
	for i, busy := range []float64{0.1, 0.8, 0.1} {
		m.AddLevel(testPlan(), ph, Measured{
			Endpoints: endpoints, Load: openLoad(ms, 0), Shape: pace.Shape{Rate: 1000, Duration: 4 * time.Second},
			Generators: []measure.Generator{{Executor: "event loop", Loops: 1 + i, Busy: busy}},
		}, time.Duration(i)*time.Second)
	}
	require.InDelta(t, 2, m.Levels[2].StartSeconds, 1e-9)
	p := NewPhase(testPlan(), ph, m)
	require.Equal(t, run.Suspect, p.Validity)
	require.Equal(t, []string{"stage 2, 1,000/s: the generator's loop was busy 80 % of the time"}, texts(p))
	require.Equal(t, reason.GeneratorBusy, p.Reasons[0].Code)
	require.Equal(t, append([]string{
		"levels.1.op.get.response", "levels.1.op.get.service", "levels.1.op.get.latency", "levels.1.op.get.acks",
	}, "op", "scenario", "offered_rate", "achieved_rate", "steady"), p.Reasons[0].Touches)
	require.Len(t, p.Levels, 3)
	require.Equal(t, 1, p.Generator.Loops)
	require.Equal(t, []float64{12, 0}, []float64{p.Load.DurationSeconds, p.Load.RampSeconds})
	require.Empty(t, p.Finer)
}

// An objective is missed by what is slower than it, not by what equals it; if it would have been met without the generator's lag, ops were late.
func TestObjectivesThatAreMissed(t *testing.T) {
	limit := 5 * time.Millisecond
	at, over := limit.Seconds(), *above(limit.Seconds())
	for name, set := range map[string]func(slo *plan.SLO, o *run.Op, response, service *float64){
		"p50": func(slo *plan.SLO, o *run.Op, r, s *float64) {
			slo.ResponseP50, o.Response.P50, o.Service.P50, o.Lag.P50 = limit, r, s, r
		},
		"p90": func(slo *plan.SLO, o *run.Op, r, s *float64) {
			slo.ResponseP90, o.Response.P90, o.Service.P90, o.Lag.P90 = limit, r, s, r
		},
		"p95": func(slo *plan.SLO, o *run.Op, r, s *float64) {
			slo.ResponseP95, o.Response.P95, o.Service.P95, o.Lag.P95 = limit, r, s, r
		},
		"p99": func(slo *plan.SLO, o *run.Op, r, s *float64) {
			slo.ResponseP99, o.Response.P99, o.Service.P99, o.Lag.P99 = limit, r, s, r
		},
		"p999": func(slo *plan.SLO, o *run.Op, r, s *float64) {
			slo.ResponseP999, o.Response.P999, o.Service.P999, o.Lag.P999 = limit, r, s, r
		},
	} {
		quantile := strings.Replace(name, "p999", "p99.9", 1)
		for _, c := range []struct {
			response, service float64
			missed, late      bool
		}{{at, at, false, false}, {over, at, true, true}, {over, over, true, false}} {
			var slo plan.SLO
			p := modelled("search", measure.Generator{})
			set(&slo, p.Op["get"], &c.response, &c.service)
			if c.late {
				p.lags.Record(ms)
			}
			l := &Level{Level: run.Level{Op: p.Op}, phase: p}
			why := l.misses(&slo)
			require.Equal(t, c.missed, strings.HasPrefix(why, "get: "+quantile+" response 5.00 ms (service 5.00 ms, lag 5.00 ms); "), "%s: %q", name, why)
			require.Equal(t, c.late, l.late, name)
			require.Equal(t, []run.Objective{{Quantile: quantile, LimitSeconds: 0.005}}, objectives(&plan.Search{SLOs: []plan.SLO{slo}}))
		}
		var slo plan.SLO
		p := modelled("search", measure.Generator{})
		set(&slo, p.Op["get"], nil, nil)
		p.Nulls = map[string]string{"op.get.response." + name: "too few"}
		l := &Level{Level: run.Level{Op: p.Op}, phase: p}
		require.Equal(t, "get: no "+quantile+" of the response times: too few", l.misses(&slo))
	}
}

// If no rate held, the result describes the first level, and its duration is that of all.
func TestNothingHeldIsOfTheFirstLevel(t *testing.T) {
	ph := searchPhase()
	m := Measured{Endpoints: endpoints, Ended: BelowFrom}
	for i, busy := range []float64{0.1, 0.2} {
		load := openLoad(6*ms, 0)
		load.Span = measure.Span{}
		load.Span.Session(origin+int64(i)*int64(time.Minute), origin+int64(i)*int64(time.Minute)+4006*ms)
		l := level(ph, load, measure.Generator{Busy: busy})
		l.Rate = float64(1000 * (i + 1))
		m.Levels = append(m.Levels, l)
	}
	p := NewPhase(testPlan(), ph, m)
	require.Contains(t, texts(p)[0], "no rate held: at 1,000/s, get: p99 response 6.00 ms")
	require.InDelta(t, 0.1, p.Generator.Busy, 0)
	require.InDelta(t, 64.006, p.Seconds, 1e-9)
	require.Equal(t, "each key lives on one endpoint", p.Nulls["target.replication"])
	require.Equal(t, reason.NotApplicable, p.NullCodes["target.replication"])
	require.Equal(t, "no rate held", p.Nulls["op.get.rate"])
	require.Equal(t, reason.NoRateHeld, p.NullCodes["op.get.rate"])
	require.EqualValues(t, 8000, p.Requests[0].Sent)
}

// A rate that a search finds to hold would also hold if loadgen had been on time.
func TestLateInASearch(t *testing.T) {
	for model, want := range map[run.Model]string{run.ModelOpen: "started_late invalid", run.ModelSearch: "started_late suspect"} {
		p := modelled(model, measure.Generator{})
		lag := 1.0
		p.Op["get"].Lag.P99 = &lag
		p.lags.RecordN(int64(time.Second), 100)
		p.judgeLag()
		require.Equal(t, []string{want}, said(p.Phase))
	}
}
