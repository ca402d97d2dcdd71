package judge

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/load/op"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	µs = int64(time.Microsecond)
	ms = int64(time.Millisecond)
)

// origin is the run clock at the start of every step here.
const origin = 7 * int64(time.Second)

var endpoints = []string{"127.0.0.1:7001", "127.0.0.1:7002"}

// testPlan contains what NewPhase looks up for the phases of these tests.
func testPlan() *plan.Plan {
	return &plan.Plan{
		Name: "test",
		Targets: []*plan.Target{
			{Name: "one", Driver: "redis", Endpoints: endpoints},
			{
				Name: "three", Driver: "redis", Builtin: &plan.Builtin{Nodes: 4},
				Replication: &plan.Replication{Coordinate: "client", N: 3, W: 2, R: 1, ReadFanout: "r", ReadFrom: "first"},
			},
		},
		Datasets: []*plan.Dataset{{
			Name:   "items",
			Keys:   plan.Keys{Pick: "uniform", Count: 50, Scope: "session"},
			Values: plan.Values{Size: 200},
		}},
	}
}

func closedPhase() *plan.Phase {
	return &plan.Phase{
		Name: "get", Target: "one", Dataset: "items", MaxBad: 0.01,
		Ops:    []plan.Weight{{Op: "get", Weight: 1}},
		Closed: &plan.Closed{Sessions: 2, Pipeline: 1, Iterations: 1000},
	}
}

func openPhase() *plan.Phase {
	return &plan.Phase{
		Name: "get", Target: "one", Dataset: "items", MaxBad: 0.01,
		Ops: []plan.Weight{{Op: "get", Weight: 1}},
		Open: &plan.Open{Rate: 1000, Duration: 4 * time.Second, Schedule: plan.Schedule{
			Arrivals: "constant", Sessions: 2, Pipeline: 8, InFlight: 16, OnFull: "wait",
		}},
	}
}

// record counts one op with one request, in full, at the first endpoint.
func record(t *measure.Totals, s measure.Sample) {
	t.AddDue(s.Verb)
	t.Record(&s)
	r := t.Request(0, s.Verb)
	r.Sent++
	switch s.Outcome {
	case driver.Timeout:
		r.Timeout++
	case driver.Error:
		r.Error++
	default:
		r.Answered++
	}
}

// closedLoad is the data of two sessions that run one op after the other, n each; session s begins after s·ramp ns.
func closedLoad(n int, service, ramp int64, outcome func(i int) driver.Outcome) *measure.Totals {
	t := measure.NewTotals(origin, len(endpoints))
	for s := range int64(2) {
		first := origin + s*ramp
		at := first
		for i := range n {
			sample := measure.Sample{Verb: driver.Get, Outcome: outcome(i), Due: at, Start: at, End: at + service}
			if sample.Outcome > driver.Miss {
				sample.Cause = measure.Cause(op.Lost)
			}
			t.AddBytes(driver.Get, 20, 30)
			record(t, sample)
			at += service
		}
		t.Span.Session(first, at)
	}
	return t
}

// spanless removes what a worker reports about its sessions at the end.
func spanless(t *measure.Totals) *measure.Totals {
	t.Span = measure.Span{}
	return t
}

func always(o driver.Outcome) func(int) driver.Outcome {
	return func(int) driver.Outcome { return o }
}

// openLoad is 1,000 ops a second, due for 4 s, each with the service time and started at least gap after the one before it.
func openLoad(service, gap int64) *measure.Totals {
	t := measure.NewTotals(origin, len(endpoints))
	var free int64
	for i := range int64(4000) {
		due := origin + i*ms
		start := max(due, free)
		free = start + gap
		record(t, measure.Sample{Verb: driver.Get, Due: due, Start: start, End: start + service})
	}
	t.Span.Session(origin, free+service)
	return t
}

// TestChanceOfARampIsNoShortfall offers Poisson arrivals with a ramp, all answered at once: what falls into the ramp by chance is not missing on the
// plateau. What the target did not do is.
func TestChanceOfARampIsNoShortfall(t *testing.T) {
	shape := pace.Shape{Rate: 1000, Ramp: 5 * time.Second, Duration: 10 * time.Second}
	apart := 0.0
	for _, done := range []float64{1, 0.95} {
		short := 0
		for seed := range uint64(40) {
			load := measure.NewTotals(0, len(endpoints))
			pacer := pace.NewPoisson(shape, 1, 0, seed)
			random := rand.New(rand.NewPCG(seed, 1))
			for due, ok := pacer.Next(); ok; due, ok = pacer.Next() {
				s := measure.Sample{Verb: driver.Get, Due: due, Start: due, End: due}
				if random.Float64() > done {
					s.End = int64(11 * time.Second)
				}
				record(load, s)
			}
			load.Span.Session(0, int64(11*time.Second))
			ph := openPhase()
			ph.Open.Schedule.Arrivals, ph.Open.Rate, ph.Open.Ramp, ph.Open.Duration = "poisson", shape.Rate, shape.Ramp, shape.Duration
			p := NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Shape: shape})
			apart = max(apart, 1 - *p.AchievedRate / *p.OfferedRate)
			if strings.Contains(strings.Join(texts(p), " "), " sustained ") {
				short++
			}
		}
		if done == 1 {
			require.Greater(t, apart, 1-suspectAchieved, "chance alone")
			require.Zero(t, short)
		} else {
			require.Greater(t, short, 30, "one op in twenty was late")
		}
	}
}

func newPhase(ph *plan.Phase, load *measure.Totals) *run.Phase {
	return NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load})
}

func TestNewPhaseClosed(t *testing.T) {
	load := closedLoad(1000, ms, 0, func(i int) driver.Outcome {
		return map[bool]driver.Outcome{true: driver.Miss, false: driver.OK}[i%10 == 0]
	})
	load.Digest, load.Reconnects = 0xabc, 3
	p := NewPhase(testPlan(), closedPhase(), Measured{
		Endpoints: endpoints, Load: load,
		Generators: []measure.Generator{
			{Executor: "event loop", Loops: 1, CPUSeconds: 0.5, Mallocs: 7, MaxRSSBytes: 10, Busy: 0.2},
			{Executor: "event loop", Loops: 2, CPUSeconds: 0.25, Mallocs: 1, MaxRSSBytes: 30, Busy: 0.1},
		},
	})

	require.Equal(t, run.Valid, p.Validity, p.Reasons)
	require.Equal(t, worker.Load, p.Kind)
	require.Equal(t, run.ModelClosed, p.Model)
	require.Equal(t, 1.0, p.Seconds)
	require.Equal(t, "0000000000000abc", p.Digest)
	require.Equal(t, uint64(3), p.Reconnects)
	require.Equal(t, measure.Generator{Executor: "event loop", Loops: 3, CPUSeconds: 0.75, Mallocs: 8, MaxRSSBytes: 30, Busy: 0.2}, p.Generator)
	require.Nil(t, p.Setup)
	require.Equal(t, []run.Requests{
		{Target: "one", Endpoint: endpoints[0], Verb: "get", Sent: 2000, Answered: 2000},
		{Target: "one", Endpoint: endpoints[1], Verb: "get"},
	}, p.Requests)

	require.Len(t, p.Op, 1)
	get := p.Op["get"]
	require.Equal(t, uint64(2000), get.Due)
	require.Equal(t, uint64(2000), get.Sent)
	require.Equal(t, uint64(1800), get.OK)
	require.Equal(t, uint64(200), get.Miss)
	require.Equal(t, 0.9, *get.HitRatio)
	require.Equal(t, 1800.0, *get.RateWall)
	require.InDelta(t, 1800, *get.Rate, 20) // a bin of 1 ms may hold an end more or less
	require.InDelta(t, 60**get.Rate, *get.RatePerMinute, 1e-6)
	require.Equal(t, uint64(40000), get.BytesIn)
	require.Equal(t, uint64(60000), *get.BytesOut)
	require.Equal(t, uint64(2000), get.Response.Count)
	require.Equal(t, uint64(1800), get.Latency.OK.Service.Count)
	require.InDelta(t, 0.001, *get.Service.Mean, 1e-9)
	require.InDelta(t, 0.001, *get.Service.P99, 0.001*0.008)
	require.Nil(t, get.Service.P999)
	require.Equal(t, "2 of 2,000 samples lie beyond it; a quantile takes 10", p.Nulls["op.get.service.p999"])
	require.Nil(t, get.Latency.Bad.Service.P50)
	require.Equal(t, []run.Latency{}, get.Acks)
}

// Every null has its reason, and no number that exists has one.
func TestNullsHaveReasons(t *testing.T) {
	p := NewPhase(testPlan(), closedPhase(), Measured{
		Endpoints: endpoints,
		Load:      measure.NewTotals(origin, len(endpoints)),
		Series:    []run.Row{{T: 1}},
	})
	r := run.New(run.Header{}, nowhere())
	r.Add("get", p)
	nulls := nullPaths(t, r)
	require.Contains(t, nulls, []string{"phase", "get", "op", "get", "rate"})
	require.Contains(t, nulls, []string{"phase", "get", "series", "0", "response", "p99"})
	require.Contains(t, nulls, []string{"environment", "memory_bytes"})
	for _, path := range nulls {
		require.NotEmpty(t, r.Why(path...).Text, path)
		require.NotEmpty(t, r.Why(path...).Code, path)
	}
	require.Equal(t, run.Invalid, p.Validity)
	require.Contains(t, texts(p), "no op was due")
}

// nowhere is the environment of a machine that reports nothing.
func nowhere() run.Environment {
	var e run.Environment
	for _, fact := range []string{"cgroup_cpus", "memory_bytes", "memory_limit_bytes", "fd_soft", "fd_hard"} {
		e.Null(fact, "not there", false)
	}
	return e
}

func TestWhyNotRun(t *testing.T) {
	r := run.New(run.Header{}, run.Environment{}).Fail(errors.New("no route to host"))
	require.Equal(t, "phase get was not run: the run is failed", r.Why("phase", "get", "op").Text)
	require.Empty(t, r.Why("seconds"))
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Equal(t, []string{"no route to host"}, r.Verdict.Reasons)
}

// Lists and objects of the JSON are never null, however little they contain.
func TestEmptyIsNotNull(t *testing.T) {
	require.Empty(t, nullPaths(t, run.New(run.Header{}, run.Environment{
		CgroupCPUs: number(1), MemoryBytes: new(int64), MemoryLimitBytes: new(int64), FDSoft: new(int64), FDHard: new(int64),
	}).Fail(errors.New("no route to host"))))
	p := NewPhase(testPlan(), closedPhase(), Measured{Load: &measure.Totals{}})
	r := run.New(run.Header{}, run.Environment{})
	r.Add("get", p)
	for _, path := range nullPaths(t, r) {
		require.True(t, r.Why(path...).Text != "" || path[0] == "environment", path)
	}
}

func TestAcks(t *testing.T) {
	load := closedLoad(10, ms, 0, always(driver.OK))
	for k := 1; k <= 3; k++ {
		load.AckN(driver.Get, k, int64(k)*ms, 20-uint64(k/3))
	}
	p := newPhase(closedPhase(), load)
	acks := p.Op["get"].Acks
	require.Len(t, acks, 3)
	require.InDelta(t, 0.002, *acks[1].Max, 1e-9)
	require.Nil(t, acks[2].Max)
	require.Equal(t, "1 of 20 ops never got 3 good answers, which counts as slower than any other", p.Nulls["op.get.acks.2.max"])
}

func TestSetupStandsApart(t *testing.T) {
	ph := closedPhase()
	ph.Target, ph.Setup = "three", []plan.Weight{{Op: "put", Weight: 1}}
	setup := measure.NewTotals(origin, len(endpoints))
	once := testPlan().Once(ph, true)
	for range once {
		record(setup, measure.Sample{Verb: driver.Put, Due: origin, Start: origin, End: origin + ms})
		for k := 1; k <= 3; k++ {
			setup.Ack(driver.Put, k, ms)
		}
	}
	setup.Span.Session(origin, origin+ms)
	*setup.Request(1, driver.Put) = measure.Requests{Sent: 2 * uint64(once), Answered: 2 * uint64(once)}
	p := NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: closedLoad(1000, ms, 0, always(driver.OK)), Setup: setup})

	require.Equal(t, run.Valid, p.Validity, p.Reasons)
	require.Equal(t, &run.Replication{Coordinate: "client", N: 3, W: 2, R: 1, ReadFanout: "r", ReadFrom: "first"}, p.Target.Replication)
	require.True(t, p.Target.Builtin)
	require.EqualValues(t, once, p.Setup.Op["put"].OK)
	require.Nil(t, p.Setup.Op["put"].Rate)
	require.Equal(t, []run.Requests{
		{Target: "three", Endpoint: endpoints[0], Verb: "put", Sent: uint64(once), Answered: uint64(once)},
		{Target: "three", Endpoint: endpoints[1], Verb: "put", Sent: 2 * uint64(once), Answered: 2 * uint64(once)},
	}, p.Setup.Requests)
	require.NotContains(t, p.Op, "put")
}

func TestRate(t *testing.T) {
	tests := []struct {
		name string
		ph   func(*plan.Phase)
		load *measure.Totals
		rate float64 // NaN: null
		why  string
	}{
		{
			name: "a ramp is left out",
			load: closedLoad(1000, ms, 500*ms, always(driver.OK)),
			rate: 2000,
		},
		{
			name: "a ramp as long as the work leaves nothing",
			ph:   func(ph *plan.Phase) { ph.Closed.Ramp = 2 * time.Second },
			load: closedLoad(1000, ms, 1000*ms, always(driver.OK)),
			rate: math.NaN(), why: "no plateau: the ramp is longer than the work of a session",
		},
		{
			name: "without a ramp the work can be too short too",
			load: closedLoad(1, ms, 2*ms, always(driver.OK)),
			rate: math.NaN(), why: "no plateau: the first session was done before the last one began",
		},
		{
			name: "shorter than a bin",
			load: closedLoad(1, 40*µs, 0, always(driver.OK)),
			rate: math.NaN(), why: "no plateau: it lasted 40µs, in which no session began another op",
		},
		{
			name: "only ok counts",
			load: closedLoad(1000, ms, 0, always(driver.Miss)),
			rate: 0,
		},
		{
			name: "nothing started",
			load: measure.NewTotals(origin, 1),
			rate: math.NaN(), why: "no plateau: no op was started",
		},
		{
			name: "by lost workers alone, whose last word is missing",
			load: spanless(closedLoad(1000, ms, 0, always(driver.OK))),
			rate: math.NaN(), why: "no plateau: the sessions that loaded were those of lost workers",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ph := closedPhase()
			if tt.ph != nil {
				tt.ph(ph)
			}
			p := newPhase(ph, tt.load)
			if math.IsNaN(tt.rate) {
				require.Nil(t, p.Op["get"].Rate)
				require.Nil(t, p.Op["get"].RatePerMinute)
				require.Equal(t, tt.why, p.Nulls["op.get.rate"])
				require.Contains(t, texts(p), tt.why)
				require.NotEqual(t, run.Valid, p.Validity)
				return
			}
			require.InEpsilon(t, 1+tt.rate, 1+*p.Op["get"].Rate, 0.005)
		})
	}
}

func TestOpenRates(t *testing.T) {
	tests := []struct {
		name              string
		ramp              time.Duration
		load              *measure.Totals
		offered, achieved float64
	}{
		{name: "keeps up", load: openLoad(ms, 0), offered: 1000, achieved: 1000},
		{name: "long service is no shortfall", load: openLoad(300*ms, 0), offered: 1000, achieved: 1000},
		{name: "half as fast as asked", load: openLoad(ms, 2*ms), offered: 1000, achieved: 500},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPhase(openPhase(), tt.load)
			require.InEpsilon(t, tt.offered, *p.OfferedRate, 0.002)
			require.InEpsilon(t, tt.achieved, *p.AchievedRate, 0.004)
		})
	}
	t.Run("few", func(t *testing.T) { // the last is due a fifth of a second before the end
		ph := openPhase()
		ph.Open.Rate, ph.Open.Duration = 5, 3*time.Second
		load := measure.NewTotals(origin, len(endpoints))
		for i := range int64(15) {
			due := origin + i*200*ms
			record(load, measure.Sample{Verb: driver.Get, Due: due, Start: due, End: due + ms})
		}
		load.Span.Session(origin, origin+2801*ms)
		p := newPhase(ph, load)
		require.InDelta(t, 5, *p.OfferedRate, 1e-9)
		require.Equal(t, run.Valid, p.Validity, p.Reasons)
	})
	t.Run("ended early", func(t *testing.T) {
		ph := openPhase()
		ph.Open.Duration = 40 * time.Second
		p := NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: openLoad(ms, 0), Aborted: true})
		require.InEpsilon(t, 1000, *p.OfferedRate, 0.002)
	})
	t.Run("closed", func(t *testing.T) {
		p := newPhase(closedPhase(), closedLoad(100, ms, 0, always(driver.OK)))
		require.Nil(t, p.OfferedRate)
		require.NotEmpty(t, p.Nulls["offered_rate"])
	})
	t.Run("ramp not over", func(t *testing.T) {
		ph := openPhase()
		ph.Open.Ramp = 10 * time.Second
		p := newPhase(ph, openLoad(ms, 0))
		require.Nil(t, p.OfferedRate)
		require.Equal(t, "no plateau: the ramp lasted to the end of the phase", p.Nulls["achieved_rate"])
		require.Equal(t, run.Suspect, p.Validity)
	})
}

// A ramp offers half of the rate while it lasts: 2 s up to 1,000/s and 2 s at it are 3,000 ops.
func TestOfferedAfterRamp(t *testing.T) {
	ph := openPhase()
	ph.Open.Ramp = 2 * time.Second
	load := measure.NewTotals(origin, len(endpoints))
	for i := range int64(3000) {
		due := origin + int64(math.Sqrt(float64(4*i*ms)*1e9)) // rate t/2 s · 1000/s
		if i >= 1000 {
			due = origin + 2000*ms + (i-1000)*ms
		}
		record(load, measure.Sample{Verb: driver.Get, Due: due, Start: due, End: due + ms})
	}
	load.Span.Session(origin, origin+4001*ms)
	p := newPhase(ph, load)
	require.InEpsilon(t, 1000, *p.OfferedRate, 0.002)
	require.InEpsilon(t, 1000, *p.AchievedRate, 0.004)
	require.InEpsilon(t, 1000, *p.Op["get"].Rate, 0.004)
}

// TestCausesAreEventKinds pins what the causes of package measure stand for.
func TestCausesAreEventKinds(t *testing.T) {
	require.Equal(t, op.NumEventKinds, measure.NumCauses)
}

// TestWhatIsNotCountedIsNull: puts go through clients that do not report the bytes they send, and loops have no threads of their own.
func TestWhatIsNotCountedIsNull(t *testing.T) {
	for _, tt := range []struct {
		executor  string
		sent, out uint64
		null      bool
	}{
		{plan.Blocking, 9, 0, true},
		{plan.EventLoop, 9, 0, true},
		{plan.EventLoop, 9, 700, false},
		{plan.EventLoop, 0, 0, false}, // all were refused: nothing was sent
		{plan.Thread, 9, 0, false},    // reads of a log
	} {
		load := closedLoad(100, ms, 0, always(driver.OK))
		load.Ops[driver.Get].Out = tt.out
		load.Requests = make([]measure.Requests, driver.NumVerbs)
		load.Requests[driver.Get].Sent = tt.sent
		b := builder{phase: &phase{Phase: &run.Phase{Nulls: map[string]string{}, NullCodes: map[string]reason.Code{}, Generator: measure.Generator{Executor: tt.executor}}}, totals: load, settled: load}
		get := b.ops("op.", []driver.Verb{driver.Get})["get"]
		b.generator()
		if tt.null {
			require.Nil(t, get.BytesOut, "%+v", tt)
			require.Contains(t, b.phase.Nulls["op.get.bytes_out"], "does not say")
		} else {
			require.Equal(t, tt.out, *get.BytesOut, "%+v", tt)
			require.NotContains(t, b.phase.Nulls, "op.get.bytes_out")
		}
		require.Equal(t, tt.executor == plan.Blocking, strings.Contains(b.phase.Nulls["generator.run_queue_wait"], "no threads of their own"))
	}
}
