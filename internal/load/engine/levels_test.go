package engine

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// searchVirtually carries a search out, in virtual time.
func searchVirtually(t *testing.T, p *plan.Plan) *run.Phase {
	b := newBench(t, p, "load", 0)
	ph := p.Phase("load")
	m := judge.Measured{Endpoints: []string{"e0"}}
	for {
		shape, more := m.NextTry(ph, 0)
		if !more {
			return judge.NewPhase(p, ph, m)
		}
		step := stepOf(ph, worker.Load)
		step.Level, step.Shape = len(m.Levels), pace.Shape(shape)
		totals := b.runStep(step)
		m.AddLevel(p, ph, judge.Measured{Endpoints: m.Endpoints, Load: &totals, Shape: step.Shape}, time.Duration(b.l.origin))
	}
}

// TestSearchFindsWhatQueuesHold compares a search's result with what is known of the queue under load: with a pipeline of one, a session is a server
// that works on one op at a time.
func TestSearchFindsWhatQueuesHold(t *testing.T) {
	// In M/M/1 the time in the system is exponential with the mean 1/(μ − λ): its quantile q is within x as long as λ ≤ μ + ln(1 − q)/x. μ is 5,000 a
	// second.
	within := func(q, x float64) float64 { return 5000 + math.Log(1-q)/x }
	exponential := "latency = \"200us\"\n spread = \"exponential\""
	tests := []struct {
		name, target, load string
		rate, knee         float64 // knee 0: the rate itself
	}{
		{
			"four servers of 1 ms, evenly spaced arrivals", `latency = "1ms"`,
			"sessions = 4\n step_duration = \"1s\"\n slo { response_p99 = \"5ms\" }", 4000, 0,
		},
		{
			"M/M/1, p90 within 2 ms", exponential,
			"sessions = 1\n arrivals = \"poisson\"\n budget = \"5m\"\n slo { response_p90 = \"2ms\" }", within(0.9, 2e-3), 2500,
		},
	}
	if !servertest.Whole() {
		tests = tests[:1]
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ph := searchVirtually(t, nullPlan(t, 1, tt.target, "ops = { get = 1 }\n search {\n from = \"100/s\"\n "+tt.load+"\n }"))
			s := ph.Search
			t.Logf("%.0f/s hold, the limit is between %.0f and %.0f/s, by theory %.0f/s; knee at %.0f/s; %d levels", *s.Rate, *s.Low, *s.High, tt.rate, *s.Knee, len(ph.Levels))
			require.InDelta(t, tt.rate, (*s.Low+*s.High)/2, (*s.High-*s.Low)/2, "the interval contains it")
			require.LessOrEqual(t, *s.Rate, tt.rate)
			require.GreaterOrEqual(t, *s.Rate, tt.rate*0.95)
			if tt.knee == 0 {
				require.InEpsilon(t, *s.Rate, *s.Knee, 0.05)
			} else {
				require.InEpsilon(t, tt.knee, *s.Knee, 0.05)
			}
		})
	}
}

// TestStagesAreTheSameForAnyNumberOfWorkers carries three stages out with one worker, three and twenty, some of which have no session:
// the ops due are the same.
func TestStagesAreTheSameForAnyNumberOfWorkers(t *testing.T) {
	p := nullPlan(t, 1, "", `ops = { get = 1 }
	stages {
		sessions = 16
		arrivals = "poisson"
		stage {
			rate     = "20k/s"
			duration = "50ms"
		}
		stage {
			rate     = "40k/s"
			duration = "50ms"
			ramp     = "30ms"
		}
		stage {
			rate     = "5k/s"
			duration = "50ms"
			ramp     = "50ms"
		}
	}`)
	digests := map[int][]uint64{}
	for _, workers := range []int{1, 3, 20} {
		digests[workers] = make([]uint64, 3)
		for i := range workers {
			for level, digest := range stagesOf(t, p, i, workers) {
				digests[workers][level] += digest
			}
		}
	}
	require.Equal(t, digests[1], digests[3])
	require.Equal(t, digests[1], digests[20])
	require.NotEqual(t, digests[1][0], digests[1][1])
}

// stagesOf carries out the part of a plan's stages that one worker of several has, and returns the digest of each.
func stagesOf(t *testing.T, p *plan.Plan, i, workers int) []uint64 {
	e := assigned(t, Config{Loops: 1}, p)
	defer e.Close()
	e.run.Index, e.run.Workers = i, workers
	e.clock = &virtualClock{tick: 10}
	ph := p.Phase("load")
	var all []uint64
	for level, shape := range ph.Stages.Shapes() {
		step := worker.Step{Seq: level, Phase: "load", Kind: worker.Load, Level: level, Shape: pace.Shape(shape), From: 16 * i / workers, To: 16 * (i + 1) / workers}
		prepared(t, e, step)
		all = append(all, ran(t, e).Totals.Digest)
	}
	return all
}

// A search does not know its last step, so its phase is closed when another phase begins.
func TestPhaseAfterASearch(t *testing.T) {
	p := parsePlan(t, `
		target "t" {
			driver = "null"
		}
		dataset "d" {
			keys { count = 100 }
			values { size = 100 }
		}
		phase "search" {
			target  = target.t
			dataset = dataset.d
			ops     = { get = 1 }
			search {
				slo { response_p99 = "5ms" }
			}
		}
		phase "next" {
			target  = target.t
			dataset = dataset.d
			ops     = { get = 1 }
			closed { iterations = 3 }
		}`)
	e := assigned(t, Config{Loops: 1}, p)
	e.clock = &virtualClock{tick: 10}
	var searching *group
	for _, step := range []worker.Step{
		{Phase: "search", Kind: worker.Load, To: 16, Shape: pace.Shape{Rate: 1000, Duration: time.Second}},
		{Phase: "search", Kind: worker.Load, To: 16, Level: 1, Shape: pace.Shape{Rate: 2000, Duration: time.Second}},
		{Phase: "next", Kind: worker.Load, To: 1, Last: true},
	} {
		prepared(t, e, step)
		before := e.group
		final := ran(t, e)
		require.EqualValues(t, max(step.Shape.Expected(), 3), final.Totals.Ops[0].Outcomes[0])
		if step.Phase == "search" {
			require.Same(t, before, e.group)
			require.True(t, searching == nil || searching == before, "all levels are on the same connections")
			searching = before
		}
	}
	require.Nil(t, e.group)
}
