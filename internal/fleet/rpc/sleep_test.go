package rpc_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/servertest"
)

// TestEchoFromBeforeASleepRenewsNothing suspends a worker's machine for longer than its lease, while its clock hardly moves. The echo of a heartbeat
// sent before arrives afterwards: the load ends at once. After a short sleep it goes on.
func TestEchoFromBeforeASleepRenewsNothing(t *testing.T) {
	for slept, ends := range map[time.Duration]time.Duration{11 * time.Second: 5500 * time.Millisecond, 2 * time.Second: 20 * time.Second} {
		t.Run(slept.String(), func(t *testing.T) {
			servertest.Bubble(t, func(t *testing.T) {
				f := newFleet(t)
				defer f.close()
				var suspended atomic.Int64
				asleep := func() time.Duration { return time.Duration(suspended.Load()) }
				f.join("w1")
				n := f.join("w2", func(cfg *rpc.JoinConfig) { cfg.Suspended = asleep })
				n.engine = func(cfg *engine.Config) { cfg.Suspended = asleep }
				f.members()
				n.after(4900*time.Millisecond, func(c *cable) { c.long = 700 * time.Millisecond }) // the echo of 5 s comes after the sleep
				time.AfterFunc(5500*time.Millisecond, func() { suspended.Store(int64(slept)) })
				r := carryOut(t, f)
				_, last := n.mill.seen()
				require.InDelta(t, ends.Seconds(), last.Seconds(), 0.06)
				requireAccounted(t, f, r)
				require.Len(t, f.said.with("this machine was suspended"), 1)
				if slept > 10*time.Second {
					require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
					require.Equal(t, "w2", r.Losses[0].Worker)
				} else {
					require.Empty(t, r.Losses)
				}
			})
		})
	}
}
