package experiment_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/experiment"
)

// known is what testdata/known.py printed.
type known struct {
	Cases []struct {
		Name        string
		A, B        []float64
		Mean        float64
		HalfWidth   float64 `json:"half_width_999"`
		Median      float64
		MedianOrder int `json:"median_order"`
		P           float64
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

// single makes each value a repetition of its own.
func single(values []float64) experiment.Sample {
	var s experiment.Sample
	for _, v := range values {
		s = append(s, []float64{v})
	}
	return s
}

func TestFiguresAreThoseOfScipy(t *testing.T) {
	for _, c := range readKnown(t).Cases {
		t.Run(c.Name, func(t *testing.T) {
			score := single(c.B).Score()
			require.InEpsilon(t, c.Mean, score.Value, 1e-12)
			require.InEpsilon(t, c.HalfWidth, score.Hi-score.Value, 1e-9)
			require.InEpsilon(t, c.HalfWidth, score.Value-score.Lo, 1e-9)

			median := single(c.B).Median()
			require.InEpsilon(t, c.Median, median.Value, 1e-12)
			sorted := slices.Sorted(slices.Values(c.B))
			if c.MedianOrder == 0 {
				require.True(t, math.IsInf(median.Lo, -1))
				require.True(t, math.IsInf(median.Hi, 1))
			} else {
				require.InDelta(t, sorted[c.MedianOrder-1], median.Lo, 0)
				require.InDelta(t, sorted[len(sorted)-c.MedianOrder], median.Hi, 0)
			}

			require.InEpsilon(t, c.P, experiment.Compare(single(c.A), single(c.B), 1).P, 1e-9)
		})
	}
}

func TestHolmIsThatOfStatsmodels(t *testing.T) {
	k := readKnown(t)
	require.InDeltaSlice(t, k.Holm, experiment.Holm(k.P), 1e-12)
	require.Empty(t, experiment.Holm(nil))
}
