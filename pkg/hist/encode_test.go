package hist

import (
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var _ encoding.BinaryAppender = (*Hist)(nil)

func TestBinaryForm(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []int64
		want   string
	}{
		{"empty", nil, "0200"},
		{"zero", []int64{0}, "02" + "01" + "0000" + "0000" + "000000" + "00"},
		{"exact buckets", []int64{3, 5, 5, 255}, "02" + "04" + "03" + "fc01" + "8c02" + "00" + "bcfc03" + "0000" + "00" + "11" + "f0ea01"},
		{"one bucket of two values", []int64{256, 257}, "02" + "02" + "8002" + "01" + "8104" + "00" + "818408" + "0000" + "01"},
		{
			"sums of more than one word",
			[]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64},
			"02" + "03" + "ffffffffffffffff7f" + "00" + "fdffffffffffffff7f" + "01" + "03" + "fdffffffffffffffbf01" + "00" + "02",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, hex.EncodeToString(bytesOf(t, of(c.values...))))
		})
	}
}

// TestBucketsAtTheEdgeOfAByte: halves of the first byte that just hold their number, and that just do not.
func TestBucketsAtTheEdgeOfAByte(t *testing.T) {
	for _, skipped := range []int64{0, 1, long - 1, long, long + 1, 3 * long} {
		for _, more := range []uint64{0, 1, long - 1, long, long + 1, 3 * long} {
			h := of(5)
			h.RecordN(5+1+skipped, more+1)
			b := bytesOf(t, h)
			var into Hist
			rest, err := into.Decode(b)
			require.NoError(t, err, "%d skipped, %d more", skipped, more)
			require.Empty(t, rest)
			require.Equal(t, b, bytesOf(t, &into))
			require.Equal(t, more+2, into.Count())
		}
	}
}

func TestDecodeIsTheInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHist(t, "h")
		tail := rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "tail")
		b := bytesOf(t, h)
		into := drawHist(t, "overwritten")
		rest, err := into.Decode(append(b[:len(b):len(b)], tail...))
		require.NoError(t, err)
		require.Equal(t, len(tail), len(rest))
		require.Equal(t, b, bytesOf(t, into))
		require.Equal(t, h.Mean(), into.Mean())
		require.Equal(t, h.SD(), into.SD())
		require.Equal(t, h.Quantile(0.9), into.Quantile(0.9))
	})
}

func TestDecodeOfEveryPrefixFails(t *testing.T) {
	b := bytesOf(t, of(1, 2, 300, 1e6, math.MaxInt64))
	for n := range b {
		var h Hist
		_, err := h.Decode(b[:n])
		require.ErrorContains(t, err, "it ends early", "%d bytes of %d", n, len(b))
		require.Zero(t, h.Count())
	}
}

// form builds binary forms that AppendBinary would not.
type form struct {
	count, min, width uint64
	sum               [2]uint64
	squares           [3]uint64
	buckets           []uint64 // skipped, count, …
}

func (f form) bytes() []byte {
	b := []byte{version}
	for _, n := range []uint64{f.count, f.min, f.width, f.sum[0], f.sum[1], f.squares[0], f.squares[1], f.squares[2]} {
		b = binary.AppendUvarint(b, n)
	}
	for bucket := range slices.Chunk(f.buckets, 2) {
		b = appendBucket(b, bucket[0], bucket[1]-1)
	}
	return b
}

func TestDecodeIsStrict(t *testing.T) {
	// The base of every case: 10, 20, 20.
	good := func() form {
		return form{count: 3, min: 10, width: 10, sum: [2]uint64{50}, squares: [3]uint64{900}, buckets: []uint64{0, 1, 9, 2}}
	}
	var h Hist
	_, err := h.Decode(good().bytes())
	require.NoError(t, err)
	require.Equal(t, bytesOf(t, of(10, 20, 20)), bytesOf(t, &h))

	for _, c := range []struct {
		name  string
		spoil func(f *form)
		want  string
	}{
		{"count above the buckets", func(f *form) { f.count = 4 }, "it ends early"},
		{"count below the buckets", func(f *form) { f.count = 2 }, "a bucket of 2 values, want 1 to 1"},
		{"count that wraps", func(f *form) { f.buckets = []uint64{0, 1, 0, math.MaxUint64, 8, 3} }, "want 1 to 2"},
		{"count above all counts", func(f *form) { f.buckets[3] = 0 }, "a bucket of 0 values"}, // 0 − 1 wraps
		{"min below the first bucket", func(f *form) { f.buckets[0] = 1 }, "the bucket of the minimum 10 is empty"},
		{"max above the last bucket", func(f *form) { f.width = 11 }, "the bucket of the maximum 21 is empty"},
		{"max below the last bucket", func(f *form) { f.width = 9 }, "a bucket above that of the maximum 19"},
		{"bucket far away", func(f *form) { f.buckets[2] = math.MaxUint64 }, "a bucket above that of the maximum 20"},
		{"bucket after the maximum", func(f *form) { f.buckets = []uint64{0, 1, 9, 1, 0, 1} }, "a bucket above that of the maximum 20"},
		{"min above int64", func(f *form) { f.min = 1 << 63 }, "above 2^63"},
		{"max above uint64", func(f *form) { f.min, f.width = math.MaxUint64, 11 }, "above 2^63"},
		{"max above int64", func(f *form) { f.width = math.MaxInt64 }, "above 2^63"},
		{"sum too small", func(f *form) { f.sum[0] = 49 }, "a sum that its buckets do not allow"},
		{"sum too large", func(f *form) { f.sum[0] = 51 }, "a sum that its buckets do not allow"},
		{"sum far too large", func(f *form) { f.sum[1] = 1 }, "a sum that its buckets do not allow"},
		{"squares too small", func(f *form) { f.squares[0] = 899 }, "a sum of squares that"},
		{"squares too large", func(f *form) { f.squares[0] = 901 }, "a sum of squares that"},
		{"squares far too large", func(f *form) { f.squares[2] = 1 }, "a sum of squares that"},
		{
			"squares below those of the mean", func(f *form) {
				*f = form{count: 2, min: 256, width: 1, sum: [2]uint64{514}, squares: [3]uint64{2 * 257 * 256}, buckets: []uint64{0, 2}}
			},
			"a sum of squares that its sum does not allow",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := good()
			c.spoil(&f)
			h := of(7)
			rest, err := h.Decode(f.bytes())
			require.ErrorContains(t, err, c.want)
			require.Nil(t, rest)
			require.Equal(t, bytesOf(t, new(Hist)), bytesOf(t, h), "empty after an error")
		})
	}
}

// TestDecodeHoldsLargeSumsToTheirBuckets uses sums of more than one word. The buckets allow a single value each, so that one more and one less are
// both wrong.
func TestDecodeHoldsLargeSumsToTheirBuckets(t *testing.T) {
	for _, large := range []int64{1 << 31, 1 << 40, 1 << 62} {
		const times = 32
		var h Hist
		h.RecordN(1<<20-1, times) // the largest value of its bucket, and below the least of its own
		h.RecordN(large, times)
		m := h.moments()
		decode := func(sum, squares int64) error {
			f := form{count: 2 * times, min: h.min, width: h.max - h.min, sum: m.sum, squares: m.squares}
			f.buckets = []uint64{0, times, uint64(index(h.max)-index(h.min)) - 1, times}
			f.sum[0] += uint64(sum)
			f.squares[0] += uint64(squares)
			_, err := new(Hist).Decode(f.bytes())
			return err
		}
		require.NoError(t, decode(0, 0))
		for _, off := range []int64{-1, 1} {
			require.ErrorContains(t, decode(off, 0), "a sum that its buckets do not allow", "%d of %d", off, large)
			require.ErrorContains(t, decode(0, off), "a sum of squares that its buckets do not allow", "%d of %d", off, large)
		}
	}
}

func TestDecodeRefusesOtherVarints(t *testing.T) {
	for _, c := range []struct {
		name, form, want string
	}{
		{"another version", "0100", "version 1, want 2"},
		{"a longer zero", "028000", "longer than need be"},
		{"a longer one", "02" + "8100" + "0000" + "0000" + "000000" + "00", "longer than need be"},
		{"eleven bytes", "02" + "ffffffffffffffffffff01", "above 2^64"},
		{"a longer rest", "02" + "01" + "0000" + "0000" + "000000" + "0f8000", "longer than need be"},
		{"a skip above all", "02" + "02" + "0000" + "0000" + "000000" + "00" + "f0" + "ffffffffffffffffff01", "above 2^64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := hex.DecodeString(c.form)
			require.NoError(t, err)
			_, err = new(Hist).Decode(b)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestDecodeAllocatesNoMoreThanAllBuckets(t *testing.T) {
	b := form{
		count: 1, min: math.MaxInt64, sum: [2]uint64{math.MaxInt64}, squares: [3]uint64{1, math.MaxInt64 >> 1},
		buckets: []uint64{0, 1},
	}.bytes()
	var h Hist
	_, err := h.Decode(b)
	require.NoError(t, err)
	require.LessOrEqual(t, cap(h.n), 7296)
}

func FuzzDecode(f *testing.F) {
	for _, h := range []*Hist{of(), of(0), of(1, 2, 3), of(256, 257), of(1e3, 1e6, 1e9, math.MaxInt64)} {
		f.Add(bytesOf(f, h))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Hist
		rest, err := h.Decode(b)
		if err != nil {
			require.Zero(t, h.Count())
			return
		}
		require.Equal(t, b[:len(b)-len(rest)], bytesOf(t, &h), "one form for one state")
		if h.Count() == 0 {
			return
		}
		require.LessOrEqual(t, h.Min(), h.Quantile(0))
		require.Equal(t, h.Max(), h.Quantile(1))
		require.GreaterOrEqual(t, h.Mean(), float64(h.Min()))
		require.LessOrEqual(t, h.Mean(), float64(h.Max()))
		require.False(t, math.IsNaN(h.SD()))
	})
}
