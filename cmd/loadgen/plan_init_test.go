package main_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// The first plan also works for values of 1 MiB, both on a user's own server and on a built-in node, which once had room for 63 of its 10,000 keys,
// so that most gets missed.
func TestStarterWithLargeValues(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "starter.hcl")
	wrote := start(t, command(t, "plan", "init", path))
	require.Zero(t, wrote.wait(60*time.Second), "%s", &wrote.stderr)
	large := []string{"-var", "size=1MiB", "-var", "duration=1s"}
	for name, more := range map[string][]string{
		"built-in": nil,
		"redis":    {"-var", `endpoints=["` + servertest.Redis(t) + `"]`, "-var", "keys=200"},
	} {
		t.Run(name, func(t *testing.T) {
			check := start(t, command(t, append(append([]string{"plan", "check", path}, large...), more...)...))
			require.Zero(t, check.wait(60*time.Second), "%s", &check.stderr)
			require.NotContains(t, check.stdout.String(), "evict")
			r := beginFile(t, path, append(large, more...)...).result(time.Minute)
			require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
			get := r.Phase["closed"].Op["get"]
			require.Positive(t, get.OK)
			require.Equal(t, get.Due, get.OK)
			require.Zero(t, r.Phase["fill"].Op["put"].Due-r.Phase["fill"].Op["put"].OK)
		})
	}
}
