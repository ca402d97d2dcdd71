package servertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Vegeta returns the path of a vegeta 12, from PATH or as make test-servers builds it.
func Vegeta(t testing.TB) string {
	t.Helper()
	exe, err := exec.LookPath("vegeta")
	if err != nil {
		exe, err = builtVegeta()
	}
	Require(t, "vegeta", err)
	return exe
}

func builtVegeta() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	exe := filepath.Join(dir, "loadgen", "vegeta")
	if _, err := os.Stat(exe); err != nil {
		return "", fmt.Errorf("no vegeta: %w", err)
	}
	return exe, nil
}
