package coord

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/driver"
)

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
