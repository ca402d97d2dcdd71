package safefile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	write := func(text string, mode os.FileMode) string {
		path := filepath.Join(dir, "secret")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	for text, want := range map[string]string{"s3cret": "s3cret", "s3cret\n": "s3cret", "s3cret\r\n": "s3cret", " a b \n\n": " a b "} {
		got, err := Secret(write(text, 0o600))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for text, why := range map[string]string{
		"": "its first line is empty", "\nsecret": "its first line is empty", "a\nb": "more than one line",
		strings.Repeat("x", maxSecret+1): "more than 4096 bytes",
	} {
		_, err := Secret(write(text, 0o600))
		require.ErrorContains(t, err, why)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o602, 0o610} {
		_, err := Secret(write("s3cret", mode))
		require.ErrorContains(t, err, "is open to others")
		require.NotContains(t, err.Error(), "s3cret")
	}
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	_, err := Secret(fifo)
	require.ErrorIs(t, err, ErrKind)
	if os.Geteuid() == 0 {
		path := write("s3cret", 0o600)
		require.NoError(t, os.Chown(path, 65534, 65534))
		_, err := Secret(path)
		require.ErrorContains(t, err, "belongs to user 65534")
	}
}
