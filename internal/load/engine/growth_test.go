package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/pkg/driver"
)

// shapes are the costs of the n-th op, in seconds.
var shapes = map[string]func(n float64) float64{
	"flat":        func(float64) float64 { return 1e-3 },
	"linear":      func(n float64) float64 { return 1e-3 + 1e-6*n },
	"square":      func(n float64) float64 { return 1e-3 + 1e-9*n*n },
	"logarithmic": func(n float64) float64 { return 2e-4 * math.Log2(n+1) },
}

// TestKnownGrowth estimates the order of growth of ops whose cost is known, with noise and stalls. The interval covers the truth: the slope of the
// curve on logarithmic scales over the second half of the ops.
func TestKnownGrowth(t *testing.T) {
	const ops, seeds = 1000, uint64(20)
	p := redisPlan(t, 1, `timeout = "1m"`, fmt.Sprintf(`
		ops = { put = 1 }
		closed { iterations = %d }
		growth { to = %d }`, ops, 2*ops))
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			truth, covered := math.Log2(shape(ops)/shape(ops/2)), uint64(0)
			for seed := range seeds {
				b := newBench(t, p, "load", 0)
				random, n, stalled := rand.New(rand.NewPCG(seed, 5)), 0.0, 0
				b.server(0).latency = func(int) time.Duration {
					n++
					took := shape(n) * math.Exp(0.2*random.NormFloat64())
					if stalled--; random.Float64() < 0.002 {
						stalled = random.IntN(20)
					}
					if stalled > 0 {
						took *= 10
					}
					return time.Duration(took * 1e9)
				}
				totals := b.run(worker.Load)
				p.Seed = seed
				g := judge.NewPhase(p, p.Phases[0], judge.Measured{Load: &totals}).Op["put"].Growth
				require.EqualValues(t, ops, g.Ops)
				require.NotNil(t, g.Order)
				if *g.OrderLo <= truth && truth <= *g.OrderHi {
					covered++
				}
				if name == "square" {
					require.Equal(t, "grows", g.Shown)
					require.Greater(t, *g.SecondsTo, 2*seconds(totals.Span.Last-totals.Span.First))
				}
			}
			t.Logf("%d of %d", covered, seeds)
			require.GreaterOrEqual(t, covered, seeds*9/10)
		})
	}
}

// nullGrowth is a plan without a transport, whose latencies depend on session and number alone.
const nullGrowth = `
	target "t" {
		driver    = "null"
		latency   = "1ms"
		spread    = "exponential"
		growth    = "linear"
		growth_at = 100
	}
	dataset "d" {
		keys { count = 10 }
		values { size = 10 }
	}
	phase "load" {
		target  = target.t
		dataset = dataset.d
		%s
		closed {
			sessions   = 3
			iterations = 700
		}
		growth {}
	}
`

// nullBench carries out the part of a phase that sessions from ≤ i < to have.
func nullBench(t *testing.T, text string, from, to int) measure.Totals {
	b := &bench{t: t, net: newVirtualNet(0)}
	require.NoError(t, b.connect(parsePlan(t, text), "load", 0, &virtualClock{}))
	b.g.sessions = to - from
	var err error
	b.l, err = b.g.newLoop(b.e, 0)
	require.NoError(t, err)
	b.g.loops = []*loop{b.l}
	b.g.number(from)
	require.NoError(t, b.l.tr.open(0))
	return b.run(worker.Load)
}

// TestGrowthOfWorkers merges to the same bytes for one worker and for three, of ops and of scenarios.
func TestGrowthOfWorkers(t *testing.T) {
	for name, what := range map[string]string{
		"ops":       `ops = { put = 1, get = 1 }`,
		"scenarios": `scenario "save" { ` + "\n step \"put\" {}\n step \"get\" {}\n step \"put\" {}\n}",
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(nullGrowth, what)
			whole := nullBench(t, text, 0, 3)
			sum := &measure.Totals{}
			for i := range 3 {
				part := nullBench(t, text, i, i+1)
				sum.Merge(&part)
			}
			of := func(t *measure.Totals) (growths []*measure.Growth) {
				for _, o := range append(t.Scenarios, t.Ops[driver.Put], t.Ops[driver.Get]) {
					growths = append(growths, o.Growth)
				}
				return growths
			}
			bytesOf := func(g *measure.Growth) string {
				only := measure.Totals{Ops: [driver.NumVerbs]*measure.Op{{Growth: g}}}
				b, err := only.AppendBinary(nil)
				require.NoError(t, err)
				return string(b)
			}
			for i, g := range of(&whole) {
				require.Equal(t, bytesOf(g), bytesOf(of(sum)[i]))
			}
			var n uint64
			for _, g := range of(&whole) {
				if g != nil {
					n += g.Ended()
					require.EqualValues(t, 5, g.Shift, "2,100 ordinals")
				}
			}
			require.EqualValues(t, 2100, n)
		})
	}
}

// TestGrowthOfBatches counts ops of several keys, several of which are in flight: each has one number.
func TestGrowthOfBatches(t *testing.T) {
	p := redisPlan(t, 1, "", `
		ops   = { put = 1, get = 1 }
		batch = 4
		closed {
			sessions   = 2
			iterations = 500
			pipeline   = 3
		}
		growth { to = 1000 }`)
	b := newBench(t, p, "load", time.Millisecond)
	b.server(0).latency = func(n int) time.Duration { return time.Millisecond + time.Duration(n)*time.Microsecond }
	totals := b.run(worker.Load)
	ph := judge.NewPhase(p, p.Phases[0], judge.Measured{Load: &totals})
	all := uint64(0)
	for _, verb := range []string{"put", "get"} {
		o := ph.Op[verb]
		require.Equal(t, o.Due, o.Growth.Ops)
		require.Equal(t, 4*o.Due, o.Keys.Due)
		require.Greater(t, *o.Growth.Drift, 1.5)
		require.Equal(t, "grows", o.Growth.Shown)
		course := o.Growth.Course
		require.LessOrEqual(t, course[len(course)-1].N, uint64(1024))
		all += o.Growth.Ops
	}
	require.EqualValues(t, 1000, all)
}

// TestBudgetKeepsWhatItGot: a load with iterations and a duration ends with whichever comes first.
func TestBudgetKeepsWhatItGot(t *testing.T) {
	for budget, want := range map[string]string{"1s": "duration", "1h": "iterations"} {
		p := redisPlan(t, 1, "", fmt.Sprintf(`
			ops = { put = 1 }
			closed {
				iterations = 3000
				duration   = %q
			}
			growth { to = 3000 }`, budget))
		b := newBench(t, p, "load", time.Millisecond)
		totals := b.run(worker.Load)
		ph := judge.NewPhase(p, p.Phases[0], judge.Measured{Load: &totals})
		put := ph.Op["put"]
		require.EqualValues(t, want, ph.Ended)
		require.Equal(t, put.Due, put.Growth.Ops)
		require.Zero(t, put.InFlight)
		require.InDelta(t, 1, *put.Growth.Drift, 0.02)
		require.InDelta(t, 3.0, *put.Growth.SecondsTo, 0.1, "what it took, or would take: %d were run", put.Due)
		if want == "duration" {
			require.InDelta(t, 1000, put.Due, 20)
		} else {
			require.EqualValues(t, 3000, put.Due)
		}
	}
}
