package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// censoredLoad is 20,000 ops of 1 ms, 5,000 a second, some of which, at regular intervals, get no answer within a second.
func censoredLoad(every int64) *measure.Totals {
	t := measure.NewTotals(origin, len(endpoints))
	for i := range int64(20_000) {
		s := measure.Sample{Verb: driver.Get, Due: origin + i*200*µs, Start: origin + i*200*µs}
		s.End = s.Start + ms
		if i%every == 0 {
			s.Outcome, s.Cause, s.End = driver.Timeout, 1, s.Start+1000*ms
		}
		record(t, s)
	}
	t.Span.Session(origin, origin+4001*ms)
	return t
}

func censoredPhase() *plan.Phase {
	ph := openPhase()
	ph.Open.Rate = 5000
	return ph
}

// TestATailOfTimeoutsIsNotThatOfSurvivors has 181 of 20,000 ops time out after a second: p99.9 and the maximum were 1 ms.
func TestATailOfTimeoutsIsNotThatOfSurvivors(t *testing.T) {
	p := newPhase(censoredPhase(), censoredLoad(111))
	get := p.Op["get"]
	require.EqualValues(t, 181, get.Timeout)
	require.EqualValues(t, 19_819, get.Response.Count)
	const why = "181 of 20,000 ops failed, which counts as slower than any other"
	for _, l := range []struct {
		name string
		of   *run.Latency
	}{{"response", &get.Response}, {"service", &get.Service}} {
		require.EqualValues(t, 181, l.of.Failed)
		require.InDelta(t, 0.001, *l.of.P99, 1e-5, "below their share, all is as it was")
		for name, f := range map[string]*float64{"p999": l.of.P999, "max": l.of.Max, "mean": l.of.Mean, "sd": l.of.SD} {
			require.Nil(t, f, name)
			require.Equal(t, why, p.Nulls["op.get."+l.name+"."+name])
		}
	}
	require.InDelta(t, 0.001, *get.Latency.OK.Response.Max, 1e-9, "what ended ok is described by itself")
	require.InDelta(t, 1, *get.Latency.Bad.Response.Max, 1e-9)

	r := run.New(run.Header{}, run.Environment{})
	r.Add("get", p)
	require.NoError(t, r.CheckValid())
}

// TestShareOfFailedOpsDecidesOnAQuantile is exact: a quantile is known as long as its rank falls on an op that did not fail.
func TestShareOfFailedOpsDecidesOnAQuantile(t *testing.T) {
	for failed, known := range map[uint64]bool{0: true, 199: true, 200: true, 201: false} {
		load := measure.NewTotals(origin, len(endpoints))
		load.AddDueN(driver.Get, 20_000)
		load.RecordN(&measure.Sample{Verb: driver.Get, Due: origin, Start: origin, End: origin + ms}, 20_000-failed)
		load.Shed(driver.Get, failed)
		load.Span.Session(origin, origin+4000*ms)
		p := newPhase(censoredPhase(), load)
		require.Equal(t, known, p.Op["get"].Response.P99 != nil, failed)
	}
}

// TestOpsWithoutAnEndAreSlowerThanAny counts what was cut off.
func TestOpsWithoutAnEndAreSlowerThanAny(t *testing.T) {
	load := closedLoad(1000, ms, 0, always(driver.OK))
	load.AddDue(driver.Get)
	load.AddInFlight(driver.Get, 1)
	p := NewPhase(testPlan(), closedPhase(), Measured{Endpoints: endpoints, Load: load, Aborted: true})
	require.EqualValues(t, 1, p.Op["get"].Response.Failed)
	require.Nil(t, p.Op["get"].Response.Max)
}

// TestASearchDoesNotHoldOnSurvivors asks for a p99.9 of 5 ms when 0.9 % of the ops failed.
func TestASearchDoesNotHoldOnSurvivors(t *testing.T) {
	ph := searchPhase()
	ph.MaxBad = 0.01
	ph.Search.SLOs = []plan.SLO{{ResponseP999: 5 * time.Millisecond}}
	try := func(load *measure.Totals) *Level {
		m := Measured{Endpoints: endpoints}
		step := Measured{Endpoints: endpoints, Load: load, Shape: pace.Shape(censoredPhase().Open.Shape()), Generators: []measure.Generator{{Busy: 0.1}}}
		m.AddLevel(testPlan(), ph, step, 0)
		return m.Levels[0]
	}
	require.Equal(t, "held", try(censoredLoad(20_001)).Outcome, "no failure but the first, which is above p99.9")
	l := try(censoredLoad(111))
	require.Equal(t, "failed", l.Outcome)
	require.Contains(t, l.Why, "no p99.9 of the response times: 181 of 20,000 ops failed")
}

// TestASecondOfFailedOpsHasNoQuantile checks the same for rows of the series.
func TestASecondOfFailedOpsHasNoQuantile(t *testing.T) {
	var s Series
	s.Add(4, censoredLoad(50))
	row := s.Rows()[0]
	require.NotNil(t, row.Response.P50)
	require.Nil(t, row.Response.P99)
	require.Nil(t, row.Response.Mean)
}

// TestFailedOpsWeighOnTheKnee: a failed op counts as the slowest.
func TestFailedOpsWeighOnTheKnee(t *testing.T) {
	rate := 5000.0
	require.Less(t, powerOf(&rate, censoredLoad(111)), powerOf(&rate, censoredLoad(20_001))/5)
}
