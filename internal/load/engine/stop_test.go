package engine

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// A target that answers with errors is left alone after as many of them as the plan tolerates: the step ends there, with a balanced ledger and
// nothing in flight, in every way.
func TestErrorsEndTheStep(t *testing.T) {
	for _, pipeline := range []int{1, 8} {
		for _, indirect := range []bool{false, true} {
			t.Run(fmt.Sprintf("pipeline=%d indirect=%t", pipeline, indirect), func(t *testing.T) {
				b := newBench(t, redisPlan(t, 1, "", fmt.Sprintf(`
					ops        = { get = 1 }
					stop_after = 20
					closed {
						sessions = 4
						pipeline = %d
						duration = "10s"
					}`, pipeline)), "load", time.Millisecond)
				b.indirect = indirect
				b.net.at(time.Duration(b.net.clock.t)+time.Second, func() { b.server(0).words = []byte("-ERR out of order\r\n") })
				b.l.errorStop = newErrorStop(b.g.phase.Stop.Errors, &b.e.halt)
				began := b.net.clock.t
				get := b.run(worker.Load).Ops[driver.Get]
				require.GreaterOrEqual(t, get.Outcomes[driver.Error], uint64(20))
				require.LessOrEqual(t, get.Outcomes[driver.Error], uint64(20+2*4*pipeline), "what was outstanding when there were 20, and what was started before the loop looked")
				require.Greater(t, get.Outcomes[driver.OK]+get.Outcomes[driver.Miss], uint64(900))
				require.Zero(t, get.InFlight)
				require.Less(t, time.Duration(b.net.clock.t-began), time.Second+100*time.Millisecond)
			})
		}
	}
}

// Ops that get no answer count, misses do not.
func TestTimeoutsEndTheStep(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, `timeout = "50ms"`, `
		ops      = { get = 1 }
		on_error = "stop"
		open {
			rate     = 1000
			duration = "10s"
			sessions = 10
		}`), "load", time.Millisecond)
	b.net.at(time.Duration(b.net.clock.t)+time.Second, func() { b.server(0).latency = func(int) time.Duration { return -1 } })
	b.l.errorStop = newErrorStop(b.g.phase.Stop.Errors, &b.e.halt)
	began := b.net.clock.t
	get := b.run(worker.Load).Ops[driver.Get]
	require.Greater(t, get.Outcomes[driver.Miss], uint64(900))
	require.Positive(t, get.Outcomes[driver.Timeout])
	require.Zero(t, get.InFlight)
	require.Less(t, time.Duration(b.net.clock.t-began), time.Second+200*time.Millisecond)
}

// Only ops that failed count, and the one that completes the number ends the step. A miss or an op that was shed does not count.
func TestWhichEndsOfOpsEndTheStep(t *testing.T) {
	for outcome := range driver.Outcome(driver.NumOutcomes) {
		var halt atomic.Int32
		b := newErrorStop(5, &halt)
		b.ended(outcome, 4)
		require.Equal(t, goOn, halt.Load(), outcome)
		b.ended(outcome, 1)
		require.Equal(t, outcome.Failed(), halt.Load() == drain, outcome)
		halt.Store(abandon)
		b.ended(outcome, 1)
		require.Equal(t, abandon, halt.Load(), outcome)
	}
	require.Nil(t, newErrorStop(0, nil))
	newErrorStop(0, nil).ended(driver.Error, 1000)
}
