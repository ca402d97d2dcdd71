package judge

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// watched is a plan that observes two fields.
func watched() *plan.Plan {
	p := testPlan()
	p.Observes = []*plan.Observe{{Name: "server", Kind: plan.ObserveServer, Fields: []plan.Field{
		{Name: "calls", Counter: true}, {Name: "memory", Unit: "bytes"},
	}}}
	return p
}

func probe(at, calls, memory float64) *run.Probe {
	return &run.Probe{At: at, Seconds: 0.25, Value: map[string]float64{"calls": calls, "memory": memory}}
}

func failed(at float64, why string) *run.Probe {
	return &run.Probe{At: at, Seconds: 1, Missing: map[string]string{"": why}}
}

// observed makes a phase that began at 10 s of the run clock.
func observed(o *Observation) *run.Phase {
	return NewPhase(watched(), closedPhase(), Measured{
		Endpoints: endpoints, Load: openLoad(1000, 0), Origin: 10, Observed: map[string]*Observation{"server": o},
	})
}

func TestObserved(t *testing.T) {
	o := &Observation{Of: "127.0.0.1:1", Skipped: 3}
	o.Begin(probe(9, 100, 50))
	o.Add(probe(11, 200, 90))
	o.Add(failed(12, "connection refused"))
	o.End(probe(13, 500, 40))
	p := observed(o)
	calls, memory := p.Observe["server"]["calls"], p.Observe["server"]["memory"]
	require.Equal(t, []float64{100, 500, 400, 100, 500, 100, 500}, []float64{
		*calls.Before, *calls.After, *calls.Delta, *calls.Rate, *calls.Last, *calls.Min, *calls.Max,
	})
	require.Equal(t, []float64{-10, -2.5, 40, 40, 90, 60}, []float64{*memory.Delta, *memory.Rate, *memory.Last, *memory.Min, *memory.Max, *memory.Mean})
	require.Equal(t, []any{true, "", false, "bytes"}, []any{calls.Counter, calls.Unit, memory.Counter, memory.Unit})

	how := p.Probes["server"]
	require.Equal(t, []any{"server", "127.0.0.1:1", 4, 1, 3, 1.75, 1.0}, []any{how.Kind, how.Of, how.Taken, how.Failed, how.Skipped, how.Seconds, how.MaxSeconds})
	require.Equal(t, []run.ErrorText{{Text: "connection refused", Count: 1}}, how.Errors)
	require.Len(t, how.Series, 4)
	require.Equal(t, []float64{-1, 1, 2, 3}, []float64{how.Series[0].T, how.Series[1].T, how.Series[2].T, how.Series[3].T})
	require.Nil(t, how.Series[2].Value["calls"])
	require.InDelta(t, 90, *how.Series[1].Value["memory"], 0)
}

// Stored probes are read back as they were: before, during or after the load.
func TestProbesThatWereKept(t *testing.T) {
	var came, read Observation
	came.Begin(probe(9, 100, 50))
	came.Add(probe(11, 200, 90))
	came.End(probe(13, 500, 40))
	for _, p := range []*run.Probe{came.first, &came.rows.Cells[1], came.last} {
		again := *p
		read.Read(&again)
	}
	require.Equal(t, came, read)
	require.Equal(t, []string{before, during, after}, []string{read.rows.Cells[0].When, read.rows.Cells[1].When, read.rows.Cells[2].When})
}

// Reasons for missing values are sorted by frequency, and by text if equally frequent. A field that never came has the reason of the last probe; a
// series has a reason only for its nulls.
func TestReasonsOfProbes(t *testing.T) {
	var o Observation
	for i, why := range []string{"z", "b", "z", "a", "y"} {
		o.Add(failed(11+float64(i), why))
	}
	p := observed(&o)
	require.Equal(t, []run.ErrorText{{Text: "z", Count: 2}, {Text: "a", Count: 1}, {Text: "b", Count: 1}, {Text: "y", Count: 1}}, p.Probes["server"].Errors)
	require.Equal(t, "y", p.Nulls["observe.server"])
	require.Contains(t, p.Nulls, "probes.server.series")
	var whole Observation
	whole.Begin(probe(9, 1, 1))
	require.NotContains(t, observed(&whole).Nulls, "probes.server.series")
}

// A rate covers the time between the first and the last probe, if there is any.
func TestRateBetweenProbes(t *testing.T) {
	for between, want := range map[float64]*float64{0: nil, 0.25: number(1600), 1: number(400), 2: number(200)} {
		o := &Observation{}
		o.Begin(probe(9, 100, 50))
		o.End(probe(9+between, 500, 40))
		p := observed(o)
		calls := p.Observe["server"]["calls"]
		require.InDelta(t, 400, *calls.Delta, 0)
		require.Equal(t, want, calls.Rate, "%g s", between)
		require.Equal(t, map[bool]string{true: "no time passed between the two probes"}[want == nil], p.Nulls["observe.server.calls.rate"])
	}
}

// Every null has its reason, and a counter that went back has no difference.
func TestObservedNulls(t *testing.T) {
	cases := []struct {
		name   string
		probes func(*Observation)
		why    map[string]string // by path below the observation
	}{
		{"never reached", func(o *Observation) { o.Begin(failed(9, "refused")); o.End(failed(13, "refused")) }, map[string]string{
			"calls.before": "refused", "calls.delta": "refused", "memory.max": "refused",
		}},
		{"no probe at all", func(*Observation) {}, map[string]string{"calls.after": "it was not probed: the run had ended"}},
		{"not before", func(o *Observation) { o.Begin(failed(9, "refused")); o.End(probe(13, 1, 2)) }, map[string]string{
			"calls.before": "before the phase: refused", "calls.rate": "before the phase: refused",
		}},
		{"not after", func(o *Observation) { o.Begin(probe(9, 1, 2)); o.End(failed(13, "refused")) }, map[string]string{
			"memory.after": "after the phase: refused", "memory.delta": "after the phase: refused",
		}},
		{"started anew", func(o *Observation) { o.Begin(probe(9, 1000, 50)); o.End(probe(13, 10, 20)) }, map[string]string{
			"calls.delta": "the counter went back from 1,000 to 10: what counts it was restarted",
		}},
		{"at once", func(o *Observation) { o.Begin(probe(9, 10, 50)); o.End(probe(9, 20, 20)) }, map[string]string{
			"calls.rate": "no time passed between the two probes", "memory.rate": "no time passed between the two probes",
		}},
		{"one field", func(o *Observation) {
			o.Begin(&run.Probe{At: 9, Value: map[string]float64{"calls": 1}, Missing: map[string]string{"memory": "not told"}})
			o.End(&run.Probe{At: 13, Value: map[string]float64{"calls": 2}, Missing: map[string]string{"memory": "not told"}})
		}, map[string]string{"memory.max": "not told", "memory.before": "not told"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := new(Observation)
			c.probes(o)
			r := run.New(run.Header{}, nowhere())
			r.Add("get", observed(o))
			for path, why := range c.why {
				require.Equal(t, why, r.Why(append([]string{"phase", "get", "observe", "server"}, strings.Split(path, ".")...)...).Text, path)
			}
			for _, path := range nullPaths(t, r) {
				require.NotEmpty(t, r.Why(path...), path)
			}
		})
	}
}

// An observation that was never made is present, with the reason for its nulls.
func TestWhatNobodyObserved(t *testing.T) {
	p := NewPhase(watched(), closedPhase(), Measured{Endpoints: endpoints, Load: openLoad(1000, 0)})
	require.Len(t, p.Observe["server"], 2)
	require.Nil(t, p.Observe["server"]["calls"].Last)
	require.Zero(t, p.Probes["server"].Taken)
	require.Equal(t, "it was not probed: the run had ended", p.Nulls["observe.server"])
}

// However long a phase, its rows are bounded; the first and the last stay, and the figures are those of all probes.
func TestObservedForADay(t *testing.T) {
	o := new(Observation)
	o.Begin(probe(10, 0, 1))
	const day = 86_400
	for i := range day {
		o.Add(probe(float64(11+i), float64(i), float64(i%1000)))
	}
	o.End(probe(day+12, day, 1))
	p := observed(o)
	rows := p.Probes["server"].Series
	require.LessOrEqual(t, len(rows), maxProbeRows+1)
	require.Greater(t, len(rows), maxProbeRows/4)
	require.InDelta(t, 0, rows[0].T, 0)
	require.InDelta(t, day+2, rows[len(rows)-1].T, 0)
	for i := 2; i < len(rows)-1; i++ {
		require.InDelta(t, rows[2].T-rows[1].T, rows[i].T-rows[i-1].T, 1e-9, "as far apart")
	}
	require.Equal(t, day+2, p.Probes["server"].Taken)
	require.InDelta(t, 999, *p.Observe["server"]["memory"].Max, 0)
	require.InDelta(t, float64(day)/(day+2), *p.Observe["server"]["calls"].Rate, 1e-9)
}

// Errors that are never the same twice do not fill the result.
func TestObservedReasonsAreBounded(t *testing.T) {
	o := new(Observation)
	for i := range 1000 {
		o.Add(failed(float64(i), quantity.Number(float64(i))))
	}
	all := observed(o).Probes["server"].Errors
	require.Len(t, all, maxReasons+1)
	require.Equal(t, run.ErrorText{Text: "(other texts)", Count: 1000 - maxReasons}, all[0])
}
