package log

import (
	"io/fs"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/pkg/driver"
)

// TestFilesOfOtherUsersAreLeftAlone even if they held a log, and if the directory lets anybody delete them.
func TestFilesOfOtherUsersAreLeftAlone(t *testing.T) {
	for _, layout := range []string{layoutAppend, layoutChannel, layoutArray, layoutRaw} {
		t.Run(layout, func(t *testing.T) {
			c, at := config(t, func(c *Config) { c.Layout = layout }), siteOf(t, 1)
			t.Chdir(at.Root) // the other user need not be let in by all directories above
			at.Root = "."
			s := open(t, c, at)
			require.NoError(t, do(s.sessions[0], driver.Append, 10, 0))
			_, err := s.Close()
			require.NoError(t, err)
			name := s.files[0].name
			was, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, os.Chmod(name, 0))
			require.NoError(t, os.Chmod(".", 0o777))

			asAnother(t, func() {
				_, err := os.Open(name)
				require.ErrorIs(t, err, fs.ErrPermission, "or else the rest shows nothing")
				_, err = Driver{}.Open(t.Context(), c, at)
				require.ErrorIs(t, err, fs.ErrPermission)
				require.ErrorContains(t, err, "delete what an earlier run has left: open "+name+": permission denied: move it away, or write another --log-root")
			})
			require.NoError(t, os.Chmod(name, 0o600))
			is, err := os.ReadFile(name)
			require.NoError(t, err)
			require.Equal(t, was, is)
		})
	}
}

// asAnother calls f with the file access of a user who is not root, since no mode keeps root from a file. Other users' modes keep them from their
// own.
func asAnother(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		const nobody = 65534
		runtime.LockOSThread() // whose user it is
		defer runtime.UnlockOSThread()
		require.NoError(t, unix.Setfsuid(nobody))
		defer func() { require.NoError(t, unix.Setfsuid(0)) }()
	}
	f()
}
