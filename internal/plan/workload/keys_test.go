package workload

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPoolsWrapRoundTheTwelveDigits(t *testing.T) {
	k := keySpace{count: 10, perSession: true, origin: numbers - 25, wrap: numbers}
	k.format, _ = parseKeyFormat("%d")
	var got []string
	for session := range 4 {
		for index := range uint64(10) {
			got = append(got, string(k.appendKey(nil, k.pool(session), index)))
		}
	}
	require.Equal(t, "999999999975", got[0])
	require.Equal(t, []string{"999999999999", "0", "1"}, got[24:27])
	require.Equal(t, "14", got[39])
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(got))), 40)
}

func TestPoolsOfDatasetsAndSeedsLieApart(t *testing.T) {
	first := map[string]bool{}
	for seed := range uint64(30) {
		for _, name := range []string{"items", "item", "one", "two", "a", "b"} {
			p := onePlan(keys("uniform", "session", 50), withSetup(closed("load", 10, 1)))
			p.Seed, p.Datasets[0].Name, p.Phases[0].Dataset = seed, name, name
			for _, key := range drainAll(t, source(t, p, 0, Setup)) {
				require.False(t, first[key])
				require.Greater(t, key, "key:5", "pools lie in the upper half")
				first[key] = true
			}
		}
	}
}

func TestShareDoesNotOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.Uint64().Draw(t, "count")
		parts := rapid.IntRange(1, math.MaxInt).Draw(t, "parts")
		i := rapid.IntRange(0, parts).Draw(t, "i")
		want := new(big.Int).SetUint64(count)
		want.Mul(want, big.NewInt(int64(i))).Div(want, big.NewInt(int64(parts)))
		require.Equal(t, want.Uint64(), share(count, i, parts))
	})
}
