package pmemtest

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem"
)

// images returns what a crash may leave of the given bytes.
func images(t *Trace, at ...int) map[string]int {
	seen := map[string]int{}
	t.Images(1000, rand.New(rand.NewPCG(1, 1)), func(image Image) bool {
		var b []byte
		for _, i := range at {
			b = append(b, image.Bytes[i])
		}
		seen[string(b)]++
		return true
	})
	return seen
}

func store8(t *testing.T, m pmem.Medium, off int64, v uint64) {
	require.NoError(t, m.Store8(off, v))
}

func TestStoresOfALineKeepTheirOrder(t *testing.T) {
	trace := New(1, 256)
	m := trace.Region(0).Writer()
	store8(t, m, 0, 1)
	store8(t, m, 8, 2)
	store8(t, m, 0, 3)
	require.Equal(t, map[string]int{"\x00\x00": 1, "\x01\x00": 1, "\x01\x02": 1, "\x03\x02": 1}, images(trace, 0, 8))
}

func TestLinesHaveNoOrder(t *testing.T) {
	trace := New(1, 256)
	m := trace.Region(0).Writer()
	store8(t, m, 0, 1)
	store8(t, m, 64, 2)
	require.Equal(t, map[string]int{"\x00\x00": 1, "\x01\x00": 1, "\x00\x02": 1, "\x01\x02": 1}, images(trace, 0, 64))
}

func TestWhatWasFlushedBeforeAFenceIsDurable(t *testing.T) {
	trace := New(1, 100, 100)
	m, other := trace.Region(1).Writer(), trace.Region(1).Writer()
	store8(t, m, 0, 1)
	store8(t, m, 64, 1)
	require.NoError(t, m.Flush(0, 8))
	store8(t, m, 0, 2)
	require.NoError(t, other.Fence()) // of another
	require.Len(t, images(trace, 128, 192), 6)
	require.NoError(t, m.Fence())
	require.Equal(t, map[string]int{"\x01\x00": 1, "\x02\x00": 1, "\x01\x01": 1, "\x02\x01": 1}, images(trace, 128, 192))
	b := make([]byte, 1)
	_, err := trace.Region(1).ReadAt(b, 0)
	require.NoError(t, err)
	require.Equal(t, byte(2), b[0], "reading finds what was stored last")
	require.Equal(t, []string{"trace_test.go"}, cut(trace.Redundant()), "the fence of the other had nothing to wait for")
}

// cut leaves the files of call sites in tests, which have no name.
func cut(sites []string) []string {
	for i, site := range sites {
		if site == "" {
			sites[i] = "trace_test.go"
		}
	}
	return sites
}

// TestAStoreIsTornBetweenAnyWords: the words of one store become durable in any order, but each is whole.
func TestAStoreIsTornBetweenAnyWords(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(50) {
		trace := New(seed, 64)
		require.NoError(t, trace.Region(0).Writer().Put(4, nil, []byte("aaaabbbbbbbbcccc")))
		for image := range images(trace, 4, 7, 8, 15, 16, 19) {
			seen[image] = true
			for _, i := range []int{0, 2, 4} {
				require.Equal(t, image[i], image[i+1])
			}
		}
	}
	require.Len(t, seen, 8)
}

func TestManyImagesAreDrawn(t *testing.T) {
	trace := New(1, 4096)
	require.NoError(t, trace.Region(0).Writer().Put(0, nil, make([]byte, 4096)))
	hashes := map[uint64]bool{}
	n := 0
	trace.Images(500, rand.New(rand.NewPCG(1, 1)), func(image Image) bool {
		n++
		hashes[image.Hash] = true
		require.Len(t, trace.Regions(image.Bytes), 1)
		return n < 400
	})
	require.Equal(t, 400, n)
	require.Len(t, hashes, 1, "all are zeros")
}

func TestFailures(t *testing.T) {
	trace := New(1, 128)
	r := trace.Region(0)
	m, cause := r.Writer(), errors.New("the medium is worn out")
	require.NoError(t, m.Put(0, nil, []byte("x")))
	for _, err := range []error{m.Put(127, nil, []byte("xy")), m.Store8(4, 0), m.Store8(-8, 0), m.Flush(120, 9)} {
		require.Error(t, err)
	}
	require.NoError(t, m.Flush(0, 1))
	trace.Fail(cause)
	require.Equal(t, cause, m.Fence())
	for _, err := range []error{m.Fence(), m.Put(0, nil, nil), m.Store8(0, 0), m.Flush(0, 1), r.Check(), r.Close()} {
		require.Equal(t, ErrPower, err)
	}
	require.Equal(t, map[string]int{"\x00": 1, "x": 1}, images(trace, 0), "it may be there yet")
}

func TestADroppedFlushDoesNothing(t *testing.T) {
	trace := New(1, 64)
	trace.Drop = func(string) bool { return true }
	m := trace.Region(0).Writer()
	store8(t, m, 0, 1)
	require.NoError(t, m.Flush(0, 8))
	require.NoError(t, m.Fence())
	require.Len(t, images(trace, 0), 2)
}
