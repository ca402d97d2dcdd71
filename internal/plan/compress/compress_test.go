package compress

import (
	"bytes"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// samples are bytes of all lengths up to some 100 kB, of which between none and all is random.
func samples() (all [][]byte) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 100 {
		b := make([]byte, 1+9*i*i)
		for at := range b {
			b[at] = "abcdefgh"[at/5%8]
			if random.IntN(100) < i {
				b[at] = byte(random.Uint64())
			}
		}
		all = append(all, b)
	}
	return all
}

func TestCompressedBytesExpandAgain(t *testing.T) {
	expand, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	require.NoError(t, err)
	defer expand.Close()
	for name, expanded := range map[string]func([]byte) ([]byte, error){
		Zstd: func(b []byte) ([]byte, error) { return expand.DecodeAll(b, nil) },
		Gzip: func(b []byte) ([]byte, error) {
			r, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				return nil, err
			}
			return io.ReadAll(r)
		},
	} {
		c, err := New(name)
		require.NoError(t, err)
		for _, b := range samples() {
			got := c.Append([]byte("before"), b)[len("before"):]
			require.LessOrEqual(t, int64(len(got)), Bound(int64(len(b))))
			back, err := expanded(got)
			require.NoError(t, err)
			require.Equal(t, b, back)
		}
	}
}

// A request says how long its value is before the value is made again, perhaps by another encoder, which has compressed other values before.
func TestTheSameBytesBecomeTheSame(t *testing.T) {
	for _, name := range []string{Gzip, Zstd} {
		c, err := New(name)
		require.NoError(t, err)
		all := samples()
		var first [][]byte
		for _, b := range all {
			first = append(first, c.Append(nil, b))
		}
		var loops sync.WaitGroup
		for loop := range 2 {
			loops.Go(func() {
				for _, i := range rand.New(rand.NewPCG(3, uint64(loop))).Perm(len(all)) {
					if got := c.Append(nil, all[i]); !bytes.Equal(got, first[i]) {
						t.Errorf("%s: sample %d: %d bytes, then %d others", name, i, len(first[i]), len(got))
					}
				}
			})
		}
		loops.Wait()
	}
}

// Event loops rely on it.
func TestCompressionAllocatesNothing(t *testing.T) {
	for _, name := range []string{Gzip, Zstd} {
		c, err := New(name)
		require.NoError(t, err)
		src := samples()[9]
		dst := make([]byte, 0, Bound(int64(len(src))))
		require.Zero(t, testing.AllocsPerRun(100, func() { dst = c.Append(dst[:0], src) }), name)
	}
}

func TestNewSaysWhichCompressionsThereAre(t *testing.T) {
	_, err := New("lz4")
	require.ErrorContains(t, err, `compression "lz4"; write "gzip", "zstd" or "none"`)
	c, err := New(None)
	require.NoError(t, err)
	require.Nil(t, c)
}
