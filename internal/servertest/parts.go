package servertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// PartsVariable names the environment variable with the path of a file to which a line is appended for each part that a test needs: whether it was
// found. go test hides the output of a test that passes or is skipped, so whoever runs the tests can show these lines at the end.
const PartsVariable = "LOADGEN_TEST_PARTS"

// note appends whether the part was found. A line is one short write, so lines of several processes do not mix.
func note(t testing.TB, part string, missing error) {
	t.Helper()
	path := os.Getenv(PartsVariable)
	if path == "" {
		return
	}
	line := part + ": found\n"
	if missing != nil {
		line = fmt.Sprintf("%s: missing: %v\n", part, missing)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err, "note a part of the tests")
	defer file.Close()
	_, err = file.WriteString(line)
	require.NoError(t, err, "note a part of the tests")
}

// cached returns the path of a file that make test-servers puts into the user's cache.
func cached(name string) (path string, err error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "loadgen", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("make test-servers has not run: %w", err)
	}
	return path, nil
}

// Vegeta returns the path of a vegeta 12, from PATH or as make test-servers builds it.
func Vegeta(t testing.TB) string {
	t.Helper()
	exe, err := exec.LookPath("vegeta")
	if err != nil {
		exe, err = cached("vegeta")
	}
	Require(t, "vegeta", err)
	return exe
}

// Olric returns nil if make test-servers has built the program that runs nodes of Olric (tools/olric), which plans/olric.sh starts.
func Olric() error {
	_, err := cached("olric")
	return err
}
