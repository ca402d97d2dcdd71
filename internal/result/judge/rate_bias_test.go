package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// The service time distributions that rates are tested with. All have a mean of 10 ms.
var laws = []struct {
	name string
	draw func(*rand.Rand) float64 // in seconds
}{
	{"constant", func(*rand.Rand) float64 { return 0.01 }},
	{"exponential", func(r *rand.Rand) float64 { return 0.01 * r.ExpFloat64() }},
	{"bimodal", func(r *rand.Rand) float64 { // one in ten takes ten times as long
		if r.IntN(10) == 0 {
			return 0.1 / 1.9
		}
		return 0.01 / 1.9
	}},
}

// clients is a closed load whose true rate is known.
type clients struct {
	sessions, pipeline int
	ops                int     // per slot: as many as iterations say, or as a duration allows on average
	byTime             bool    // a duration ends the load
	think              float64 // seconds
	ramp               float64 // seconds
	law                func(*rand.Rand) float64
}

func (c *clients) truth(mean float64) float64 {
	return float64(c.sessions*c.pipeline) / (mean + c.think)
}

func (c *clients) phase() *plan.Phase {
	ph := closedPhase()
	ph.Closed.Sessions, ph.Closed.Pipeline = c.sessions, c.pipeline
	ph.Closed.Think, ph.Closed.Ramp = time.Duration(c.think*1e9), time.Duration(c.ramp*1e9)
	if c.byTime {
		ph.Closed.Iterations, ph.Closed.Duration = 0, c.lasts()
	}
	return ph
}

func (c *clients) lasts() time.Duration {
	return time.Duration((c.ramp + float64(c.ops)*(0.01+c.think)) * 1e9)
}

// run returns what the load leaves behind. Each slot is an independent renewal process.
func (c *clients) run(r *rand.Rand) *measure.Totals {
	t := measure.NewTotals(origin, len(endpoints))
	think, stop := int64(c.think*1e9), int64(c.lasts())
	for s := range c.sessions {
		first := int64(c.ramp * 1e9 * float64(s) / float64(c.sessions))
		free := slices.Repeat([]int64{first}, c.pipeline) // by slot, when its next op is due
		out, last, started := int64(0), int64(0), int64(0)
		for n := 0; c.byTime || n < c.ops*c.pipeline; n++ {
			slot := &free[0]
			for i := range free {
				if free[i] < *slot {
					slot = &free[i]
				}
			}
			due := *slot
			if c.byTime && due >= stop {
				break
			}
			end := due + int64(c.law(r)*1e9)
			record(t, measure.Sample{Verb: driver.Get, Outcome: driver.Outcome(n % 2), Due: origin + due, Start: origin + due, End: origin + end})
			out, last, *slot = due, max(last, end), end+think
			started++
		}
		turn := last - first
		if slots := int64(c.pipeline); started > slots {
			turn = (out - first) * slots / (started - slots)
		}
		t.Span.Busy(origin+first, origin+out, origin+last, turn)
	}
	return t
}

// bias returns how far rates of runs are off from the truth on average, and how far a single one is, as shares of it, and how many runs have no rate.
func bias(runs int, truth float64, one func(seed uint64) *run.Phase) (mean, sd float64, without int) {
	var sum, squares float64
	n := 0.0
	for seed := range runs {
		o := one(uint64(seed)).Op["get"]
		if o.Answered == nil {
			without++
			continue
		}
		x := *o.Answered/truth - 1
		n, sum, squares = n+1, sum+x, squares+x*x
	}
	mean = sum / n
	return mean, math.Sqrt(max(0, squares/n-mean*mean)), without
}

// unbiased compares a bias with what is promised: 0.2 %, or a quarter of the error of a single run, plus the error of the average of that many runs
// (four standard errors).
func unbiased(t *testing.T, name string, runs int, mean, sd float64) {
	t.Helper()
	t.Logf("%-92s bias %+7.3f %%, of one run ± %6.3f %%", name, 100*mean, 100*sd)
	require.LessOrEqual(t, math.Abs(mean), max(0.002, sd/4)+4*sd/math.Sqrt(float64(runs)), name)
}

// TestClosedRatesAreUnbiased: a closed load's rate depends neither on how long its ops take compared with its duration, nor on what ends it.
func TestClosedRatesAreUnbiased(t *testing.T) {
	for _, law := range laws {
		for _, sessions := range []int{1, 10, 100} {
			for _, ops := range []int{12, 100} {
				for _, byTime := range []bool{false, true} {
					for _, c := range []clients{{pipeline: 1}, {pipeline: 8}, {pipeline: 1, think: 0.005}, {pipeline: 1, ramp: 0.05}} {
						c.sessions, c.ops, c.byTime, c.law = sessions, ops, byTime, law.draw
						if sessions == 100 && (c.pipeline > 1 || ops == 100) {
							continue
						}
						runs := max(20, 100/(sessions*c.pipeline))
						if law.name == "constant" {
							runs = 1 // they are all alike
						}
						name := fmt.Sprintf("%s, %d sessions × %d, %d ops, by time %t, think %g s, ramp %g s", law.name, sessions, c.pipeline, ops, byTime, c.think, c.ramp)
						mean, sd, without := bias(runs, c.truth(0.01), func(seed uint64) *run.Phase {
							return newPhase(c.phase(), c.run(rand.New(rand.NewPCG(seed, 7))))
						})
						if without < runs || c.ramp == 0 {
							unbiased(t, name, runs-without, mean, sd)
						}
					}
				}
			}
		}
	}
}

// A server that works on one op at a time is busy from the first start to the last end. The first round of its clients finds a shorter queue.
func TestRateOfAQueue(t *testing.T) {
	const each, iterations = 1 * ms, 12
	for _, sessions := range []int64{1, 10, 300} {
		load := measure.NewTotals(origin, len(endpoints))
		for s := range sessions {
			due := int64(0)
			for i := range int64(iterations) {
				end := (i*sessions + s + 1) * each
				record(load, measure.Sample{Verb: driver.Get, Due: origin + due, Start: origin + due, End: origin + end})
				if i == iterations-1 {
					load.Span.Busy(origin, origin+due, origin+end, due/(iterations-1))
				}
				due = end
			}
		}
		p := newPhase(closedPhase(), load)
		require.InEpsilon(t, 1000, *p.Op["get"].Rate, 0.002, "%d sessions", sessions)
	}
}

// Sessions that each use a node of their own are as fast as that node.
func TestRateOfUnequalSessions(t *testing.T) {
	load := measure.NewTotals(origin, len(endpoints))
	truth := 0.0
	for _, each := range []int64{1 * ms, 7 * ms, 110 * ms, 300 * ms} {
		truth += 1e9 / float64(each)
		due := int64(0)
		for ; due < 5000*ms; due += each {
			record(load, measure.Sample{Verb: driver.Get, Due: origin + due, Start: origin + due, End: origin + due + each})
		}
		load.Span.Busy(origin, origin+due-each, origin+due, each)
	}
	ph := closedPhase()
	ph.Closed.Sessions, ph.Closed.Iterations, ph.Closed.Duration = 4, 0, 5*time.Second
	require.InEpsilon(t, truth, *newPhase(ph, load).Op["get"].Rate, 0.002)
}

// TestTenSessionsOnASlowNode: an op took a tenth of the load, and the rate was 18.
func TestTenSessionsOnASlowNode(t *testing.T) {
	c := clients{sessions: 10, pipeline: 1, law: func(*rand.Rand) float64 { return 0.5 }, byTime: true, ops: 500}
	p := newPhase(c.phase(), c.run(nil))
	require.InEpsilon(t, 10, *p.Op["get"].Rate, 1e-9, "every other op missed")
	require.InEpsilon(t, 20, *p.Op["get"].Answered, 1e-9)
}

// TestRateOfOneIteration: there is no time between two ops, so no rate; it was 0.
func TestRateOfOneIteration(t *testing.T) {
	c := clients{sessions: 3, pipeline: 1, ops: 1, law: laws[1].draw}
	p := newPhase(c.phase(), c.run(rand.New(rand.NewPCG(1, 1))))
	require.Nil(t, p.Op["get"].Rate)
	require.Nil(t, p.Op["get"].Answered)
	require.Contains(t, p.Nulls["op.get.rate"], "no plateau")
}

// TestOpenRatesAreUnbiased: what was due in the plateau counts, whenever it ended.
func TestOpenRatesAreUnbiased(t *testing.T) {
	for _, arrivals := range []string{"constant", "poisson"} {
		for _, latency := range []time.Duration{100 * time.Microsecond, 10 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second} {
			for _, ramp := range []time.Duration{0, 700 * time.Millisecond} {
				for name, law := range map[string]func(*rand.Rand) time.Duration{
					"constant": func(*rand.Rand) time.Duration { return latency }, "exponential": exponential(latency),
				} {
					const runs = 30
					s := pace.Shape{Rate: 100, Ramp: ramp, Duration: 5 * time.Second}
					mean, sd, without := bias(runs, s.Rate, func(seed uint64) *run.Phase {
						return newPhase(scheduled(s, arrivals), served(s, arrivals, seed, 0, law))
					})
					require.Zero(t, without)
					unbiased(t, fmt.Sprintf("open, %s arrivals, %s service of %v, ramp %v", arrivals, name, latency, ramp), runs, mean, sd)
				}
			}
		}
	}
}

// TestRateOfAnOverloadIsWhatWasSustained: what was made up for after the schedule's end took longer than the plateau.
func TestRateOfAnOverloadIsWhatWasSustained(t *testing.T) {
	s := pace.Shape{Rate: 1000, Duration: 4 * time.Second}
	for _, service := range []func(*rand.Rand) time.Duration{quick, exponential(time.Second)} {
		p := newPhase(scheduled(s, "constant"), served(s, "constant", 1, 700, service))
		require.InEpsilon(t, 700, *p.Op["get"].Rate, 0.04)
		require.Contains(t, strings.Join(texts(p), " "), " sustained ")
	}
}

// TestRateDoesNotDependOnTheDivision: three workers' parts of a load, joined in any order, have the rate of the whole.
func TestRateDoesNotDependOnTheDivision(t *testing.T) {
	c := clients{sessions: 9, pipeline: 2, ops: 40, law: laws[2].draw}
	part := func(from, to int) *measure.Totals {
		sub := c
		sub.sessions = to - from
		return sub.run(rand.New(rand.NewPCG(uint64(from), 3)))
	}
	parts := []*measure.Totals{part(0, 2), part(2, 3), part(3, 9)}
	var rates []float64
	for _, order := range [][]int{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}} {
		sum := measure.NewTotals(origin, len(endpoints))
		for _, i := range order {
			sum.Merge(parts[i])
		}
		rates = append(rates, *newPhase(c.phase(), sum).Op["get"].Rate)
	}
	require.Equal(t, []float64{rates[0], rates[0], rates[0]}, rates)
}
