package experiment_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/exit"
	"github.com/loadgen/loadgen/internal/experiment"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/worker"
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

// measured is a run of one phase with gets at a rate, with its own seconds.
func measured(x *run.Experiment, variant string, repetition, seconds int, rate float64, random *rand.Rand) *run.Run {
	r := run.New(run.Header{
		ID: fmt.Sprint(variant, repetition), Plan: "p", Experiment: x.ID, Variant: variant, Repetition: repetition,
	}, run.Environment{})
	p50, mean, hits := 1/rate, 1/rate, 1.0
	ph := &run.Phase{
		Kind: "load", Model: "closed", Validity: run.Valid, Nulls: map[string]string{"op.get.response.p99": "too few"},
		Op: map[string]*run.Op{"get": {Figures: run.Figures{Rate: &rate, Response: run.Latency{P50: &p50, Mean: &mean}}, HitRatio: &hits}},
	}
	ph.Load.RampSeconds, ph.Steady.Seconds = 2, seconds-2
	for i := range seconds {
		row := run.Row{T: float64(i + 1), OK: uint64(rate * (1 + 0.02*random.NormFloat64()))}
		row.Response.Mean = &mean
		if i < 2 {
			row.OK = 1 // the ramp
		}
		ph.Series = append(ph.Series, row)
	}
	ph.Series = append(ph.Series, run.Row{T: float64(seconds) + 0.3, OK: 1})
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

func TestSecondsAreValuesWhereThereAreEnough(t *testing.T) {
	for seconds, per := range map[int]bool{11: false, 12: true, 40: true} {
		random := rand.New(rand.NewPCG(1, 1))
		x := begun(described(2, "a", "b"))
		var runs []*run.Run
		for i := range 2 {
			for _, v := range []string{"a", "b"} {
				r := measured(x, v, i+1, seconds, 1000, random)
				x.Add(r, false)
				runs = append(runs, r)
			}
		}
		experiment.Conclude(x, runs)
		rate := find(t, x, "a", "rate")
		require.Equal(t, per, rate.PerSecond)
		if per {
			require.Equal(t, 2*(seconds-2), rate.Values, "without the ramp and the part of a second at the end")
		} else {
			require.Equal(t, 2, rate.Values)
		}
		require.InDelta(t, 1000, *rate.Score, 20)
		require.Equal(t, per, find(t, x, "a", "response.mean").PerSecond)
		require.Equal(t, 2, find(t, x, "a", "hit_ratio").Values, "seconds do not have it")
	}
}

// Seconds with too few ops for a quantile are unknown; those with enough do not represent them.
func TestSecondsThatLackTheFigureAreNotPassedOver(t *testing.T) {
	for _, lacking := range []bool{false, true} {
		random := rand.New(rand.NewPCG(1, 1))
		x := begun(described(2, "a", "b"))
		var runs []*run.Run
		slow, quick := 0.009, 0.001
		for i := range 2 {
			for _, v := range []string{"a", "b"} {
				r := measured(x, v, i+1, 40, 1000, random)
				ph := r.Phase["load"]
				ph.Op["get"].Response.P99 = &slow
				for i := range ph.Series {
					ph.Series[i].Response.P99 = &quick
				}
				if lacking {
					ph.Series[20].Response.P99 = nil
				}
				x.Add(r, false)
				runs = append(runs, r)
			}
		}
		experiment.Conclude(x, runs)
		p99 := find(t, x, "a", "response.p99")
		require.Equal(t, !lacking, p99.PerSecond)
		want := quick
		if lacking {
			want = slow
		}
		require.InDelta(t, want, *p99.Score, 1e-9)
		require.True(t, find(t, x, "a", "rate").PerSecond)
	}
}

// TestKeysAreComparedWhereOpsHaveSeveral has one variant with single keys, which is also compared by keys with batches.
func TestKeysAreComparedWhereOpsHaveSeveral(t *testing.T) {
	for _, keys := range []uint64{1, 16} {
		random := rand.New(rand.NewPCG(1, 1))
		x := begun(described(3, "one", "many"))
		var runs []*run.Run
		for i := range 3 {
			for v, each := range map[string]uint64{"one": 1, "many": keys} {
				r := measured(x, v, i+1, 20, 1000+float64(i), random)
				op := r.Phase["load"].Op["get"]
				rate := *op.Rate * float64(each)
				op.Due, op.Keys.Due, op.Keys.Rate = 20_000, 20_000*each, &rate
				x.Add(r, false)
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
		require.False(t, many.PerSecond)
	}
}

// What a run leaves out of its rate is not in its seconds either: the warm-up, and the end, when some sessions have finished.
func TestSecondsAreThoseOfTheEvenLoad(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	x := begun(described(1, "a"))
	r := measured(x, "a", 1, 40, 1000, random)
	ph := r.Phase["load"]
	ph.WarmUp = run.WarmUp{Seconds: 12, By: "plan"}
	ph.Steady.Seconds = 25
	for i := range ph.Series {
		if i < 12 || i >= 12+25 {
			ph.Series[i].OK = 1
		}
	}
	x.Add(r, false)
	experiment.Conclude(x, []*run.Run{r})
	rate := find(t, x, "a", "rate")
	require.Equal(t, 25, rate.Values)
	require.InDelta(t, 1000, *rate.Score, 20)
}

func TestDifferencesAreFoundAndNamed(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	x := begun(described(5, "a", "b", "same"))
	var runs []*run.Run
	for i := range 5 {
		for v, rate := range map[string]float64{"a": 1000, "b": 1300, "same": 1000} {
			r := measured(x, v, i+1, 30, rate*(1+0.01*random.NormFloat64()), random)
			x.Add(r, false)
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
		"effective": f.Effective, "score": f.Score, "error": f.Error, "median": f.Median, "median_lo": f.MedianLo, "median_hi": f.MedianHi,
		"ratio": f.Ratio, "ratio_lo": f.RatioLo, "ratio_hi": f.RatioHi, "p": f.P, "p_holm": f.PHolm, "spread": f.Spread, "mde": f.MDE,
	} {
		require.Equal(t, v == nil, f.Nulls[name] != "", "%s of %s, %s: %q", name, f.Variant, f.Metric, f.Nulls[name])
	}
}

func TestRunsThatDoNotCountAreLeftOut(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	x := begun(described(3, "a", "b"))
	var runs []*run.Run
	for i, completeness := range []run.Completeness{run.Complete, run.Failed, run.Aborted, run.Aborted} {
		r := measured(x, "a", i+1, 3, 1000, random)
		r.Conclude(completeness)
		x.Add(r, i == 3)
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

func TestOutlook(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	const soon = `phase load: too short for telling what difference in the rate of get could be shown: more repetitions will tell`
	const told = `phase load: to be shown, a difference in the rate of get has to be at least [0-9.]+ % \(b\), more if restarts differ`
	for _, test := range []struct {
		seconds, rounds int
		want            string
		all             bool
	}{{4, 1, soon, false}, {4, 2, soon, false}, {4, 3, told, true}, {90, 1, told, true}} {
		x := begun(described(5, "a", "b"))
		var runs []*run.Run
		for i := range test.rounds {
			for _, v := range []string{"a", "b"} {
				r := measured(x, v, i+1, test.seconds, 1000*(1+0.01*random.NormFloat64()), random)
				x.Add(r, false)
				runs = append(runs, r)
			}
		}
		lines, all := experiment.Outlook(x, runs)
		require.Equal(t, test.all, all)
		require.Len(t, lines, 1)
		require.Regexp(t, test.want, lines[0])
	}
}

// An outlook is only whole if all phases were long enough, in whatever order.
func TestOutlookOfSeveralPhases(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	for _, seconds := range [][2]int{{4, 90}, {90, 4}} {
		x := begun(described(5, "a", "b"))
		var runs []*run.Run
		for _, v := range []string{"a", "b"} {
			r := measured(x, v, 1, seconds[0], 1000, random)
			r.Add("again", measured(x, v, 1, seconds[1], 1000, random).Phase["load"])
			x.Add(r, false)
			runs = append(runs, r)
		}
		lines, all := experiment.Outlook(x, runs)
		require.False(t, all)
		require.Len(t, lines, 2)
	}
}

// A variant that has not run yet is left out of the outlook.
func TestOutlookWithoutAVariant(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	x := begun(described(5, "a", "b", "c"))
	var runs []*run.Run
	for i := range 3 {
		for _, v := range []string{"a", "b"} {
			r := measured(x, v, i+1, 4, 1000*(1+0.01*random.NormFloat64()), random)
			x.Add(r, false)
			runs = append(runs, r)
		}
	}
	lines, all := experiment.Outlook(x, runs)
	require.True(t, all)
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "(b)")
}

// If variants show equally large differences, the outlook names the first. If the values do not vary, there is no smallest difference.
func TestOutlookOfEqualVariants(t *testing.T) {
	for _, test := range []struct {
		scatter float64
		want    string
	}{{0.01, `has to be at least [0-9.]+ % \(b\)`}, {0, ""}} {
		x := begun(described(5, "a", "b", "c"))
		var runs []*run.Run
		for i := range 3 {
			for _, v := range []string{"a", "b", "c"} {
				random := rand.New(rand.NewPCG(4, uint64(i)))
				r := measured(x, v, i+1, 4, 1000*(1+test.scatter*random.NormFloat64()), random)
				x.Add(r, false)
				runs = append(runs, r)
			}
		}
		lines, all := experiment.Outlook(x, runs)
		require.True(t, all)
		if test.want == "" {
			require.Empty(t, lines)
			continue
		}
		require.Len(t, lines, 1)
		require.Regexp(t, test.want, lines[0])
	}
}

// The predicted difference shrinks as repetitions are added.
func TestForeseenDifferenceShrinksWithRepetitions(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	a, b := regressive(1, 200, 100, 0, random), regressive(1, 200, 100, 0, random)
	few, ok := experiment.Foresee(a, b, 2)
	require.True(t, ok)
	many, ok := experiment.Foresee(a, b, 20)
	require.True(t, ok)
	require.Less(t, many, few)
}

// TestOtherDurabilityIsNotCompared has logs written in another mode than the baseline's, as sync = "auto" may choose.
func TestOtherDurabilityIsNotCompared(t *testing.T) {
	e := described(3, "a", "same", "other")
	x := begun(e)
	random := rand.New(rand.NewPCG(1, 1))
	var runs []*run.Run
	for name, sync := range map[string]string{"a": "msync", "same": "msync", "other": "clwb"} {
		for i := range e.Repeat {
			r := measured(x, name, i+1, 12, 1000, random)
			r.Phase["load"].Log = &worker.Log{Log: localfile.Log{SyncUsed: sync}}
			x.Add(r, false)
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
	require.Equal(t, "cannot tell: not comparable, sync used is clwb, and msync by the baseline", other.Finding)
}
