package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
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

// The load has not recovered while more ops fail than max_bad allows.
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
	for maxBad, recovered := range map[float64]float64{0.01: 4, 0.05: 0} {
		ph := longPhase(20)
		ph.MaxBad = maxBad
		ph.Events = []plan.Event{{Name: "a", At: 10 * time.Second, Do: plan.FlushEvent, Target: "one"}}
		p := NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Series: series.Rows(), Over: series, Happened: map[int]*Happening{0: {At: time.Duration(origin) + 10*time.Second, Took: time.Second}}})
		e := p.Event["a"]
		require.InDelta(t, recovered, *e.RecoveredSeconds, 1e-6)
		if recovered > 0 {
			require.InDelta(t, 0.04, *e.During.BadRatio, 1e-9)
			require.Zero(t, *e.After.BadRatio)
		}
		require.Equal(t, 1.0, e.TookSeconds)
	}
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
