package workload

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

func TestVerbsComeByWeight(t *testing.T) {
	const draws = 400_000
	for _, weights := range [][]float64{{1, 1}, {0.7, 0.2, 0.1}, {0, 3, 1}, {5, 0, 1e-3}, {1e300, 1e300, 1e300}, {1e-300, 3e-300}} {
		m, err := newMixture(ops(weights...), driver.Words{})
		require.NoError(t, err)
		random := rand.NewPCG(1, 2)
		counts, p := make([]float64, len(weights)), make([]float64, len(weights))
		for range draws {
			counts[m.draw(random)]++
		}
		for i, w := range weights {
			total := 0.0
			for _, other := range weights {
				total += other
			}
			p[i] = w / total
			if w == 0 {
				require.Zero(t, counts[i], "%v", weights)
			}
		}
		requireChiSquared(t, counts, p, fmt.Sprint(weights))
	}
}

func TestSingleVerbTakesNoRandomNumber(t *testing.T) {
	m, err := newMixture(ops(0, 0, 2), driver.Words{})
	require.NoError(t, err)
	random := rand.NewPCG(1, 2)
	require.Equal(t, driver.Delete, m.draw(random))
	require.Equal(t, rand.NewPCG(1, 2), random)
}
