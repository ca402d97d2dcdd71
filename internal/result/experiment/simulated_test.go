package experiment_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/varint"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// wholeRun is a run of gets with the histograms of its seconds.
func wholeRun(variant string, repetition int, seconds []*hist.Hist) *run.Run {
	r := run.New(run.Header{ID: fmt.Sprint(variant, repetition), Variant: variant, Repetition: repetition}, machine.Environment{})
	ph := &run.Phase{Kind: "load", Model: "closed", Validity: run.Valid}
	ph.Steady.Seconds = len(seconds)
	var all hist.Hist
	for i, h := range seconds {
		all.Merge(h)
		row := run.Row{T: float64(i + 1), OK: h.Count()}
		of := summary(h)
		row.Response.Mean, row.Response.P50, row.Response.P99 = of.Mean, of.P50, of.P99
		ph.Series = append(ph.Series, row)
	}
	rate := float64(all.Count()) / float64(len(seconds))
	op := &run.Op{Figures: run.Figures{Rate: &rate, Response: summary(&all)}}
	op.Due, op.OK = all.Count(), all.Count()
	ph.Op = map[string]*run.Op{"get": op}
	r.Add("load", ph)
	return r
}

// summary returns the figures of a histogram as a result has them.
func summary(h *hist.Hist) run.Latency {
	quantile := func(q float64) *float64 {
		if float64(h.Count())*(1-q) < 10 {
			return nil
		}
		v := float64(h.Quantile(q)) / 1e9
		return &v
	}
	mean := h.Mean() / 1e9
	return run.Latency{Count: h.Count(), Mean: &mean, P50: quantile(0.5), P95: quantile(0.95), P99: quantile(0.99)}
}

// population draws whole runs.
type population func(variant string, repetition int, random *rand.Rand) *run.Run

// simulated is a target whose seconds scatter by 10 %, and whose runs by a share of that.
func simulated(restarts float64, seconds int) population {
	const scatter = 0.1
	return func(variant string, repetition int, random *rand.Rand) *run.Run {
		level := scatter * restarts * random.NormFloat64()
		var all []*hist.Hist
		for range seconds {
			pace := math.Exp(level + scatter*random.NormFloat64())
			h := &hist.Hist{}
			for i := range 8 { // quantiles of a lognormal distribution
				z := math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/8-1)
				h.RecordN(int64(1e6/pace*math.Exp(0.5*z)), uint64(1000*pace+0.5))
			}
			all = append(all, h)
		}
		return wholeRun(variant, repetition, all)
	}
}

// record is set to record runs anew:
//
//	XDG_STATE_HOME=DIR loadgen run internal/result/experiment/testdata/recorded.hcl
//	go test ./internal/result/experiment -run TestFamilies -record DIR/loadgen/runs/EXPERIMENT
var record = flag.String("record", "", "make testdata/recorded.gz of the runs of the experiment in `RUNS/EXPERIMENT`")

// pack writes the histograms of an experiment's seconds. The form is, compressed and all in unsigned varints: for each run the number of its seconds,
// and for each second the number of its buckets, their values in nanoseconds less the value before, and their counts. The first and the last second
// are left out.
func pack(t *testing.T, path string) {
	t.Helper()
	root, name := filepath.Split(path)
	x, err := rundir.LoadExperiment(root, name)
	require.NoError(t, err)
	var b []byte
	for _, one := range x.Runs {
		r, err := rundir.Load(root, one.ID)
		require.NoError(t, err)
		d := timeline.NewRun(r, driver.Words{})
		require.NoError(t, rundir.Snapshots(root, one.ID, func(_, snapshot []byte) error { return d.Add(snapshot) }))
		columns := d.Phases(r)["load"][0].Columns
		columns = columns[1 : len(columns)-1]
		b = binary.AppendUvarint(b, uint64(len(columns)))
		for i := range columns {
			var pairs []byte
			n, last := uint64(0), int64(0)
			for value, count := range columns[i].Answered.Buckets() {
				pairs = binary.AppendUvarint(binary.AppendUvarint(pairs, uint64(value-last)), count)
				n, last = n+1, value
			}
			b = append(binary.AppendUvarint(b, n), pairs...)
		}
	}
	var packed bytes.Buffer
	out, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	require.NoError(t, err)
	_, err = out.Write(b)
	require.NoError(t, errors.Join(err, out.Close()))
	require.NoError(t, os.WriteFile("testdata/recorded.gz", packed.Bytes(), 0o644))
}

// recorded draws from 12 recorded runs: each drawn run is of the seconds of one of them, in blocks of five.
func recorded(t *testing.T) population {
	t.Helper()
	if *record != "" {
		pack(t, *record)
	}
	file, err := os.Open("testdata/recorded.gz")
	require.NoError(t, err)
	defer file.Close()
	packed, err := gzip.NewReader(file)
	require.NoError(t, err)
	b, err := io.ReadAll(packed)
	require.NoError(t, err)
	in := varint.Reader{Rest: b}
	var runs [][]*hist.Hist
	for len(in.Rest) > 0 {
		seconds := make([]*hist.Hist, in.Uvarint())
		for i := range seconds {
			seconds[i] = &hist.Hist{}
			value := uint64(0)
			for range in.Uvarint() {
				value += in.Uvarint()
				seconds[i].RecordN(int64(value), in.Uvarint())
			}
		}
		require.NoError(t, in.Err)
		runs = append(runs, seconds)
	}
	require.Len(t, runs, 12)
	const block = 5
	return func(variant string, repetition int, random *rand.Rand) *run.Run {
		from := runs[random.IntN(len(runs))]
		var all []*hist.Hist
		for len(all) < len(from) {
			at := random.IntN(len(from) - block + 1)
			all = append(all, from[at:at+block]...)
		}
		return wholeRun(variant, repetition, all)
	}
}

// conducted concludes an experiment of runs drawn from a population for each variant; the first is the baseline.
func conducted(repeat int, names []string, of map[string]population, random *rand.Rand, metrics ...string) *run.Experiment {
	x := begun(described(repeat, names...))
	x.Compare = metrics
	var runs []*run.Run
	for i := range repeat {
		for _, name := range names {
			r := of[name](name, i+1, random)
			x.Add(r)
			runs = append(runs, r)
		}
	}
	experiment.Conclude(x, runs)
	return x
}

// TestIntervalsCoverAndNothingIsFoundWhereNothingIs compares targets that do not differ. Intervals of the ratio and of the mean cover the truth as often
// as they promise, and few experiments claim any difference, however much restarts scatter beside seconds.
func TestIntervalsCoverAndNothingIsFoundWhereNothingIs(t *testing.T) {
	const experiments = 30
	names := []string{"base", "b", "c", "d"}
	check := func(t *testing.T, draw population, truth float64) {
		allMeans, allRight := 0, 0
		for _, repeat := range []int{4, 10} {
			random := rand.New(rand.NewPCG(uint64(repeat), 34))
			same := map[string]population{}
			for _, name := range names {
				same[name] = draw
			}
			ratios, covered, means, right, claims := 0, 0, 0, 0, 0
			for range experiments {
				claimed := false
				for _, f := range conducted(repeat, names, same, random).Figures {
					claimed = claimed || f.Differs
					if f.RatioLo != nil {
						ratios++
						covered += count(*f.RatioLo <= 1 && 1 <= *f.RatioHi)
					}
					if f.Metric == "rate" {
						means++
						right += count(math.Abs(*f.Score-truth) <= *f.Error)
					}
				}
				claims += count(claimed)
			}
			t.Logf("%d runs: %.1f %% of %d ratios, %.1f %% of %d mean rates; %.1f %% of experiments claim something", repeat,
				100*float64(covered)/float64(ratios), ratios, 100*float64(right)/float64(means), means, 100*float64(claims)/experiments)
			require.GreaterOrEqual(t, float64(covered), 0.93*float64(ratios))
			require.LessOrEqual(t, float64(claims), 0.07*experiments)
			allMeans, allRight = allMeans+means, allRight+right
		}
		if truth > 0 {
			require.GreaterOrEqual(t, float64(allRight), 0.93*float64(allMeans))
		}
	}
	for _, restarts := range []float64{0, 0.3, 1} {
		t.Run(fmt.Sprint("restarts ", restarts), func(t *testing.T) {
			check(t, simulated(restarts, 60), 8000*math.Exp(0.01*(1+restarts*restarts)/2))
		})
	}
	t.Run("recorded", func(t *testing.T) { check(t, recorded(t), 0) })
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// TestWhatIsCalledDetectableIsFound plants a difference of exactly that size.
func TestWhatIsCalledDetectableIsFound(t *testing.T) {
	const experiments, deviation = 400, 0.02
	names := []string{"base", "b", "c"}
	for _, repeat := range []int{4, 5, 10} {
		random := rand.New(rand.NewPCG(uint64(repeat), 35))
		size := math.Exp(deviation * experiment.Detectable(repeat, 3, 2))
		found := 0
		for range experiments {
			x := conducted(repeat, names, map[string]population{"base": leveled(1000, deviation), "b": leveled(1000*size, deviation), "c": leveled(1000, deviation)}, random, "rate")
			found += count(find(t, x, "b", "rate").Differs)
		}
		t.Logf("%d runs: a difference of %.2f deviations is found in %.1f %%", repeat, experiment.Detectable(repeat, 3, 2), 100*float64(found)/experiments)
		require.InDelta(t, 0.9, float64(found)/experiments, 0.03)
	}
}

// TestFamiliesClaimLittleAndFindWhatIsThere draws experiments of five figures whose logarithms scatter as those of real targets. At most one in twenty
// in which nothing differs claims anything, and the guard loses little of what it could find. LOADGEN_TEST_DRAWS draws more of them.
func TestFamiliesClaimLittleAndFindWhatIsThere(t *testing.T) {
	runs := []int{4, 5, 7}
	const few = 60
	families := servertest.Draws(few)
	if families == few {
		runs = []int{5}
	}
	chance := func(share float64) float64 { return 2 * math.Sqrt(share*(1-share)/float64(families)) }
	modes := func(share float64) func(*rand.Rand, int, float64) float64 {
		return func(r *rand.Rand, _ int, _ float64) float64 {
			x := 0.003 * r.NormFloat64()
			if r.Float64() < share {
				x += 0.1
			}
			return x
		}
	}
	scattered := func(baseline, others, rounds float64) func(*rand.Rand, int, float64) float64 {
		return func(r *rand.Rand, variant int, round float64) float64 {
			if variant == 0 {
				return baseline*r.NormFloat64() + rounds*round
			}
			return others*r.NormFloat64() + rounds*round
		}
	}
	for _, c := range []struct {
		name  string
		draw  func(r *rand.Rand, variant int, round float64) float64
		drift float64
		found map[int]float64 // with three variants: the least share in which a difference of 5 % is found, by runs
	}{
		{name: "normal 2 %", draw: scattered(0.02, 0.02, 0), found: map[int]float64{5: 0.3, 7: 0.55}},
		{name: "two modes 50/50", draw: modes(0.5)},
		{name: "two modes 80/20", draw: modes(0.2)},
		{name: "baseline 1 %, others 10 %", draw: scattered(0.01, 0.1, 0)},
		{name: "baseline 10 %, others 1 %", draw: scattered(0.1, 0.01, 0)},
		{name: "drift of 20 %, runs 1 %", draw: scattered(0.01, 0.01, 0), drift: 0.2},
		{name: "rounds 5 %, runs 1 %", draw: scattered(0.01, 0.01, 0.05), found: map[int]float64{5: 0.75}},
	} {
		for _, others := range []int{1, 3} {
			for _, repeat := range runs {
				claims, found := 0, 0
				for i := range families {
					random := rand.New(rand.NewPCG(uint64(i), uint64(repeat)))
					for _, planted := range []float64{0, math.Log(1.05)} {
						x := figures(random, repeat, others+1, planted, c.drift, c.draw)
						if planted == 0 {
							claims += count(slices.ContainsFunc(x.Figures, func(f run.Figure) bool { return f.Differs }))
						} else {
							found += count(slices.ContainsFunc(x.Figures, func(f run.Figure) bool { return f.Differs && f.Op == "a" && f.Variant == "v1" }))
						}
					}
				}
				t.Logf("%-28s %d variants, %d runs: %4.1f %% claim something, %5.1f %% find 5 %%", c.name, others, repeat, 100*float64(claims)/float64(families), 100*float64(found)/float64(families))
				require.LessOrEqual(t, float64(claims)/float64(families), 0.06+chance(0.06))
				if others == 3 {
					require.GreaterOrEqual(t, float64(found)/float64(families), c.found[repeat]-chance(c.found[repeat]))
				}
			}
		}
	}
}

// figures concludes an experiment whose figures are drawn; v1's figure of a differs by what is planted.
func figures(random *rand.Rand, repeat, variants int, planted, drift float64, draw func(r *rand.Rand, variant int, round float64) float64) *run.Experiment {
	names := []string{"v0", "v1", "v2", "v3"}[:variants]
	e := described(repeat, names...)
	x := begun(e)
	var runs []*run.Run
	var round [5]float64
	turns := experiment.Schedule(e, random.Uint64())
	for i, turn := range turns {
		if i%variants == 0 {
			for m := range round {
				round[m] = random.NormFloat64()
			}
		}
		r := rated(names[turn.Variant], turn.Repetition, 1000)
		for m := range round {
			level := draw(random, turn.Variant, round[m]) + drift*float64(i)/float64(len(turns))
			if turn.Variant == 1 && m == 0 {
				level += planted
			}
			rate := 1000 * math.Exp(level)
			op := &run.Op{Figures: run.Figures{Rate: &rate}}
			op.Due, op.OK = 1000, 1000
			r.Phase["load"].Op[string(rune('a'+m))] = op
		}
		delete(r.Phase["load"].Op, "get")
		x.Add(r)
		runs = append(runs, r)
	}
	experiment.Conclude(x, runs)
	return x
}

// leveled draws runs of nothing but a rate, whose logarithm scatters.
func leveled(rate, deviation float64) population {
	return func(variant string, repetition int, random *rand.Rand) *run.Run {
		return rated(variant, repetition, rate*math.Exp(deviation*random.NormFloat64()))
	}
}

// rated is a run of gets at a rate, without its seconds.
func rated(variant string, repetition int, rate float64) *run.Run {
	r := run.New(run.Header{ID: fmt.Sprint(variant, repetition), Variant: variant, Repetition: repetition}, machine.Environment{})
	op := &run.Op{Figures: run.Figures{Rate: &rate}}
	op.Due, op.OK = 1000, 1000
	r.Add("load", &run.Phase{Kind: "load", Model: "closed", Validity: run.Valid, Op: map[string]*run.Op{"get": op}})
	return r
}

// TestMoreRepetitionsFindMore of a true difference of 3 %, where runs deviate by 2 %.
func TestMoreRepetitionsFindMore(t *testing.T) {
	const experiments = 100
	last := 0
	for _, repeat := range []int{5, 10, 20, 100} {
		random := rand.New(rand.NewPCG(uint64(repeat), 36))
		found := 0
		for range experiments {
			x := conducted(repeat, []string{"a", "b"}, map[string]population{"a": leveled(1000, 0.02), "b": leveled(1030, 0.02)}, random, "rate")
			found += count(find(t, x, "b", "rate").Differs)
		}
		t.Logf("%d runs find it in %.1f %%", repeat, 100*float64(found)/experiments)
		require.Greater(t, found, last)
		last = found
	}
	require.Equal(t, experiments, last)
}

// TestAStallIsFound in the mean and the p99 of an open load on a target that stands still for 300 ms every 10 s: ops due meanwhile wait for its end.
func TestAStallIsFound(t *testing.T) {
	target := func(stalls bool) population {
		return func(variant string, repetition int, random *rand.Rand) *run.Run {
			level := math.Exp(0.03 * random.NormFloat64())
			var seconds []*hist.Hist
			for i := range 30 {
				h := &hist.Hist{}
				for op := range 1000 {
					took := 1e6 * level * math.Exp(0.3*random.NormFloat64())
					if stalls && i%10 == 5 && op < 300 {
						took += 1e6 * float64(300-op)
					}
					h.Record(int64(took))
				}
				seconds = append(seconds, h)
			}
			r := wholeRun(variant, repetition, seconds)
			offered := 1000.0
			ph := r.Phase["load"]
			ph.Model, ph.OfferedRate, ph.AchievedRate = "open", &offered, &offered
			return r
		}
	}
	x := conducted(5, []string{"calm", "stalls"}, map[string]population{"calm": target(false), "stalls": target(true)}, rand.New(rand.NewPCG(1, 37)))
	p99, mean := find(t, x, "stalls", "response.p99"), find(t, x, "stalls", "response.mean")
	t.Logf("p99 %.0f times, mean %.1f times", *p99.Ratio, *mean.Ratio)
	require.True(t, p99.Differs, p99.Finding)
	require.Greater(t, *p99.Ratio, 50.0)
	require.True(t, mean.Differs, mean.Finding)
	require.InDelta(t, 1+4.5/1.05, *mean.Ratio, 0.5)
	require.Equal(t, "no finding: the open load sets it, and both kept up", find(t, x, "stalls", "rate").Finding)
}
