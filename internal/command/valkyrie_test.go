package command_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// TestValkyrieOnARepository runs the plan's three tests on Fedora, ten saves each: it takes works, ever more members of one, and files.
func TestValkyrieOnARepository(t *testing.T) {
	t.Parallel()
	m := NewNetwork(t, 1).Machines[0]
	fedora := servertest.Fedora(t, m.On)
	for _, test := range []string{"collections", "nested", "files"} {
		l := beginBy(t, func(args ...string) *exec.Cmd { return m.On(command(t, args...)) }, filepath.Join("..", "..", "plans", "valkyrie.hcl"),
			"--variant", "test="+test+",backend=fedora,count=100", "-var", "scale=0.1", "-var", "budget=2m", "-var", fmt.Sprintf("fedora=[%q]", fedora))
		r := l.result(3 * time.Minute)
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		save := r.Phase["save"]
		require.EqualValues(t, "iterations", save.Ended)
		require.EqualValues(t, 10, save.Op["put"].OK, "%s: %v", test, save.Errors)
	}
}
