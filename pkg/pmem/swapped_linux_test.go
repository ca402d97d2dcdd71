package pmem

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A file that replaces a log between the look at it and its opening is neither locked nor mapped.
func TestWhatTookTheLogsPlaceIsNotMapped(t *testing.T) {
	dir := t.TempDir()
	fifo, empty := filepath.Join(dir, "fifo"), filepath.Join(dir, "empty")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, path := range []string{"/dev/zero", fifo, empty} {
		file, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		require.NoError(t, err)
		f := &File{file: file}
		same, err := file.Stat()
		require.NoError(t, err)
		require.ErrorIs(t, f.open(same, None), errNotRegular, path)
		other, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB), "%s is not locked", path)
		require.NoError(t, other.Close())
		require.NoError(t, file.Close())
	}
}

// The opened file must be the one that was looked at. It is refused if it is not, or if that cannot be determined.
func TestTheFileThatWasLookedAt(t *testing.T) {
	dir := t.TempDir()
	var files []*os.File
	for _, name := range []string{"a", "b"} {
		file, err := os.Create(filepath.Join(dir, name))
		require.NoError(t, err)
		defer file.Close()
		require.NoError(t, file.Truncate(4096))
		files = append(files, file)
	}
	a, err := files[0].Stat()
	require.NoError(t, err)
	other := &File{kernel: linux{}, file: files[1]}
	require.Equal(t, errNotRegular, other.open(a, None))
	require.Nil(t, other.data)
	again, err := os.Open(filepath.Join(dir, "b"))
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(again.Fd()), unix.LOCK_EX|unix.LOCK_NB), "it is not locked")
	require.NoError(t, again.Close())
	f := &File{kernel: linux{}, file: files[0]}
	require.NoError(t, f.open(a, None))
	require.NoError(t, f.Close())
	require.ErrorIs(t, f.open(a, None), os.ErrClosed)
}

// Syncing a directory that cannot be opened is an error.
func TestADirectoryThatIsNotThereIsNotSynced(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, linux{}.syncDirectory(root, "."))
	require.ErrorIs(t, linux{}.syncDirectory(root, "none"), os.ErrNotExist)
}
