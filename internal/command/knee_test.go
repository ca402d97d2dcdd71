package command_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

const queuePlan = `
plan "queue" {}
variable "endpoints" { type = list(string) }` + redisT + `
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
		from          = "40/s"
		sessions      = 4
		pipeline      = 256
		step_duration = "500ms"
		precision     = "10%"
		drain         = "200ms"
		budget        = "30s"
		slo { response_p50 = "20ms" }
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

// TestSearchFindsWhatANodeHolds searches a node that works on one request at a time, for 10 ms each: it sustains 100 per second and no more. The
// search never finds more, and finds less only if generator or node lacked a processor.
func TestSearchFindsWhatANodeHolds(t *testing.T) {
	t.Parallel()
	node := beginTarget(t, "--service", "10ms")
	r := begin(t, queuePlan, "-var", nodes(node.addr)).result(2 * time.Minute)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	require.Len(t, r.Phase["after"].Levels, 2)
	p := r.Phase["knee"]
	if p.Search.Rate != nil { // of half a second, 4 % more than the node can do are two ops
		require.LessOrEqual(t, *p.Search.Rate, 105.0, "a queue does not do more than it can")
	}
	if p.Search.ClientBound != nil { // for want of a processor, since a loop is hardly busy with 100 ops a second
		require.True(t, wanting(t, p, node.cmd.Process.Pid), doubts(p))
		return
	}
	if failed := p.Search.FirstFailed; failed == nil || *failed < 95 {
		require.True(t, wanting(t, p, node.cmd.Process.Pid), doubts(p))
	}
}

// TestKneeOfRedis runs plans/knee.hcl in a short time, and compares its requests with the server's own count.
func TestKneeOfRedis(t *testing.T) {
	t.Parallel()
	s := servertest.StartRedis(t)
	addr := s.Addr
	l := beginExample(t, "knee.hcl", "-var", "endpoints="+addr, "-var", "budget=5s", "-var", "step=250ms",
		"-var", "from=5k/s", "-var", "slo=100ms", "-var", "keys=1000")
	r := l.result(60 * time.Second)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	p := r.Phase["knee"]
	if p.Search.Rate != nil {
		require.GreaterOrEqual(t, *p.Search.Rate, 5000.0)
	} else { // less than a tenth of what one loop and one server do with a processor each
		require.True(t, wanting(t, p, s.Pid()), r.Verdict.Reasons)
	}
	last := p.Levels[len(p.Levels)-1]
	require.LessOrEqual(t, last.StartSeconds+last.DurationSeconds, 5.1, "no level begins that would end after the budget")
	var due uint64
	for _, level := range p.Levels {
		due += level.Op["get"].Due - level.Op["get"].Shed
	}
	require.Equal(t, due, p.Requests[0].Sent)
	require.Equal(t, due, countCalls(t, addr)["get"])
}

const stagesPlan = `
plan "stages" {}
variable "endpoints" { type = list(string) }
variable "arrivals" {}` + redisT + `
dataset "d" {
	keys { count = 1000 }
	values { size = 32 }
}` + fillD + `
phase "load" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 3, put = 1 }
	stages {
		arrivals = var.arrivals
		pipeline = 16
		stage {
			rate     = "2k/s"
			duration = "500ms"
		}
		stage {
			rate     = "8k/s"
			duration = "1s"
			ramp     = "600ms"
		}
		stage {
			rate     = "1k/s"
			duration = "1s"
			ramp     = "500ms"
		}
	}
}`

// TestStagesOnRedis loads a real server in stages: each achieves what it offers, a ramp has as many ops as the area under it, and the server counts the
// same gets and puts.
func TestStagesOnRedis(t *testing.T) {
	for _, arrivals := range []string{"constant", "poisson"} {
		t.Run(arrivals, func(t *testing.T) {
			t.Parallel()
			addr := servertest.Redis(t)
			l := begin(t, stagesPlan, "-var", nodes(addr), "-var", "arrivals="+arrivals)
			r := l.result(60 * time.Second)
			require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
			p := r.Phase["load"]
			require.Len(t, p.Levels, 3)
			due, slowest := map[string]uint64{}, 0.0
			for _, level := range p.Levels {
				slowest = max(slowest, *level.Op["get"].Response.Max, *level.Op["put"].Response.Max)
			}
			for i, want := range []struct{ rate, ops float64 }{
				{2000, 2000 * 0.5},
				{8000, (2000+8000)/2*0.6 + 8000*0.4},
				{1000, (8000+1000)/2*0.5 + 1000*0.5},
			} {
				level, n := p.Levels[i], 0.0
				for verb, o := range level.Op {
					require.Equal(t, o.Due, o.OK, verb)
					due[verb] += o.Due
					n += float64(o.Due)
				}
				if arrivals == "poisson" { // a normal distribution is as far off once in two million times
					require.InDelta(t, want.ops, n, 5*math.Sqrt(want.ops))
					continue
				}
				require.InDelta(t, want.ops, n, 1)
				require.InEpsilon(t, want.rate, *level.OfferedRate, 0.01)
				// What was due and what ended in the time after the ramp differ by what was in flight at its two ends: no more than were due
				// in the longest response time at the highest rate.
				differ := math.Abs(*level.OfferedRate-*level.AchievedRate) * (level.DurationSeconds - level.RampSeconds)
				require.LessOrEqual(t, differ, 8000*slowest+3, "stage %d: offered %g/s, achieved %g/s", i+1, *level.OfferedRate, *level.AchievedRate)
			}
			require.Equal(t, calls{"get": due["get"], "put": due["put"] + 1000}, countCalls(t, addr), "and those of the populate")
			require.Contains(t, l.stdout.String(), "3 stages of "+arrivals+" arrivals")
		})
	}
}
