package coord

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestLimits are those of the plan, and of the step's kind.
func TestLimits(t *testing.T) {
	s := stepOf(t, "closed {\n sessions = 4\n iterations = 1\n}", 2)
	puts := [driver.NumVerbs]bool{driver.Put: true}
	require.Equal(t, &measure.Limits{Verbs: puts}, s.limits())

	s.c.Plan.Targets[0].Replication = &plan.Replication{N: 3}
	s.ph.Growth, s.ph.Samples = &plan.Growth{}, 7
	s.ph.Scenarios = []plan.Scenario{{Steps: make([]plan.ScenarioStep, 2)}, {Steps: make([]plan.ScenarioStep, 1)}}
	require.Equal(t, &measure.Limits{Verbs: puts, Acks: 3, Scenarios: []int{2, 1}, Growth: true, Samples: 7}, s.limits())

	s.ph.Setup = []plan.Weight{{Op: "delete", Weight: 1}}
	s.steps[0].Kind = worker.Setup
	require.Equal(t, &measure.Limits{Verbs: [driver.NumVerbs]bool{driver.Delete: true}, Acks: 3}, s.limits())
}

// TestWorkerThatFillsTheCoordinator goes on counting while another worker is silent. Once its counts no longer fit, even as one interval, the step
// fails, and the error names it.
func TestWorkerThatFillsTheCoordinator(t *testing.T) {
	s := stepOf(t, "closed {\n sessions = 4\n iterations = 1\n}", 2)
	s.begin(time.Second)
	s.joiner.Most = 180 << 10
	s.c.journal = newJournal(&kept{})
	defer s.c.journal.close()
	var sum measure.Totals
	add := func(from int64, slowest time.Duration) error {
		delta := measure.NewTotals(int64(s.at), 1)
		delta.AddDue(driver.Put)
		delta.Record(&measure.Sample{Verb: driver.Put, Due: 0, Start: int64(slowest), End: math.MaxInt64})
		sum.Merge(delta)
		seq := s.c.seqs[1] + 1
		_, _, err := s.join(1, &measure.Snapshot{SeqFirst: seq, SeqLast: seq, From: from, To: from + 1e9, Delta: *delta, Running: sum.Counters()})
		return err
	}
	require.NoError(t, add(1e9, 0))
	require.NoError(t, add(2e9, 0))
	err := add(3e9, math.MaxInt64)
	require.ErrorContains(t, err, "worker b: snapshot 3: with it, the snapshots that wait for other workers take ")
	require.ErrorContains(t, err, "use fewer scenarios, steps or replicas")
}
