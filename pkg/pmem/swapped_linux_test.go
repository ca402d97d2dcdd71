package pmem

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// What has taken the place of a log between the look at it and its opening is neither locked nor mapped.
func TestWhatTookTheLogsPlaceIsNotMapped(t *testing.T) {
	dir := t.TempDir()
	fifo, empty := filepath.Join(dir, "fifo"), filepath.Join(dir, "empty")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, path := range []string{"/dev/zero", fifo, empty} {
		file, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		require.NoError(t, err)
		f := &File{file: file}
		require.ErrorIs(t, f.open(None), errNotRegular, path)
		other, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB), "%s is not locked", path)
		require.NoError(t, other.Close())
		require.NoError(t, file.Close())
	}
}
