package prom

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestLedgerIsDividedBetweenTargets: each has the rows of its endpoints, and what follows a cluster's is separated once its number of nodes is known.
func TestLedgerIsDividedBetweenTargets(t *testing.T) {
	ph := &plan.Phase{Name: "p", Target: "a", Scenarios: []plan.Scenario{{Name: "s", Steps: []plan.ScenarioStep{{Op: "get"}, {Op: "put", Target: "b"}}}}}
	p := &plan.Plan{Phases: []*plan.Phase{ph}, Targets: []*plan.Target{{Name: "a", Endpoints: []string{"x", "y"}}, {Name: "b", Builtin: &plan.Builtin{Nodes: 1}}}}
	rows := func(of *Phase, requests int) (n []int) {
		for _, share := range of.shares(make([]measure.Requests, requests*driver.NumVerbs)) {
			n = append(n, len(share)/driver.NumVerbs)
		}
		return n
	}
	of := newPhase(p, ph)
	require.Equal(t, []Target{{Name: "a", Endpoints: 2, Rows: 2}, {Name: "b", Endpoints: 1, Rows: 1}}, of.Targets)
	require.Equal(t, []int{2, 1}, rows(&of, 3))
	require.Equal(t, []int{0, 0}, rows(&of, 0), "nothing is counted yet")

	p.Targets[0].Placement = plan.Slots
	of = newPhase(p, ph)
	require.Len(t, endpointNames(of.Targets[0].Endpoints), maxEndpoints)
	before := of.Targets
	require.Equal(t, []int{5, 0}, rows(&of, 5))
	of.found(map[string][]string{"a": {"x", "y", "z"}})
	require.Equal(t, []int{4, 1}, rows(&of, 5), "three nodes, and those that join later")
	require.Zero(t, before[0].Rows, "a page that is being written shows what it showed")
}
