package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// mean is the mean of the service times below.
const mean = 10 * time.Millisecond

var serviceLaws = map[string]func(*rand.Rand) time.Duration{
	"constant":    func(*rand.Rand) time.Duration { return mean },
	"exponential": func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) },
	"bimodal": func(r *rand.Rand) time.Duration { // one in ten takes ten times as long
		if r.IntN(10) == 0 {
			return mean * 100 / 19
		}
		return mean * 10 / 19
	},
}

// rated is a load whose true rates are known.
type rated struct {
	name   string
	phase  string
	trace  string // "": it has none
	kind   worker.StepKind
	stages []pace.Shape
	truth  map[string]float64                   // by figure
	read   func(*run.Phase) map[string]*float64 // the figures
}

// lines is a trace of gets of so many keys, one every so many seconds.
func lines(n int, every float64) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "%.6f,key:%d,8,10,1,get,0\n", float64(i)*every, i)
	}
	return text.String()
}

// turnsOf returns how many turns a second sessions make that take a given time on average.
func turnsOf(sessions int, turn time.Duration) float64 { return float64(sessions) / turn.Seconds() }

func answered(verb string) func(*run.Phase) map[string]*float64 {
	return func(p *run.Phase) map[string]*float64 { return map[string]*float64{"ops": p.Op[verb].Answered} }
}

// closedLoads are of ten sessions that make some 30 turns each.
func closedLoads() (all []rated) {
	for _, think := range []time.Duration{0, mean / 2} {
		add := func(r rated) {
			r.name += fmt.Sprintf(", think %v", think)
			all = append(all, r)
		}
		load := func(ends string) string {
			return fmt.Sprintf("closed {\n sessions = 10\n think = %q\n %s\n}", think, ends)
		}
		for name, ends := range map[string]string{"iterations": "iterations = 30", "duration": `duration = "300ms"`} {
			add(rated{
				name: "batches by " + name, phase: "ops = { get = 1 }\n batch = 4\n" + load(ends), kind: worker.Load,
				truth: map[string]float64{"ops": turnsOf(10, mean+think), "keys": 4 * turnsOf(10, mean+think)},
				read: func(p *run.Phase) map[string]*float64 {
					return map[string]*float64{"ops": p.Op["get"].Answered, "keys": p.Op["get"].Keys.Answered}
				},
			})
			// A turn is one get of weight 1, or a scenario of weight 1 that thinks between its two steps.
			turn := (mean + (2*mean + 5*time.Millisecond)) / 2
			turns := turnsOf(10, turn+think)
			add(rated{
				name: "scenarios by " + name, kind: worker.Load,
				phase: "ops = { get = 1 }\n scenario \"modify\" {\n step \"get\" {}\n step \"put\" {\n think = \"5ms\"\n }\n}\n" + load(ends),
				truth: map[string]float64{"modify": turns / 2, "gets": turns, "puts": turns / 2},
				read: func(p *run.Phase) map[string]*float64 {
					return map[string]*float64{"modify": p.Scenario["modify"].Answered, "gets": p.Op["get"].Answered, "puts": p.Op["put"].Answered}
				},
			})
			add(rated{
				name: "a trace again and again, by " + name, trace: lines(1000, 1), kind: worker.Load,
				phase: load(ends + "\n trace {\n file = \"trace.csv\"\n loop = true\n}"),
				truth: map[string]float64{"ops": turnsOf(10, mean+think)}, read: answered("get"),
			})
		}
		add(rated{
			name: "a trace to its end", trace: lines(3000, 1), phase: load("trace {\n file = \"trace.csv\"\n}"), kind: worker.Load,
			truth: map[string]float64{"ops": turnsOf(10, mean+think)}, read: answered("get"),
		})
	}
	return append(all, rated{
		name: "populate", phase: "populate {\n sessions = 10\n pipeline = 1\n}", kind: worker.Populate,
		truth: map[string]float64{"ops": turnsOf(10, mean)}, read: answered("put"),
	})
}

func (r *rated) plan(t *testing.T) *plan.Plan {
	t.Helper()
	return parsePlan(t, fmt.Sprintf(`
		target "t" {
			driver    = "redis"
			endpoints = ["127.0.0.1:%d"]
			timeout   = "10s"
		}
		dataset "d" {
			keys { count = 300 }
			values { size = 100 }
		}
		phase "load" {
			target      = target.t
			dataset     = dataset.d
			%s
		}`, firstPort, r.phase))
}

// requireUnbiased runs a load many times and compares the average of each of its rates with the truth. They may differ by 0.2 %, or by a quarter of
// one run's error, plus the error of the average itself (four standard errors).
func (r *rated) requireUnbiased(t *testing.T, runs int, law func(*rand.Rand) time.Duration) {
	t.Helper()
	b := newBench(t, r.plan(t), "load", 0)
	random := rand.New(rand.NewPCG(11, uint64(runs)))
	b.server(0).latency = func(int) time.Duration { return law(random) }
	if r.trace != "" {
		b.g.trace = opened(r.trace)
	}
	sum, squares := map[string]float64{}, map[string]float64{}
	for seed := range runs {
		b.g.plan.Seed = uint64(seed)
		for name, is := range r.read(r.once(t, b)) {
			require.NotNil(t, is, name)
			off := *is/r.truth[name] - 1
			sum[name] += off
			squares[name] += off * off
		}
	}
	n := float64(runs)
	for name := range r.truth {
		off := sum[name] / n
		sd := math.Sqrt(max(0, squares[name]/n-off*off))
		t.Logf("%-8s bias %+7.3f %%, of one run ± %6.3f %%", name, 100*off, 100*sd)
		require.LessOrEqual(t, math.Abs(off), max(0.002, sd/4)+4*sd/math.Sqrt(n), name)
	}
}

func (r *rated) once(t *testing.T, b *bench) *run.Phase {
	t.Helper()
	m := judge.Measured{Endpoints: []string{"e0"}}
	for i, shape := range r.stages {
		step := stepOf(b.g.phase, r.kind)
		step.Level, step.Shape = i, shape
		totals := b.runStep(step)
		m.AddLevel(b.g.plan, b.g.phase, judge.Measured{Endpoints: m.Endpoints, Load: &totals, Shape: shape}, time.Duration(b.l.origin))
	}
	if r.stages == nil {
		m.Shape = stepOf(b.g.phase, r.kind).Shape
		var totals measure.Totals
		if r.trace != "" {
			_, totals = b.replay()
		} else {
			totals = b.run(r.kind)
		}
		m.Load = &totals
	}
	return judge.NewPhase(b.g.plan, b.g.phase, m)
}

// Rates of closed loads of every kind are as known beforehand, whatever the target's times.
func TestRatesOfKnownLoads(t *testing.T) {
	laws, runs := serviceLaws, 10
	if !servertest.Whole() {
		laws, runs = map[string]func(*rand.Rand) time.Duration{"constant": laws["constant"]}, 6
	}
	for _, r := range closedLoads() {
		for name, law := range laws {
			t.Run(r.name+", "+name, func(t *testing.T) { r.requireUnbiased(t, runs, law) })
		}
	}
}

// openLoads come a hundred times a second, for some seconds.
func openLoads() (all []rated) {
	const room = "\n sessions = 400\n"
	for _, arrivals := range []string{"constant", "poisson"} {
		load := "open {\n rate = 100\n duration = \"4s\"\n arrivals = \"" + arrivals + "\"" + room + "}"
		all = append(all, rated{
			name: "open batches, " + arrivals, phase: "ops = { get = 1 }\n batch = 4\n" + load, kind: worker.Load,
			truth: map[string]float64{"ops": 100, "keys": 400},
			read: func(p *run.Phase) map[string]*float64 {
				return map[string]*float64{"ops": p.Op["get"].Answered, "keys": p.Op["get"].Keys.Answered}
			},
		}, rated{
			name: "open scenarios, " + arrivals, kind: worker.Load,
			phase: "scenario \"modify\" {\n step \"get\" {}\n step \"put\" {\n think = \"5ms\"\n }\n}\n" + load,
			truth: map[string]float64{"modify": 100, "gets": 100, "puts": 100},
			read: func(p *run.Phase) map[string]*float64 {
				return map[string]*float64{"modify": p.Scenario["modify"].Answered, "gets": p.Op["get"].Answered, "puts": p.Op["put"].Answered}
			},
		}, rated{
			name: "stages, " + arrivals, kind: worker.Load,
			phase: "ops = { get = 1 }\n stages {\n arrivals = \"" + arrivals + "\"" + room + `
				stage {
					rate     = 100
					duration = "3s"
				}
				stage {
					rate     = 200
					duration = "3s"
					ramp     = "1s"
				}
				stage {
					rate     = 50
					duration = "4s"
				}
			}`,
			stages: []pace.Shape{
				{From: 100, Rate: 100, Duration: 3 * time.Second},
				{From: 100, Rate: 200, Ramp: time.Second, Duration: 3 * time.Second},
				{From: 50, Rate: 50, Duration: 4 * time.Second},
			},
			truth: map[string]float64{"first": 100, "second": 200, "third": 50},
			read: func(p *run.Phase) map[string]*float64 {
				of := func(level int) *float64 { return p.Levels[level].Op["get"].Answered }
				return map[string]*float64{"first": of(0), "second": of(1), "third": of(2)}
			},
		})
	}
	return all
}

// Rates of open loads are those at which they arrive, whatever the target's times: here up to a fifth of the load's on average.
func TestRatesOfKnownArrivals(t *testing.T) {
	for _, r := range openLoads() {
		for _, name := range []string{"constant", "bimodal"} {
			law := serviceLaws[name]
			for times, runs := range map[time.Duration]int{1: 5, 20: 30} {
				if !servertest.Whole() && times > 1 {
					continue // one goroutine does it all
				}
				slow := func(r *rand.Rand) time.Duration { return times * law(r) }
				t.Run(fmt.Sprintf("%s, %s of %v", r.name, name, times*mean), func(t *testing.T) { r.requireUnbiased(t, runs, slow) })
			}
		}
	}
}

// The rate of a trace that is replayed at its own times is that of its lines.
func TestRateOfAReplay(t *testing.T) {
	for _, every := range []float64{0.01, 0.0007} {
		const n = 2000
		for name, law := range serviceLaws {
			t.Run(fmt.Sprintf("%g s, %s", every, name), func(t *testing.T) {
				p := redisPlan(t, 1, "timeout = \"10s\"", "open {\n trace {\n file = \"trace.csv\"\n }\n sessions = 2000\n}")
				p.Phases[0].Open.Trace.Lines, p.Phases[0].Open.Duration = n, time.Duration(n*every*1e9)
				b := newBench(t, p, "load", 0)
				b.g.trace = opened(lines(n, every))
				random := rand.New(rand.NewPCG(13, 1))
				b.server(0).latency = func(int) time.Duration { return law(random) }
				_, totals := b.replay()
				shape := stepOf(b.g.phase, worker.Load).Shape
				figures := judge.NewPhase(p, b.g.phase, judge.Measured{Endpoints: []string{"e0"}, Load: &totals, Shape: shape})
				require.InEpsilon(t, 1/every, *figures.Op["get"].Answered, 0.002)
			})
		}
	}
}
