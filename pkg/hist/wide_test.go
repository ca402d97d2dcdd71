package hist

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func bigOf(words ...uint64) *big.Int {
	x := new(big.Int)
	for i := len(words) - 1; i >= 0; i-- {
		x.Lsh(x, 64)
		x.Or(x, new(big.Int).SetUint64(words[i]))
	}
	return x
}

func TestWideAgainstBig(t *testing.T) {
	word := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, 1<<63 - 1, 1 << 63, 1<<64 - 1}))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(t, "words of a")
		a := rapid.SliceOfN(word, n, n).Draw(t, "a")
		b := rapid.SliceOfN(word, 4-n, 4-n).Draw(t, "b")
		p := product(a, b)
		want := new(big.Int).Mul(bigOf(a...), bigOf(b...))
		require.Equal(t, want.String(), bigOf(p[:]...).String(), "product")

		f, _ := want.Float64()
		require.InEpsilon(t, f+1, p.float()+1, 1e-15, "float")

		m, hi, lo := word.Draw(t, "m"), word.Draw(t, "hi"), word.Draw(t, "lo")
		sum := p
		sum.addProduct(m, hi, lo)
		more := new(big.Int).Mul(bigOf(m), bigOf(lo, hi))
		more.Add(more, want)
		more.And(more, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)))
		require.Equal(t, more.String(), bigOf(sum[:]...).String(), "addProduct")

		d, negative := p.minus(&sum)
		require.Equal(t, bigOf(p[:]...).Cmp(more) < 0, negative, "sign")
		require.Equal(t, negative, p.less(&sum), "less")
		if !negative {
			require.Equal(t, want.Sub(want, more).String(), bigOf(d[:]...).String(), "minus")
		}
	})
}
