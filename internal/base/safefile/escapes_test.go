package safefile

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEscapes names files outside a directory in every way that a plan could: none is opened. Those inside are.
func TestEscapes(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "files")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "in", "deep"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(outer, "files-2"), 0o700))
	for _, path := range []string{"secret", "files/own", "files/in/own", "files-2/secret"} {
		require.NoError(t, os.WriteFile(filepath.Join(outer, path), []byte(filepath.Base(path)), 0o600))
	}
	links := map[string]string{
		"up": "..", "up2": "../", "file": "../secret", "absolute": filepath.Join(outer, "secret"), "root": "/", "passwd": "/etc/passwd", "environ": "/proc/self/environ",
		"cwd": "/proc/self/cwd", "fd": "/proc/self/fd", "sibling": "../files-2", "again": "file", "loop": "loop", "dots": "in/../../secret", "in/up": "../..", "in/deep/up": "../../..",
		"long": strings.Repeat("in/../", 200) + "../secret",
	}
	for name, to := range links {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	for _, path := range []string{
		"..", "../secret", "../files-2/secret", "./../secret", "in/../../secret", "in/deep/../../../secret", "//../secret", "in//..//../secret", "../files/../secret",
		filepath.Join(outer, "secret"), dir + "/../secret", dir + "-2/secret", dir + "//..//secret", "/etc/passwd", "//etc/passwd", "/proc/self/environ", "/", ".", "",
		"up/secret", "up2/secret", "file", "absolute", "root/etc/passwd", "passwd", "environ", "cwd/go.mod", "fd/0", "sibling/secret", "again", "loop", "dots", "in/up/secret",
		"in/deep/up/secret", "long", "up/files/../secret", dir + "/file", dir + "/in/up/secret", "own/../../secret", "own\x00/../../secret", strings.Repeat("../", 4000) + "etc/passwd",
		strings.Repeat("a", 5000), "~/secret", "$HOME/secret", "..\\secret", "%2e%2e/secret", "\u2024\u2024/secret",
	} {
		f, err := OpenBelow(dir, path)
		if err == nil {
			b, _ := io.ReadAll(f)
			require.NoError(t, f.Close())
			t.Errorf("%q was opened: %q", path, b)
		}
	}
	for _, path := range []string{"own", "in/own", "./own", "in/../own", dir + "/own", dir + "/in/own"} {
		f, err := OpenBelow(dir, path)
		require.NoError(t, err, path)
		require.NoError(t, f.Close())
	}
}
