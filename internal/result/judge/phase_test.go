package judge

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/pace"
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
		Closed: &plan.Closed{Clients: plan.Clients{Sessions: 2, Pipeline: 1}, Iterations: 1000},
	}
}

func openPhase() *plan.Phase {
	return &plan.Phase{
		Name: "get", Target: "one", Dataset: "items", MaxBad: 0.01,
		Ops: []plan.Weight{{Op: "get", Weight: 1}},
		Open: &plan.Open{Rate: 1000, Duration: 4 * time.Second, Schedule: plan.Schedule{
			Arrivals: "constant", Clients: plan.Clients{Sessions: 2, Pipeline: 8}, InFlight: 16, OnFull: "wait",
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

// TestStagesOfSessions: rates are of the time that the load spent in a stage, and what it did not reach is left out.
func TestStagesOfSessions(t *testing.T) {
	ph, load := closedPhase(), measure.NewTotals(origin, len(endpoints))
	ph.Closed = &plan.Closed{Clients: plan.Clients{Sessions: 2, Pipeline: 1}, Duration: 4 * time.Second, Stages: []plan.Users{
		{Sessions: 1, Duration: time.Second}, {Sessions: 2, Duration: 2 * time.Second}, {Duration: time.Second},
	}}
	load.Stages = ph.Closed.Ends()
	for i, outcome := range []driver.Outcome{driver.OK, driver.Error, driver.OK, driver.Miss, driver.OK} {
		due := origin + int64(i)*600*ms
		record(load, measure.Sample{Verb: driver.Get, Outcome: outcome, Due: due, Start: due, End: due + 500*ms})
	}
	told := func(m Measured) (all [][5]float64) {
		m.Endpoints, m.Load, m.Series = endpoints, load, []run.Row{{T: 1}, {T: 2.5}}
		r := run.New(run.Header{}, nowhere())
		r.Add("get", NewPhase(testPlan(), ph, m))
		for _, path := range nullPaths(t, r) {
			require.NotEmpty(t, r.Why(path...).Text, path)
		}
		for _, l := range r.Phase["get"].Levels {
			o := l.Op["get"]
			all = append(all, [...]float64{float64(l.Sessions), l.StartSeconds, float64(o.Due), float64(o.Error), *o.Answered})
		}
		return all
	}
	require.Equal(t, [][5]float64{{1, 0, 2, 1, 1}, {2, 1, 3, 0, 1.5}, {0, 3, 0, 0, 0}}, told(Measured{}))
	require.Equal(t, [][5]float64{{1, 0, 2, 1, 1}, {2, 1, 3, 0, 2}}, told(Measured{Aborted: true}))
}

// nowhere is the environment of a machine that reports nothing.
func nowhere() machine.Environment {
	var e machine.Environment
	for _, fact := range []string{"cgroup_cpus", "memory_bytes", "memory_limit_bytes", "fd_soft", "fd_hard"} {
		e.Null(fact, "not there", false)
	}
	return e
}

// Lists and objects of the JSON are never null, however little they contain.
func TestEmptyIsNotNull(t *testing.T) {
	require.Empty(t, nullPaths(t, run.New(run.Header{}, machine.Environment{
		CgroupCPUs: number(1), MemoryBytes: new(int64), MemoryLimitBytes: new(int64), FDSoft: new(int64), FDHard: new(int64),
	}).Fail(errors.New("no route to host"))))
	p := NewPhase(testPlan(), closedPhase(), Measured{Load: &measure.Totals{}})
	r := run.New(run.Header{}, machine.Environment{})
	r.Add("get", p)
	for _, path := range nullPaths(t, r) {
		require.True(t, r.Why(path...).Text != "" || path[0] == "environment", path)
	}
}

// TestCausesAreEventKinds pins what the causes of package measure stand for.
func TestCausesAreEventKinds(t *testing.T) {
	require.Equal(t, op.NumEventKinds, measure.NumCauses)
}

func searchPhase() *plan.Phase {
	ph := openPhase()
	ph.Search = &plan.Search{
		Schedule: ph.Open.Schedule, From: 1000, To: 1e6, StepDuration: 4 * time.Second, Precision: 0.05, Budget: time.Minute,
		SLOs: []plan.SLO{{ResponseP99: 5 * time.Millisecond}},
	}
	ph.Open = nil
	return ph
}

// texts returns the texts of a phase's reasons.
func texts(p *run.Phase) []string {
	all := []string{}
	for _, why := range p.Reasons {
		all = append(all, why.Text)
	}
	return all
}
