package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/plan"
)

func TestStreamsOfAnOpenLoad(t *testing.T) {
	cases := map[string]int{"1": 1024, "3": 1026, "16": 1024, "1000": 2000, "1024": 1024, "1025": 1025, "1000000": 1000000}
	for sessions, want := range cases {
		p := good(t, caches+phase("x", "plain", "shared", "  ops = { get = 1 }\n  open {\n rate = 1\n duration = 1\n sessions = "+sessions+"\n }"), plan.Vars{})
		require.Equal(t, want, p.Phases[0].Open.Streams)
	}
}

func TestARampBeginsAtTheRateOfTheStageBefore(t *testing.T) {
	stages := plan.Stages{Stages: []plan.Stage{
		{Rate: 1000, Duration: 10 * time.Second},
		{Rate: 2000, Duration: 5 * time.Second, Ramp: time.Second},
	}}
	require.Equal(t, []plan.Shape{
		{Rate: 1000, Duration: 10 * time.Second},
		{Rate: 2000, From: 1000, Duration: 5 * time.Second, Ramp: time.Second},
	}, stages.Shapes())
	open := plan.Open{Rate: 500, Ramp: time.Second, Duration: 3 * time.Second}
	require.Equal(t, plan.Shape{Rate: 500, Ramp: time.Second, Duration: 3 * time.Second}, open.Shape())
}

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
