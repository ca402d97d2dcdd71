package driver

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSizesHaveTheirDistribution draws sizes by words that divide 64 bits evenly: their least, most, mean and median follow from the distribution.
func TestSizesHaveTheirDistribution(t *testing.T) {
	uniform, err := UniformSizes(10, 20)
	require.NoError(t, err)
	lognormal, err := LognormalSizes(100, 0.5, 1, 100_000)
	require.NoError(t, err)
	truncated, err := LognormalSizes(100, 0.5, 0, 100)
	require.NoError(t, err)
	listed, err := ListedSizes([]int{32, 1024, 0}, []float64{3, 1, 4})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		sizes       *Sizes
		least, most int
		median      int
		mean        float64
	}{
		"uniform":   {uniform, 10, 20, 15, 15},
		"lognormal": {lognormal, 13, 742, 100, 100 * math.Exp(0.5*0.5/2)}, // the least and the most of 2¹⁴ draws are 4.01 σ away
		"truncated": {truncated, 12, 100, 72, 70.16},                      // least and mean by numerical integration
		"listed":    {listed, 0, 1024, 0, (3*32 + 1024) / 8.0},
	} {
		const draws = 1 << 14
		sum, least, most := 0.0, math.MaxInt, 0
		for i := range draws {
			size := c.sizes.Of(uint64(i)<<50 + 1<<49)
			sum, least, most = sum+float64(size), min(least, size), max(most, size)
		}
		require.Equal(t, []int{c.least, c.most}, []int{least, most}, name)
		require.InEpsilon(t, c.mean, sum/draws, 0.005, name)
		require.Equal(t, c.median, c.sizes.Of(1<<63), name)
	}
}

// TestSizesThatCannotBe: a distribution without sizes is an error.
func TestSizesThatCannotBe(t *testing.T) {
	for _, c := range [][2]int{{11, 10}, {-1, 10}} {
		_, err := UniformSizes(c[0], c[1])
		require.ErrorContains(t, err, "sizes from")
	}
	for _, c := range []struct{ median, sigma float64 }{{0, 1}, {5, 0}, {5, math.NaN()}, {math.MaxFloat64, 1}} {
		_, err := LognormalSizes(c.median, c.sigma, 0, 10)
		require.ErrorContains(t, err, "no sizes are lognormal with median")
	}
	for _, weights := range [][]float64{{0}, {-1}, {math.Inf(1)}, {math.NaN()}} {
		_, err := ListedSizes([]int{1}, weights)
		require.ErrorContains(t, err, "the weights of its sizes add up to")
	}
}
