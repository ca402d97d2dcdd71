package plan_test

import (
	"testing"
	"time"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/plan"
	"github.com/stretchr/testify/require"
)

// Defaults are filled in, so that every name is known before the run.
func TestObserveDefaults(t *testing.T) {
	p := good(t, small(`
target "cache" {
	driver    = "redis"
	endpoints = ["a:1"]
}
observe "server" {
	server { target = target.cache }
}
observe "some" {
	every = "5s"
	server {
		target  = target.cache
		fields  = ["used_memory", "other"]
		combine = "max"
	}
}
observe "series" {
	timeout = "2s"
	prometheus {
		url    = "http://host:9100/metrics"
		series = { heap = "jvm_memory_used_bytes{area=\"heap\"}", gc = "jvm_gc_seconds_sum", calls = "rpc_total" }
	}
}
observe "disk" {
	directory { path = "/data" }
}
observe "hook" {
	hook {
		run    = hook.jmap
		fields = ["live_bytes", "objects"]
	}
}
observe "process" {
	process { port = 6379 }
}
observe "group" {
	process {
		port   = 6379
		fields = ["cgroup_bytes", "threads"]
	}
}
`), plan.Vars{})
	require.NotNil(t, p.Target("cache"), "an observed target is in the plan, whether a phase uses it or not")
	second := time.Second
	require.Equal(t, []*plan.Observe{
		{Name: "server", Kind: "server", Target: "cache", Combine: "sum", Every: second, Timeout: second, Fields: []plan.Field{
			{Name: "used_memory", Unit: "bytes"}, {Name: "calls", Counter: true},
		}},
		{Name: "some", Kind: "server", Target: "cache", Combine: "max", Every: 5 * second, Timeout: second, Fields: []plan.Field{
			{Name: "used_memory", Unit: "bytes"}, {Name: "other"},
		}},
		{Name: "series", Kind: "prometheus", URL: "http://host:9100/metrics", Every: second, Timeout: 2 * second, Fields: []plan.Field{
			{Name: "calls", Counter: true, Series: "rpc_total"},
			{Name: "gc", Unit: "s", Counter: true, Series: "jvm_gc_seconds_sum"},
			{Name: "heap", Unit: "bytes", Series: `jvm_memory_used_bytes{area="heap"}`},
		}},
		{Name: "disk", Kind: "directory", Path: "/data", Timeout: 5 * second, Fields: usual(plan.ObserveDirectory)},
		{Name: "hook", Kind: "hook", Hook: "jmap", Timeout: 10 * second, Fields: []plan.Field{{Name: "live_bytes", Unit: "bytes"}, {Name: "objects"}}},
		{Name: "process", Kind: "process", Port: 6379, Every: second, Timeout: second, Fields: usual(plan.ObserveProcess)},
		{Name: "group", Kind: "process", Port: 6379, Every: second, Timeout: second, Fields: []plan.Field{{Name: "cgroup_bytes", Unit: "bytes"}, {Name: "threads"}}},
	}, p.Observes)
	require.Equal(t, []string{"jmap"}, p.Hooks())
	b, err := p.Canonical()
	require.NoError(t, err)
	again, err := plan.Decode(b, drivers())
	require.NoError(t, err)
	require.Equal(t, p.Observes, again.Observes)
}

func FuzzParseSelector(f *testing.F) {
	f.Add(`rpc_total{code="5",zone="a\"b"}`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := dialect.ParseSelector(text)
		if err == nil {
			require.NotEmpty(t, s.Metric)
		}
	})
}

// usual are the figures of an observation of a kind that has its own.
func usual(kind string) []plan.Field { return (&plan.Observe{Kind: kind}).UsualFields() }
