package judge

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// scheduled is an open phase of a shape.
func scheduled(s pace.Shape, arrivals string) *plan.Phase {
	ph := openPhase()
	ph.Open.Arrivals, ph.Open.Rate, ph.Open.Ramp, ph.Open.Duration = arrivals, s.Rate, s.Ramp, s.Duration
	return ph
}

// served is the data of an open load whose ops each take their own time. They run concurrently; unless perSecond is 0, at most that many end per
// second.
func served(s pace.Shape, arrivals string, seed uint64, perSecond int64, service func(*rand.Rand) time.Duration) *measure.Totals {
	t := measure.NewTotals(origin, len(endpoints))
	pacer := pace.NewConstant(s, 1, 0)
	if arrivals == "poisson" {
		pacer = pace.NewPoisson(s, 1, 0, seed)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	var free, last int64
	for due, ok := pacer.Next(); ok; due, ok = pacer.Next() {
		begun := max(due, free)
		if perSecond > 0 {
			free = begun + int64(time.Second)/perSecond
		}
		end := begun + int64(service(random))
		last = max(last, end)
		record(t, measure.Sample{Verb: driver.Get, Due: origin + due, Start: origin + due, End: origin + end})
	}
	t.Span.Session(origin, origin+last)
	return t
}

// shortOf counts how many of several loads are reported to have fallen short of what they offered.
func shortOf(n uint64, s pace.Shape, arrivals string, perSecond int64, service func(*rand.Rand) time.Duration, warmUp time.Duration) (short int) {
	for seed := range n {
		load := served(s, arrivals, seed, perSecond, service)
		p := NewPhase(testPlan(), scheduled(s, arrivals), Measured{
			Endpoints: endpoints, Load: load, Shape: s, Settled: load, WarmUp: run.WarmUp{Seconds: warmUp.Seconds(), By: "plan"},
		})
		if strings.Contains(strings.Join(texts(p), " "), " sustained ") {
			short++
		}
	}
	return short
}

func quick(*rand.Rand) time.Duration { return 100 * time.Microsecond }

// exponential draws service times with a mean.
func exponential(mean time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
}

// A few ops a second, or a plateau of a few hundred: one op more or less is no shortfall, and offered is what the schedule had over its whole time.
func TestFewOpsAreNoShortfall(t *testing.T) {
	const d = 3 * time.Second
	for _, tt := range []struct {
		shape  pace.Shape
		warmUp time.Duration
	}{
		{shape: pace.Shape{Rate: 1, Duration: d}},
		{shape: pace.Shape{Rate: 20, Duration: d}},
		{shape: pace.Shape{Rate: 20, Ramp: d / 2, Duration: d}},
		{shape: pace.Shape{Rate: 20, Duration: d}, warmUp: 1500 * time.Millisecond},
		{shape: pace.Shape{Rate: 100, Duration: d}, warmUp: 1337 * time.Millisecond},
		{shape: pace.Shape{Rate: 100, Ramp: 2 * time.Second, Duration: d}, warmUp: 2700 * time.Millisecond},
	} {
		for _, arrivals := range []string{"constant", "poisson"} {
			name := fmt.Sprintf("%g/s %s ramp %v warm-up %v", tt.shape.Rate, arrivals, tt.shape.Ramp, tt.warmUp)
			require.Zero(t, shortOf(40, tt.shape, arrivals, 0, quick, tt.warmUp), name)
		}
		load := served(tt.shape, "constant", 1, 0, quick)
		full := (d - tt.shape.Ramp/2).Seconds()
		offered := *newPhase(scheduled(tt.shape, "constant"), load).OfferedRate
		require.InDelta(t, float64(load.Ops[driver.Get].Due)/full, offered, 1e-9)
	}
}

// A step that was cut short offered what it did until then.
func TestOfferedOfAStepCutShort(t *testing.T) {
	half := pace.Shape{Rate: 1000, Duration: 2 * time.Second}
	ph := scheduled(pace.Shape{Rate: 1000, Duration: 4 * time.Second}, "constant")
	load := served(half, "constant", 1, 0, quick)
	for _, m := range []Measured{{Aborted: true}, {Losses: []worker.Loss{{Worker: "w1"}}}, {Logs: []*worker.Log{nil, {Log: localfile.Log{Failure: "no"}}}}} {
		m.Endpoints, m.Load = endpoints, load
		p := NewPhase(testPlan(), ph, m)
		require.InEpsilon(t, 1000, *p.OfferedRate, 0.001)
		require.InEpsilon(t, 1000, *p.AchievedRate, 0.002)
	}
}

// If service times vary, many ops due in the plateau end outside it, wherever it is moved. The target does not fall short for that; one that lets
// fewer ops through than are due does, however long they take.
func TestVariedServiceIsNoShortfall(t *testing.T) {
	const n = 10
	shape := pace.Shape{Rate: 1000, Duration: 2 * time.Second}
	mixed := func(r *rand.Rand) time.Duration {
		if r.IntN(2) == 0 {
			return time.Millisecond
		}
		return 200 * time.Millisecond
	}
	for _, arrivals := range []string{"constant", "poisson"} {
		for name, service := range map[string]func(*rand.Rand) time.Duration{
			"exponential": exponential(50 * time.Millisecond), "slow": exponential(150 * time.Millisecond), "mixed": mixed,
		} {
			require.Zero(t, shortOf(n, shape, arrivals, 0, service, 0), "%s, %s", name, arrivals)
		}
		for _, perSecond := range []int64{900, 500, 100} { // Poisson arrivals of 2,000 are sometimes 1,840
			for _, mean := range []time.Duration{0, 20 * time.Millisecond} {
				require.Equal(t, n, shortOf(n, shape, arrivals, perSecond, exponential(mean), 0), "%s, %d/s, %v", arrivals, perSecond, mean)
			}
		}
	}
	p := newPhase(scheduled(shape, "constant"), served(shape, "constant", 1, 0, exponential(50*time.Millisecond)))
	require.InEpsilon(t, 1000, *p.AchievedRate, 0.01)
}

// One op in ten takes most of the load's time, like a scenario with think times: only that kind is waited for.
func TestFewLongOpsAreNoShortfall(t *testing.T) {
	const d = 2 * time.Second
	ph := scheduled(pace.Shape{Rate: 1000, Duration: d}, "constant")
	ph.Ops = []plan.Weight{{Op: "get", Weight: 9}, {Op: "put", Weight: 1}}
	loaded := func(perOp int64) *run.Phase {
		load := measure.NewTotals(origin, len(endpoints))
		free, last := int64(0), int64(0)
		for i := range int64(2000) {
			due := i * ms
			start := max(due, free)
			free = start + perOp
			s := measure.Sample{Verb: driver.Get, Due: origin + due, Start: origin + start, End: origin + start + ms}
			if i%10 == 3 {
				s.Verb, s.End = driver.Put, s.Start+1500*ms
			}
			last = max(last, s.End)
			record(load, s)
		}
		load.Span.Session(origin, last)
		return newPhase(ph, load)
	}
	p := loaded(0)
	require.InEpsilon(t, 1000, *p.AchievedRate, 0.005)
	require.Equal(t, run.Valid, p.Validity, texts(p))
	p = loaded(ms * 10 / 9) // 900 a second
	require.InEpsilon(t, 900, *p.AchievedRate, 0.02)
	require.Contains(t, strings.Join(texts(p), " "), " sustained ")
}

// Ops that had to wait at the beginning and were then made up for do not add up to more than was offered.
func TestAchievedIsNotMoreThanOffered(t *testing.T) {
	const d = 4 * time.Second
	shape := pace.Shape{Rate: 1000, Duration: d}
	load := measure.NewTotals(origin, len(endpoints))
	for i := range int64(4000) {
		due := i * ms
		end := max(due, int64(d/4)) + ms
		record(load, measure.Sample{Verb: driver.Get, Due: origin + due, Start: origin + due, End: origin + end})
	}
	load.Span.Session(origin, origin+int64(d)+ms)
	p := newPhase(scheduled(shape, "constant"), load)
	require.InEpsilon(t, 1000, *p.OfferedRate, 0.001)
	require.InEpsilon(t, 1000, *p.AchievedRate, 0.002)
}

// Traces often have whole seconds: their ops come in bursts, the first and the last at the very ends.
func TestABurstOfATraceIsNoShortfall(t *testing.T) {
	const seconds, each = 10, 200
	ph := openPhase()
	ph.Open.Trace = &plan.Trace{File: "t.csv", Form: "cache", Speed: 1, Lines: (seconds + 1) * each}
	ph.Open.Duration = seconds*time.Second + 1
	ph.Open.Rate = float64(ph.Open.Trace.Lines) / ph.Open.Duration.Seconds()
	replayed := func(perOp int64) *run.Phase {
		load := measure.NewTotals(origin, len(endpoints))
		free := int64(0)
		for i := range int64((seconds + 1) * each) {
			due := i / each * 1000 * ms
			free = max(free, due) + perOp
			record(load, measure.Sample{Verb: driver.Get, Due: origin + due, Start: origin + due, End: origin + free})
		}
		load.Span.Session(origin, origin+free)
		return newPhase(ph, load)
	}
	p := replayed(100 * µs)
	require.Equal(t, run.Valid, p.Validity, texts(p))
	require.InEpsilon(t, *p.OfferedRate, *p.AchievedRate, 0.005)
	p = replayed(6 * ms) // 167 a second
	require.Contains(t, strings.Join(texts(p), " "), " sustained ")
}

// A target that pauses briefly makes up for it, and has not fallen short if the load ends just then: it had kept up before, and did the rest at once.
// One that lets fewer ops through than are due also has some left at the end, but more and more of them all the time.
func TestAPauseAtTheEndIsNoShortfall(t *testing.T) {
	const d = time.Second
	shape := pace.Shape{Rate: 1000, Duration: d}
	short := func(arrivals string, from, to, perOp time.Duration) (short int) {
		for seed := range uint64(20) {
			load := measure.NewTotals(origin, len(endpoints))
			pacer := pace.NewConstant(shape, 1, 0)
			if arrivals == "poisson" {
				pacer = pace.NewPoisson(shape, 1, 0, seed)
			}
			var free int64
			for due, ok := pacer.Next(); ok; due, ok = pacer.Next() {
				begun := max(due, free)
				if begun >= int64(from) && begun < int64(to) {
					begun = int64(to)
				}
				free = begun + int64(perOp)
				record(load, measure.Sample{Verb: driver.Get, Due: origin + due, Start: origin + due, End: origin + free})
			}
			load.Span.Session(origin, origin+free)
			if strings.Contains(strings.Join(texts(newPhase(scheduled(shape, arrivals), load)), " "), " sustained ") {
				short++
			}
		}
		return short
	}
	for _, arrivals := range []string{"constant", "poisson"} {
		for _, pause := range []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond} {
			for _, from := range []time.Duration{d / 2, d - pause, d - pause/2} {
				require.Zero(t, short(arrivals, from, from+pause, 100*time.Microsecond), "%s, for %v from %v on", arrivals, pause, from)
			}
		}
		require.Equal(t, 20, short(arrivals, d-200*time.Millisecond, d+time.Millisecond, 100*time.Microsecond), "%s, long", arrivals)
		require.Equal(t, 20, short(arrivals, 0, 0, d/900), "%s, 900 a second", arrivals)
	}
	require.Equal(t, 20, short("constant", 0, 0, d/980), "980 a second")
	require.Equal(t, 20, short("constant", d-80*time.Millisecond, d+10*time.Millisecond, d/990), "990 a second, and a pause")
}
