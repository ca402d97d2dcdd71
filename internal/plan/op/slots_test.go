package op_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/op"
)

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
