package workload

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var skews = []float64{0.05, 0.5, 0.99, 1, 1 + 1e-9, 1.2, 2, 5, 20}

// probabilities returns the analytic distribution of zipf(s) over n ranks, rank 1 at index 0.
func probabilities(s float64, n int) []float64 {
	p := make([]float64, n)
	sum := 0.0
	for i := n - 1; i >= 0; i-- { // the small ones first
		p[i] = math.Pow(float64(i+1), -s)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// The numbers that try accepts, measured on a grid over [0, 1) instead of at random, give the exact distribution.
func TestZipfIsExact(t *testing.T) {
	const grid = 400_000
	for _, s := range skews {
		for _, n := range []int{1, 2, 3, 10, 1000} {
			z := newZipf(s, int64(n))
			counts := make([]float64, n)
			accepted := 0.0
			for i := range grid {
				if k, ok := z.try((float64(i) + 0.5) / grid); ok {
					counts[int(k)-1]++
					accepted++
				}
			}
			require.Greater(t, accepted/grid, 1/1.2, "zipf(%v) of %d: tries", s, n)
			for i, p := range probabilities(s, n) {
				// A rank is accepted on at most two intervals, each of whose ends may hide one grid point.
				require.InDelta(t, p, counts[i]/accepted, 4.0/accepted, "zipf(%v) of %d: rank %d", s, n, i+1)
			}
		}
	}
}

func TestZipfDrawsAreWithinNoiseOfTheDistribution(t *testing.T) {
	const draws = 1_000_000
	for _, s := range []float64{0.5, 0.99, 1, 1.5} {
		for _, n := range []int{10, 1000, 1_000_000} {
			random := rand.NewPCG(1, uint64(n))
			z := newZipf(s, int64(n))
			counts := make([]float64, n)
			for range draws {
				counts[z.rank(random)-1]++
			}
			p := probabilities(s, n)
			requireChiSquared(t, counts, p, fmt.Sprintf("zipf(%v) of %d", s, n))
		}
	}
}

// requireChiSquared compares counts with probabilities; neighbours are pooled until 50 are expected. The limit is five standard
// deviations of the statistic.
func requireChiSquared(t require.TestingT, counts, p []float64, what string) {
	draws := 0.0
	for _, c := range counts {
		draws += c
	}
	statistic, cells := 0.0, 0.0
	expected, seen := 0.0, 0.0
	for i := range p {
		expected += p[i] * draws
		seen += counts[i]
		if expected >= 50 {
			statistic += (seen - expected) * (seen - expected) / expected
			cells++
			expected, seen = 0, 0
		}
	}
	freedom := max(cells-1, 1)
	require.InDelta(t, freedom, statistic, 5*math.Sqrt(2*freedom)+10, what)
}

// A draw takes as few tries for 10¹² keys as for 10³.
func TestZipfCostDoesNotGrow(t *testing.T) {
	const draws = 100_000
	for _, s := range skews {
		for _, n := range []int64{1e3, 1e8, 1e12} {
			z := newZipf(s, n)
			random := rand.NewPCG(5, 6)
			accepted := 0
			for range draws {
				k, ok := z.try(unit(random))
				if ok && k >= 1 && k <= float64(n) {
					accepted++
				}
			}
			require.Greater(t, float64(accepted)/draws, 1/1.2, "zipf(%v) of %d", s, n)
		}
	}
}

func TestPermutationIsABijection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.Int64Range(1, 3000).Draw(t, "count")
		p := newPermutation(rapid.Uint64().Draw(t, "seed"), count)
		seen := make([]bool, count)
		for x := range uint64(count) {
			y := p.at(x)
			require.Less(t, y, uint64(count))
			require.False(t, seen[y], "%d is an image twice", y)
			seen[y] = true
		}
	})
}

func TestPermutationOfLargeRanges(t *testing.T) {
	for _, count := range []int64{1 << 32, 1<<32 + 1, 1e12, math.MaxInt64} {
		p := newPermutation(9, count)
		seen := map[uint64]bool{}
		for x := range uint64(100_000) {
			y := p.at(x)
			require.Less(t, y, uint64(count))
			seen[y] = true
		}
		require.Len(t, seen, 100_000)
		require.Less(t, p.at(uint64(count)-1), uint64(count))
	}
}

// The images of the lowest numbers, the popular ranks, are spread evenly: each sixteenth of the range gets its share, and the image of
// the next number, or of the next with the same lower half, lies in each sixteenth equally often.
func TestPermutationSpreads(t *testing.T) {
	even := func(n int) []float64 { return slices.Repeat([]float64{1 / float64(n)}, n) }
	for _, count := range []int64{1000, 1 << 20, 1e8} {
		lowerHalf := uint64(1) << (bits.Len64(uint64(count-1)) / 2)
		for _, step := range []uint64{1, lowerHalf} {
			singles, pairs := make([]float64, 16), make([]float64, 256)
			for seed := range uint64(2000) {
				p := newPermutation(seed, count)
				for x := range uint64(20) {
					cell, next := p.at(x)*16/uint64(count), p.at(x+step)*16/uint64(count)
					singles[cell]++
					pairs[cell*16+next]++
				}
			}
			requireChiSquared(t, singles, even(16), fmt.Sprint(count))
			requireChiSquared(t, pairs, even(256), fmt.Sprintf("%d: steps of %d", count, step))
		}
	}
}
