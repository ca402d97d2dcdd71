package judge

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestAfterAnEvent describes loads of 30 seconds before, during and after events. Seconds of the series begin half a second after the load.
func TestAfterAnEvent(t *testing.T) {
	slowFor := func(from, to int) func(int) int64 {
		return func(i int) int64 {
			if i > from && i <= to {
				return 4 * quickly(i)
			}
			return quickly(i)
		}
	}
	rareFor := func(from, to int) func(int) int {
		return func(i int) int {
			if i > from && i <= to {
				return even(i) / 2
			}
			return even(i)
		}
	}
	for _, c := range []struct {
		name      string
		rate      func(int) int
		service   func(int) int64
		at        []time.Duration // of events
		recovered float64         // of the first; −1: never
		code      reason.Code
		during    [2]float64
		after     [2]float64
	}{
		{"slow for six seconds", even, slowFor(10, 16), []time.Duration{10600 * time.Millisecond}, 5.9, "", [2]float64{10.5, 16.5}, [2]float64{16.5, 29.5}},
		{"fewer for two", rareFor(10, 12), quickly, []time.Duration{10600 * time.Millisecond}, 1.9, "", [2]float64{10.5, 12.5}, [2]float64{12.5, 29.5}},
		{"nothing happens", even, quickly, []time.Duration{10600 * time.Millisecond}, 0, "", [2]float64{}, [2]float64{10.5, 29.5}},
		{"never again", even, slowFor(10, 30), []time.Duration{10600 * time.Millisecond}, -1, reason.NotRecovered, [2]float64{10.5, 29.5}, [2]float64{}},
		{"another one first", even, slowFor(10, 16), []time.Duration{10600 * time.Millisecond, 18 * time.Second}, -1, reason.NotRecovered, [2]float64{10.5, 17.5}, [2]float64{}},
		{"too early", even, quickly, []time.Duration{time.Second}, -1, reason.TooShort, [2]float64{0.5, 29.5}, [2]float64{}},
		{"past the end", even, quickly, []time.Duration{0}, -1, reason.TooShort, [2]float64{}, [2]float64{}},
	} {
		load, series := longSeries(30, c.rate, c.service)
		ph := longPhase(30)
		for i, at := range c.at {
			ph.Events = append(ph.Events, plan.Event{Name: string(rune('a' + i)), At: at, Do: plan.FlushEvent, Target: "one"})
			if at > 0 {
				load.Happened(i, load.Origin+int64(at))
			}
		}
		p := NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Series: series.Rows(), Over: series})
		e := p.Event["a"]
		if c.recovered < 0 {
			require.Nil(t, e.RecoveredSeconds, c.name)
			require.Equal(t, c.code, p.NullCodes["event.a.recovered_seconds"], c.name)
		} else {
			require.InDelta(t, c.recovered, *e.RecoveredSeconds, 1e-6, c.name)
		}
		require.InDeltaSlice(t, c.during[:], []float64{e.During.FromSeconds, e.During.ToSeconds}, 1e-6, c.name)
		require.InDeltaSlice(t, c.after[:], []float64{e.After.FromSeconds, e.After.ToSeconds}, 1e-6, c.name)
		require.Equal(t, e.During.ToSeconds > 0, e.During.Rate != nil, c.name)
		if e.Before.Rate != nil {
			require.InDelta(t, 5, e.Before.ToSeconds-e.Before.FromSeconds, 1e-6, c.name)
			require.InDelta(t, 2000, *e.Before.Rate, 10, c.name)
			require.InDelta(t, 100e-6, *e.Before.P95, 2e-6, c.name)
		}
	}
}

// The load has not recovered while more ops fail than before, or than max_bad allows.
func TestFailuresAfterAnEvent(t *testing.T) {
	load, series := measure.NewTotals(origin, len(endpoints)), &Series{}
	for i := range 20 {
		delta := measure.NewTotals(origin, len(endpoints))
		for k := range 1000 {
			end := origin + int64(i)*1e9 + int64(k)*1e6
			s := measure.Sample{Due: end - 1000, Start: end - 1000, End: end}
			if i >= 10 && i < 14 && k%25 == 0 {
				s.Outcome = driver.Timeout
			}
			record(delta, s)
		}
		load.Merge(delta)
		series.Add(float64(i+1), delta)
	}
	load.Span.Session(origin, origin+20e9)
	for maxBad, recovered := range map[float64]float64{0.01: 4, 0.05: 4} {
		ph := longPhase(20)
		ph.MaxBad = maxBad
		ph.Events = []plan.Event{{Name: "a", At: 10 * time.Second, Do: plan.FlushEvent, Target: "one"}}
		p := NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Series: series.Rows(), Over: series, Happened: map[int]*Happening{0: {At: time.Duration(origin) + 10*time.Second, Took: time.Second}}})
		e := p.Event["a"]
		require.InDelta(t, recovered, *e.RecoveredSeconds, 1e-6)
		require.InDelta(t, 0.04, *e.During.BadRatio, 1e-9)
		require.Zero(t, *e.After.BadRatio)
		require.Equal(t, 1.0, e.TookSeconds)
	}
}

// chance is a load of that many seconds with an event without effect in its middle; each second's ops come at random. With `slow`, they are four times
// slower until that second; a share `lost` of them times out from the middle on.
func chance(rng *rand.Rand, seconds int, rate float64, slow int, lost float64) (e *run.Event, code reason.Code) {
	load, series := measure.NewTotals(origin, len(endpoints)), &Series{}
	for i := range seconds {
		delta := measure.NewTotals(origin, len(endpoints))
		for at := rng.ExpFloat64() / rate; at < 1; at += rng.ExpFloat64() / rate {
			end, took := origin+int64((float64(i)+at)*1e9), int64(1e6+rng.ExpFloat64()*1e6)
			s := measure.Sample{}
			if i >= seconds/2 && rng.Float64() < lost {
				s.Outcome = driver.Timeout
			}
			if i >= seconds/2 && i < slow {
				took *= 4
			}
			s.Due, s.Start, s.End = end-took, end-took, end
			record(delta, s)
		}
		load.Merge(delta)
		series.Add(float64(i+1), delta)
	}
	load.Span.Session(origin, origin+int64(seconds)*1e9)
	ph := longPhase(seconds)
	ph.MaxBad = 1
	ph.Events = []plan.Event{{Name: "a", At: time.Duration(seconds) * time.Second / 2, Do: plan.FlushEvent, Target: "one"}}
	load.Happened(0, origin+int64(seconds)*1e9/2)
	p := NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Series: series.Rows(), Over: series})
	return p.Event["a"], p.NullCodes["event.a.recovered_seconds"]
}

// Nothing that chance alone does is taken for a recovery, or for its lack.
func TestRecoveriesByChance(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 49))
	for _, rate := range []float64{10, 20, 300, 700} { // an event without effect
		late := 0
		for range 100 {
			if e, code := chance(rng, 20, rate, 0, 0); e.RecoveredSeconds == nil {
				require.Contains(t, []reason.Code{reason.TooFew, reason.NotRecovered}, code)
				if code == reason.NotRecovered {
					late++
				}
			} else if *e.RecoveredSeconds > 1 {
				late++
			}
		}
		require.LessOrEqual(t, late, 5, "at %g/s", rate)
	}
	withdrawn, accepted := 0, 0
	for range 200 {
		if e, _ := chance(rng, 20, 1000, 13, 0); e.RecoveredSeconds == nil || *e.RecoveredSeconds < 3 {
			withdrawn++
		}
		if e, _ := chance(rng, 20, 1000, 0, 0.04); e.RecoveredSeconds != nil {
			accepted++
		}
	}
	require.LessOrEqual(t, withdrawn, 2, "true recoveries")
	require.Zero(t, accepted, "one of 25 nodes is gone for ever")
}

// What came after an event from which the load has not recovered is not usual.
func TestBeforeEndsAtTheFirstUnrecoveredEvent(t *testing.T) {
	load, series := longSeries(30, even, func(i int) int64 {
		if i > 10 {
			return 4 * quickly(i)
		}
		return quickly(i)
	})
	ph := longPhase(30)
	for i, at := range []time.Duration{10600 * time.Millisecond, 20 * time.Second} {
		ph.Events = append(ph.Events, plan.Event{Name: string(rune('a' + i)), At: at, Do: plan.FlushEvent, Target: "one"})
		load.Happened(i, load.Origin+int64(at))
	}
	p := NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Series: series.Rows(), Over: series})
	require.Equal(t, p.Event["a"].Before, p.Event["b"].Before)
	require.Nil(t, p.Event["b"].RecoveredSeconds)
}

// longPhase is an open phase of that many seconds.
func longPhase(n int) *plan.Phase {
	ph := openPhase()
	ph.Open.Duration = time.Duration(n) * time.Second
	return ph
}

// longSeries is the data of a phase of n seconds in which rate(i) ops end in second i, evenly spaced, each after service(i). Its rows end with the
// seconds of the run clock, in the middle of which the phase began.
func longSeries(n int, rate func(i int) int, service func(i int) int64) (*measure.Totals, *Series) {
	const half = int64(time.Second) / 2
	all := measure.NewTotals(origin+half, len(endpoints))
	var rows Series
	for i := range n + 1 {
		delta := measure.NewTotals(origin+half, len(endpoints))
		from := origin + int64(i)*int64(time.Second)
		ops := rate(i)
		for k := range ops {
			end := from + int64(k)*int64(time.Second)/int64(ops)
			if end < origin+half || end >= origin+half+int64(n)*int64(time.Second) {
				continue
			}
			record(delta, measure.Sample{Verb: driver.Get, Due: end - service(i), Start: end - service(i), End: end})
		}
		all.Merge(delta)
		rows.Add(min(0.5+float64(i), float64(n)), delta)
	}
	all.Span.Session(origin+half, origin+half+int64(n)*int64(time.Second))
	return all, &rows
}

func wobble(i int) int { return (i*7919)%11 - 5 }

func even(i int) int { return 2000 + wobble(i) }

func quickly(i int) int64 { return 100*µs + int64(wobble(i))*100 }
