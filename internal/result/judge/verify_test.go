package judge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// A lost write belongs to the phase in which it was acknowledged. It is near the event of that phase that is closest, up to five seconds before it
// happened and after it was undone.
func TestWhereWritesWereLost(t *testing.T) {
	load := measure.NewTotals(100e9, len(endpoints))
	v := &load.Compared().Verified
	v.Keys, v.Newer = 9, 1
	for _, at := range []int64{5, 21, 24, 31, 39, 46} {
		v.Lose(measure.Lost{At: at * 1e9, Key: []byte("k\x1b"), Version: uint64(at) * 1e9, Found: uint64(at%2) * 3e9})
	}
	at := func(s float64) *float64 { return &s }
	earlier := []Earlier{
		{Name: "fill", Origin: 1},
		{Name: "load", Away: 3, Origin: 20, Events: map[string]*run.Event{
			"kill":  {HappenedSeconds: at(9), UndoneSeconds: at(14)},
			"flush": {HappenedSeconds: at(12)},
			"late":  {},
		}},
		{Name: "check", Origin: 100},
	}
	ph := &plan.Phase{Name: "check", Target: "one", Dataset: "items", Ops: []plan.Weight{{Op: "get", Weight: 1}}, Verify: &plan.Clients{Sessions: 1, Pipeline: 1}}
	p := NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Earlier: earlier})
	got := p.Verify
	require.Equal(t, []uint64{9, 6, 2, 4, 1, 0}, []uint64{got.Keys, got.Lost, got.Missing, got.Older, got.Newer, got.Unread})
	var where []string
	for _, l := range got.Examples {
		require.Equal(t, `k\x1b`, l.Key)
		where = append(where, l.Phase+" "+l.Event)
	}
	require.Equal(t, []string{"load ", "load kill", "load flush", "load kill", "load ", "fill "}, where)
	require.InDelta(t, 26, got.Examples[0].AckedSeconds, 1e-9)
	require.Nil(t, got.Examples[0].OlderSeconds)
	require.InDelta(t, 36, *got.Examples[1].OlderSeconds, 1e-9)
	require.Equal(t, run.Invalid, p.Validity)
	require.Equal(t, reason.LostWrites, p.Reasons[0].Code)
	require.Regexp(t, `^6 of 9 acknowledged writes are lost, one of them acknowledged after 26(.0)? s of phase load; connections were away for 3.00 s before`, p.Reasons[0].Text)
	ph.ExpectLost = true
	require.Equal(t, run.Valid, NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Earlier: earlier}).Validity)

	v.Unread = 1
	p = NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Earlier: earlier})
	require.Equal(t, run.Invalid, p.Validity)
	require.Equal(t, "1 of 9 keys could not be read", p.Reasons[0].Text)
}

// The interval takes ten seconds with stale gets.
func TestStalenessIsAShareWithItsInterval(t *testing.T) {
	ph := &plan.Phase{Name: "both", Target: "one", Dataset: "items", Ops: []plan.Weight{{Op: "get", Weight: 1}}, Closed: &plan.Closed{Clients: plan.Clients{Sessions: 1, Pipeline: 1}}, Staleness: true}
	for _, c := range []struct {
		stale uint64
		known bool
	}{{10, true}, {9, false}, {0, false}, {100, true}} {
		load := measure.NewTotals(1e9, len(endpoints))
		s := &load.Compared().Staleness
		s.Gets, s.Stale, s.Backwards, s.Behind[3] = 100, c.stale, 2, c.stale
		if c.stale > 0 {
			s.Age.RecordN(2e6, c.stale)
		}
		var series []run.Row
		for i := range uint64(10) {
			series = append(series, run.Row{T: float64(i + 1), Compared: 10, Stale: (c.stale + 9 - i) / 10})
		}
		p := NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Series: series})
		got := p.Staleness
		require.Equal(t, []uint64{100, c.stale, 2, c.stale}, []uint64{got.Gets, got.Stale, got.Backwards, got.ByMore})
		require.Equal(t, c.known, got.Low != nil && got.High != nil && *got.Low <= *got.Ratio && *got.Ratio <= *got.High)
		require.Equal(t, c.known, p.Nulls["staleness.low"] == "")
		require.Equal(t, c.stale == 0, got.AgeMax == nil)
		require.Equal(t, c.stale < 20, got.AgeP50 == nil, "fewer than 10 are beyond it")
	}
	p := NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: measure.NewTotals(1e9, len(endpoints))})
	require.Nil(t, p.Staleness.Ratio)
	require.Equal(t, "no get of a key that had been put was answered", p.Nulls["staleness.ratio"])
}
