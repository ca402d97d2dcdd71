package judge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestRequestsOfSeveralTargets: each target has rows for what the phase's steps ask of it, and for anything else it was asked.
func TestRequestsOfSeveralTargets(t *testing.T) {
	ph := closedPhase()
	ph.Ops = []plan.Weight{{Op: "get", Weight: 1}, {Op: "put", Weight: 1}}
	ph.Scenarios = []plan.Scenario{{Name: "s", Weight: 1, Steps: []plan.ScenarioStep{{Op: "get", Key: "new"}, {Op: "put", Key: "same", Target: "three"}}}}
	p := phase{
		Phase: &run.Phase{Target: run.Target{Name: "one", Endpoints: endpoints}, Others: []run.Target{{Name: "three", Endpoints: []string{"a", "b"}}}},
		words: new(plan.Plan).Words(),
	}
	totals := measure.NewTotals(origin, 4)
	*totals.Request(0, driver.Get) = measure.Requests{Sent: 5, Answered: 5}
	*totals.Request(3, driver.Put) = measure.Requests{Sent: 4, Answered: 4}
	*totals.Request(2, driver.Delete) = measure.Requests{Sent: 1, Answered: 1}
	require.Equal(t, []run.Requests{
		{Target: "one", Endpoint: endpoints[0], Verb: "get", Sent: 5, Answered: 5},
		{Target: "one", Endpoint: endpoints[1], Verb: "get"},
		{Target: "three", Endpoint: "a", Verb: "put"},
		{Target: "three", Endpoint: "a", Verb: "delete", Sent: 1, Answered: 1},
		{Target: "three", Endpoint: "b", Verb: "put", Sent: 4, Answered: 4},
	}, p.requests(totals, p.asked(ph)))
	require.Equal(t, []row{
		{target: "a", endpoint: "1"},
		{target: "a", endpoint: "2"},
		{target: "a", endpoint: "joined later", later: true},
		{target: "b", endpoint: "3"},
		{target: "c", endpoint: "joined later", later: true},
	}, rowsOf([]run.Target{
		{Name: "a", Endpoints: []string{"1", "2"}, Placement: plan.Slots}, {Name: "b", Endpoints: []string{"3"}}, {Name: "c", Placement: plan.Slots},
	}), "behind those of a cluster is a row for the nodes that join it")
	rows := []row{{endpoint: "1"}}
	require.Equal(t, rows[0], rowAt(rows, 0))
	require.Equal(t, row{endpoint: "an endpoint that nobody named", later: true}, rowAt(rows, 1))
}
