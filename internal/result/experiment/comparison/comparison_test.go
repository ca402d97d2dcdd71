package comparison_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/result/experiment/comparison"
	"github.com/loadgen/loadgen/internal/result/run"
)

// kept is two runs of a plan.
func kept(side, plan string) (all []comparison.Kept) {
	for i := range 2 {
		r := run.New(run.Header{ID: fmt.Sprint(side, i)}, machine.Environment{})
		all = append(all, comparison.Kept{Run: r, Plan: []byte(plan)})
	}
	return all
}

func TestWhatIsNotTheSame(t *testing.T) {
	const plan = `{"name":"p","phases":[{"name":"load","closed":{"sessions":16,"duration_ns":10000000000}}],"asserts":[{"name":"a","line":7}]}`
	a, b := kept("a", plan), kept("b", plan)
	require.Empty(t, comparison.New(a, b).Differences)
	for i := range b {
		b[i].Plan = []byte(`{"name":"p","phases":[{"name":"load","closed":null,"open":{"rate":5,"drain_ns":0}},{"name":"more"}],"asserts":[{"name":"a","line":8}]}`)
		b[i].Environment.Kernel = fmt.Sprint("6.", i)
		b[i].Environment.Servers = map[string]map[string]map[string]string{"t": {"127.0.0.1:7": {"version": "8.0", "process_id": fmt.Sprint(i)}}}
		b[i].Loadgen = "v2"
	}
	a[0].Environment.Servers = map[string]map[string]map[string]string{"t": {"127.0.0.1:8": {"version": "7.0"}, "127.0.0.1:9": {"version": "7.2"}}}
	c := comparison.New(a, b)
	require.Equal(t, []comparison.Difference{
		{Of: "plan", Path: "phases", Values: []string{"load", "load, more"}},
		{Of: "plan", Path: "phases.load.closed.duration_ns", Values: []string{"10s", "–"}},
		{Of: "plan", Path: "phases.load.closed.sessions", Values: []string{"16", "–"}},
		{Of: "plan", Path: "phases.load.open.rate", Values: []string{"–", "5"}},
		{Of: "environment", Path: "kernel", Values: []string{"–", "6.0 | 6.1"}},
		{Of: "environment", Path: "loadgen", Values: []string{"–", "v2"}},
		{Of: "environment", Path: "servers.t.version", Values: []string{"7.0, 7.2 | –", "8.0"}},
	}, c.Differences)

	b[0].Plan, b[1].Plan = []byte(`{`), []byte(`[{"name":1},2]`)
	require.NotEmpty(t, comparison.New(a, b).Differences, "whatever the plans are")
}
