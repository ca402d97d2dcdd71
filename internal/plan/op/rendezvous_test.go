package op_test

import (
	"cmp"
	"hash/fnv"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/plan/op"
)

// TestRendezvousVectors pins where keys live. The vectors come from a Python program of a few lines.
func TestRendezvousVectors(t *testing.T) {
	for _, c := range []struct {
		nodes int
		key   string
		want  []int
	}{
		{4, "", []int{0, 1, 2, 3}},
		{4, "a", []int{1, 0, 3, 2}},
		{4, "key:000000000000", []int{0, 2, 3, 1}},
		{4, "key:000000000001", []int{1, 2, 3, 0}},
		{4, "key:000000000042", []int{3, 2, 0, 1}},
		{100, "", []int{91, 46, 38, 99}},
		{100, "a", []int{57, 64, 92, 33}},
		{100, "key:000000000000", []int{51, 34, 35, 74}},
		{1000, "key:000000000001", []int{90, 369, 949, 839}},
		{1000, "key:000000000042", []int{898, 449, 977, 7}},
	} {
		r := op.NewRendezvous(names(c.nodes))
		for n := range len(c.want) + 1 {
			require.Equal(t, c.want[:n], r.Place([]int{}, []byte(c.key), n), "%d nodes, key %q", c.nodes, c.key)
		}
		require.Equal(t, c.want[0], r.Home([]byte(c.key)))
	}
}

// TestRendezvousIsAnOrderOfWeights compares it with a sort of all weights, computed anew.
func TestRendezvousIsAnOrderOfWeights(t *testing.T) {
	hash := func(b []byte) uint64 {
		h := fnv.New64a()
		_, _ = h.Write(b) // never fails
		return splitmix(h.Sum64())
	}
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringN(1, 8, -1), 1, 30, rapid.ID).Draw(rt, "names")
		key := rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(rt, "key")
		n := rapid.IntRange(0, len(names)+2).Draw(rt, "n")
		order := make([]int, len(names))
		weights := make([]uint64, len(names))
		for e, name := range names {
			order[e], weights[e] = e, splitmix(hash([]byte(name))^hash(key))
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
		r := op.NewRendezvous(names)
		require.Equal(rt, append([]int{7}, order[:min(n, len(names))]...), r.Place([]int{7}, key, n))
		require.Equal(rt, order[0], r.Home(key))
	})
}

func splitmix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
