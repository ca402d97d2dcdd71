package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// longPhase is an open phase of that many seconds.
func longPhase(n int) *plan.Phase {
	ph := openPhase()
	ph.Open.Duration = time.Duration(n) * time.Second
	return ph
}

// longLoad is the data of a phase of n seconds in which rate(i) ops end in second i, evenly spaced, each after service(i). Its rows end with the
// seconds of the run clock, in the middle of which the phase began.
func longLoad(n int, rate func(i int) int, service func(i int) int64) (*measure.Totals, []run.Row) {
	load, series := longSeries(n, rate, service)
	return load, series.Rows()
}

// longSeries is longLoad with the series that its rows are of.
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

// wobble is a little noise that is the same each time.
func wobble(i int) int { return (i*7919)%11 - 5 }

func even(i int) int      { return 2000 + wobble(i) }
func quickly(i int) int64 { return 100*µs + int64(wobble(i))*100 }
func slowStart(i int) int { return even(i) - max(0, 10-i)*100 }
func neverEven(i int) int { return 500 + 30*i }
func drifting(i int) int  { return even(i) - 5*i }
func slower(i int) int64  { return quickly(i) + int64(i)*µs }
func always100(int) int64 { return 100 * µs }

// slowFirst is a service time that is twice as long in the first ten seconds.
func slowFirst(i int) int64 {
	if i < 10 {
		return 2 * quickly(i)
	}
	return quickly(i)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestWarmUpByEitherFigure: a warm-up visible in either figure is cut, and the longer of two.
func TestWarmUpByEitherFigure(t *testing.T) {
	for _, tt := range []struct {
		name    string
		rate    func(int) int
		service func(int) int64
		want    run.WarmUp
	}{
		{"neither", even, quickly, run.WarmUp{By: "none", Code: reason.AlreadySteady, Reason: "MSER-5 finds nothing to cut"}},
		{"rate alone", slowStart, quickly, run.WarmUp{Seconds: 10.5, By: "mser-5", Reason: "MSER-5 cuts 10 s of 59 s"}},
		{"p99 alone", even, slowFirst, run.WarmUp{Seconds: 10.5, By: "mser-5", Reason: "MSER-5 cuts 10 s of 59 s"}},
		{"rate by little", func(i int) int { return 2000 - 20*b2i(i < 10) }, always100, run.WarmUp{By: "none", Code: reason.AlreadySteady, Reason: "MSER-5 finds nothing to cut"}},
		{"rate by more", func(i int) int { return 2000 - 80*b2i(i < 10) }, always100, run.WarmUp{Seconds: 10.5, By: "mser-5", Reason: "MSER-5 cuts 10 s of 59 s"}},
		{"p99 by little", even, func(i int) int64 { return 100*µs + 5*µs*int64(b2i(i < 10)) }, run.WarmUp{By: "none", Code: reason.AlreadySteady, Reason: "MSER-5 finds nothing to cut"}},
		{"p99 by more", even, func(i int) int64 { return 100*µs + 20*µs*int64(b2i(i < 10)) }, run.WarmUp{Seconds: 10.5, By: "mser-5", Reason: "MSER-5 cuts 10 s of 59 s"}},
		{
			"p99 for longer than the rate", func(i int) int { return even(i) - max(0, 5-i)*200 }, slowFirst,
			run.WarmUp{Seconds: 10.5, By: "mser-5", Reason: "MSER-5 cuts 10 s of 59 s"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			load, rows := longLoad(60, tt.rate, tt.service)
			require.Equal(t, tt.want, FindWarmUp(longPhase(60), load, rows))
		})
	}
}

func TestFindWarmUp(t *testing.T) {
	for _, tt := range []struct {
		name  string
		n     int
		asked time.Duration
		rate  func(int) int
		want  run.WarmUp
	}{
		{name: "short", n: 20, rate: slowStart, want: run.WarmUp{By: "none", Code: reason.TooShort, Reason: "shorter than 50 whole seconds"}},
		{name: "even", n: 60, rate: even, want: run.WarmUp{By: "none", Code: reason.AlreadySteady, Reason: "MSER-5 finds nothing to cut"}},
		{name: "a slow start", n: 60, rate: slowStart, want: run.WarmUp{Seconds: 10.5, By: "mser-5", Reason: "MSER-5 cuts 10 s of 59 s"}},
		{name: "never even", n: 60, rate: neverEven, want: run.WarmUp{By: "none", Code: reason.NeverSettled, Reason: "never settled: MSER-5 would cut 25 s of 59 s"}},
		{
			name: "as the plan says", n: 20, asked: 3 * time.Second, rate: even,
			want: run.WarmUp{Seconds: 3.5, By: "plan", Reason: "warmup = 3s, up to the end of that second"},
		},
		{
			name: "ended too early", n: 2, asked: 10 * time.Second, rate: even,
			want: run.WarmUp{By: "none", Code: reason.CutShort, Reason: "the load ended before its warm-up of 10s did"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ph := longPhase(tt.n)
			ph.Open.WarmUp = tt.asked
			load, rows := longLoad(tt.n, tt.rate, quickly)
			require.Equal(t, tt.want, FindWarmUp(ph, load, rows))
		})
	}
}

// A warm-up from the plan ends with the row in which its time is over, unless nothing comes after that.
func TestWarmUpThatThePlanAsksFor(t *testing.T) {
	rows := func(ends ...float64) (series []run.Row) {
		for _, at := range ends {
			series = append(series, run.Row{T: at})
		}
		return series
	}
	for _, c := range []struct {
		asked  time.Duration
		series []run.Row
		ends   float64 // 0: the load ended before
	}{
		{time.Nanosecond, rows(1, 2, 3), 1},
		{time.Second, rows(1, 2, 3), 1},
		{time.Second + 1, rows(1, 2, 3), 2},
		{2 * time.Second, rows(1, 2, 3), 2},
		{2*time.Second + 1, rows(1, 2, 3), 0},
		{3 * time.Second, rows(1, 2, 3), 0},
		{3*time.Second + 1, rows(1, 2, 3), 0},
		{time.Second, rows(1), 0},
		{time.Second, nil, 0},
	} {
		for _, growth := range []*plan.Growth{nil, {}} {
			ph := longPhase(3)
			ph.Open.WarmUp, ph.Growth = c.asked, growth
			got := FindWarmUp(ph, &measure.Totals{}, c.series)
			if c.ends == 0 {
				require.Equal(t, run.WarmUp{By: "none", Code: reason.CutShort, Reason: "the load ended before its warm-up of " + c.asked.String() + " did"}, got)
				continue
			}
			require.Equal(t, run.WarmUp{Seconds: c.ends, By: "plan", Reason: "warmup = " + c.asked.String() + ", up to the end of that second"}, got)
		}
	}
}

// What was counted in the warm-up is in the ledgers, and neither in rates nor in latencies.
func TestWarmUpIsLeftOut(t *testing.T) {
	ph := longPhase(20)
	load, rows := longLoad(20, func(i int) int { return map[bool]int{true: 1000, false: 2000}[i < 10] }, always100)
	settled := measure.NewTotals(load.Origin, len(endpoints))
	for i := range 2000 {
		at := load.Origin + 12*int64(time.Second) + int64(i)
		record(settled, measure.Sample{Verb: driver.Get, Due: at, Start: at, End: at + ms})
	}
	p := NewPhase(testPlan(), ph, Measured{
		Endpoints: endpoints, Load: load, Series: rows, Settled: settled, WarmUp: run.WarmUp{Seconds: 9.5, By: "plan", Reason: "warmup = 9s"},
	})
	get := p.Op["get"]
	require.Equal(t, load.Ops[driver.Get].Due, get.Due)
	require.Equal(t, uint64(2000), get.Response.Count)
	require.InDelta(t, 0.001, *get.Response.Mean, 1e-9)
	require.InEpsilon(t, 2000, *get.Rate, 0.01)
	require.Equal(t, 9.5, p.WarmUp.Seconds)
	require.Equal(t, 10, p.Steady.Seconds)
}

// The offered rate of an open load does not depend on how much of its beginning is left out.
func TestOfferedRateOfAWarmUp(t *testing.T) {
	for _, ramp := range []time.Duration{0, 4 * time.Second} {
		ph := longPhase(20)
		ph.Open.Rate, ph.Open.Ramp = 2000, ramp
		missing := int64(ramp / 2)
		load, rows := longLoad(20, even, always100)
		load.Ops[driver.Get].Due -= 2000 * uint64(missing) / uint64(time.Second)
		plain := *NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Series: rows}).OfferedRate
		require.InEpsilon(t, 2000, plain, 0.01)
		cut := NewPhase(testPlan(), ph, Measured{
			Endpoints: endpoints, Load: load, Series: rows, Settled: load, WarmUp: run.WarmUp{Seconds: 9.5, By: "plan"},
		})
		require.Equal(t, plain, *cut.OfferedRate)
	}
}

func TestSteady(t *testing.T) {
	of := func(n int, rate func(int) int, service func(int) int64) *run.Phase {
		load, rows := longLoad(n, rate, service)
		ph := longPhase(n)
		return NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Series: rows, WarmUp: FindWarmUp(ph, load, rows)})
	}
	p := of(40, even, quickly)
	require.Equal(t, run.Valid, p.Validity, texts(p))
	require.Equal(t, 39, p.Steady.Seconds)
	require.InDelta(t, 7, *p.Steady.Rate.Effective, 1, "a saw with teeth of 11 s: neighbours are alike")
	require.Less(t, *p.Steady.Rate.CI95, 0.002)
	require.InDelta(t, 0, *p.Steady.Rate.Drift, 0.002)

	p = of(40, drifting, quickly)
	require.Equal(t, []string{"the rate fell by 10.1 % from the beginning to the end of 39 s: it stands for no moment of them"}, texts(p))
	require.Equal(t, run.Suspect, p.ValidityOf("op.get.rate"))
	require.Equal(t, run.Valid, p.ValidityOf("op.get.response.p99"))

	p = of(40, even, slower)
	require.Len(t, p.Reasons, 1, texts(p))
	require.Contains(t, p.Reasons[0].Text, "the mean response rose by 3")
	require.Equal(t, run.Suspect, p.ValidityOf("op.get.response.p99"))
	require.Equal(t, run.Valid, p.ValidityOf("op.get.rate"))

	p = of(60, neverEven, quickly)
	require.Contains(t, texts(p), "never settled: MSER-5 would cut 25 s of 59 s")
	require.Equal(t, run.Suspect, p.ValidityOf("op.get.rate"))

	p = of(5, even, quickly)
	require.Nil(t, p.Steady.Rate.Drift)
	require.Equal(t, "4 whole seconds of even load; it takes 10", p.Nulls["steady"])
}

// Seconds are the rows that lie wholly in the window and are longer than half of the usual length.
func TestSecondsOfAWindow(t *testing.T) {
	rows := func(ends ...float64) (series []run.Row) {
		for _, at := range ends {
			series = append(series, run.Row{T: at})
		}
		return series
	}
	const s = int64(time.Second)
	for name, c := range map[string]struct {
		w      window
		series []run.Row
		want   []float64 // each with its length
	}{
		"none":                     {window{0, 9 * s}, nil, nil},
		"all":                      {window{0, 4 * s}, rows(1, 2, 3, 4), []float64{1, 1, 2, 1, 3, 1, 4, 1}},
		"a nanosecond too short":   {window{1, 4*s - 1}, rows(1, 2, 3, 4), []float64{2, 1, 3, 1}},
		"from and to a second":     {window{s, 3 * s}, rows(1, 2, 3, 4), []float64{2, 1, 3, 1}},
		"half a one":               {window{0, 4 * s}, rows(0.5, 1.5, 2.5, 3), []float64{1.5, 1, 2.5, 1}},
		"more than half":           {window{0, 4 * s}, rows(0.75, 1.75, 2.75), []float64{0.75, 0.75, 1.75, 1, 2.75, 1}},
		"of two seconds":           {window{0, 8 * s}, rows(2, 4, 6, 7), []float64{2, 2, 4, 2, 6, 2}},
		"of two seconds, the rest": {window{0, 8 * s}, rows(2, 4, 6, 7.5), []float64{2, 2, 4, 2, 6, 2, 7.5, 1.5}},
	} {
		var got []float64
		for _, row := range c.w.seconds(c.series) {
			got = append(got, row.T, row.length)
		}
		require.Equal(t, c.want, got, name)
	}
	require.Equal(t, []float64{5, 2.5, 1.5}, rates([]second{
		{run.Row{OK: 3, Miss: 2, Bad: 100}, 1}, {run.Row{OK: 3, Miss: 2}, 2}, {run.Row{OK: 3}, 2},
	}))
}

// Fifty whole seconds are enough to look for a warm-up, ten for a drift. What comes after the last end is not a second of load.
func TestHowManySecondsItTakes(t *testing.T) {
	for n, enough := range map[int]bool{50: false, 51: true} { // the first and the last are halves
		load, rows := longLoad(n, even, quickly)
		got := FindWarmUp(longPhase(n), load, rows)
		require.Equal(t, map[bool]reason.Code{true: reason.AlreadySteady, false: reason.TooShort}[enough], got.Code, "%d s", n)
	}
	of := func(n int, last time.Duration) *run.Phase {
		load, rows := longLoad(n, even, quickly)
		load.Span.Last = load.Origin + int64(last)
		return newPhaseOf(longPhase(n), load, rows)
	}
	require.Nil(t, of(10, 10*time.Second).Steady.Rate.Drift)
	require.NotNil(t, of(11, 11*time.Second).Steady.Rate.Drift)
	require.Equal(t, 10, of(11, 11*time.Second).Steady.Seconds)
	require.Equal(t, 5, of(11, 6*time.Second).Steady.Seconds)
	require.Equal(t, "5 whole seconds of even load; it takes 10", of(11, 6*time.Second).Nulls["steady"])
}

// Rows of two seconds are counted as such.
func TestSteadySecondsOfLongRows(t *testing.T) {
	load, rows := longLoad(40, even, quickly)
	var long []run.Row
	for i := 2; i < len(rows); i += 2 {
		row := rows[i]
		row.OK += rows[i-1].OK
		long = append(long, row)
	}
	p := newPhaseOf(longPhase(40), load, long)
	require.Equal(t, 2*(p.Steady.Seconds/2), p.Steady.Seconds)
	require.Greater(t, p.Steady.Seconds, 30)
}

func newPhaseOf(ph *plan.Phase, load *measure.Totals, rows []run.Row) *run.Phase {
	return NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Series: rows})
}

// What was in flight at the end of the load is also in flight after its warm-up: ops, scenarios and steps.
func TestWhatIsInFlightBehindAWarmUp(t *testing.T) {
	under := func(n int64) *measure.Totals {
		load := measure.NewTotals(origin, 1)
		load.AddInFlight(driver.Get, n)
		load.AddScenarioInFlight(1, n+1)
		load.AddStepInFlight(measure.Step{Scenario: 1, Step: 0}, n+2)
		load.AddStepInFlight(measure.Step{Scenario: 1, Step: 1}, n+3)
		return load
	}
	settled := under(-7)
	settled.AddInFlight(driver.Put, 5)
	all := under(1)
	all.AddInFlight(driver.Delete, 6) // none of them after the warm-up
	b := builder{phase: &phase{Phase: &run.Phase{}}, totals: all, window: window{0, 10e9}}
	b.warmUp(Measured{WarmUp: run.WarmUp{Seconds: 1, By: "plan"}, Settled: settled})
	scenario := b.settled.Scenarios[1]
	require.Equal(t, []int64{1, 5, 2, 3, 4}, []int64{
		b.settled.Ops[driver.Get].InFlight, b.settled.Ops[driver.Put].InFlight, scenario.InFlight, scenario.Steps[0].InFlight, scenario.Steps[1].InFlight,
	})
	require.Zero(t, b.settled.Scenarios[0].InFlight)
}

// A warm-up that was not looked for says so; with growth none is looked for.
func TestWhyThereIsNoWarmUp(t *testing.T) {
	load, rows := longLoad(60, slowStart, quickly)
	require.Equal(t, run.WarmUp{By: "none", Code: reason.NotLookedFor, Reason: "not looked for"}, newPhaseOf(longPhase(60), load, rows).WarmUp)
	ph := longPhase(60)
	ph.Growth = &plan.Growth{}
	require.Equal(t, run.WarmUp{By: "none", Code: reason.Growing, Reason: "what changes over time is what growth is of"}, FindWarmUp(ph, load, rows))
}

// Seconds in which nothing was answered, or something failed, have no mean response, and so there is no trend of it.
func TestSecondsWithoutAMean(t *testing.T) {
	load, rows := longLoad(20, even, quickly)
	require.NotNil(t, newPhaseOf(longPhase(20), load, rows).Steady.Response.Drift)
	rows[5].Response.Mean = nil
	p := newPhaseOf(longPhase(20), load, rows)
	require.NotNil(t, p.Steady.Rate.Drift)
	require.Nil(t, p.Steady.Response.Drift)
	require.Equal(t, "in some seconds no op ended ok or miss, or some failed", p.Nulls["steady.response"])
	require.Equal(t, reason.OpsFailed, p.NullCodes["steady.response"])
}
