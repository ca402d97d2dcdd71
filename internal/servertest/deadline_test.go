package servertest_test

import (
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// TestHangIsNamed runs tests of a program of their own, in virtual time: one that hangs ends it, and is named; one that is over does not.
func TestHangIsNamed(t *testing.T) {
	const variable = "LOADGEN_TEST_HANGS"
	if long := os.Getenv(variable); long != "" {
		d, err := time.ParseDuration(long)
		require.NoError(t, err)
		synctest.Test(t, func(t *testing.T) {
			servertest.Deadline(t)
			time.Sleep(d)
		})
		return
	}
	for long, hangs := range map[string]bool{"179s": false, "181s": true} {
		t.Run(long, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHangIsNamed$")
			cmd.Env = append(os.Environ(), variable+"="+long)
			out, err := cmd.CombinedOutput()
			if !hangs {
				require.NoError(t, err, "%s", out)
				return
			}
			require.Error(t, err)
			require.Contains(t, string(out), "panic: TestHangIsNamed is not over after 3m0s")
			require.Contains(t, string(out), "deadline_test.go", "where it hangs")
		})
	}
}
