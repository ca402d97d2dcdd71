package measure

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// bad is every ended op that is neither ok nor a miss; failed is those that the target is to blame for.
func TestEndedAreCounted(t *testing.T) {
	var o Op
	want := uint64(0)
	for outcome, n := range map[driver.Outcome]uint64{driver.OK: 40, driver.Miss: 3, driver.Conflict: 2, driver.Error: 4, driver.Timeout: 1} {
		o.Outcomes[outcome] = n
		if outcome.Failed() {
			want += n
		}
	}
	var totals Totals
	totals.Ops[driver.Get] = &o
	all, bad, failed := totals.Ended()
	require.Equal(t, []uint64{50, 7, want}, []uint64{all, bad, failed})
	require.GreaterOrEqual(t, want, uint64(5), "errors and timeouts are")
}

// An endpoint with only some of the verbs is an endpoint, too.
func TestEndpointsAreCounted(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, driver.NumVerbs: 1, driver.NumVerbs + 1: 2, 3 * driver.NumVerbs: 3} {
		require.Equal(t, want, (&Totals{rest: rest{Requests: make([]Requests, n)}}).Endpoints())
	}
}
