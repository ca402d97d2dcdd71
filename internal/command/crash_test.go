package command_test

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ownPanic is set for a process of this test binary that is to panic.
const ownPanic = "LOADGEN_TEST_PANICS"

// A bug in loadgen does not give an exit code of a run: the process dies by a signal, and prints where it was.
func TestOwnPanicIsNoExitCode(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, self)
	child.Env = append(os.Environ(), ownPanic+"=1", "GOTRACEBACK=single")
	child.Dir = t.TempDir() // where a core file may land
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, syscall.SIGABRT, exit.Sys().(syscall.WaitStatus).Signal(), "%s", out)
	require.Contains(t, string(out), "panic: a bug of our own")
	require.Contains(t, string(out), "main_test.go:")
}
