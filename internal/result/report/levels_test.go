package report

import (
	"strings"
	"testing"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/report/page"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
	"github.com/stretchr/testify/require"
)

// queue is how one server handles a schedule with 100 µs per op; every tenth op is a put if the mix has puts.
func queue(ph *plan.Phase, s pace.Shape) *measure.Totals {
	t := measure.NewTotals(0, 1)
	if s.Rate == 0 {
		return closedQueue(ph.As(plan.Shape(s)).Closed)
	}
	pacer := pace.NewConstant(s, 1, 0)
	var free int64
	for i := 0; ; i++ {
		due, ok := pacer.Next()
		if !ok {
			t.Span.Session(0, free)
			return t
		}
		verb := driver.Get
		if i%10 == 9 && len(ph.Ops) > 1 {
			verb = driver.Put
		}
		free = max(free, due) + 100*µs
		t.AddDue(verb)
		t.Record(&measure.Sample{Verb: verb, Due: due, Start: due, End: free})
		r := t.Request(0, verb)
		r.Sent, r.Answered = r.Sent+1, r.Answered+1
	}
}

// closedQueue is how that server handles a closed load of gets.
func closedQueue(c *plan.Closed) *measure.Totals {
	t := measure.NewTotals(0, 1)
	t.Stages = c.Ends()
	ends := make([]int64, c.Sessions*c.Pipeline) // of each slot
	turn := int64(len(ends)) * 100 * µs
	for i := 0; ends[i%len(ends)] < int64(c.Duration); i++ {
		slot := &ends[i%len(ends)]
		t.AddDue(driver.Get)
		t.Record(&measure.Sample{Verb: driver.Get, Due: *slot, Start: *slot, End: int64(i+1) * 100 * µs})
		r := t.Request(0, driver.Get)
		r.Sent, r.Answered = r.Sent+1, r.Answered+1
		*slot = int64(i+1) * 100 * µs
	}
	for i := range c.Sessions {
		last := ends[i*c.Pipeline]
		t.Span.Busy(0, last-turn, last, turn)
	}
	return t
}

// levels is a run of stages, one of which is too much, of a search, of searches that find nothing, hold everything they tried, and are bound by the
// generator, and of stages of sessions.
func levels() *run.Run {
	p, r := samplePlan(), run.New(header, environment)
	schedule := plan.Schedule{Arrivals: "constant", Clients: plan.Clients{Sessions: 16, Pipeline: 64}, InFlight: 1024, OnFull: "wait"}
	gets := []plan.Weight{{Op: "get", Weight: 1}}
	spike := &plan.Phase{
		Name: "spike", Target: "one", Dataset: "many", MaxBad: 0.01, Ops: []plan.Weight{{Op: "get", Weight: 9}, {Op: "put", Weight: 1}},
		Stages: &plan.Stages{Schedule: schedule, Stages: []plan.Stage{
			{Rate: 2000, Duration: time.Second},
			{Rate: 15_000, Duration: time.Second, Ramp: 200 * time.Millisecond},
			{Rate: 2000, Duration: time.Second},
		}},
	}
	seek := func(name string, from, to float64) *plan.Phase {
		return &plan.Phase{Name: name, Target: "one", Dataset: "many", MaxBad: 0.01, Ops: gets, Search: &plan.Search{
			Schedule: schedule, From: from, To: to, StepDuration: time.Second, Precision: 0.05, Budget: 20 * time.Second,
			SLOs: []plan.SLO{{ResponseP99: 5 * time.Millisecond}, {Op: "get", ResponseP50: time.Millisecond}},
		}}
	}
	knee, none := seek("knee", 1000, 1e9), seek("none", 20_000, 1e9)
	top, client := seek("top", 2000, 6000), seek("client", 4000, 50_000)
	users := &plan.Phase{Name: "users", Target: "one", Dataset: "many", MaxBad: 0.01, Ops: gets, Closed: &plan.Closed{
		Clients: plan.Clients{Sessions: 16, Pipeline: 1}, Duration: 3 * time.Second, Stages: []plan.Users{
			{Sessions: 4, Duration: time.Second}, {Sessions: 16, Duration: 2 * time.Second, Ramp: time.Second},
		},
	}}
	p.Phases = append(p.Phases, spike, knee, none, top, client, users)
	r.Seconds = 30
	r.Add("spike", carriedOut(p, spike, 0.2))
	r.Add("knee", carriedOut(p, knee, 0.2))
	r.Add("none", carriedOut(p, none, 0.2))
	r.Add("top", carriedOut(p, top, 0.2))
	r.Add("client", carriedOut(p, client, 0.9))
	r.Add("users", judge.NewPhase(p, users, judge.Measured{Endpoints: endpoints(1), Load: closedQueue(users.Closed), Generators: []measure.Generator{event}}))
	return r
}

// carriedOut is a phase whose levels were all carried out by a generator with that busy share.
func carriedOut(p *plan.Plan, ph *plan.Phase, busy float64) *run.Phase {
	m, start := judge.Measured{Endpoints: endpoints(1)}, time.Duration(0)
	g := event
	g.Busy = busy
	add := func(s pace.Shape) {
		m.AddLevel(p, ph, judge.Measured{
			Endpoints: m.Endpoints, Load: queue(ph, s), Shape: s, Generators: []measure.Generator{g},
		}, start)
		start += s.Duration
	}
	if ph.Stages != nil {
		for _, s := range ph.Stages.Shapes() {
			add(pace.Shape(s))
		}
		return judge.NewPhase(p, ph, m)
	}
	for {
		shape, more := m.NextTry(ph, 0)
		if !more {
			return judge.NewPhase(p, ph, m)
		}
		add(pace.Shape(shape))
	}
}

// TestPageShowsTheAnswerFirst: the chart of rate against latency is on the first screen, a reason stands once, with what to do, and of the tries only
// those that make the answer are not folded.
func TestPageShowsTheAnswerFirst(t *testing.T) {
	var b strings.Builder
	require.NoError(t, page.Write(&b, []timeline.Source{{Run: levels()}}))
	first, rest, found := strings.Cut(b.String(), "</section>")
	require.True(t, found)
	require.Contains(t, first, "Rate against latency")
	require.NotContains(t, rest, "Rate against latency")
	require.Contains(t, first, "<b>Not even the lowest rate held.</b> <code>no_rate_held</code></summary>", "a line, folded")
	require.Contains(t, first, "<p>Rates and latencies are null")
	require.Less(t, strings.Index(first, `class="answer"`), strings.Index(first, "May I believe it?"))
	require.Less(t, strings.Index(first, "May I believe it?"), strings.Index(first, "Rate against latency"))
	require.NotContains(t, rest, "no rate held: ")
	require.Regexp(t, `<summary>\d+ other tries, by rate</summary>`, rest)
}
