package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
	"github.com/stretchr/testify/require"
)

// caches is the top of a plan with a target and datasets of each kind.
const caches = `plan "p" {}
target "plain" {
  driver    = "redis"
  endpoints = ["a:1", "[::1]:65535"]
}
target "nodes" {
  driver = "redis"
  builtin {}
}
target "quorum" {
  driver  = "redis"
  timeout = "250ms"
  builtin { nodes = 3 }
  replication {
    n = 3
    w = 2
    r = 1
  }
}
dataset "shared" {
  keys { count = 1000 }
  values { size = "1KiB" }
}
dataset "other" {
  keys {
    count  = 10
    format = "o%%%04x"
    pick   = "zipf(1.2)"
  }
  values { size = 24 }
}
dataset "pool" {
  keys {
    count = 50
    scope = "session"
  }
  values { size = 24 }
}
dataset "once" {
  keys {
    count = 50
    pick  = "sequence"
  }
  values { size = 24 }
}
`

func phase(name, target, dataset, rest string) string {
	return "phase \"" + name + "\" {\n  target = target." + target + "\n  dataset = dataset." + dataset + "\n" + rest + "\n}\n"
}

const (
	gets    = "  ops = { get = 1 }\n  closed { iterations = 1 }"
	puts    = "  ops = { put = 1 }\n  closed { iterations = 1 }"
	deletes = "  ops = { get = 1, delete = 1 }\n  closed { iterations = 1 }"
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
		{Name: "plain", Driver: "redis", Endpoints: []string{"a:1", "[::1]:65535"}, Timeout: time.Second, Executor: plan.EventLoop, Placement: plan.Ketama, Config: &fakeConfig{Delay: time.Millisecond}},
		{
			Name: "nodes", Driver: "redis", Endpoints: []string{}, Builtin: &plan.Builtin{Nodes: 1, Memory: 64 << 20}, Timeout: time.Second, Executor: plan.EventLoop, Placement: plan.Ketama,
			Config: &fakeConfig{Delay: time.Millisecond},
		},
		{
			Name: "quorum", Driver: "redis", Endpoints: []string{}, Builtin: &plan.Builtin{Nodes: 3, Memory: 64 << 20}, Timeout: 250 * time.Millisecond, Executor: plan.EventLoop, Placement: plan.Ketama,
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
		{Name: "fill", Target: "nodes", Dataset: "shared", Ops: put, Scenarios: []plan.Scenario{}, Batch: 1, Setup: []plan.Weight{}, Populate: &plan.Populate{Sessions: 16, Pipeline: 16}, MaxBad: 0.01},
		{
			Name: "open", Target: "nodes", Dataset: "shared", Ops: []plan.Weight{{Op: "get", Weight: 9}, {Op: "put", Weight: 1}}, Scenarios: []plan.Scenario{}, Batch: 1, Setup: []plan.Weight{},
			Open: &plan.Open{Rate: 1000, Duration: 90 * time.Second, Schedule: plan.Schedule{
				Arrivals: "constant", Sessions: 16, Pipeline: 1, InFlight: 16, OnFull: "wait", Drain: 5 * time.Second, Streams: 1024,
			}}, ExpectHits: &hits, MaxBad: 0.01,
		},
		{
			Name: "closed", Target: "plain", Dataset: "shared", Ops: put, Scenarios: []plan.Scenario{}, Batch: 1, Setup: []plan.Weight{},
			Closed: &plan.Closed{Sessions: 3, Pipeline: 7, Duration: 2500 * time.Millisecond, Think: 100 * time.Microsecond}, MaxBad: 0.05,
		},
		{Name: "once", Target: "plain", Dataset: "once", Ops: put, Scenarios: []plan.Scenario{}, Batch: 1, Setup: []plan.Weight{}, Closed: &plan.Closed{Sessions: 4, Pipeline: 1}, MaxBad: 0.01},
		{
			Name: "clear", Target: "quorum", Dataset: "other", Ops: []plan.Weight{{Op: "delete", Weight: 1}}, Scenarios: []plan.Scenario{}, Batch: 1, Setup: []plan.Weight{},
			Clear: &plan.Clear{Sessions: 2, Pipeline: 16}, MaxBad: 0.01,
		},
	}, p.Phases)
}

// A search's rates are of scenarios, its objectives of their ops: what a step brings are the ops.
func TestObjectivesOfScenarios(t *testing.T) {
	search := func(rate string) string {
		return "  search {\n from = \"" + rate + "\"\n slo { response_p99 = \"5ms\" }\n }"
	}
	twice := "  scenario \"a\" {\n step \"get\" {}\n step \"get\" {}\n }\n"
	both := "  scenario \"a\" {\n step \"get\" {}\n step \"put\" { key = \"same\" }\n }\n"
	for _, c := range []struct{ scenarios, enough, few, brings string }{
		{twice, "250/s", "249/s", "response_p99 of 996 ops, which is what the lowest rate brings in a step. Write a higher from or a longer step_duration: that quantile wants 1000 ops."},
		{both, "500/s", "499/s", "response_p99 of 998 ops, "},
		{twice + "  ops = { get = 1 }\n", "400/s", "398/s", "response_p99 of 1194 ops, which is what the lowest rate brings in a step. Write a higher from or a longer step_duration: that quantile wants 1196 ops."},
	} {
		good(t, caches+phase("x", "plain", "shared", c.scenarios+search(c.enough)), plan.Vars{})
		text := caches + phase("x", "plain", "shared", c.scenarios+search(c.few))
		_, diags := resolve(text, "plan.hcl", plan.Vars{})
		require.Contains(t, formatted(t, diags, map[string][]byte{"plan.hcl": []byte(text)}), c.brings)
	}
}

// What is not written of stages and of a search has a default, too.
func TestDefaultsOfLevels(t *testing.T) {
	p := good(t, caches+
		phase("up", "plain", "shared", "  ops = { get = 1 }\n"+"  stages {\n stage {\n rate = \"1k/s\"\n duration = \"10s\"\n }\n stage {\n rate = \"2k/s\"\n duration = \"5s\"\n ramp = \"1s\"\n }\n }")+
		phase("knee", "plain", "shared", "  ops = { get = 1 }\n"+"  search {\n slo { response_p99 = \"5ms\" }\n slo {\n op = \"get\"\n response_p50 = 0.001\n response_p90 = \"2ms\"\n }\n }"), plan.Vars{})
	common := plan.Schedule{Arrivals: "constant", Sessions: 16, Pipeline: 1, InFlight: 16, OnFull: "wait", Drain: 5 * time.Second, Streams: 1024}
	require.Equal(t, &plan.Stages{Schedule: common, Stages: []plan.Stage{
		{Rate: 1000, Duration: 10 * time.Second},
		{Rate: 2000, Duration: 5 * time.Second, Ramp: time.Second},
	}}, p.Phases[0].Stages)
	common.Drain = time.Second
	require.Equal(t, &plan.Search{
		Schedule: common, From: 1000, To: 1e9, StepDuration: 2 * time.Second, Precision: 0.05, Budget: time.Minute,
		SLOs: []plan.SLO{
			{ResponseP99: 5 * time.Millisecond},
			{Op: "get", ResponseP50: time.Millisecond, ResponseP90: 2 * time.Millisecond},
		},
	}, p.Phases[1].Search)
	require.Equal(t, 16, p.Phases[1].Sessions())
	require.Equal(t, 1, p.Phases[1].Pipeline())
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

func TestStreamsOfAnOpenLoad(t *testing.T) {
	cases := map[string]int{"1": 1024, "3": 1026, "16": 1024, "1000": 2000, "1024": 1024, "1025": 1025, "1000000": 1000000}
	for sessions, want := range cases {
		p := good(t, caches+phase("x", "plain", "shared", "  ops = { get = 1 }\n  open {\n rate = 1\n duration = 1\n sessions = "+sessions+"\n }"), plan.Vars{})
		require.Equal(t, want, p.Phases[0].Open.Streams)
	}
}

// A target of a driver without a transport needs no endpoints, and has as many as replication wants.
func TestImaginaryEndpoints(t *testing.T) {
	null := func(rest string) *plan.Target {
		return good(t, strings.Replace(small(""), `target "t" { driver = "null" }`, "target \"t\" {\n driver = \"null\"\n"+rest+"\n}", 1), plan.Vars{}).Targets[0]
	}
	require.Equal(t, []string{"null-0"}, null("").Endpoints)
	require.Equal(t, []string{"any", "name"}, null(`endpoints = ["any", "name"]`).Endpoints)
	src := strings.Replace(small(""), `target "t" { driver = "null" }`, "target \"t\" {\n driver = \"null\"\n replication {\n n = 3\n w = 1\n r = 1\n }\n}", 1)
	p := good(t, strings.Replace(src, "size = 10", "size = 30", 1), plan.Vars{})
	require.Equal(t, []string{"null-0", "null-1", "null-2"}, p.Targets[0].Endpoints)
}

func TestDriverAttributes(t *testing.T) {
	src := caches + "target \"own\" {\n driver = \"redis\"\n endpoints = [\"a:1\"]\n password = secret(\"REDIS_PW\")\n database = 1 + 1\n" +
		" delay = \"5ms\"\n prefix = \"${local.p}-\"\n proxy { name = local.p }\n}\nlocals { p = \"x\" }\n" + phase("x", "own", "shared", gets)
	want := &fakeConfig{
		Password: &driver.Secret{Name: "REDIS_PW"}, Database: 2, Delay: 5 * time.Millisecond, Prefix: "x-", Proxy: &fakeProxy{Name: "x"},
	}
	require.Equal(t, want, good(t, src, plan.Vars{}).Targets[0].Config)
}

// Whatever is written in a secret's place, no message shows it.
func TestSecretsStayOutOfMessages(t *testing.T) {
	for _, value := range []string{`"hunter2"`, `secret("hunter2")`, `{ secret = "hunter2" }`, `"hunter2" + 1`, `["hunter2"]`, `"${"hunter2"}"`, `{ hunter2 = 1 }`} {
		src := caches + "target \"own\" {\n driver = \"redis\"\n endpoints = [\"a:1\"]\n password = " + value + "\n}\n" + phase("x", "own", "shared", gets)
		_, diags := resolve(src, "plan.hcl", plan.Vars{})
		require.True(t, diags.HasErrors())
		require.NotContains(t, formatted(t, diags, map[string][]byte{"plan.hcl": []byte(src)}), "hunter2", value)
	}
}

func TestWhenSkipsAPhaseAndWhatOnlyItUses(t *testing.T) {
	src := strings.Replace(caches, `plan "p" {}`, "plan \"p\" {}\nvariable \"nodes\" { default = [] }", 1) +
		phase("x", "plain", "shared", gets) +
		phase("y", "quorum", "pool", "  when = length(var.nodes) > 0\n  ops = { get = var.nodes[0] }\n  closed { iterations = 1 }")
	p := good(t, src, plan.Vars{})
	require.Len(t, p.Phases, 1)
	require.Len(t, p.Targets, 1)
	require.Len(t, p.Datasets, 1)
	p = good(t, src, plan.Vars{Flags: []string{`nodes=[2]`}})
	require.InDelta(t, 2.0, p.Phases[1].Ops[0].Weight, 0)
}

// The largest plan there is room for resolves, and its work grows with its length.
func TestResolveIsLinear(t *testing.T) {
	large := func(n int) string {
		var b strings.Builder
		b.WriteString(caches)
		for i := range n {
			b.WriteString(phase("p"+strings.Repeat("x", i%40)+string(rune('a'+i/40%26))+string(rune('a'+i/40/26)), "plain", "shared",
				"  ops = { get = 1 }\n  closed {\n sessions = 4\n iterations = 10\n }"))
		}
		return b.String()
	}
	half, none := resolveAllocates(large(200))
	require.Empty(t, none)
	whole, none := resolveAllocates(large(400))
	require.Empty(t, none)
	t.Logf("%.1f MiB for %d bytes", float64(whole)/(1<<20), len(large(400)))
	require.LessOrEqual(t, float64(whole), 2.5*float64(half))
	require.LessOrEqual(t, whole, uint64(64<<20))
}
