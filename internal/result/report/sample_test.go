package report

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	µs = int64(time.Microsecond)
	ms = int64(time.Millisecond)
)

var header = run.Header{
	ID: "20261120T173438Z-hydra-m4-4f2a", Plan: "hydra-m4", PlanDigest: "9f86d081884c7d65",
	StartedAt: time.Date(2026, 11, 20, 17, 34, 38, 0, time.UTC), Loadgen: "v0.1.0", Workers: []string{"local"},
}

var environment = machine.Environment{
	Go: "go1.26.8", OS: "linux", Arch: "amd64", Kernel: "6.1.0-18-amd64", Hostname: "node3", CPUModel: "Intel(R) Xeon(R) CPU @ 2.20GHz", CPUs: 2,
}

// samplePlan is Hydra's: four built-in nodes with N=3 W=2 R=1.
func samplePlan() *plan.Plan {
	return &plan.Plan{
		Name: "hydra-m4",
		Targets: []*plan.Target{
			{
				Name: "space", Driver: "redis", Builtin: &plan.Builtin{Nodes: 4},
				Replication: &plan.Replication{Coordinate: "client", N: 3, W: 2, R: 1, ReadFanout: "r", ReadFrom: "first"},
			},
			{Name: "one", Driver: "redis"},
		},
		Datasets: []*plan.Dataset{
			{Name: "items", Keys: plan.Keys{Pick: "uniform", Count: 50, Scope: "session"}, Values: plan.Values{Size: 200}},
			{Name: "many", Keys: plan.Keys{Pick: "zipf", Skew: 0.99, Count: 1_000_000, Scope: "shared"}, Values: plan.Values{Size: 1 << 20}},
		},
		Phases: []*plan.Phase{
			{
				Name: "put", Target: "space", Dataset: "items", Ops: []plan.Weight{{Op: "put", Weight: 1}}, MaxBad: 0.01,
				Closed: &plan.Closed{Clients: plan.Clients{Sessions: 10, Pipeline: 1}, Iterations: 1000},
			},
			{
				Name: "get", Target: "space", Dataset: "items", Ops: []plan.Weight{{Op: "get", Weight: 1}}, MaxBad: 0.01,
				Setup:  []plan.Weight{{Op: "put", Weight: 1}},
				Closed: &plan.Closed{Clients: plan.Clients{Sessions: 10, Pipeline: 1}, Iterations: 1000},
			},
			{
				Name: "mixed", Target: "one", Dataset: "many", MaxBad: 0.01,
				Ops: []plan.Weight{{Op: "get", Weight: 9}, {Op: "put", Weight: 1}},
				Open: &plan.Open{Rate: 2000, Duration: 10 * time.Second, Ramp: time.Second, Schedule: plan.Schedule{
					Arrivals: "poisson", Clients: plan.Clients{Sessions: 16, Pipeline: 4}, InFlight: 64, OnFull: "shed",
				}},
			},
			{
				Name: "fill", Target: "one", Dataset: "many", Ops: []plan.Weight{{Op: "put", Weight: 1}}, MaxBad: 0.01,
				Populate: &plan.Clients{Sessions: 16, Pipeline: 8},
			},
		},
	}
}

// endpoints returns that many addresses.
func endpoints(n int) []string {
	all := []string{"127.0.0.1:40115", "127.0.0.1:33211", "127.0.0.1:45001", "127.0.0.1:39873"}
	for len(all) < n {
		all = append(all, "cache-"+string(rune('a'+len(all)))+".example:6379")
	}
	return all[:n]
}

var event = measure.Generator{Executor: "event loop", Loops: 1, CPUSeconds: 0.71, MaxRSSBytes: 41_943_040, Mallocs: 212, Busy: 0.231}

// simulation makes totals of ops with random service times.
type simulation struct {
	rand   *rand.Rand
	totals *measure.Totals
}

func simulate(endpoints int) simulation {
	return simulation{rand.New(rand.NewPCG(1, 2)), measure.NewTotals(0, endpoints)}
}

// op counts one op, with a request to each of n endpoints, and returns its end.
func (s simulation) op(verb driver.Verb, outcome driver.Outcome, n int, due, start int64) int64 {
	t := s.totals
	acks := make([]int64, n)
	for i := range acks {
		acks[i] = 80*µs + int64(s.rand.ExpFloat64()*float64(40*µs))
	}
	slices.Sort(acks)
	end := start + acks[(n-1)/2]
	cause := op.Replied
	if outcome == driver.Timeout {
		end, cause = start+1000*ms, op.RequestTimeout
	}
	t.AddDue(verb)
	t.Record(&measure.Sample{Verb: verb, Outcome: outcome, Cause: measure.Cause(cause), Due: due, Start: start, End: end})
	in := 5
	if verb == driver.Get && outcome == driver.OK {
		in = 208 // $200, a value of 200 bytes, and the ends of two lines
	}
	t.AddBytes(verb, in, n*241)
	for i, at := range acks {
		r := t.Request((int(due/1000)+i)%(len(t.Requests)/driver.NumVerbs), verb)
		r.Sent++
		if outcome == driver.Timeout {
			r.Timeout++
			continue
		}
		r.Answered++
		t.Ack(verb, i+1, at)
	}
	return end
}

// closed counts 10 sessions of n ops each.
func (s simulation) closed(verb driver.Verb, copies, n int) simulation {
	for session := range int64(10) {
		first := session * 10 * µs
		at := first
		for range n {
			at = s.op(verb, driver.OK, copies, at, at)
		}
		s.totals.Span.Session(first, at)
	}
	return s
}

func rows(seconds int) []run.Row {
	var all judge.Series
	for i := range seconds {
		all.Add(float64(i+1), &measure.Totals{})
	}
	return all.Rows()
}

// good is a run without a fault.
func good() *run.Run {
	p, r := samplePlan(), run.New(header, environment)
	r.Seconds = 1.913
	r.Add("put", judge.NewPhase(p, p.Phases[0], judge.Measured{
		Endpoints: endpoints(4), Load: simulate(4).closed(driver.Put, 3, 1000).totals, Generators: []measure.Generator{event},
	}))
	setup := simulate(4)
	for i := range int64(500) {
		setup.op(driver.Put, driver.OK, 3, i*ms, i*ms)
	}
	r.Add("get", judge.NewPhase(p, p.Phases[1], judge.Measured{
		Endpoints: endpoints(4), Load: simulate(4).closed(driver.Get, 1, 1000).totals, Setup: setup.totals, Generators: []measure.Generator{event},
	}))
	yes := true
	r.SetAsserts([]run.AssertResult{{
		Name: "reads are quick", That: `phase.get.op.get.response.p99 < duration("20ms")`, OK: &yes,
		Value: "phase.get.op.get.response.p99 = 0.000266239",
	}})
	return r
}

// overloaded is an open load of 2,000 ops a second at a target that handles 1,500, with some of everything else that can go wrong.
func overloaded() *run.Run {
	p, r := samplePlan(), run.New(header, environment)
	r.Seconds = 12.2
	s := simulate(12)
	var free int64
	for i := range int64(19000) {
		due := i * 500 * µs
		verb, outcome := driver.Get, driver.OK
		switch {
		case i%10 == 3:
			verb = driver.Put
		case i%10 == 7:
			outcome = driver.Miss
		}
		switch {
		case i%50 == 9:
			outcome = driver.Timeout
		case i > 15000 && i%2 == 0:
			s.totals.AddDue(verb)
			s.totals.Shed(verb, 1)
			continue
		}
		start := max(due, free)
		s.op(verb, outcome, 1, due, start)
		free = start + 667*µs
	}
	s.totals.Span.Session(0, free)
	s.totals.Reconnects, s.totals.LateReplies, s.totals.Foreign, s.totals.Stalls, s.totals.MaxStall = 4, 120, 3, 2, 812*ms
	s.totals.AddAway(1, 2400*ms)
	for range 380 {
		s.totals.Errors.Add([]byte("no reply within 1s"))
	}
	g := event
	g.Busy, g.GCCycles, g.Mallocs = 0.88, 2, 1_234_567
	ph := judge.NewPhase(p, p.Phases[2], judge.Measured{Endpoints: endpoints(12), Load: s.totals, Series: rows(2), Generators: []measure.Generator{g}})
	r.Add("mixed", ph)
	no := false
	r.SetAsserts([]run.AssertResult{
		{
			Name: "reads are quick", That: `phase.mixed.op.get.response.p99 < duration("20ms") && phase.mixed.op.put.response.p99 < duration("30ms")`,
			OK: &no, Value: "phase.mixed.op.get.response.p99 = 3.19815679, phase.mixed.op.put.response.p99 = 3.19815679",
		},
		{Name: "no waiting", That: "phase.get.op.get.rate > 1000", Reason: "phase.get is null: phase get has not run"},
	})
	return r
}

// broken failed in a populate step.
func broken() *run.Run {
	p, r := samplePlan(), run.New(header, environment)
	s := simulate(1)
	s.op(driver.Put, driver.OK, 1, 0, 0)
	s.op(driver.Put, driver.Timeout, 1, ms, ms)
	s.totals.Span.Session(0, 1001*ms)
	r.Seconds = 1.2
	r.Add("fill", judge.NewPhase(p, p.Phases[3], judge.Measured{Endpoints: endpoints(1), Load: s.totals, Generators: []measure.Generator{event}}))
	r.Conclude(run.Failed, reason.Why{Code: reason.SetupFailed, Text: `phase "fill": populate: 1 of 1,000,000 put ops were done: 1 timed out, 999,998 were never begun`})
	return r
}

// unreachable could not even start.
func unreachable() *run.Run {
	r := run.New(header, environment).Fail(errors.New(`target "space": connect to 127.0.0.1:7001: connection refused`))
	r.Seconds = 0.013
	return r
}

// fleet is a run that lost a worker.
func fleet() *run.Run {
	h := header
	h.Workers = []string{"w1", "a-worker-with-a-long-name", "w3"}
	p, r := samplePlan(), run.New(h, environment)
	r.Seconds = 17.2
	r.Fleet = []run.Worker{
		{Name: "w1", Host: "node1", Sessions: 3, ClockOffsetSeconds: -1.2, ClockUncertaintySeconds: 84e-6, CPUSeconds: 1.21},
		{Name: "a-worker-with-a-long-name", Host: "node2", Sessions: 3, ClockUncertaintySeconds: 1.2e-3},
		{Name: "w3", Host: "node3", Sessions: 4, ClockUncertaintySeconds: 91e-6, CPUSeconds: 1.43},
	}
	r.Losses = []worker.Loss{{
		Worker: "a-worker-with-a-long-name", Why: "no heartbeat for 10s", Phase: "put", Seq: 4, KnownSeconds: 4, LoadedSeconds: 14.2, UnseenOps: 1800,
	}}
	r.Add("put", judge.NewPhase(p, p.Phases[0], judge.Measured{
		Endpoints: endpoints(4), Load: simulate(4).closed(driver.Put, 3, 1000).totals, Generators: []measure.Generator{event}, Losses: r.Losses,
	}))
	r.Conclude(run.Degraded, reason.Why{Code: reason.WorkerLost, Text: r.Losses[0].Error()})
	return r
}
