package safefile

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A named pipe without a writer, and devices that never end, are refused at once.
func TestOpensRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, syscall.Mkfifo(at("pipe"), 0o600))
	socket, err := net.Listen("unix", at("socket"))
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, os.Symlink("pipe", at("link to a pipe")))
	for path, what := range map[string]string{
		at("pipe"): "a named pipe", at("link to a pipe"): "a named pipe", dir: "a directory", at("socket"): "a socket",
		"/dev/zero": "a device", "/dev/null": "a device",
	} {
		for name, read := range map[string]func() error{
			"open": func() error { _, err := Open(path); return err },
			"read": func() error { _, err := Read(path, 10); return err },
		} {
			done := make(chan error, 1)
			go func() { done <- read() }()
			select {
			case err := <-done:
				require.EqualError(t, err, "open "+path+": it is "+what+": only regular files are read", name)
				require.ErrorIs(t, err, ErrKind)
			case <-time.After(5 * time.Second):
				require.FailNow(t, "it waits", "%s %s", name, path)
			}
		}
	}
	_, err = Open(at("nothing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestReadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	b, err := Read(path, 10)
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(b))
	_, err = Read(path, 9)
	require.EqualError(t, err, path+" has more than 9 bytes, the most that are read")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	b, err = Read(path, 0)
	require.NoError(t, err)
	require.Empty(t, b)
	b, err = Read("/proc/self/status", 1<<20) // says that it is empty
	require.NoError(t, err)
	require.Contains(t, string(b), "Name:")
}
