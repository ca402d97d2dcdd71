package experiment_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// described is an experiment of the named variants.
func described(repeat int, names ...string) *plan.Experiment {
	e := &plan.Experiment{Repeat: repeat, Order: "interleaved", Baseline: names[0]}
	for _, name := range names {
		e.Variants = append(e.Variants, plan.Variant{Name: name, Values: map[string]string{}})
	}
	return e
}

func begun(e *plan.Experiment) *run.Experiment {
	return experiment.New("x", &plan.Plan{Name: "p", Seed: 7}, e, time.Unix(0, 0), "test")
}

// measured is a run of one phase with gets at a rate.
func measured(x *run.Experiment, variant string, repetition int, rate float64) *run.Run {
	r := run.New(run.Header{
		ID: fmt.Sprint(variant, repetition), Plan: "p", Experiment: x.ID, Variant: variant, Repetition: repetition,
	}, machine.Environment{})
	p50, mean, hits := 1/rate, 1/rate, 1.0
	ph := &run.Phase{
		Kind: "load", Model: "closed", Validity: run.Valid, Nulls: map[string]string{"op.get.response.p99": "too few"},
		Op: map[string]*run.Op{"get": {Figures: run.Figures{Rate: &rate, Response: run.Latency{P50: &p50, Mean: &mean}}, HitRatio: &hits}},
	}
	r.Add("load", ph)
	return r
}

// find returns a figure.
func find(t *testing.T, x *run.Experiment, variant, metric string) run.Figure {
	t.Helper()
	for _, f := range x.Figures {
		if f.Variant == variant && f.Metric == metric {
			return f
		}
	}
	require.Fail(t, "no such figure", "%s of %s", metric, variant)
	return run.Figure{}
}

// The order is interleaved, each odd round the reverse of the one before; every variant has its repetitions; the seed decides.
func TestSchedule(t *testing.T) {
	e := described(5, "a", "b", "c")
	turns := experiment.Schedule(e, 3)
	require.Len(t, turns, 15)
	for round := range 5 {
		seen := map[int]bool{}
		for i := range 3 {
			turn := turns[3*round+i]
			require.Equal(t, round+1, turn.Repetition)
			seen[turn.Variant] = true
			if round%2 == 1 {
				require.Equal(t, turns[3*round-1-i].Variant, turn.Variant)
			}
		}
		require.Len(t, seen, 3)
	}
	require.Equal(t, turns, experiment.Schedule(e, 3))
	orders := map[string]bool{}
	for seed := range uint64(20) {
		orders[fmt.Sprint(experiment.Schedule(e, seed)[:3])] = true
	}
	require.Greater(t, len(orders), 2)

	e.Order = "sequential"
	require.Equal(t, []experiment.Turn{{0, 1}, {0, 2}, {0, 3}}, experiment.Schedule(e, 3)[:3])
}

// TestKeysAreComparedWhereOpsHaveSeveral has one variant with single keys, which is also compared by keys with batches.
func TestKeysAreComparedWhereOpsHaveSeveral(t *testing.T) {
	for _, keys := range []uint64{1, 16} {
		x := begun(described(3, "one", "many"))
		var runs []*run.Run
		for i := range 3 {
			for v, each := range map[string]uint64{"one": 1, "many": keys} {
				r := measured(x, v, i+1, 1000+float64(i))
				op := r.Phase["load"].Op["get"]
				rate := *op.Rate * float64(each)
				op.Due, op.Keys.Due, op.Keys.Rate = 20_000, 20_000*each, &rate
				x.Add(r)
				runs = append(runs, r)
			}
		}
		experiment.Conclude(x, runs)
		if keys == 1 {
			for _, f := range x.Figures {
				require.NotEqual(t, "keys.rate", f.Metric, "it is the rate")
			}
			continue
		}
		require.InDelta(t, 1001, *find(t, x, "one", "keys.rate").Score, 0.1)
		many := find(t, x, "many", "keys.rate")
		require.InDelta(t, 16*1001, *many.Score, 1)
		require.InDelta(t, 16, *many.Ratio, 1e-9)
		require.Equal(t, 3, many.Values, "one of each run")
	}
}

func TestDifferencesAreFoundAndNamed(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	x := begun(described(5, "a", "b", "same"))
	var runs []*run.Run
	for i := range 5 {
		for v, rate := range []float64{1000, 1300, 1000} {
			r := measured(x, []string{"a", "b", "same"}[v], i+1, rate*(1+0.01*random.NormFloat64()))
			x.Add(r)
			runs = append(runs, r)
		}
	}
	runs[0].Phase["load"].Validity = run.Suspect
	experiment.Conclude(x, runs)
	b := find(t, x, "b", "rate")
	require.True(t, b.Differs)
	require.InDelta(t, 1.3, *b.Ratio, 0.05)
	require.Less(t, *b.RatioLo, *b.Ratio)
	require.GreaterOrEqual(t, *b.PHolm, *b.P)
	require.Positive(t, *b.Spread)
	same := find(t, x, "same", "rate")
	require.False(t, same.Differs)
	require.Regexp(t, `^no difference shown \(MDE [0-9.]+ %\)`, same.Finding)
	suspects := 0
	for _, f := range x.Figures {
		if f.Validity == run.Suspect {
			require.Contains(t, f.Finding, ", SUSPECT")
			suspects++
		}
	}
	require.Positive(t, suspects)

	for _, f := range x.Figures {
		requireReasons(t, f)
	}
	for _, f := range x.Figures {
		require.NotEqual(t, "response.p99", f.Metric, "no run has it")
	}
	again := begun(described(5, "a", "b", "same"))
	again.Runs = x.Runs
	experiment.Conclude(again, runs)
	require.Equal(t, x.Figures, again.Figures)
	_, err := json.Marshal(x)
	require.NoError(t, err)
	require.NoError(t, x.CheckValid())
}

// requireReasons checks that every null has its reason, and no other number has one.
func requireReasons(t *testing.T, f run.Figure) {
	t.Helper()
	for name, v := range map[string]*float64{
		"score": f.Score, "error": f.Error, "median": f.Median,
		"ratio": f.Ratio, "ratio_lo": f.RatioLo, "ratio_hi": f.RatioHi, "p": f.P, "p_holm": f.PHolm, "spread": f.Spread, "mde": f.MDE,
	} {
		require.Equal(t, v == nil, f.Nulls[name] != "", "%s of %s, %s: %q", name, f.Variant, f.Metric, f.Nulls[name])
	}
}

func TestRunsThatDoNotCountAreLeftOut(t *testing.T) {
	x := begun(described(3, "a", "b"))
	var runs []*run.Run
	for i, completeness := range []run.Completeness{run.Complete, run.Failed, run.Aborted, run.Capped} {
		r := measured(x, "a", i+1, 1000)
		r.Conclude(completeness)
		x.Add(r)
		runs = append(runs, r)
	}
	experiment.Conclude(x, runs)
	require.Equal(t, 2, find(t, x, "a", "rate").Values, "the first, and what the cap has cut off")
	b := find(t, x, "b", "rate")
	require.Equal(t, "no values: no run of this variant counts", b.Finding)
	requireReasons(t, b)
	require.Equal(t, run.StopFailed, x.Variants[0].Stopped)
	require.Equal(t, exit.Failed, x.ExitCode)
}

// TestOtherDurabilityIsNotCompared has logs written in another mode than the baseline's, as sync = "auto" may choose.
func TestOtherDurabilityIsNotCompared(t *testing.T) {
	e := described(3, "a", "same", "other")
	x := begun(e)
	var runs []*run.Run
	for name, sync := range map[string]string{"a": "msync", "same": "msync", "other": "clwb"} {
		for i := range e.Repeat {
			r := measured(x, name, i+1, 1000)
			r.Phase["load"].Log = &worker.Log{Log: localfile.Log{SyncUsed: sync}}
			x.Add(r)
			runs = append(runs, r)
		}
	}
	experiment.Conclude(x, runs)
	require.NotNil(t, find(t, x, "same", "rate").Ratio)
	other := find(t, x, "other", "rate")
	require.NotNil(t, other.Score)
	require.Nil(t, other.Ratio)
	require.Nil(t, other.P)
	require.False(t, other.Differs)
	requireReasons(t, other)
	require.Equal(t, []string{"cannot tell", "not comparable, sync used is clwb, and msync by the baseline"}, []string{other.Finding, other.Nulls["p"]})
}

// figured concludes an experiment of two variants whose runs have these values of an op's figures.
func figured(t *testing.T, change func(x *run.Experiment), set func(r *run.Run, ph *run.Phase, op *run.Op, value float64), a, b []float64) *run.Experiment {
	t.Helper()
	x := begun(described(len(a), "a", "b"))
	change(x)
	var runs []*run.Run
	for variant, values := range map[string][]float64{"a": a, "b": b} {
		for i, v := range values {
			r := rated(variant, i+1, 1000)
			ph := r.Phase["load"]
			set(r, ph, ph.Op["get"], v)
			x.Add(r)
			runs = append(runs, r)
		}
	}
	experiment.Conclude(x, runs)
	for _, f := range x.Figures {
		requireReasons(t, f)
	}
	return x
}

// TestFindings in words, of whatever the runs of a variant and of its baseline have.
func TestFindings(t *testing.T) {
	rate := func(_ *run.Run, _ *run.Phase, op *run.Op, v float64) { op.Rate = &v }
	p50 := func(_ *run.Run, _ *run.Phase, op *run.Op, v float64) { op.Response.P50 = &v }
	hits := func(_ *run.Run, _ *run.Phase, op *run.Op, v float64) { op.HitRatio = &v }
	open := func(achieved float64) func(*run.Run, *run.Phase, *run.Op, float64) {
		return func(_ *run.Run, ph *run.Phase, op *run.Op, v float64) {
			offered, sustained := 1000.0, 1000*achieved
			op.Rate, ph.Model, ph.OfferedRate, ph.AchievedRate = &v, "open", &offered, &sustained
		}
	}
	misses := func(_ *run.Run, ph *run.Phase, op *run.Op, v float64) {
		open(1)(nil, ph, op, v)
		op.OK, op.Error = 900, 100
	}
	times := func(by float64, values ...float64) (all []float64) {
		for _, v := range values {
			all = append(all, v*by)
		}
		return all
	}
	base := []float64{1000, 1010, 990, 1005, 995}
	noisy := func(by float64) []float64 { return []float64{1004 * by, 1006 * by, 994 * by, 1001 * by, 995 * by} }
	matters := func(x *run.Experiment) { x.Matters = 0.02 }
	sequential := func(x *run.Experiment) { x.Order = "sequential" }
	nothing := func(*run.Experiment) {}
	for name, c := range map[string]struct {
		metric string
		change func(*run.Experiment)
		set    func(*run.Run, *run.Phase, *run.Op, float64)
		a, b   []float64
		want   string
	}{
		"a difference":               {"rate", nothing, rate, base, noisy(1.05), "^differs$"},
		"none":                       {"rate", nothing, rate, base, noisy(1.001), `^no difference shown \(MDE [0-9.]+ %\)$`},
		"one that matters":           {"rate", matters, rate, base, noisy(1.05), "^differs$"},
		"one that does not":          {"rate", matters, rate, base, noisy(1.0175), "^differs, perhaps by less than matters$"},
		"perhaps one that matters":   {"rate", matters, rate, base, noisy(1.0225), "^differs, perhaps by less than matters$"},
		"surely less than matters":   {"rate", matters, rate, times(1, 1000, 1001, 999, 1000, 1000), times(1.01, 1001, 1000, 999, 1000, 1001), "^differs, by less than matters: same within 2 %$"},
		"none that matters":          {"rate", matters, rate, base, noisy(1.001), "^same within 2 %$"},
		"not in turn":                {"rate", sequential, rate, base, noisy(1.05), "^differs; order not randomised$"},
		"two runs":                   {"rate", nothing, rate, base[:2], times(2, base[:2]...), "^cannot tell: 2 and 2 runs are too few to tell what chance does: it takes 5 of each$"},
		"five runs, and two":         {"rate", nothing, rate, base, times(2, base[:2]...), "^cannot tell: 5 and 2 runs are too few"},
		"equal":                      {"rate", nothing, rate, times(1000, 1, 1, 1, 1, 1), times(1000, 1, 1, 1, 1, 1), "^no difference shown: all runs have the same value$"},
		"without variation":          {"rate", nothing, rate, times(1000, 1, 1, 1, 1, 1), times(2000, 1, 1, 1, 1, 1), "^cannot tell: the runs of a side do not differ from each other"},
		"one side without variation": {"rate", nothing, rate, times(1000, 1, 1, 1, 1, 1), times(2000, 1, 1.001, 1, 1, 1), "^differs$"},
		"zero":                       {"rate", nothing, rate, times(1000, 0, 1, 1, 1, 1), base, "^cannot tell: a ratio needs values above 0$"},
		"a bucket":                   {"response.p50", nothing, p50, times(1e-3, 1, 1, 1, 1, 1.0001), times(1.0078e-3, 1, 1, 1, 1.0001, 1), `^no difference shown \(MDE `},
		"two buckets":                {"response.p50", nothing, p50, times(1e-3, 1, 1, 1, 1, 1.0001), times(1.0158e-3, 1, 1, 1, 1.0001, 1), "^differs$"},
		"set by the load":            {"rate", nothing, open(1), base, noisy(1.05), "^no finding: the open load sets it, and both kept up$"},
		"not sustained":              {"rate", nothing, open(0.9), base, noisy(1.05), "^differs$"},
		"sustained with errors":      {"rate", nothing, misses, base, noisy(1.05), "^differs$"},
		"shares":                     {"hit_ratio", nothing, hits, []float64{0.8, 0.81, 0.79, 0.8, 0.8}, []float64{0.9, 0.91, 0.89, 0.9, 0.91}, "^differs$"},
		"shares of nothing":          {"hit_ratio", nothing, hits, []float64{0, 0.01, 0.02, 0, 0}, []float64{0.01, 0, 0.01, 0, 0}, `^no difference shown \(MDE [0-9.]+ points\)$`},
		"shares, by what matters":    {"hit_ratio", matters, hits, []float64{0.998, 0.999, 1, 1, 1}, []float64{0.999, 1, 0.998, 1, 1}, "^same within 2 points$"},
	} {
		x := figured(t, func(x *run.Experiment) { x.Compare = []string{c.metric}; c.change(x) }, c.set, c.a, c.b)
		f := find(t, x, "b", c.metric)
		found := f.Finding
		if f.Undecided() {
			found += ": " + f.Nulls["p"] // the report says it once
		}
		require.Regexp(t, c.want, found, name)
		require.Equal(t, c.want == "^differs$" || c.want == "^differs; order not randomised$", f.Differs, name)
		require.NotEmpty(t, f.Code, name)
		require.Equal(t, f.P == nil, f.RatioHi == nil && f.DifferenceHi == nil, "%s: interval and p are from one test", name)
		require.Len(t, x.Figures, 2, name)
	}
}

// TestMetricsOfAPlan are compared instead of the usual ones, in their order, and make the family.
func TestMetricsOfAPlan(t *testing.T) {
	set := func(_ *run.Run, _ *run.Phase, op *run.Op, v float64) {
		twice := 2 * v
		op.Rate, op.Answered, op.Service.P999, op.Response.P95 = &v, &twice, &v, &twice
	}
	a, b := []float64{1, 1.01, 0.99, 1, 1}, []float64{1.2, 1.21, 1.19, 1.2, 1.21}
	metrics := func(x *run.Experiment) (all []string) {
		for _, f := range x.Figures {
			if f.Variant == "b" {
				all = append(all, f.Metric)
			}
		}
		return all
	}
	x := figured(t, func(*run.Experiment) {}, set, a, b)
	require.Equal(t, []string{"rate", "response.p95"}, metrics(x))
	rate := find(t, x, "b", "rate")
	require.InDelta(t, 2**rate.P, *rate.PHolm, 1e-15)
	named := []string{"service.p999", "answered", "rate"}
	x = figured(t, func(x *run.Experiment) { x.Compare = named }, set, a, b)
	require.Equal(t, named, metrics(x))
	rate = find(t, x, "b", "rate")
	require.InDelta(t, 3**rate.P, *rate.PHolm, 1e-15)
}

// TestCensoredRunsTakeTheirVariantAlong: if one lacks its p99 because ops failed, those that have it would flatter the variant.
func TestCensoredRunsTakeTheirVariantAlong(t *testing.T) {
	for _, failed := range []uint64{0, 5} {
		set := func(r *run.Run, _ *run.Phase, op *run.Op, v float64) {
			if op.Response.P99 = &v; r.Variant == "b" && r.Repetition == 2 {
				op.Response.P99, op.Response.Failed = nil, failed
			}
		}
		x := figured(t, func(*run.Experiment) {}, set, []float64{1, 2, 3, 4}, []float64{1, 2, 3, 4})
		require.Equal(t, map[uint64]int{0: 3, 5: 0}[failed], find(t, x, "b", "response.p99").Values)
	}
}

// TestOutlook is told once there are five runs of each of two variants, or as many as there will be.
func TestOutlook(t *testing.T) {
	for rounds, want := range map[int]string{
		0: "", 1: "", 2: "",
		5: `^phase load: the smallest difference in rate of get that is shown nine times in ten is [0-9.]+ % \(b\), if runs scatter as those so far$`,
	} {
		x := begun(described(6, "a", "b"))
		var runs []*run.Run
		for i := range rounds {
			for k, v := range []string{"a", "b"} {
				r := measured(x, v, i+1, 1000*(1+0.01*float64(i*(k+1))))
				x.Add(r)
				runs = append(runs, r)
			}
		}
		lines, known := experiment.Outlook(x, runs)
		require.Equal(t, want != "", known)
		if known {
			require.Len(t, lines, 1)
			require.Regexp(t, want, lines[0])
		}
		require.Empty(t, x.Figures)
	}
}

// A run that the experiment does not name is ignored.
func TestStrangersHaveNoPart(t *testing.T) {
	x := begun(described(1, "a", "b"))
	var runs []*run.Run
	for _, v := range []string{"a", "b"} {
		r := measured(x, v, 1, 1000)
		x.Add(r)
		runs = append(runs, r, measured(x, v, 2, 9000))
	}
	experiment.Conclude(x, runs)
	require.Equal(t, 1, find(t, x, "b", "rate").Values)
	require.InDelta(t, 1000, *find(t, x, "b", "rate").Score, 0)
}
