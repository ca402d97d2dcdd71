package pmem_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem"
)

// Each fdatasync of a block reaches the device with that block, and as a flush of its cache, if the kernel counts such things where the file is. Others
// may add to the counts.
func TestSyncsReachTheDevice(t *testing.T) {
	const writes, size = 50, 4 << 10
	f, err := pmem.Create(filepath.Join(t.TempDir(), "f"), writes*size+1, pmem.Fdatasync)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	d := pmem.DiskOf(f.Mode(), f.Place())
	bytes, flushes, err := d.Counts()
	require.NoError(t, err)
	w := f.Writer()
	for i := range int64(writes) {
		require.NoError(t, w.Put(i*size, nil, make([]byte, size)))
		require.NoError(t, w.Fence())
	}
	now, flushed, err := d.Counts()
	require.NoError(t, err)
	least := func(n int, unknown string) uint64 {
		if unknown != "" {
			n = 0
		}
		return uint64(n)
	}
	require.GreaterOrEqual(t, now-bytes, least(writes*size, d.NoBytes), d.NoBytes)
	require.GreaterOrEqual(t, flushed-flushes, least(writes, d.NoFlushes), d.NoFlushes)
}
