package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

const drainedClosed = `
	ops = { get = 1 }
	closed {
		sessions = 3
		pipeline = 4
		duration = "60s"
	}`

const drainedOpen = `
	ops = { get = 1 }
	open {
		rate     = 1000
		duration = "60s"
		arrivals = "constant"
		sessions = 3
		pipeline = 4
	}`

// TestEarlyEndOfATargetThatStopsAnswering asks for the end of a step 100 ms after the target's last answer: outstanding ops are not awaited until
// they time out, and stay in flight.
func TestEarlyEndOfATargetThatStopsAnswering(t *testing.T) {
	for name, load := range map[string]string{"closed": drainedClosed, "open": drainedOpen} {
		for _, indirect := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				b := newBench(t, redisPlan(t, 1, `timeout = "10s"`, load), "load", time.Millisecond)
				b.indirect = indirect
				began := b.net.clock.t
				b.server(0).latency = func(int) time.Duration {
					if b.net.clock.t > began+int64(time.Second) {
						return -1
					}
					return time.Millisecond
				}
				asked := began + int64(1100*time.Millisecond)
				b.net.at(time.Duration(asked), b.e.Drain)
				get := b.run(worker.Load).Ops[driver.Get]
				require.InDelta(t, 300, time.Duration(b.net.clock.t-asked).Milliseconds(), 60)
				require.EqualValues(t, 12, get.InFlight, "three sessions with four each")
				require.EqualValues(t, get.Due, get.Outcomes[driver.Miss]+get.Outcomes[driver.Shed]+uint64(get.InFlight))
			})
		}
	}
}

// TestEarlyEndAwaitsASlowTarget has a target that answers slowly: twelve ops, one behind another, take longer than the wait for a single answer.
func TestEarlyEndAwaitsASlowTarget(t *testing.T) {
	for name, load := range map[string]string{"closed": drainedClosed, "open": drainedOpen} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, redisPlan(t, 1, `timeout = "10s"`, load), "load", 0)
			free := int64(0)
			b.server(0).latency = func(int) time.Duration { // one at a time
				free = max(free, b.net.clock.t) + int64(200*time.Millisecond)
				return time.Duration(free - b.net.clock.t)
			}
			asked := b.net.clock.t + int64(3*time.Second)
			b.net.at(time.Duration(asked), b.e.Drain)
			get := b.run(worker.Load).Ops[driver.Get]
			require.Greater(t, time.Duration(b.net.clock.t-asked), 2*time.Second)
			require.Zero(t, get.InFlight)
			require.Zero(t, get.Outcomes[driver.Timeout])
		})
	}
}

// TestEndOfALateSchedule has the target fall a million ops behind. When the schedule ends they are shed, and meanwhile the loop still hears that it
// must return at once.
func TestEndOfALateSchedule(t *testing.T) {
	late := func(abandoned bool) measure.Totals {
		b := newBench(t, redisPlan(t, 1, `timeout = "10s"`, `
			ops = { get = 1 }
			open {
				rate     = "1M/s"
				duration = "1s"
				arrivals = "constant"
				sessions = 4
				drain    = "0s"
			}`), "load", 0)
		b.net.clock.tick = int64(time.Microsecond)
		b.server(0).latency = func(int) time.Duration { return -1 }
		if abandoned {
			b.net.at(time.Duration(b.net.clock.t)+time.Second+50*time.Microsecond, func() { b.e.halt.Store(abandon) })
		} else {
			b.net.at(time.Duration(b.net.clock.t)+2*time.Second, b.e.Drain)
		}
		return b.run(worker.Load)
	}
	all := late(false).Ops[driver.Get]
	require.EqualValues(t, 1_000_000, all.Due)
	require.EqualValues(t, 4, all.InFlight)
	some := late(true).Ops[driver.Get]
	require.Greater(t, some.Due, uint64(shedEach))
	require.Less(t, some.Due, uint64(500_000))
}
