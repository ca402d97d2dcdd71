package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestWhatTheLoadCounts: with batches, scenarios and traces, every form says what its rates and figures count.
func TestWhatTheLoadCounts(t *testing.T) {
	scenarios := []plan.Scenario{
		{Name: "get", Weight: 1, Steps: []plan.ScenarioStep{{Op: "get", Key: "new"}}},
		{Name: "change", Weight: 1, Steps: []plan.ScenarioStep{{Op: "get", Key: "new"}, {Op: "put", Key: "same"}}},
	}
	closed := func(edit func(*plan.Phase)) *plan.Phase {
		ph := *samplePlan().Phases[1]
		ph.Setup = nil
		edit(&ph)
		return &ph
	}
	open := func(edit func(*plan.Phase)) *plan.Phase {
		ph := *samplePlan().Phases[1]
		ph.Setup, ph.Closed = nil, nil
		ph.Open = &plan.Open{Rate: 2000, Duration: 10 * time.Second, Schedule: plan.Schedule{Arrivals: "constant", Clients: plan.Clients{Sessions: 16, Pipeline: 4}, InFlight: 64, OnFull: "wait"}}
		edit(&ph)
		return &ph
	}
	for name, test := range map[string]struct {
		phase                *plan.Phase
		text, page, markdown []string
	}{
		"keys": {
			phase:    closed(func(ph *plan.Phase) { ph.Batch = 4 }),
			text:     []string{"load        closed, 10 sessions, 1,000 ops each, 4 keys an op; took", "keys 40,000 due = 40,000 ok · "},
			page:     []string{"4 keys an op", "keys of get"},
			markdown: []string{"| get | get | ", "| get | keys of get | "},
		},
		"scenarios": {
			phase:    closed(func(ph *plan.Phase) { ph.Scenarios = scenarios }),
			text:     []string{"closed, 10 sessions, 1,000 scenarios each; took", "scenario    change: get → put\n              100 due = 100 ok\n"},
			page:     []string{"Scenario change, 100 times: half of them within 2.00\u00a0ms"},
			markdown: []string{"| get | scenario change | "},
		},
		"arriving scenarios": {
			phase:    open(func(ph *plan.Phase) { ph.Scenarios = scenarios }),
			text:     []string{"open, 2,000 scenarios/s constant, 10.0 s"},
			page:     []string{"open, 2,000 scenarios/s constant", "scenarios offered"},
			markdown: []string{" scenarios/s, sustained 0 scenarios/s!; "},
		},
		"a trace": {
			phase: open(func(ph *plan.Phase) {
				ph.Open.Trace = &plan.Trace{File: "t.csv", Form: "cache", Speed: 4, SHA256: "5ad", Lines: 2000, Ops: []plan.TraceCount{{Op: "gets", Lines: 2000}}}
			}),
			text: []string{
				"open, 2,000/s on average, 10.0 s", "trace       t.csv, 4 times as fast as it was; 2,000 ops: 2,000 gets; SHA-256 5ad\n",
				"dataset     items: keys of the trace, values of its sizes, or of 200 B where it has none\n",
			},
			page: []string{"2,000/s on average"},
		},
		"a trace at even distances": {
			phase: open(func(ph *plan.Phase) {
				ph.Open.Trace = &plan.Trace{File: "t.csv", Form: "cache", Even: true, Lines: 2000, Ops: []plan.TraceCount{{Op: "gets", Lines: 2000}}}
			}),
			text: []string{"open, 2,000/s constant, 10.0 s", "t.csv, at even distances; "},
		},
		"a trace without its times": {
			phase: closed(func(ph *plan.Phase) {
				ph.Closed = &plan.Closed{Clients: plan.Clients{Sessions: 4, Pipeline: 1}, Trace: &plan.Trace{File: "t.csv", Form: "cache", Lines: 2000, Ops: []plan.TraceCount{{Op: "gets", Lines: 2000}}}}
			}),
			text: []string{"closed, 4 sessions, every line of the trace once; took ", "t.csv, as fast as its sessions can; 2,000 ops: 2,000 gets; "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := simulate(4).closed(driver.Get, 1, 1000)
			if test.phase.Batch > 1 {
				for range 40_000 {
					s.totals.AddKeysDue(driver.Get, 1)
					s.totals.EndKeys(driver.Get, driver.OK, 1, 0, 50*ms)
				}
			}
			for i := range test.phase.Scenarios {
				for n := range int64(100) {
					s.totals.AddScenario(i)
					s.totals.RecordScenario(i, &measure.Sample{Due: n, Start: n, End: 2*ms + n})
				}
			}
			m := judge.Measured{Endpoints: endpoints(4), Load: s.totals, Generators: []measure.Generator{event}}
			if o := test.phase.Open; o != nil {
				m.Shape = pace.Shape(o.Shape())
			}
			r := run.New(header, environment)
			r.Add("get", judge.NewPhase(samplePlan(), test.phase, m))
			var text, markdown strings.Builder
			require.NoError(t, Text(&text, r, Options{}))
			require.NoError(t, Markdown(&markdown, []timeline.Source{{Run: r}}))
			page := pageOf(t, timeline.Source{Run: r})
			for got, want := range map[string][]string{text.String(): test.text, page: test.page, markdown.String(): test.markdown} {
				for _, w := range want {
					require.Contains(t, got, w)
				}
			}
		})
	}
}
