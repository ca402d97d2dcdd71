package workload

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestStampIsNext makes the ops of streams one by one and in bulk: they have the same keys and value seeds, and continue alike.
func TestStampIsNext(t *testing.T) {
	all := kinds()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		k := all[rapid.SampledFrom(names).Draw(t, "kind")]
		k.Format = rapid.SampledFrom([]string{k.Format, "%016d", "a longer prefix of keys:%016d", "key:%08d", "user%d", "%08x"}).Draw(t, "format")
		ph := closed("load", 10, rapid.Int64Range(0, 200).Draw(t, "iterations"))
		ph.Ops = rapid.SampledFrom([][]plan.Weight{ops(1), ops(0, 1), ops(0, 0, 1)}).Draw(t, "op")
		s := source(t, onePlan(k, ph), 0, "load")
		if !s.Alike() {
			return
		}
		one := s.Stream(rapid.IntRange(0, 9).Draw(t, "stream"))
		row := one
		var o op.Op
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			n := rapid.IntRange(1, 70).Draw(t, "n")
			var want []byte
			seeds := make([]uint64, n)
			made, values := 0, []uint64(nil)
			for ; made < n && one.Next(&o); made++ {
				want = append(append(want, o.Key...), "\r\n"...)
				values = append(values, o.Value.Seed)
			}
			size := len(o.Key)
			got := bytes.Repeat(append(bytes.Clone(o.Key), "\r\n"...), n)
			require.Equal(t, made, row.Stamp(got, size, size+2, seeds))
			require.Equal(t, string(want), string(got[:len(want)]))
			require.Equal(t, append(values, make([]uint64, n-made)...), seeds)
			require.Equal(t, one, row)
		}
	})
}

func TestAlike(t *testing.T) {
	k := keys("uniform", "shared", 1e8)
	alike := func(format string, ops []plan.Weight) bool {
		k.Format = format
		ph := closed("load", 10, 0)
		ph.Ops = ops
		return source(t, onePlan(k, ph), 0, "load").Alike()
	}
	require.True(t, alike("key:%012d", ops(1)))
	require.True(t, alike("%016d", ops(0, 0, 1)), "deletes")
	require.True(t, alike("some key:%08d", ops(1)), "just enough digits")
	require.False(t, alike("key:%07d", ops(1)), "some numbers have more digits")
	require.True(t, alike("key:%012d", ops(0, 1)), "puts of values of one size")
	require.False(t, alike("key:%012d", ops(1, 0, 1)), "two verbs")
	require.False(t, alike("%x", ops(1)))

	k.Format = "key:%012d"
	ph, share := closed("load", 10, 0), 0.9
	ph.Ops, ph.HitRatio = ops(1), &share
	require.False(t, source(t, onePlan(k, ph), 0, "load").Alike(), "some gets miss")
}
