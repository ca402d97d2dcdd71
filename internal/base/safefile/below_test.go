package safefile_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/safefile"
)

// TestBelow opens what is in a directory, and nothing else, at once.
func TestBelow(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	dir := filepath.Join(t.TempDir(), "files")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "keys"), []byte("keys"), 0o600))
	require.NoError(t, os.Symlink("sub/keys", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "out")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "outdir")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	for _, path := range []string{"sub/keys", "link", filepath.Join(dir, "sub", "keys"), "sub/../sub/keys"} {
		f, err := safefile.OpenBelow(dir, path)
		require.NoError(t, err, path)
		b, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Equal(t, "keys", string(b))
		require.NoError(t, f.Close())
	}
	began := time.Now()
	for _, path := range []string{
		outside, "out", "outdir/secret", "../" + filepath.Base(outside), "sub/../../x", "fifo", "sub", ".", "/dev/zero", "/proc/self/environ",
		filepath.Join(dir, "..", "x"), dir + "-other/x", "", "none",
	} {
		_, err := safefile.OpenBelow(dir, path)
		require.Error(t, err, path)
	}
	require.Less(t, time.Since(began), time.Second)
}
