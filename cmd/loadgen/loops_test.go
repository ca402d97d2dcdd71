package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// putsOnly is an open plan whose first op is a put on every loop.
const putsOnly = `plan "puts" {
  description = "Puts and nothing else"
}
target "cache" {
  driver = "redis"
  builtin {}
}
dataset "items" {
  keys { count = 1000 }
  values { size = "100B" }
}
phase "puts" {
  target  = target.cache
  dataset = dataset.items
  ops     = { put = 1 }
  open {
    sessions = 16
    pipeline = 64
    rate     = "100k/s"
    duration = "300ms"
  }
}
`

// onLoops runs a plan and requires that the process ends by itself, with an exit code of a run.
func onLoops(t *testing.T, plan string, loops int, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args = append([]string{"coordinator", "run", plan, "--once", "--loops", fmt.Sprint(loops), "--runs", t.TempDir(), "--log-root", t.TempDir()}, args...)
	out, err := exec.CommandContext(ctx, "loadgen", args...).CombinedOutput()
	require.NoError(t, ctx.Err())
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
		require.Contains(t, []int{1, 3, 4, 5}, exit.ExitCode(), "%s", out)
	}
	require.NoError(t, err)
	require.NotContains(t, string(out), "fatal error")
}

// Loops whose first puts came together ended the process.
func TestPutsOnSeveralLoops(t *testing.T) {
	t.Parallel()
	plan := filepath.Join(t.TempDir(), "puts.hcl")
	require.NoError(t, os.WriteFile(plan, []byte(putsOnly), 0o600))
	for _, loops := range []int{2, 3, 4} {
		t.Run(fmt.Sprint(loops), func(t *testing.T) {
			t.Parallel()
			for range 3 {
				onLoops(t, plan, loops)
			}
		})
	}
}

// Every plan of this repository runs on four loops, each for a short time.
func TestPlansOnFourLoops(t *testing.T) {
	t.Parallel()
	plans, err := filepath.Glob(filepath.Join("..", "..", "plans", "*.hcl"))
	require.NoError(t, err)
	require.NotEmpty(t, plans)
	for _, plan := range plans {
		t.Run(filepath.Base(plan), func(t *testing.T) {
			t.Parallel()
			args := []string{"--timeout", "2s"}
			switch filepath.Base(plan) {
			case "cluster.hcl":
				args = append(args, "--var", nodes(addresses(servertest.RedisCluster(t, 3, 0))...))
			case "bench.hcl", "memtier-default.hcl": // for servers of one's own
				args = append(args, "--var", "endpoint="+servertest.Redis(t))
			}
			onLoops(t, plan, 4, args...)
		})
	}
}
