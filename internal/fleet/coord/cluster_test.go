package coord_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/result/run"
)

// A cluster's nodes are those that its workers find; any other target's are those of the plan, whatever a worker finds.
func TestNodesOfAClusterAreTheWorkers(t *testing.T) { overBoth(t, testNodesOfAClusterAreTheWorkers) }

func testNodesOfAClusterAreTheWorkers(t *testing.T, join joiner) {
	found := []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"}
	for _, kind := range []string{`"redis"`, "\"redis\"\ncluster = true", `"hydra"`, "\"hydra\"\ncluster = true"} {
		a, b, idle := newFake(), newFake(), newFake()
		a.nodes, b.nodes = found, found
		text := strings.Replace(twoPhases, `driver    = "null"`, "driver = "+kind, 1)
		text = strings.Replace(text, `["a"]`, `["10.0.0.2:6379"]`, 1)
		want := []string{"10.0.0.2:6379"}
		if strings.Contains(kind, "cluster") {
			want = found
		}
		r := coord.Run(context.Background(), configOf(t, text, join, a, b, idle))
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		for _, ph := range r.Phase {
			require.Equal(t, want, ph.Target.Endpoints)
			require.Equal(t, want[0], ph.Requests[0].Endpoint, "which the fakes count for")
		}
	}
}

// Workers that find different nodes would mix up whose requests they count.
func TestWorkersDisagreeOnNodes(t *testing.T) { overBoth(t, testWorkersDisagreeOnNodes) }

func testWorkersDisagreeOnNodes(t *testing.T, join joiner) {
	a, b := newFake(), newFake()
	a.nodes, b.nodes = []string{"10.0.0.1:1", "10.0.0.2:1"}, []string{"10.0.0.1:1", "10.0.0.3:1"}
	text := strings.Replace(twoPhases, `driver    = "null"`, "driver = \"redis\"\ncluster = true", 1)
	text = strings.Replace(text, `["a"]`, `["10.0.0.1:1"]`, 1)
	r := coord.Run(context.Background(), configOf(t, text, join, a, b))
	require.Equal(t, run.Failed, r.Verdict.Completeness)
	require.Contains(t, r.Verdict.Reasons[0], "found different nodes in the cluster, 10.0.0.1:1, 10.0.0.2:1 and 10.0.0.1:1, 10.0.0.3:1: run again when no node joins or leaves")
}
