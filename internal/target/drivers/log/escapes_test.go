package log

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEscapes tries to put log files outside the root in every way that a plan could: none is created there, and nothing there is deleted.
func TestEscapes(t *testing.T) {
	at := siteOf(t, 1)
	outer := t.TempDir()
	at.Root = filepath.Join(outer, "root")
	require.NoError(t, os.MkdirAll(filepath.Join(at.Root, "in", "deep"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(outer, "root-2"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(outer, "wal-w0.pmlog"), []byte("somebody's"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(at.Root, "file"), nil, 0o600))
	for name, to := range map[string]string{
		"up": "..", "absolute": outer, "root": "/", "tmp": "/tmp", "cwd": "/proc/self/cwd", "sibling": "../root-2", "again": "up", "loop": "loop", "inside": "in", "in/up": "../..",
		"in/deep/up": "../../..", "dangling": "none", "out": "../made",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(at.Root, name)))
	}
	for _, dir := range []string{
		"..", "../", "../root-2", "./..", "in/../..", "in/deep/../../..", "in//..//..", "../root/..", outer, at.Root + "/..", at.Root + "-2", "/", "/tmp", "//tmp", "/proc/self/cwd",
		"up", "up/root-2", "absolute", "root", "root/tmp", "tmp", "cwd", "sibling", "again", "loop", "inside", "inside/deep", "in/up", "in/deep/up", "dangling", "dangling/a", "out", "out/a",
		at.Root + "/up", at.Root + "/in/up", "file", "file/a", "a\x00b", strings.Repeat("../", 4000) + "tmp", strings.Repeat("a", 5000),
	} {
		s, err := Driver{}.Open(t.Context(), config(t, func(c *Config) { c.Dir = dir }), at)
		if err == nil {
			_, _ = s.Close() // it should not be there at all
			t.Errorf("%q was opened", dir)
		}
	}
	left, err := os.ReadDir(outer)
	require.NoError(t, err)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"root", "root-2", "wal-w0.pmlog"}, names)
	is, err := os.ReadFile(filepath.Join(outer, "wal-w0.pmlog"))
	require.NoError(t, err)
	require.Equal(t, "somebody's", string(is))
	empty, err := os.ReadDir(filepath.Join(outer, "root-2"))
	require.NoError(t, err)
	require.Empty(t, empty)
}
