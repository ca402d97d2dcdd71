package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	shipped "github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

func TestDefaults(t *testing.T) {
	p := good(t, caches+
		phase("fill", "nodes", "shared", "  populate {}")+
		phase("open", "nodes", "shared", "  ops = { put = 1, get = 9, delete = 0 }\n  open {\n rate = \"60k/min\"\n duration = \"1m30s\"\n }")+
		phase("closed", "plain", "shared", "  ops = { put = 1 }\n  closed {\n sessions = 3\n duration = 2.5\n pipeline = 7\n think = \"100us\"\n }\n max_bad = \"5%\"")+
		phase("once", "plain", "once", "  ops = { put = 1 }\n  closed { sessions = 4 }")+
		phase("clear", "quorum", "other", "  clear { sessions = 2 }"), plan.Vars{})
	require.Equal(t, uint64(1), p.Seed)
	require.Equal(t, []*plan.Target{
		{Name: "plain", Driver: "redis", Endpoints: []string{"a:1", "[::1]:65535"}, Timeout: time.Second, Executor: plan.EventLoop, Placement: "ketama", Config: &fakeConfig{Delay: time.Millisecond}},
		{
			Name: "nodes", Driver: "redis", Endpoints: []string{}, Builtin: &plan.Builtin{Nodes: 1, Memory: 64 << 20}, Timeout: time.Second, Executor: plan.EventLoop, Placement: "ketama",
			Config: &fakeConfig{Delay: time.Millisecond},
		},
		{
			Name: "quorum", Driver: "redis", Endpoints: []string{}, Builtin: &plan.Builtin{Nodes: 3, Memory: 64 << 20}, Timeout: 250 * time.Millisecond, Executor: plan.EventLoop, Placement: "ketama",
			Replication: &plan.Replication{Coordinate: "client", N: 3, W: 2, R: 1, Timeout: 500 * time.Millisecond, ReadFanout: "n", ReadFrom: "first"},
			Config:      &fakeConfig{Delay: time.Millisecond},
		},
	}, p.Targets)
	require.Equal(t, []*plan.Dataset{ // pool is not used
		{Name: "shared", Keys: plan.Keys{Pick: "uniform", Count: 1000, Scope: "shared", Format: "key:%012d"}, Values: plan.Values{Size: 1024, Fill: "text"}},
		{Name: "other", Keys: plan.Keys{Pick: "zipf", Skew: 1.2, Count: 10, Scope: "shared", Format: "o%%%04x"}, Values: plan.Values{Size: 24, Checked: true, Fill: "text"}},
		{Name: "once", Keys: plan.Keys{Pick: "sequence", Count: 50, Scope: "shared", Format: "key:%012d"}, Values: plan.Values{Size: 24, Fill: "text"}},
	}, p.Datasets)
	hits := 0.99
	put := []plan.Weight{{Op: "put", Weight: 1}}
	require.Equal(t, []*plan.Phase{
		{Name: "fill", Target: "nodes", Dataset: "shared", Ops: put, Scenarios: []plan.Scenario{}, Batch: 1, Setup: []plan.Weight{}, Populate: &plan.Clients{Sessions: 16, Pipeline: 16}, MaxBad: 0.01},
		{
			Name: "open", Target: "nodes", Dataset: "shared", Ops: []plan.Weight{{Op: "get", Weight: 9}, {Op: "put", Weight: 1}}, Scenarios: []plan.Scenario{}, Batch: 1, Setup: []plan.Weight{},
			Open: &plan.Open{Rate: 1000, Duration: 90 * time.Second, Schedule: plan.Schedule{
				Arrivals: "constant", Clients: plan.Clients{Sessions: 16, Pipeline: 1}, InFlight: 16, OnFull: "wait", Drain: 5 * time.Second, Streams: 1024,
			}}, ExpectHits: &hits, MaxBad: 0.01,
		},
		{
			Name: "closed", Target: "plain", Dataset: "shared", Ops: put, Scenarios: []plan.Scenario{}, Batch: 1, Setup: []plan.Weight{},
			Closed: &plan.Closed{Clients: plan.Clients{Sessions: 3, Pipeline: 7}, Duration: 2500 * time.Millisecond, Think: 100 * time.Microsecond}, MaxBad: 0.05,
		},
		{Name: "once", Target: "plain", Dataset: "once", Ops: put, Scenarios: []plan.Scenario{}, Batch: 1, Setup: []plan.Weight{}, Closed: &plan.Closed{Clients: plan.Clients{Sessions: 4, Pipeline: 1}}, MaxBad: 0.01},
		{
			Name: "clear", Target: "quorum", Dataset: "other", Ops: []plan.Weight{{Op: "delete", Weight: 1}}, Scenarios: []plan.Scenario{}, Batch: 1, Setup: []plan.Weight{},
			Clear: &plan.Clients{Sessions: 2, Pipeline: 16}, MaxBad: 0.01,
		},
	}, p.Phases)
}

// Stages and search have defaults, too.
func TestDefaultsOfLevels(t *testing.T) {
	p := good(t, caches+
		phase("up", "plain", "shared", "  ops = { get = 1 }\n"+"  stages {\n stage {\n rate = \"1k/s\"\n duration = \"10s\"\n }\n stage {\n rate = \"2k/s\"\n duration = \"5s\"\n ramp = \"1s\"\n }\n }")+
		phase("knee", "plain", "shared", "  ops = { get = 1 }\n"+"  search {\n slo { response_p99 = \"5ms\" }\n slo {\n op = \"get\"\n response_p50 = duration(\"1ms\")\n response_p90 = \"2ms\"\n }\n }"), plan.Vars{})
	common := plan.Schedule{Arrivals: "constant", Clients: plan.Clients{Sessions: 16, Pipeline: 1}, InFlight: 16, OnFull: "wait", Drain: 5 * time.Second, Streams: 1024}
	require.Equal(t, &plan.Stages{Schedule: common, Stages: []plan.Stage{
		{Rate: 1000, Duration: 10 * time.Second},
		{Rate: 2000, Duration: 5 * time.Second, Ramp: time.Second},
	}}, p.Phases[0].Stages)
	common.Drain = time.Second
	require.Equal(t, &plan.Search{
		Schedule: common, From: 1000, To: 1e9, StepDuration: time.Second, Precision: 0.05, Budget: time.Minute,
		SLOs: []plan.SLO{
			{ResponseP99: 5 * time.Millisecond},
			{Op: "get", ResponseP50: time.Millisecond, ResponseP90: 2 * time.Millisecond},
		},
	}, p.Phases[1].Search)
	require.Equal(t, 16, p.Phases[1].Sessions())
	require.Equal(t, 1, p.Phases[1].Pipeline())
}

// TestPopulateOfClientsThatBlock opens no unwanted connections: with clients that block, each op in flight needs one.
func TestPopulateOfClientsThatBlock(t *testing.T) {
	for _, tt := range []struct {
		driver, walk string
		want         int
	}{
		{"web", "populate {}", 1},
		{"web", "clear {}", 1},
		{"web", "populate { pipeline = 3 }", 3},
		{"web", "clear { pipeline = 3 }", 3},
		{"redis", "populate {}", 16},
		{"redis", "clear {}", 16},
	} {
		text := fmt.Sprintf(`
plan "p" {}
target "t" {
	driver    = %q
	endpoints = ["127.0.0.1:1"]
}
dataset "d" {
	keys { count = 10 }
	values { size = 10 }
}
phase "walk" {
	target  = target.t
	dataset = dataset.d
	%s
}`, tt.driver, tt.walk)
		f, diags := plan.Parse([]byte(text), "plan.hcl", shipped.All())
		require.Empty(t, diags)
		p, diags := f.Resolve(plan.Vars{})
		require.Empty(t, diags)
		require.Equal(t, tt.want, p.Phases[0].Pipeline(), "%+v", tt)
	}
}

func TestExpectedHits(t *testing.T) {
	fill, setup := "  populate {}", "  setup { ops = { put = 1 } }\n"
	cases := []struct {
		name   string
		phases string
		want   float64 // of the last phase; −1 for nothing
	}{
		{"nothing put", phase("x", "plain", "shared", gets), -1},
		{"populated", phase("a", "plain", "shared", fill) + phase("x", "plain", "shared", gets), 0.99},
		{"populated elsewhere", phase("a", "nodes", "shared", fill) + phase("x", "plain", "shared", gets), -1},
		{"another dataset populated", phase("a", "plain", "other", fill) + phase("x", "plain", "shared", gets), -1},
		{"only put", phase("a", "plain", "shared", puts) + phase("x", "plain", "shared", gets), -1},
		{"own setup", phase("x", "plain", "pool", setup+gets), 0.99},
		{"own setup of steps", phase("x", "plain", "pool", "  setup {\n    step \"put\" {}\n  }\n"+gets), -1},
		{"another's setup", phase("a", "plain", "pool", setup+gets) + phase("x", "plain", "pool", gets), -1},
		{"deletes", phase("a", "plain", "shared", fill) + phase("x", "plain", "shared", deletes), -1},
		{"deletes after setup", phase("x", "plain", "pool", setup+deletes), -1},
		{"deleted between", phase("a", "plain", "shared", fill) + phase("b", "plain", "shared", deletes) + phase("x", "plain", "shared", gets), -1},
		{"deleted elsewhere", phase("a", "plain", "shared", fill) + phase("b", "plain", "other", deletes) + phase("x", "plain", "shared", gets), 0.99},
		{"cleared between", phase("a", "plain", "shared", fill) + phase("b", "plain", "shared", "  clear {}") + phase("x", "plain", "shared", gets), -1},
		{"flushed between", phase("a", "nodes", "shared", fill) + phase("b", "nodes", "other", "  clear {}") + phase("x", "nodes", "shared", gets), -1},
		{"populated again", phase("a", "plain", "shared", "  clear {}") + phase("b", "plain", "shared", fill) + phase("x", "plain", "shared", gets), 0.99},
		{"populate skipped", phase("a", "plain", "shared", fill+"\n  when = false") + phase("x", "plain", "shared", gets), -1},
		{"written", phase("x", "plain", "shared", gets+"\n  expect_hits = \"50%\""), 0.5},
		{"written as zero", phase("a", "plain", "shared", fill) + phase("x", "plain", "shared", gets+"\n  expect_hits = 0"), 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			phases := good(t, caches+c.phases, plan.Vars{}).Phases
			got := phases[len(phases)-1].ExpectHits
			if c.want < 0 {
				require.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			require.InDelta(t, c.want, *got, 1e-15)
		})
	}
}
