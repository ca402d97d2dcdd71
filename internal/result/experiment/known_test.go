package experiment_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/run"
)

// known is what testdata/known.py printed.
type known struct {
	Cases []struct {
		Name      string
		A, B      []float64
		Mean      float64
		HalfWidth float64 `json:"half_width_999"`
		Median    float64
		P         float64
	}
	P, Holm []float64
}

func readKnown(t *testing.T) known {
	t.Helper()
	text, err := os.ReadFile("testdata/known.json")
	require.NoError(t, err)
	var k known
	require.NoError(t, json.Unmarshal(text, &k))
	require.NotEmpty(t, k.Cases)
	return k
}

// TestFiguresAreThoseOfScipy by the rates of runs.
func TestFiguresAreThoseOfScipy(t *testing.T) {
	for _, c := range readKnown(t).Cases {
		t.Run(c.Name, func(t *testing.T) {
			mean, half := stat.MeanWithin(c.B, 0.001)
			require.InEpsilon(t, c.Mean, mean, 1e-12)
			require.InEpsilon(t, c.HalfWidth, half, 1e-9)

			x := begun(described(1, "a", "b"))
			var runs []*run.Run
			for variant, rates := range map[string][]float64{"a": c.A, "b": c.B} {
				for i, rate := range rates {
					r := rated(variant, i+1, rate)
					x.Add(r)
					runs = append(runs, r)
				}
			}
			experiment.Conclude(x, runs)
			rate := find(t, x, "b", "rate")
			require.InEpsilon(t, c.Mean, *rate.Score, 1e-12)
			require.InEpsilon(t, c.Median, *rate.Median, 1e-12)
			require.InEpsilon(t, c.P, *rate.P, 1e-9)
		})
	}
}

func TestHolmIsThatOfStatsmodels(t *testing.T) {
	k := readKnown(t)
	require.InDeltaSlice(t, k.Holm, experiment.Holm(k.P), 1e-12)
	require.Empty(t, experiment.Holm(nil))
}
