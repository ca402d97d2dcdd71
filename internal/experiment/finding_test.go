package experiment

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/reason"
	"github.com/loadgen/loadgen/internal/run"
)

// Noise can be so large that no difference would be found, or none worth asking for.
func TestFindingWhereNothingWouldBeFound(t *testing.T) {
	one, huge, small := 1.0, 26472.27, 0.12
	f := run.Figure{Score: &one, Ratio: &one, RatioHi: &one, Spread: &one}
	require.Equal(t, "no difference shown (MDE above 1,000 %)", finding(&f, "a").Text)
	f.MDE = &huge
	require.Equal(t, "no difference shown (MDE above 1,000 %)", finding(&f, "a").Text)
	f.MDE = &small
	require.Equal(t, "no difference shown (MDE 12.0 %)", finding(&f, "a").Text)
}

// many is an experiment that compares 62 variants with a baseline, by figures of five repetitions each. Those from the first on are larger by a
// factor.
func many(seed uint64, larger int, factor float64) *run.Experiment {
	const variants, repetitions = 63, 5
	random := rand.New(rand.NewPCG(seed, 1))
	x := run.NewExperiment("")
	x.Baseline, x.Seed = "0", 1
	c := &comparer{x: x, runs: map[string][]*run.Run{}}
	for i := range variants {
		name := strconv.Itoa(i)
		x.Variants = append(x.Variants, run.Variant{Name: name})
		for range repetitions {
			rate := 1000 * (1 + 0.02*random.NormFloat64())
			if i >= 1 && i <= larger {
				rate *= factor
			}
			r := run.New(run.Header{}, run.Environment{})
			r.Add("load", &run.Phase{Kind: "load", Validity: run.Valid, Op: map[string]*run.Op{"get": {Figures: run.Figures{Rate: &rate}}}})
			c.runs[name] = append(c.runs[name], r)
		}
	}
	c.compare(subject{"load", "get"}, metrics[0])
	c.conclude()
	return x
}

// In 62 comparisons of a thing with itself, some would differ on their own in one experiment of five; at most one experiment of twenty reports a
// difference.
func TestManyComparisonsClaimNoMore(t *testing.T) {
	const experiments = 60
	wrong, alone := 0, 0
	for seed := range uint64(experiments) {
		x := many(seed, 0, 1)
		if slices.ContainsFunc(x.Figures, func(f run.Figure) bool { return f.Differs }) {
			wrong++
		}
		if slices.ContainsFunc(x.Figures, func(f run.Figure) bool {
			return f.Finding == "differs by itself, not among 62 comparisons" && f.Code == reason.DiffersAlone
		}) {
			alone++
		}
	}
	t.Logf("of %d experiments %d claim a difference, %d more have one by itself", experiments, wrong, alone)
	require.LessOrEqual(t, wrong, experiments*8/100, "5 %, and chance")
	require.GreaterOrEqual(t, alone, experiments/10)
}

// What is called different has a small p, even among many and with few repetitions; nothing else is called different.
func TestFindingsAgreeWithP(t *testing.T) {
	found := 0
	for seed := range uint64(20) {
		for _, f := range many(seed, 10, 1.2).Figures[1:] {
			require.Equal(t, f.Differs, strings.HasPrefix(f.Finding, "differs") && *f.PHolm < 0.05, f.Finding)
			require.Equal(t, f.Differs, f.Finding == "differs")
			if f.Differs {
				found++
			}
		}
	}
	require.Greater(t, found, 20*10*9/10, "20 % more, of which restarts bring 2 %")
}
