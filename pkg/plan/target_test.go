package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/plan"
)

// A phase's target may be the one that a variable names.
func TestTargetsByVariables(t *testing.T) {
	src := strings.Replace(caches, `plan "p" {}`, "plan \"p\" {}\nvariable \"on\" { default = \"plain\" }", 1) +
		strings.Replace(phase("x", "plain", "shared", gets), "target.plain", `target[var.on]`, 1) +
		strings.Replace(phase("y", "plain", "shared", gets), "target.plain", `target["quorum"]`, 1)
	p := good(t, src, plan.Vars{Flags: []string{"on=quorum"}})
	require.Equal(t, "quorum", p.Phases[0].Target)
	require.Equal(t, "quorum", p.Phases[1].Target)
	require.Equal(t, "plain", good(t, src, plan.Vars{}).Phases[0].Target)
}
