package prom_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// samplePlan has a closed phase with a setup, one with scenarios, one whose scenario goes to two targets, one that reads through a cache, one on a log,
// an open one with two ops, and a populate.
const samplePlan = `
plan "sample" {}
target "space" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003", "127.0.0.1:7004"]
  replication {
    coordinate = "client"
    n          = 3
    w          = 2
    r          = 1
  }
}
target "one" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001"]
}
target "front" {
  source = target.one
  cache {
    scope  = "shared"
    memory = "1MiB"
  }
}
target "wal" {
  driver = "log"
  sync   = "fdatasync"
}
dataset "pools" {
  keys {
    count = 10
    scope = "session"
  }
  values { size = 100 }
}
dataset "shared" {
  keys { count = 1000 }
  values { size = 100 }
}
dataset "entries" {
  keys { count = 1 }
  values { size = 100 }
}
phase "fill" {
  target  = target.one
  dataset = dataset.shared
  populate {}
}
phase "get" {
  target  = target.space
  dataset = dataset.pools
  ops     = { get = 1 }
  setup { ops = { put = 1 } }
  closed {
    sessions   = 10
    iterations = 1000
  }
}
phase "chains" {
  target  = target.one
  dataset = dataset.shared
  ops     = { get = 1 }
  scenario "change" {
    step "get" {}
    step "put" { key = "same" }
  }
  closed {
    sessions   = 10
    iterations = 1000
  }
}
phase "across" {
  target  = target.one
  dataset = dataset.shared
  scenario "copy" {
    step "get" { as = "read" }
    step "put" {
      key    = "same"
      target = target.space
    }
  }
  closed {
    sessions   = 10
    iterations = 1000
  }
}
phase "cached" {
  target  = target.front
  dataset = dataset.shared
  ops     = { get = 1 }
  closed { iterations = 1000 }
}
phase "logged" {
  target  = target.wal
  dataset = dataset.entries
  ops     = { append = 9, read = 1 }
  closed { iterations = 1000 }
}
phase "mixed" {
  target  = target.one
  dataset = dataset.shared
  ops     = { get = 0.8, put = 0.2 }
  batch   = 4
  open {
    rate     = "2k/s"
    duration = "60s"
  }
  event "cold" {
    at = "20s"
    do = "flush"
  }
}
observe "disk" {
  directory { path = "/srv" }
}
assert "fast" {
  that = phase.mixed.op.get.response.p99 < duration("20ms")
}
assert "as expected" {
  that = phase.mixed.op.get.ok >= phase.mixed.op.put.ok
}
`

func parse(t testing.TB, text string) *plan.Plan {
	t.Helper()
	f, diags := plan.Parse([]byte(text), "sample.hcl", drivers.All())
	require.Empty(t, diags)
	p, diags := f.Resolve(plan.Vars{})
	require.Empty(t, diags)
	return p
}

// counted is a step that has run for a number of seconds, with counts and latencies that rise with it: per second and verb 100 ops, some with each
// outcome, on a target with the given endpoints and copies.
func counted(verbs []driver.Verb, seconds, endpoints, copies int) *measure.Totals {
	t := measure.NewTotals(0, endpoints)
	for s := range seconds {
		for i := range 100 {
			for _, v := range verbs {
				n := int64(s*100 + i)
				t.AddDue(v)
				t.AddKeysDue(v, 4)
				if i == 99 {
					t.Shed(v, 1)
					t.ShedKeys(v, 4)
					continue
				}
				outcome := driver.OK
				if i >= 90 {
					outcome = driver.Outcome(i % int(driver.Shed))
				}
				due := n * 1e7
				start := due + n*n%70_000
				end := start + 80_000 + 13_000*(n%40)
				if v == driver.Append && outcome == driver.OK {
					t.Split(v, end-start, (end-start)*9/10)
				}
				t.Record(&measure.Sample{Verb: v, Outcome: outcome, Cause: 1, Due: due, Start: start, End: end})
				t.EndKeys(v, outcome, 4, due, end)
				t.AddBytes(v, 110, 31)
				r := t.Request(i%endpoints, v)
				r.Sent++
				switch outcome {
				case driver.Timeout:
					r.Timeout++
				case driver.Error:
					r.Error++
				default:
					r.Answered++
				}
				for k := range copies {
					t.Ack(v, k+1, end-start+int64(k)*20_000)
				}
			}
		}
		t.Request(0, verbs[0]).Refused++
	}
	t.Reconnects, t.LateReplies, t.Foreign = uint64(seconds), uint64(2*seconds), 3
	t.Stalls, t.MaxStall = 1, 300e6
	t.AddAway(0, int64(seconds)*1_500_000_000)
	t.Errors.Add([]byte("LOADING Redis is loading the dataset in memory"))
	return t
}

// asked is a load of such a phase: for each target what it is asked for.
func asked(ph *prom.Phase, seconds int) *measure.Totals {
	all, rows := measure.NewTotals(0, 0), 0
	for _, target := range ph.Targets {
		one := counted(target.Verbs, seconds, max(target.Rows, 1), ph.Copies)
		one.Requests = append(make([]measure.Requests, rows*driver.NumVerbs), one.Requests...)
		rows += target.Rows
		all.Merge(one)
	}
	return all
}

// chained adds due scenarios, for each one in flight and one of each outcome, and the same for their steps.
func chained(t *measure.Totals, scenarios []plan.Scenario) {
	for i, s := range scenarios {
		for j := range s.Steps {
			at := measure.Step{Scenario: i, Step: j}
			t.AddStep(at)
			t.AddStepInFlight(at, 1)
			t.AddStep(at)
			t.AddDue(driver.Get)
			t.RecordStep(at, &measure.Sample{Outcome: driver.OK, Due: 1e6, Start: 2e6, End: 3e6 * int64(1+j)}, 0)
		}
		t.AddScenario(i)
		t.AddScenarioInFlight(i, 1)
		for o := range driver.Shed {
			t.AddScenario(i)
			t.RecordScenario(i, &measure.Sample{Outcome: o, Cause: 1, Due: 1e6, Start: 2e6, End: 3e6 * int64(1+i+int(o))})
		}
		t.AddScenario(i)
		t.ShedScenario(i)
	}
}

// sampleView is the sample plan in its last phase, after a number of seconds.
func sampleView(p *plan.Plan, seconds int) prom.View {
	v := prom.NewView("2026-11-20T12-00-00Z-sample", p)
	v.Current = "mixed"
	v.Phase("fill").Load = counted([]driver.Verb{driver.Put}, 1, 1, 0)
	get := v.Phase("get")
	get.Setup = counted([]driver.Verb{driver.Put}, 1, 4, 3)
	get.Load = counted(get.Verbs, 2, 4, 3)
	chains := v.Phase("chains")
	chains.Load = counted(chains.Verbs, 1, 1, 0)
	chained(chains.Load, chains.Plan.Scenarios)
	across := v.Phase("across")
	across.Load = asked(across, 1)
	chained(across.Load, across.Plan.Scenarios)
	cached := v.Phase("cached")
	cached.Load = asked(cached, 1)
	cached.Load.Cache = measure.Cache{
		Gets: 8, Hits: 6, Misses: 2, Loads: 1, LoadTime: 5e8, Coalesced: 1, Uncached: 3, Evictions: 4, Cleared: 2, Entries: 7, Bytes: 900,
	}
	logged := v.Phase("logged")
	logged.Load = asked(logged, 1)
	mixed := v.Phase("mixed")
	mixed.Offered = 2000
	mixed.Load = counted(mixed.Verbs, seconds, 1, 0)
	mixed.Load.AddInFlight(driver.Get, 5)
	mixed.Load.AddDue(driver.Get)
	mixed.Load.Request(0, driver.Get).InFlight = 5
	v.Observed[0].Value = map[string]float64{"used_bytes": 5 << 30, "size_bytes": 4.5e9, "free_bytes": 1e11}
	v.Verdict.Validity = run.Suspect
	v.Verdict.Phases = map[string]run.Validity{v.Phases[0].Name: run.Suspect}
	return v
}

// with returns a coordinator's collector of a run with some workers.
func with(list ...worker.Status) *prom.Collector {
	return prom.New(func() []worker.Status { return list })
}

// sampleCollector shows the sample view and three workers, of which one is lost and two have pages of their own.
func sampleCollector(t testing.TB, seconds int) *prom.Collector {
	c := with(
		worker.Status{Name: "a", Metrics: "127.0.0.1:9465", Up: true, Silent: 250 * time.Millisecond, Offset: 1500 * time.Microsecond, Uncertainty: 200 * time.Microsecond, CPU: 12500 * time.Millisecond},
		worker.Status{Name: "b", Metrics: "127.0.0.1:9466", Up: true, Silent: 500 * time.Millisecond, Offset: -2 * time.Millisecond, Uncertainty: 300 * time.Microsecond, CPU: 11300 * time.Millisecond},
		worker.Status{Name: "c", Silent: 12 * time.Second, CPU: 3 * time.Second},
	)
	c.Set(sampleView(parse(t, samplePlan), seconds))
	return c
}

// samples returns how many lines of a text page are samples.
func samples(page string) int {
	n := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}
