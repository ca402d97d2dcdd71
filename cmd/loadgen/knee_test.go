package main_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

const queuePlan = `
plan "queue" {}
variable "nodes" { type = list(string) }
target "t" {
	driver    = "redis"
	endpoints = var.nodes
}
dataset "d" {
	keys { count = 10 }
	values { size = 24 }
}
phase "fill" {
	target  = target.t
	dataset = dataset.d
	populate { sessions = 1 }
}
phase "knee" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	search {
		from          = "400/s"
		sessions      = 4
		pipeline      = 256
		step_duration = "500ms"
		precision     = "10%"
		drain         = "200ms"
		slo { response_p50 = "10ms" }
	}
}
phase "after" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	stages {
		stage {
			rate     = "200/s"
			duration = "300ms"
		}
		stage {
			rate     = "400/s"
			duration = "300ms"
			ramp     = "100ms"
		}
	}
}`

// TestSearchFindsWhatANodeHolds searches a node that works on one request at a time, for 1 ms each: it holds 1,000 a second and no more.
func TestSearchFindsWhatANodeHolds(t *testing.T) {
	t.Parallel()
	patiently(t, func(t *testing.T) error {
		node := beginTarget(t, "--service", "1ms")
		defer node.kill()
		r := begin(t, queuePlan, "-var", nodes(node.addr)).result(60 * time.Second)
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		require.Len(t, r.Phase["after"].Levels, 2)
		s := r.Phase["knee"].Search
		if s.Rate == nil || s.FirstFailed == nil {
			return fmt.Errorf("nothing found: %v", r.Verdict.Reasons)
		}
		// Within 10 ms of response at the median of half a second, an excess of 4 % goes unseen.
		require.LessOrEqual(t, *s.Rate, 1050.0, "a queue does not do more than it can")
		if *s.FirstFailed < 950 {
			return fmt.Errorf("found %g/s, %g/s failed", *s.Rate, *s.FirstFailed)
		}
		return nil
	})
}

// TestKneeOfRedis runs plans/knee.hcl, with little time for it, and compares its requests with the server's own count.
func TestKneeOfRedis(t *testing.T) {
	t.Parallel()
	addr := servertest.Redis(t)
	begun := time.Now()
	l := beginFile(t, filepath.Join("..", "..", "plans", "knee.hcl"), "-var", "endpoint="+addr, "-var", "budget=5s", "-var", "step=250ms",
		"-var", "from=5k/s", "-var", "slo=100ms", "-var", "keys=1000")
	r := l.result(60 * time.Second)
	require.Less(t, time.Since(begun), 20*time.Second)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	p := r.Phase["knee"]
	require.NotNil(t, p.Search.Rate, r.Verdict.Reasons)
	require.GreaterOrEqual(t, *p.Search.Rate, 5000.0)
	require.LessOrEqual(t, p.Levels[len(p.Levels)-1].StartSeconds, 4.0, "no level begins that could end after the budget")
	var due uint64
	for _, level := range p.Levels {
		due += level.Op["get"].Due - level.Op["get"].Shed
	}
	require.Equal(t, due, p.Requests[0].Sent)
	require.Equal(t, due, countCalls(t, addr)["get"])
}
