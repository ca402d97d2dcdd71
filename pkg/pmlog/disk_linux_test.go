package pmlog

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/pmem"
)

// TestABrokenDiskLosesNothingAcknowledged makes the kernel's write-back fail in the middle of writing: nothing is acknowledged from the first error
// on, and everything before it is on the disk.
func TestABrokenDiskLosesNothingAcknowledged(t *testing.T) {
	for _, mode := range []pmem.Mode{pmem.Msync, pmem.Fdatasync} {
		disk := servertest.NewDisk(t)
		path := filepath.Join(disk.Dir, "log")
		f, err := pmem.Create(path, 4<<20, mode)
		require.NoError(t, err)
		l, err := CreateAppend(f, AppendOptions{})
		require.NoError(t, err)
		w, other := l.Writer(), l.Writer()
		acknowledged := uint64(0)
		write := func() error {
			_, err := w.Append(binary.LittleEndian.AppendUint64(make([]byte, 0, 3000), acknowledged+1)[:3000])
			if err == nil {
				acknowledged++
			}
			return err
		}
		for range 50 {
			require.NoError(t, write())
		}
		disk.Break()
		for err = nil; err == nil && acknowledged < 1000; {
			err = write()
		}
		require.ErrorIs(t, err, unix.EIO)
		require.ErrorIs(t, err, pmem.ErrPoisoned)
		require.EqualValues(t, 50, acknowledged, "no write has reached the disk since")
		for range 3 { // a second sync succeeds, as far as the kernel is concerned
			require.ErrorIs(t, write(), pmem.ErrPoisoned)
		}
		_, err = other.Append([]byte("another writer"))
		require.ErrorIs(t, err, pmem.ErrPoisoned)
		require.ErrorIs(t, l.Clear(), pmem.ErrPoisoned)
		require.ErrorIs(t, l.Close(), pmem.ErrPoisoned)

		left, err := pmem.Open(filepath.Join(disk.Remains().Dir, "log"), mode)
		require.NoError(t, err)
		again, err := OpenAppend(left)
		require.NoError(t, err)
		require.False(t, again.Recovered().Clean)
		require.EqualValues(t, acknowledged, again.Recovered().Records)
		r := again.Reader()
		for n := range acknowledged {
			_, p, err := r.Next()
			require.NoError(t, err)
			require.Equal(t, n+1, binary.LittleEndian.Uint64(p))
		}
		require.NoError(t, again.Close())
	}
}
