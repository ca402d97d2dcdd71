package experiment_test

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/experiment"
)

const (
	repetitions = 10
	intervals   = 60
	stretch     = 15 // consecutive intervals drawn together
)

// recorded returns, by name, the series of six runs of the same load against one redis-server, a row a second, on a machine that was also doing other
// things.
func recorded(t *testing.T) map[string]experiment.Sample {
	t.Helper()
	f, err := os.Open("testdata/recorded.csv")
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	series := map[string]experiment.Sample{}
	for _, row := range rows[1:] {
		run, err := strconv.Atoi(row[0])
		require.NoError(t, err)
		for i, name := range rows[0][1:] {
			value, err := strconv.ParseFloat(row[i+1], 64)
			require.NoError(t, err)
			if len(series[name]) == run {
				series[name] = append(series[name], nil)
			}
			series[name][run] = append(series[name][run], value)
		}
	}
	return series
}

// redraw makes a sample from stretches of a recorded one, each times a factor.
func redraw(from experiment.Sample, factor float64, random *rand.Rand) experiment.Sample {
	s := make(experiment.Sample, repetitions)
	for i := range s {
		for len(s[i]) < intervals {
			run := from[random.IntN(len(from))]
			at := random.IntN(len(run) - stretch + 1)
			for _, v := range run[at : at+stretch] {
				s[i] = append(s[i], v*factor)
			}
		}
	}
	return s
}

// TestNothingIsFoundWhereNothingIs compares a load with itself many times.
func TestNothingIsFoundWhereNothingIs(t *testing.T) {
	const experiments = 2000
	for name, series := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 1))
			excluded, claimed := 0, 0
			for i := range experiments {
				c := experiment.Compare(redraw(series, 1, random), redraw(series, 1, random), uint64(i))
				require.Empty(t, c.Doubt.Text)
				if c.Ratio.Lo > 1 || c.Ratio.Hi < 1 {
					excluded++
				}
				if c.Differs {
					claimed++
				}
			}
			t.Logf("of %d intervals %d exclude 1; %d differences claimed", experiments, excluded, claimed)
			require.InDelta(t, 0.05, float64(excluded)/experiments, 0.015)
			require.LessOrEqual(t, claimed, experiments/20)
		})
	}
}

// TestWhatIsCalledDetectableIsFound plants differences of exactly that size in a second experiment of the same kind.
func TestWhatIsCalledDetectableIsFound(t *testing.T) {
	const experiments = 1000
	for name, series := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(2, 1))
			found, mean := 0, 0.0
			for i := range experiments {
				mde := experiment.Compare(redraw(series, 1, random), redraw(series, 1, random), uint64(i)).MDE
				mean += mde / experiments
				if experiment.Compare(redraw(series, 1, random), redraw(series, 1+mde, random), uint64(i)).Differs {
					found++
				}
			}
			t.Logf("%d of %d found; the mean of what was said to be detectable is %.1f %%", found, experiments, 100*mean)
			require.GreaterOrEqual(t, float64(found), 0.9*experiments)
			require.LessOrEqual(t, float64(found), 0.98*experiments, "more could have been promised")
		})
	}
}

func ExampleCompare() {
	baseline := experiment.Sample{{100, 102, 98}, {101, 99, 103}, {97, 100, 101}}
	variant := experiment.Sample{{121, 119, 122}, {118, 120, 123}, {121, 122, 119}}
	c := experiment.Compare(baseline, variant, 1)
	fmt.Printf("%.2f (%.2f to %.2f), differs: %v, detectable: %.0f %%\n", c.Ratio.Value, c.Ratio.Lo, c.Ratio.Hi, c.Differs, 100*c.MDE)
	// Output:
	// 1.20 (1.18 to 1.23), differs: true, detectable: 6 %
}

// restarted draws repetitions whose levels are 1 % apart, with noise of 2 % within each.
func restarted(repetitions int, random *rand.Rand) experiment.Sample {
	const values = 120
	s := make(experiment.Sample, repetitions)
	for i := range s {
		level := 100 * (1 + 0.01*random.NormFloat64())
		for range values {
			s[i] = append(s[i], level*(1+0.02*random.NormFloat64()))
		}
	}
	return s
}

// The fewer repetitions there are, the less they say about the spread between restarts; differences are claimed no more often for that.
func TestFewRepetitionsClaimNoMore(t *testing.T) {
	const experiments = 400
	for _, n := range [][2]int{{1, 5}, {2, 2}} {
		random := rand.New(rand.NewPCG(7, 1))
		claimed := 0
		for i := range experiments {
			if experiment.Compare(restarted(n[0], random), restarted(n[1], random), uint64(i)).Differs {
				claimed++
			}
		}
		t.Logf("%d and %d repetitions: %d of %d claimed", n[0], n[1], claimed, experiments)
		require.LessOrEqual(t, claimed, experiments*7/100, "5 %, and chance")
	}
}
