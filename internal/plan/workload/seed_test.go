package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSeedsOfNeighboursDiffer(t *testing.T) {
	first := map[uint64]string{}
	for seed := range uint64(3) {
		for _, phase := range []string{"", "a", "b", "ab", "ba", "phase1", "phase2", "load"} {
			for _, kind := range []string{"load", "setup", "populate", "clear", ""} {
				for stream := range 1000 {
					random := generator(seedOf(seed, "phase", phase, kind), stream)
					name := fmt.Sprintf("seed %d, phase %q, %s, stream %d", seed, phase, kind, stream)
					word := random.Uint64()
					require.Empty(t, first[word], name)
					first[word] = name
				}
			}
		}
	}
}

// Every bit of the first word is set in half of the streams, and differs between half of all neighbouring streams.
func TestFirstWordsOfStreamsAreRandom(t *testing.T) {
	const streams = 40_000
	var set, flipped [64]float64
	step := seedOf(1, "phase", "get", "load")
	var before uint64
	for i := range streams {
		random := generator(step, i)
		word := random.Uint64()
		for bit := range 64 {
			set[bit] += float64(word >> bit & 1)
			flipped[bit] += float64((word ^ before) >> bit & 1)
		}
		before = word
	}
	limit := 5 * math.Sqrt(streams) / 2
	for bit := range 64 {
		require.InDelta(t, streams/2, set[bit], limit, "bit %d", bit)
		require.InDelta(t, streams/2, flipped[bit], limit, "bit %d", bit)
	}
}

func TestBelowIsUnbiased(t *testing.T) {
	random := rand.NewPCG(1, 2)
	for _, n := range []uint64{1, 2, 3, 7, 1000} {
		counts, even := make([]float64, n), make([]float64, n)
		for range 200_000 {
			counts[below(random, n)]++
		}
		for i := range even {
			even[i] = 1 / float64(n)
		}
		requireChiSquared(t, counts, even, fmt.Sprint(n))
	}
	// Without rejection every third integer of a range of 3·2⁶² would come twice as often as the others.
	var thirds [3]float64
	for range 300_000 {
		x := below(random, 3<<62)
		require.Less(t, x, uint64(3<<62))
		thirds[x%3]++
	}
	requireChiSquared(t, thirds[:], []float64{1. / 3, 1. / 3, 1. / 3}, "3·2⁶²")
}
