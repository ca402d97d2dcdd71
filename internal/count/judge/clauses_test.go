package judge

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/hist"
	"github.com/loadgen/loadgen/pkg/plan"
)

// latencies are n ops of a millisecond, and slow ones of a hundred.
func latencies(n, more uint64) (h hist.Hist) {
	h.RecordN(int64(ms), n)
	h.RecordN(100*int64(ms), more)
	return h
}

// A row's quantiles are the nearest ranks of all ops. Ops that failed or were shed are slower than any, and then there is no mean. With fewer than
// ten ops beyond it there is no quantile. Rows of time and rows of ordinals agree.
func TestQuantilesOfRows(t *testing.T) {
	const low, high = 1e-3, 0.1
	for _, c := range []struct {
		ok, slow, bad, shed uint64
		mean, p50, p99      float64 // 0: none
	}{
		{},
		{ok: 1, mean: low},
		{ok: 19, mean: low},
		{ok: 20, mean: low, p50: low},
		{ok: 999, mean: low, p50: low},
		{ok: 1000, mean: low, p50: low, p99: low},
		{ok: 1980, slow: 20, mean: 1.99e-3, p50: low, p99: low},
		{ok: 1979, slow: 21, mean: 2.0395e-3, p50: low, p99: high},
		{ok: 1000, slow: 1000, mean: 50.5e-3, p50: low, p99: high},
		{ok: 999, slow: 1001, mean: 50.5495e-3, p50: high, p99: high},
		{ok: 1980, bad: 20, p50: low, p99: low},
		{ok: 1979, bad: 21, p50: low},
		{ok: 1980, shed: 20, p50: low, p99: low},
		{ok: 1979, shed: 21, p50: low},
		{ok: 1979, bad: 10, shed: 11, p50: low},
		{ok: 1980, bad: 10, shed: 10, p50: low, p99: low},
		{ok: 1999, bad: 1, p50: low, p99: low},
		{bad: 2000},
	} {
		h := latencies(c.ok, c.slow)
		row := run.Row{Due: c.ok + c.slow + c.bad + c.shed, Sent: c.ok + c.slow + c.bad, Bad: c.bad}
		row.Response.Mean = new(float64) // of what was there before
		respond(&row, &h)
		grown := rowOf(7, &measure.GrowthBin{Answered: h, Failed: c.bad + c.shed})
		require.Equal(t, []uint64{7, row.Due, c.bad + c.shed}, []uint64{grown.N, grown.Ended, grown.Failed})
		for name, figure := range map[string]struct {
			want float64
			is   []*float64
		}{
			"mean": {c.mean, []*float64{row.Response.Mean, grown.Mean}},
			"p50":  {c.p50, []*float64{row.Response.P50, grown.P50}},
			"p99":  {c.p99, []*float64{row.Response.P99, grown.P99}},
		} {
			for _, is := range figure.is {
				if figure.want == 0 {
					require.Nil(t, is, "%s of %+v", name, c)
					continue
				}
				require.NotNil(t, is, "%s of %+v", name, c)
				near := 0.01 // a quantile is the bound of its bucket
				if name == "mean" {
					near = 1e-12
				}
				require.InEpsilon(t, figure.want, *is, near, "%s of %+v", name, c)
			}
		}
	}
}

// A bin of ordinals ends with the last op, if the number of ops shows which that is. Its median is over all ops, and may fall on a failed one.
func TestCourseOfOrdinals(t *testing.T) {
	const none = -1
	bin := func(ok, slow, bad uint64) measure.GrowthBin {
		return measure.GrowthBin{Answered: latencies(ok, slow), Failed: bad}
	}
	full := stat.Bin{From: 0, To: 16, Count: 16, Time: 0.016, Median: 1e-3}
	for name, c := range map[string]struct {
		bins []measure.GrowthBin
		want []stat.Bin
	}{
		"none":                           {},
		"full ones":                      {[]measure.GrowthBin{bin(16, 0, 0), bin(8, 8, 0)}, []stat.Bin{full, {From: 16, To: 32, Count: 16, Time: 0.808, Median: 1e-3}}},
		"one that begins":                {[]measure.GrowthBin{bin(16, 0, 0), bin(4, 6, 0)}, []stat.Bin{full, {From: 16, To: 26, Count: 10, Time: 0.604, Median: 0.1}}},
		"half of it failed":              {[]measure.GrowthBin{bin(16, 0, 0), bin(4, 0, 4)}, []stat.Bin{full, {From: 16, To: 24, Count: 4, Time: 0.004, Median: 1e-3}}},
		"more than half of it failed":    {[]measure.GrowthBin{bin(16, 0, 0), bin(4, 0, 5)}, []stat.Bin{full, {From: 16, To: 25, Count: 4, Time: 0.004, Median: none}}},
		"as many ended as lie before it": {[]measure.GrowthBin{bin(6, 0, 0), bin(10, 0, 0)}, []stat.Bin{{From: 0, To: 16, Count: 6, Time: 0.006, Median: 1e-3}, {From: 16, To: 32, Count: 10, Time: 0.01, Median: 1e-3}}},
	} {
		got := course(&measure.Growth{Shift: 4, Bins: c.bins})
		require.Len(t, got, len(c.want), name)
		for i, is := range got {
			want := c.want[i]
			require.Equal(t, []float64{want.From, want.To, want.Count}, []float64{is.From, is.To, is.Count}, name)
			require.InEpsilon(t, want.Time, is.Time, 1e-12, name)
			if want.Median == none {
				require.True(t, math.IsNaN(is.Median), name)
				continue
			}
			require.InEpsilon(t, want.Median, is.Median, 0.01, name)
		}
	}
	var instant hist.Hist
	instant.Record(0)
	require.Equal(t, 1e-9, course(&measure.Growth{Bins: []measure.GrowthBin{{Answered: instant}}})[0].Median, "of which there is a logarithm")
}

// A single foreign value is reported.
func TestForeignValues(t *testing.T) {
	for n, want := range map[uint64]bool{0: false, 1: true, 2: true} {
		load := closedLoad(1000, ms, 0, always(driver.OK))
		load.Foreign = n
		p := NewPhase(testPlan(), closedPhase(), Measured{Endpoints: endpoints, Load: load})
		require.Equal(t, want, slices.Contains(said(p), "foreign_values suspect"), "%d: %v", n, said(p))
	}
}

// At a limit, a generator was not kept from offering a level's rate; above it, it was.
func TestWhatKeepsAGeneratorFromTheRate(t *testing.T) {
	limit := func(f float64) *float64 { return &f }
	for name, c := range map[string]struct {
		g      measure.Generator
		stalls uint64
		want   bool
	}{
		"nothing":               {},
		"busy":                  {measure.Generator{Busy: invalidBusy}, 0, false},
		"too busy":              {measure.Generator{Busy: *above(invalidBusy)}, 0, true},
		"it stood still":        {measure.Generator{}, 1, true},
		"a quota":               {measure.Generator{Throttled: &measure.Throttled{}}, 0, false},
		"a quota that was used": {measure.Generator{Throttled: &measure.Throttled{Periods: 1}}, 0, true},
		"held back a little":    {measure.Generator{RateWait: invalidHeldBack, BytesWait: invalidHeldBack}, 0, false},
		"by the rate":           {measure.Generator{RateWait: *above(invalidHeldBack)}, 0, true},
		"by the bytes":          {measure.Generator{BytesWait: *above(invalidHeldBack)}, 0, true},
		"queued":                {measure.Generator{RunQueueWait: limit(invalidQueued)}, 0, false},
		"queued for long":       {measure.Generator{RunQueueWait: above(invalidQueued)}, 0, true},
	} {
		l := &Level{phase: &phase{Phase: &run.Phase{Generator: c.g, Stalls: c.stalls}}}
		require.Equal(t, c.want, l.starved(), name)
	}
}

// Figures are in seconds, exactly: for no sample, one, and several, with and without failed ops.
func TestTimesAreInSeconds(t *testing.T) {
	for name, c := range map[string]struct {
		samples, failed    uint64
		min, mean, sd, max *float64
		nulls              []string
	}{
		"none":             {0, 0, nil, nil, nil, nil, []string{"x"}},
		"none but failed":  {0, 7, nil, nil, nil, nil, []string{"x"}},
		"one":              {1, 0, number(2), number(2), number(0), number(2), []string{"x.p50", "x.p90", "x.p95", "x.p99", "x.p999"}},
		"two":              {2, 0, number(2), number(3), number(math.Sqrt2), number(4), []string{"x.p50", "x.p90", "x.p95", "x.p99", "x.p999"}},
		"two, and one not": {2, 1, number(2), nil, nil, nil, []string{"x.max", "x.mean", "x.p50", "x.p90", "x.p95", "x.p99", "x.p999", "x.sd"}},
	} {
		b := builder{phase: &phase{Phase: &run.Phase{Nulls: map[string]string{}, NullCodes: map[string]reason.Code{}}}}
		times := measure.Times{Failed: c.failed}
		for i := range c.samples {
			times.Answered.Record(int64(2*(i+1)) * 1e9)
		}
		l := b.times("x", &times, "why", "failed")
		require.Equal(t, run.Latency{Count: c.samples, Failed: c.failed, Min: c.min, Mean: c.mean, SD: c.sd, Max: c.max}, l, name)
		require.Equal(t, c.nulls, slices.Sorted(maps.Keys(b.phase.Nulls)), name)
		if c.samples == 0 {
			require.Equal(t, "why", b.phase.Nulls["x"], name)
		}
	}
	require.Equal(t, 0.125, seconds(int64(125e6)))
	require.Equal(t, 0.125, seconds(125e6))
}

// Merging what workers report about their logs leaves each report unchanged, even if there is spare capacity.
func TestMergedLogsLeaveThoseOfWorkersAlone(t *testing.T) {
	one := func(n int, proof bool) *worker.Log {
		name := string(rune('a' + n))
		l := &worker.Log{Threads: append(make([]measure.Thread, 0, 8), measure.Thread{})}
		l.Layout, l.SyncUsed, l.Durable, l.Caveats = "append", name, n != 1, append(make([]string, 0, 8), "both", name)
		l.Files, l.FileBytes, l.Bytes, l.Forces, l.Resets = n+1, int64(100*(3-n)), 10, 5, 2
		if proof {
			l.Proof = &localfile.Proof{Acknowledged: 7, Verified: 6, Recovered: 5, Wrong: append(make([]string, 0, 8), name)}
		}
		return l
	}
	for _, proven := range []bool{true, false} {
		workers := []*worker.Log{nil, one(0, true), one(1, proven), nil, one(2, true)}
		sum := mergeLogs(workers)
		require.Equal(t, []*worker.Log{nil, one(0, true), one(1, proven), nil, one(2, true)}, workers)
		for _, l := range []*worker.Log{workers[1], workers[2]} {
			require.Empty(t, l.Caveats[:3][2])
			require.Equal(t, make([]measure.Thread, 3), l.Threads[:3])
			if l.Proof != nil {
				require.Empty(t, l.Proof.Wrong[:2][1])
			}
		}
		sum.Caveats[0], sum.Threads[0].Session = "changed", 1
		require.Equal(t, one(0, true), workers[1])
		want := &worker.Log{Threads: []measure.Thread{{Session: 1}, {}, {}}}
		want.Layout, want.SyncUsed, want.Caveats = "append", "a, b, c", []string{"changed", "a", "b", "c"}
		want.Files, want.FileBytes, want.Bytes, want.Forces, want.Resets = 6, 300, 30, 15, 6
		if proven {
			want.Proof = &localfile.Proof{Acknowledged: 21, Verified: 18, Recovered: 15, Wrong: []string{"a", "b", "c"}}
		}
		require.Equal(t, want, sum)
	}
	require.Nil(t, mergeLogs([]*worker.Log{nil, nil}))
}

// The time of other workers on the same machine does not count as others'; the share is never negative.
func TestWorkersOnOneMachineAreNoOthers(t *testing.T) {
	machine := func(host string, others, seconds float64) *measure.Machine {
		return &measure.Machine{Host: host, OthersShare: others, IdleShare: 0.25, Seconds: seconds}
	}
	g := func(m *measure.Machine, cpu float64) measure.Generator {
		return measure.Generator{CPUSeconds: cpu, Machine: m}
	}
	for name, c := range map[string]struct {
		is     *measure.Machine
		beside []measure.Generator
		want   float64
	}{
		"alone":               {machine("a", 0.5, 10), nil, 0.5},
		"one beside it":       {machine("a", 0.5, 10), []measure.Generator{g(machine("a", 0, 10), 2)}, 0.3},
		"two beside it":       {machine("a", 0.5, 10), []measure.Generator{g(machine("a", 0, 10), 2), g(machine("a", 0, 10), 1)}, 0.2},
		"one elsewhere":       {machine("a", 0.5, 10), []measure.Generator{g(machine("b", 0, 10), 2)}, 0.5},
		"one that says none":  {machine("a", 0.5, 10), []measure.Generator{g(nil, 2)}, 0.5},
		"all of it":           {machine("a", 0.5, 10), []measure.Generator{g(machine("a", 0, 10), 5)}, 0},
		"more than all of it": {machine("a", 0.5, 10), []measure.Generator{g(machine("a", 0, 10), 6)}, 0},
		"nobody says where":   {machine("", 0.5, 10), []measure.Generator{g(machine("", 0, 10), 2)}, 0.5},
		"no time":             {machine("a", 0.5, 0), []measure.Generator{g(machine("a", 0, 10), 2)}, 0.5},
		"less than a second":  {machine("a", 0.5, 0.5), []measure.Generator{g(machine("a", 0, 10), 0.1)}, 0.3},
	} {
		all := append([]measure.Generator{g(c.is, 4)}, c.beside...)
		m := withoutWorkers(&all[0], all)
		require.InDelta(t, c.want, m.OthersShare, 1e-12, name)
		require.Equal(t, 0.25, m.IdleShare, name)
	}
	none := g(nil, 4)
	require.Nil(t, withoutWorkers(&none, []measure.Generator{none}))
}

// Each of several targets is checked against max_bad on its own, by the steps that go to it, however their ops failed.
func TestEachTargetIsHeldAgainstMaxBad(t *testing.T) {
	step := func(target string, f run.Figures) *run.Step { return &run.Step{Target: target, Figures: f} }
	failed := func(due uint64, set func(f *run.Figures)) run.Figures {
		f := run.Figures{}
		f.Due = due
		set(&f)
		return f
	}
	none := func(*run.Figures) {}
	for name, c := range map[string]struct {
		one, other run.Figures // of the two targets
		says       []string
	}{
		"nothing due":          {failed(0, none), failed(0, none), nil},
		"none failed":          {failed(100, none), failed(100, none), nil},
		"as many as may":       {failed(100, func(f *run.Figures) { f.Error = 25 }), failed(100, none), nil},
		"errors":               {failed(100, func(f *run.Figures) { f.Error = 26 }), failed(1000, none), []string{`target "one": 26 % of its 100 ops went wrong, more than max_bad = 25 %: 26 error`}},
		"timeouts":             {failed(1000, none), failed(100, func(f *run.Figures) { f.Timeout = 26 }), []string{`target "other": 26 % of its 100 ops went wrong, more than max_bad = 25 %: 26 timeout`}},
		"quorums":              {failed(100, func(f *run.Figures) { f.QuorumFailed = 50 }), failed(0, none), []string{`target "one": 50 % of its 100 ops went wrong, more than max_bad = 25 %: 50 quorum_failed`}},
		"shed":                 {failed(100, func(f *run.Figures) { f.Shed = 50 }), failed(0, none), []string{`target "one": 50 % of its 100 ops went wrong, more than max_bad = 25 %: 50 shed`}},
		"conflicts are no bad": {failed(100, func(f *run.Figures) { f.Conflict = 50 }), failed(0, none), nil},
		"of each a little":     {failed(100, func(f *run.Figures) { f.Error, f.Timeout, f.Shed, f.QuorumFailed = 7, 7, 7, 7 }), failed(0, none), []string{`target "one": 28 % of its 100 ops went wrong, more than max_bad = 25 %: 7 quorum_failed, 7 timeout, 7 error, 7 shed`}},
		"both, with causes": {failed(4, func(f *run.Figures) { f.Error, f.Causes.Refused = 2, 2 }), failed(4, func(f *run.Figures) {
			f.Timeout, f.Causes = 3, run.Causes{Reply: 1, Timeout: 2, Lost: 3, Refused: 4, OpTimeout: 5}
		}), []string{
			`target "one": 50 % of its 4 ops went wrong, more than max_bad = 25 %: 2 error; caused by 2 refused`,
			`target "other": 75 % of its 4 ops went wrong, more than max_bad = 25 %: 3 timeout; caused by 1 reply, 2 timeout, 3 lost connection, 4 refused, 5 op timeout`,
		}},
	} {
		p := &phase{Phase: &run.Phase{
			Validity: run.Valid, Target: run.Target{Name: "one"}, Others: []run.Target{{Name: "other"}},
			Scenario: map[string]*run.Scenario{
				"b": {StepOrder: []string{"x", "y"}, Step: map[string]*run.Step{"x": step("one", c.one), "y": step("other", c.other)}},
				"a": {StepOrder: []string{"z"}, Step: map[string]*run.Step{"z": step("third", failed(9, func(f *run.Figures) { f.Error = 9 }))}},
			},
		}}
		p.judgeTargets(&plan.Phase{MaxBad: 0.25})
		var said []string
		for _, r := range p.Reasons {
			require.Equal(t, reason.MaxBad, r.Code, name)
			require.Equal(t, run.Invalid, r.Validity, name)
			said = append(said, r.Text)
		}
		require.Equal(t, c.says, said, name)
		if len(said) == 1 {
			touches := map[byte]string{'n': "scenario.b.step.x", 't': "scenario.b.step.y"}[said[0][9]]
			require.Equal(t, []string{touches}, p.Reasons[0].Touches, name)
		}
		p.Reasons, p.Others = nil, nil
		p.judgeTargets(&plan.Phase{MaxBad: 0.25})
		require.Empty(t, p.Reasons, "%s: of a single target it is said elsewhere", name)
	}
}

// Scenarios and steps without counts exist, with zeros: a worker that was lost early has counted none, or only the first.
func TestScenariosThatNobodyBegan(t *testing.T) {
	ph := closedPhase()
	step := plan.ScenarioStep{Op: "get"}
	ph.Scenarios = []plan.Scenario{{Name: "first", Weight: 1, Steps: []plan.ScenarioStep{step, step}}, {Name: "second", Weight: 1, Steps: []plan.ScenarioStep{step}}}
	for counted := range 3 {
		totals := measure.NewTotals(origin, 1)
		for range counted {
			totals.Scenarios = append(totals.Scenarios, &measure.Op{Steps: []*measure.Op{{}}})
		}
		for i, o := range totals.Scenarios {
			o.Due, o.Steps[0].Due = uint64(i+1), uint64(10*(i+1))
		}
		b := builder{phase: &phase{Phase: &run.Phase{Nulls: map[string]string{}, NullCodes: map[string]reason.Code{}}}, totals: totals, settled: totals}
		all := b.scenarios(ph)
		for i, name := range []string{"first", "second"} {
			due, stepDue := uint64(i+1), uint64(10*(i+1))
			if i >= counted {
				due, stepDue = 0, 0
			}
			require.Equal(t, due, all[name].Due, "%s of %d", name, counted)
			require.Equal(t, stepDue, all[name].Step[all[name].StepOrder[0]].Due, "%s of %d", name, counted)
		}
		require.Zero(t, all["first"].Step[all["first"].StepOrder[1]].Due, "nobody came to it")
	}
}

// A session that pauses between its ops, without a think time in the plan, has the rate of what it did: pauses are not taken for ops that ended
// elsewhere.
func TestRateOfASessionThatPauses(t *testing.T) {
	ph := closedPhase()
	ph.Closed.Sessions = 1
	load := growing(2000, func(int) time.Duration { return time.Millisecond })
	load.Span = measure.Span{}
	load.Span.Busy(origin, origin+1999*2*ms, origin+2000*2*ms, ms)
	p := newPhase(ph, load)
	require.NotNil(t, p.Op["get"].Rate, p.Nulls["op.get.rate"])
	require.InEpsilon(t, 500, *p.Op["get"].Rate, 0.002)
}

// building is a builder whose phase records reasons for nulls.
func building(totals *measure.Totals) builder {
	p := &phase{Phase: &run.Phase{Nulls: map[string]string{}, NullCodes: map[string]reason.Code{}}, words: new(plan.Plan).Words()}
	return builder{phase: p, totals: totals, settled: totals, through: throughput{why: because(reason.NoPlateau, "no plateau")}}
}

// Each quantile is the nearest rank of all samples, and needs ten beyond it.
func TestQuantilesOfTimes(t *testing.T) {
	const n = 20_000
	quantiles := func(low, high uint64) map[string]*float64 {
		h := latencies(low, high)
		b := building(nil)
		l := b.times("x", &measure.Times{Answered: h}, "", "")
		return map[string]*float64{"p50": l.P50, "p90": l.P90, "p99": l.P99, "p999": l.P999}
	}
	for name, permille := range map[string]uint64{"p50": 500, "p90": 900, "p99": 990, "p999": 999} {
		rank := n / 1000 * permille
		require.InEpsilon(t, 0.001, *quantiles(rank, n-rank)[name], 0.01, name)
		require.InEpsilon(t, 0.1, *quantiles(rank-1, n-rank+1)[name], 0.01, name)
		least := 10_000 / (1000 - permille)
		require.NotNil(t, quantiles(least, 0)[name], name)
		require.Nil(t, quantiles(least-1, 0)[name], name)
	}
	b := building(nil)
	h := latencies(999, 0)
	b.times("x", &measure.Times{Answered: h}, "", "")
	require.Equal(t, "9 of 999 samples lie beyond it; a quantile takes 10", b.phase.Nulls["x.p99"])
	require.Equal(t, reason.TooFew, b.phase.NullCodes["x.p99"])
}
