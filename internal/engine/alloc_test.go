package engine

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/run"
)

// TestNoAllocationPerOp runs the real loop over a scripted network and counts allocations per cycle, once everything
// that grows has grown.
func TestNoAllocationPerOp(t *testing.T) {
	values := map[string]string{"large values": "size = \"16KiB\""}
	cases := []struct{ name, target, phase string }{
		{"plain closed", "", `
			ops = { get = 1, put = 1 }
			closed {
				sessions = 4
				duration = "1h"
				pipeline = 4
			}`},
		{"plain closed with think time", "", `
			ops = { get = 1, put = 1 }
			closed {
				sessions = 4
				duration = "1h"
				think    = "1ms"
			}`},
		{"puts alike", "", `
			ops = { put = 1 }
			closed {
				sessions = 4
				duration = "1h"
				pipeline = 4
			}`},
		{"large values", "", `
			ops = { put = 1 }
			closed {
				sessions = 4
				duration = "1h"
				pipeline = 4
			}`},
		{"plain open", "", `
			ops = { get = 1, put = 1 }
			open {
				rate     = 5000
				duration = "1h"
				arrivals = "poisson"
				sessions = 4
				pipeline = 16
			}`},
		{"batch closed", "", `
			ops   = { get = 1, put = 1 }
			batch = 4
			closed {
				sessions = 4
				duration = "1h"
				pipeline = 4
			}`},
		{"batch open", "", `
			ops   = { get = 1, put = 1 }
			batch = 4
			open {
				rate     = 2000
				duration = "1h"
				arrivals = "poisson"
				sessions = 4
				pipeline = 16
			}`},
		{"cluster closed", "cluster = true", `
			ops = { get = 1, put = 1 }
			closed {
				sessions = 4
				duration = "1h"
				pipeline = 4
			}`},
		{"cluster open", "cluster = true", `
			ops = { get = 1, put = 1 }
			open {
				rate     = 5000
				duration = "1h"
				arrivals = "poisson"
				sessions = 4
				pipeline = 16
			}`},
		{"nwr closed", nwr321, `
			ops = { get = 1, put = 1, delete = 1 }
			closed {
				sessions = 4
				duration = "1h"
			}`},
		{"nwr open", nwr321, `
			ops = { get = 1, put = 1 }
			open {
				rate     = 2000
				duration = "1h"
				arrivals = "constant"
				sessions = 4
				pipeline = 16
			}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, redisPlanOf(t, 3, cmp.Or(values[c.name], "size = 100"), c.target, c.phase), "load", time.Millisecond)
			b.net.clock.tick = int64(time.Microsecond)
			b.equip(run.Load)
			b.l.enter()
			for range 50_000 {
				require.True(t, b.l.cycle())
			}
			before := b.served()
			allocs := testing.AllocsPerRun(2000, func() { b.l.cycle() })
			require.Greater(t, b.served()-before, 500)
			require.Zero(t, allocs)
		})
	}
}

// served is how many requests the servers got.
func (b *bench) served() (n int) {
	for _, s := range b.net.servers {
		for _, got := range s.got {
			n += *got
		}
	}
	return n
}

// TestNullTargetAllocatesNothing is the same for the transport without sockets.
func TestNullTargetAllocatesNothing(t *testing.T) {
	b := newBench(t, nullPlan(t, 3, `latency = "1ms"`, `
		ops = { get = 1, put = 1 }
		closed {
			sessions = 4
			duration = "1h"
			pipeline = 4
		}`), "load", 0)
	b.equip(run.Load)
	b.l.enter()
	for range 50_000 {
		require.True(t, b.l.cycle())
	}
	before := b.l.timers.seq
	require.Zero(t, testing.AllocsPerRun(2000, func() { b.l.cycle() }))
	require.Greater(t, b.l.timers.seq-before, uint64(1000), "replies were computed")
}
