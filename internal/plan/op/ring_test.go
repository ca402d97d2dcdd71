package op_test

import (
	"cmp"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/plan/op"
)

// continuum is ketama as its description reads, without shortcuts.
type continuum struct{ points []mark }

type mark struct {
	at       uint32
	endpoint int
}

func newContinuum(names []string) *continuum {
	c := &continuum{}
	for e, name := range names {
		for i := range 40 {
			sum := md5.Sum(fmt.Appendf(nil, "%s-%d", name, i))
			for q := range 4 {
				c.points = append(c.points, mark{binary.LittleEndian.Uint32(sum[4*q : 4*q+4]), e})
			}
		}
	}
	sort.SliceStable(c.points, func(i, j int) bool { return c.points[i].at < c.points[j].at }) // of one place, the lower endpoint first
	return c
}

func (c *continuum) place(key []byte, n int) []int {
	sum := md5.Sum(key)
	hash := binary.LittleEndian.Uint32(sum[:4])
	at := sort.Search(len(c.points), func(i int) bool { return c.points[i].at >= hash })
	var found []int
	for i := 0; len(found) < n; i++ {
		e := c.points[(at+i)%len(c.points)].endpoint
		if !slices.Contains(found, e) {
			found = append(found, e)
		}
	}
	return found
}

// TestRingVectors pins where keys live: another placement would make results incomparable and old data unfindable. The vectors come
// from a Python program of a few lines (hashlib, bisect).
func TestRingVectors(t *testing.T) {
	for _, c := range []struct {
		nodes int
		key   string
		want  []int
	}{
		{4, "", []int{1, 2, 0, 3}},
		{4, "a", []int{0, 2, 1, 3}},
		{4, "key:000000000000", []int{0, 1, 2, 3}},
		{4, "key:000000000001", []int{1, 0, 2, 3}},
		{4, "key:000000000042", []int{0, 1, 2, 3}},
		{4, "key:000000001066", []int{2, 3, 1, 0}}, // beyond the last point
		{100, "", []int{41, 84, 31, 38}},
		{100, "a", []int{10, 75, 11, 51}},
		{100, "key:000000000000", []int{35, 40, 75, 97}},
		{100, "key:000000000001", []int{59, 57, 95, 1}},
		{100, "key:000000000042", []int{0, 29, 61, 93}},
		{100, "key:000000045949", []int{65, 94, 22, 17}}, // beyond the last point
		{3000, "key:1873", []int{775, 2190}},             // their points are one and the same
		{3000, "key:8314", []int{1011, 2266}},            // likewise
	} {
		ring := op.NewRing(names(c.nodes))
		for n := range len(c.want) + 1 {
			require.Equal(t, c.want[:n], ring.Place([]int{}, []byte(c.key), n), "%d nodes, key %q", c.nodes, c.key)
		}
	}
}

// TestRingKeysOnPoints looks up every point that a key can be made for: the text hashed for a point is a key with that very hash. On so large a ring
// some points also lie where a bucket begins.
func TestRingKeysOnPoints(t *testing.T) {
	names := names(3000)
	ring, plain := op.NewRing(names), newContinuum(names)
	dst := make([]int, 0, 1)
	for _, name := range names {
		for i := range 40 {
			key := fmt.Appendf(nil, "%s-%d", name, i)
			if want, got := plain.place(key, 1)[0], ring.Place(dst, key, 1)[0]; got != want {
				require.Equal(t, want, got, "key %q", key)
			}
		}
	}
}

func TestRingAgainstContinuum(t *testing.T) {
	name := rapid.StringN(1, 8, -1)
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfNDistinct(name, 1, 12, rapid.ID).Draw(rt, "names")
		ring, plain := op.NewRing(names), newContinuum(names)
		for range 50 {
			key := rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(rt, "key")
			n := rapid.IntRange(1, len(names)).Draw(rt, "n")
			require.Equal(rt, append([]int{0}, plain.place(key, n)...), ring.Place([]int{0}, key, n))
		}
	})
}

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

// TestSlotVectors compares with CLUSTER KEYSLOT of a redis-server 7.0; the one of 123456789 is the CRC's check value 0x31C3.
func TestSlotVectors(t *testing.T) {
	for key, want := range map[string]int{
		"": 0, "a": 15495, "foo": 12182, "123456789": 0x31C3, "key:000000000042": 7803,
		"{user1000}.following": 3443, "{user1000}.followers": 3443, "user1000": 3443,
		"foo{}{bar}": 8363, "foo{{bar}}zap": 4015, "foo{bar}{zap}": 5061, "bar": 5061, "a{b": 13340, "{}x": 10595, "{a}bc": 15495, "bc{a}": 15495, "{foo}": 12182,
		"a}b": 7866, "a}b{c}": 7365,
	} {
		require.Equal(t, want, op.SlotOf([]byte(key)), key)
	}
}

// TestSlotsOfUsualKeys checks that typical keys are spread over slots as chance would, counted in 64 parts.
func TestSlotsOfUsualKeys(t *testing.T) {
	const count, parts = 1 << 17, 64
	var n [parts]int
	for _, key := range keys(count) {
		n[op.SlotOf(key)*parts/op.NumSlots]++
	}
	sd := math.Sqrt(count * (1 / float64(parts)))
	for part, n := range n {
		require.InDelta(t, count/parts, n, 5*sd, "part %d", part)
	}
}

func TestSlots(t *testing.T) {
	s := op.NewSlots(3)
	require.Equal(t, 3, s.Endpoints())
	require.Equal(t, op.NumSlots, s.Missing())
	key := []byte("foo")
	require.Equal(t, 0, s.Home(key), "nobody has it")
	for i := range op.NumSlots {
		s.Set(i, i%2)
	}
	require.Zero(t, s.Missing())
	s.Set(12182, 2)
	require.Equal(t, []int{op.NumSlots/2 - 1, op.NumSlots / 2, 1}, []int{s.Held(0), s.Held(1), s.Held(2)})
	require.Equal(t, 2, s.Home(key))
	require.Equal(t, []int{7, 2}, s.Place([]int{7}, key, 3))
	require.Empty(t, s.Place(nil, key, 0))

	other := op.NewSlots(3)
	other.Copy(s)
	s.Set(12182, 1)
	require.Equal(t, 2, other.Home(key))
	require.Equal(t, 1, other.Held(2))
}
