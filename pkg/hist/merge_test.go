package hist

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func bytesOf(t require.TestingT, h *Hist) []byte {
	b, err := h.AppendBinary(nil)
	require.NoError(t, err)
	return b
}

// value draws from all scales: values of few bits are as likely as those of many.
var value = rapid.Custom(func(t *rapid.T) int64 {
	bits := rapid.IntRange(0, 63).Draw(t, "bits")
	return rapid.Int64Range(0, 1<<bits-1).Draw(t, "value")
})

func drawHist(t *rapid.T, name string) *Hist {
	return of(rapid.SliceOfN(value, 0, 20).Draw(t, name)...)
}

func merged(hs ...*Hist) *Hist {
	sum := new(Hist)
	for _, h := range hs {
		sum.Merge(h)
	}
	return sum
}

func TestAnyPartitionMergesToTheSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(value, 0, 200).Draw(t, "values")
		parts := make([]*Hist, rapid.IntRange(1, 8).Draw(t, "parts"))
		for i := range parts {
			parts[i] = new(Hist)
		}
		part := rapid.IntRange(0, len(parts)-1)
		for _, v := range values {
			parts[part.Draw(t, "part")].Record(v)
		}
		want := bytesOf(t, of(values...))
		for len(parts) > 1 {
			i := rapid.IntRange(1, len(parts)-1).Draw(t, "merge")
			parts[i-1].Merge(parts[i])
			parts = append(parts[:i], parts[i+1:]...)
		}
		require.Equal(t, want, bytesOf(t, parts[0]))
	})
}

func TestMergeAlgebra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawHist(t, "a"), drawHist(t, "b"), drawHist(t, "c")
		before := bytesOf(t, b)
		require.Equal(t, bytesOf(t, merged(a, b)), bytesOf(t, merged(b, a)), "commutative")
		require.Equal(t, bytesOf(t, merged(merged(a, b), c)), bytesOf(t, merged(a, merged(b, c))), "associative")
		require.Equal(t, bytesOf(t, a), bytesOf(t, merged(a, new(Hist))), "identity on the right")
		require.Equal(t, bytesOf(t, a), bytesOf(t, merged(new(Hist), a)), "identity on the left")
		require.Equal(t, before, bytesOf(t, b), "the merged histogram is left alone")
	})
}

// TestPrintAddsUp splits values in two: the prints of both parts add up to that of the whole, and any other value changes it.
func TestPrintAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawHist(t, "a"), drawHist(t, "b")
		sum := a.Print() + b.Print()
		a.Merge(b)
		require.Equal(t, sum, a.Print())
		a.Record(rapid.Int64().Draw(t, "another"))
		require.NotEqual(t, sum, a.Print())
	})
	require.Zero(t, new(Hist).Print())
	require.NotEqual(t, of(256).Print(), of(257).Print(), "of one bucket")
}

// TestPrintVectors: a print does not depend on the machine or the version, so that two processes can compare theirs. The vectors are from a short
// Python program, by the definition: Σ weight(bucket) + weight(2^32)·Σv + weight(2^33)·Σv².
func TestPrintVectors(t *testing.T) {
	for _, c := range []struct {
		values []int64
		want   uint64
	}{
		{[]int64{0}, 0xe220a8397b1dcdaf},
		{[]int64{1}, 0x734cbb2211cb823f},
		{[]int64{0, 0, 0}, 0xa661f8ac7159690d},
		{[]int64{255, 256, 257}, 0x2a97770cf3a9fa03},
		{[]int64{1000, 2000, 2000, 3_000_000}, 0x27e3645913cc8764},
		{[]int64{math.MaxInt64}, 0x2fdffa5a0552ce1f},
		{[]int64{1 << 40, 1 << 40, 5}, 0xdef340dadd6f9947},
	} {
		require.Equal(t, c.want, of(c.values...).Print(), "%v", c.values)
	}
}

// TestWeights of a print: odd, so that no count is lost modulo 2^64, and no two the same.
func TestWeights(t *testing.T) {
	seen := map[uint64]bool{}
	for x := range uint64(20_000) {
		w := weight(x)
		require.Equal(t, uint64(1), w&1)
		require.False(t, seen[w], "%d", x)
		seen[w] = true
	}
}
