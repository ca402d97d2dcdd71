package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/plan"
)

// A search's rates count scenarios, but its objectives are for their ops: a step's samples are ops.
func TestObjectivesOfScenarios(t *testing.T) {
	search := func(rate string) string {
		return "  search {\n from = \"" + rate + "\"\n step_duration = \"2s\"\n budget = \"8s\"\n slo { response_p99 = \"5ms\" }\n }"
	}
	twice := "  scenario \"a\" {\n step \"get\" {}\n step \"get\" {}\n }\n"
	both := "  scenario \"a\" {\n step \"get\" {}\n step \"put\" { key = \"same\" }\n }\n"
	for _, c := range []struct{ scenarios, enough, few, brings string }{
		{twice, "250/s", "249/s", "response_p99 of 996 ops, which is what the lowest rate brings in a quarter of the budget. Write a higher from or a longer budget: that quantile needs 1000 ops."},
		{both, "500/s", "499/s", "response_p99 of 998 ops, "},
		{twice + "  ops = { get = 1 }\n", "400/s", "398/s", "response_p99 of 1194 ops, which is what the lowest rate brings in a quarter of the budget. Write a higher from or a longer budget: that quantile needs 1196 ops."},
	} {
		good(t, caches+phase("x", "plain", "shared", c.scenarios+search(c.enough)), plan.Vars{})
		text := caches + phase("x", "plain", "shared", c.scenarios+search(c.few))
		_, diags := resolve(text, "plan.hcl", plan.Vars{})
		require.Contains(t, formatted(t, diags, map[string][]byte{"plan.hcl": []byte(text)}), c.brings)
	}
}
