package driver

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/servertest"
)

// drawChecked draws values that Header must recognise.
func drawChecked(t *rapid.T) Value {
	return Value{
		Size:    rapid.IntRange(ShortHeader, 2000).Draw(t, "size"),
		Seed:    rapid.Uint64().Draw(t, "seed"),
		Checked: true,
		Writer:  rapid.Uint32().Draw(t, "writer"),
		Version: rapid.Uint64Min(1).Draw(t, "version"),
		Key:     rapid.Uint64Min(1).Draw(t, "key"),
		Run:     rapid.Uint32().Draw(t, "run"),
	}
}

func TestValueHasItsSize(t *testing.T) {
	for _, checked := range []bool{false, true} {
		for size := range 301 {
			if checked && size < HeaderSize {
				continue
			}
			v := Value{Size: size, Seed: uint64(size) * 977, Checked: checked}
			require.Len(t, v.AppendTo(nil), size)
			require.Len(t, v.AppendTo(make([]byte, 5, 400)), 5+size)
		}
		v := Value{Size: 1 << 20, Seed: 3, Checked: checked}
		require.Len(t, v.AppendTo(nil), 1<<20)
	}
}

// TestStampedValues writes values in a row and one by one, up to the end of the text that they are cut from.
func TestStampedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawChecked(t)
		v.Checked = v.Size >= HeaderSize && rapid.Bool().Draw(t, "checked")
		if rapid.Bool().Draw(t, "long") {
			v.CutLong()
		}
		end := len(v.text())
		near := rapid.Uint64Range(0, uint64(end))
		seeds := rapid.SliceOfN(rapid.OneOf(rapid.Uint64(), near), 0, 10).Draw(t, "seeds")
		seeds = append(seeds, uint64(end-v.Size), uint64(end-v.Size+1))
		keys := make([]uint64, len(seeds))
		stride := v.Size + rapid.IntRange(0, 9).Draw(t, "gap")
		got, want := make([]byte, len(seeds)*stride), make([]byte, len(seeds)*stride)
		for i, seed := range seeds {
			one := v
			keys[i] = rapid.Uint64Min(1).Draw(t, "key")
			one.Seed, one.Key, one.Version = seed, keys[i], v.Version+uint64(i)
			copy(want[i*stride:], one.AppendTo(nil))
		}
		v.Stamp(got, stride, seeds, keys)
		require.True(t, bytes.Equal(want, got))
	})
}

func TestCheckedValueComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawChecked(t)
		before := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "before")
		b := v.AppendTo(bytes.Clone(before))
		require.Equal(t, before, b[:len(before)])
		b = b[len(before):]
		h, ok := (&Reply{Value: b}).Header()
		require.True(t, ok)
		want := Header{Writer: v.Writer, Version: v.Version}
		if v.Size >= HeaderSize {
			want.Key, want.Run = keyField(v.Key), v.Run
		}
		require.Equal(t, want, h)
		require.True(t, h.Of(v.Key))
		require.Equal(t, b, v.AppendTo(nil), "the bytes follow from the value")
	})
}

// The layout is in the stores that are tested, so it is written out here once more, by hand.
func TestCheckedLayout(t *testing.T) {
	v := Value{Size: 44, Seed: 12, Checked: true, Writer: 0x05060708, Key: 0x7701020304, Version: 0x1112131415161718, Run: 0x21222324}
	b := v.AppendTo(nil)
	require.Equal(t, []byte{8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11}, b[:16])
	require.Equal(t, []byte{44, 0, 0, 0, 0x24, 0x23, 0x22, 0x21}, b[20:28])
	covered := append(bytes.Clone(b[:16]), b[20:]...)
	require.Equal(t, crc32.Checksum(covered, crc32.MakeTable(crc32.Castagnoli)), binary.LittleEndian.Uint32(b[16:]))
	plain := Value{Size: 16, Seed: 12}
	require.Equal(t, plain.AppendTo(nil), b[28:], "the filling is that of an unchecked value")
	require.Regexp(t, "^[A-Za-z0-9]{16}$", string(b[28:]))
}

func TestEverySingleByteCorruptionIsDetected(t *testing.T) {
	for _, size := range []int{ShortHeader, HeaderSize, 29, 200} {
		v := Value{Size: size, Seed: 1, Checked: true, Writer: 7, Version: 9}
		b := v.AppendTo(nil)
		for at := range b {
			for flip := 1; flip < 256; flip++ {
				b[at] ^= byte(flip)
				_, ok := (&Reply{Value: b}).Header()
				require.False(t, ok, "byte %d of %d, bits %08b", at, size, flip)
				b[at] ^= byte(flip)
			}
		}
		_, ok := (&Reply{Value: b}).Header()
		require.True(t, ok)
	}
}

func TestEveryTruncationAndExtensionIsDetected(t *testing.T) {
	v := Value{Size: 300, Seed: 1, Checked: true, Writer: 7, Version: 9}
	b := v.AppendTo(nil)
	for size := range b {
		_, ok := (&Reply{Value: b[:size]}).Header()
		require.False(t, ok, "%d of %d bytes", size, len(b))
	}
	_, ok := (&Reply{Value: append(b, 0)}).Header()
	require.False(t, ok)
	_, ok = (&Reply{Value: b}).Header()
	require.True(t, ok)

	b = bytes.Clone(b[:200]) // as a store might return it if the checksum happened to fit
	binary.LittleEndian.PutUint32(b[16:], checksum(b))
	_, ok = (&Reply{Value: b}).Header()
	require.False(t, ok, "the size tells")
}

// A torn value, the head of one put and the tail of another, is not taken for either.
func TestTornValueIsDetected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawChecked(t)
		w := v
		w.Version, w.Seed = v.Version+1, v.Seed+uint64(rapid.IntRange(1, ShortText-1).Draw(t, "seeds apart"))
		older, newer := v.AppendTo(nil), w.AppendTo(nil)
		cut := rapid.IntRange(1, v.Size-1).Draw(t, "cut")
		torn := append(bytes.Clone(newer[:cut]), older[cut:]...)
		if bytes.Equal(torn, newer) || bytes.Equal(torn, older) {
			return
		}
		_, ok := (&Reply{Value: torn}).Header()
		require.False(t, ok)
	})
}

func TestForeignValuesAreNotTaken(t *testing.T) {
	unchecked := Value{Size: 200, Seed: 5}
	for _, b := range [][]byte{nil, {}, make([]byte, HeaderSize), make([]byte, 200), bytes.Repeat([]byte{0xff}, 200), unchecked.AppendTo(nil)} {
		h, ok := (&Reply{Value: b}).Header()
		require.False(t, ok)
		require.Zero(t, h)
	}
}

func TestFillingsDiffer(t *testing.T) {
	first := map[string]uint64{}
	for seed := range uint64(10_000) {
		v := Value{Size: 16, Seed: seed}
		text := string(v.AppendTo(nil))
		_, again := first[text]
		require.False(t, again, "seeds %d and %d", first[text], seed)
		first[text] = seed
	}
}

// A filling longer than the text it is cut from goes on at the text's beginning.
func TestLongFillingWrapsRound(t *testing.T) {
	v := Value{Size: 3 * ShortText, Seed: ShortText - 10}
	b := v.AppendTo(nil)
	require.Equal(t, filling[ShortText-10:], b[:10])
	require.Equal(t, filling, b[10:10+ShortText])
	require.Equal(t, filling[:ShortText-10], b[10+2*ShortText:])
}

func TestValueAllocatesNothing(t *testing.T) {
	dst := make([]byte, 0, 2000)
	for _, checked := range []bool{false, true} {
		v := Value{Size: 1000, Seed: 4, Checked: checked, Version: 1}
		require.Zero(t, testing.AllocsPerRun(100, func() {
			b := v.AppendTo(dst)
			(&Reply{Value: b}).Header()
		}))
	}
}

// If Header accepts some bytes, they are a value's: its header, encoded anew, equals theirs up to the filling.
func FuzzHeader(f *testing.F) {
	for _, size := range []int{ShortHeader, HeaderSize, 29, 200} {
		v := Value{Size: size, Seed: 1, Checked: true, Writer: 7, Version: 9}
		b := v.AppendTo(nil)
		f.Add(b)
		f.Add(b[:size-1])
	}
	f.Add([]byte{})
	f.Add(make([]byte, HeaderSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := (&Reply{Value: b}).Header()
		if !ok {
			require.Zero(t, h)
			return
		}
		v := Value{Size: len(b), Checked: true, Writer: h.Writer, Key: uint64(h.Key), Version: h.Version, Run: h.Run}
		again := v.AppendTo(nil)
		require.Equal(t, again[:16], b[:16])
		require.Equal(t, again[20:24], b[20:24])
	})
}

func BenchmarkValue(b *testing.B) {
	for _, size := range []int{200, 4096} {
		for _, checked := range []bool{false, true} {
			v := Value{Size: size, Checked: checked, Version: 1}
			dst := make([]byte, 0, size)
			b.Run(fmt.Sprintf("verb=append/size=%d/checked=%t", size, checked), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					v.Seed += 977
					v.AppendTo(dst)
				}
			})
		}
		v := Value{Size: size, Checked: true, Version: 1}
		seeds, rows := make([]uint64, 32), make([]byte, 32*size)
		b.Run(fmt.Sprintf("verb=stamp/size=%d/values=%d", size, len(seeds)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range seeds {
					seeds[i] += 977
				}
				v.Stamp(rows, size, seeds, seeds)
			}
		})
		text := v.AppendTo(nil)
		b.Run(fmt.Sprintf("verb=read/size=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				(&Reply{Value: text}).Header()
			}
		})
	}
}

// The compressible share of a value is as requested, for a thorough compressor and a fast one.
func TestMixedFillCompressesAsAsked(t *testing.T) {
	compressed := func(b []byte, level int) int {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, level)
		require.NoError(t, err)
		_, err = w.Write(b)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return out.Len()
	}
	sizes := []int{1000, 4096, 100_000, 1 << 20}
	if !servertest.Whole() {
		sizes = sizes[:3]
	}
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 0.9, 1} {
		for _, size := range sizes {
			for _, checked := range []bool{false, true} {
				v := Value{Size: size, Seed: 99, Fill: Fill{Mixed: true, Zeros: uint16(math.Round(share * 1000))}, Checked: checked, Writer: 1, Version: 2}
				b := v.AppendTo(nil)
				require.Len(t, b, size)
				for _, level := range []int{gzip.BestSpeed, gzip.BestCompression} {
					away := 1 - float64(compressed(b, level))/float64(size)
					what := fmt.Sprintf("%v of %d bytes, checked %v, level %d", share, size, checked, level)
					require.Less(t, away, share+0.02, what)
					require.Greater(t, away, share-0.02-120/float64(size), "%s: but for the compressor's own header and table of up to 120 bytes", what)
				}
			}
		}
	}
}

func TestMixedFillFollowsFromTheSeed(t *testing.T) {
	v := Value{Size: 5000, Seed: 1, Fill: Fill{Mixed: true, Zeros: 500}}
	other := v
	require.Equal(t, v.AppendTo(nil), other.AppendTo([]byte("before"))[6:])
	other.Seed = 2
	require.NotEqual(t, v.AppendTo(nil), other.AppendTo(nil))
	dst := make([]byte, 0, 8192)
	require.Zero(t, testing.AllocsPerRun(100, func() { v.AppendTo(dst) }))
}
