package op_test

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
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
