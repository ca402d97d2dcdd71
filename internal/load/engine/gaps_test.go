package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// idleMeter is a meter whose thread never waits for a processor.
func idleMeter(t *testing.T) *meter {
	t.Helper()
	path := filepath.Join(t.TempDir(), "schedstat")
	require.NoError(t, os.WriteFile(path, []byte("0 0 0\n"), 0o600))
	m := openMeter(path)
	t.Cleanup(m.close)
	return m
}

// TestStopsOfAClosedLoadsLoopAreGaps stops the loop while it waits for answers, for less than a stall.
func TestStopsOfAClosedLoadsLoopAreGaps(t *testing.T) {
	for name, latency := range map[string]time.Duration{"fast": time.Millisecond, "slow": 400 * time.Millisecond} {
		for _, endpoints := range []int{1, 4} {
			t.Run(name, func(t *testing.T) {
				b := newBench(t, redisPlan(t, endpoints, "", "ops = { get = 1 }\n"+closedLoad), "load", latency)
				defer b.g.close()
				b.l.meter = idleMeter(t)
				for i, stop := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
					b.net.at(time.Duration(i+1)*1100*time.Millisecond, func() { b.net.clock.t += int64(stop) })
				}
				totals := b.run(worker.Load)
				require.Zero(t, totals.Stalls)
				g := b.l.gaps
				require.NotNil(t, g)
				require.EqualValues(t, 3, g.times)
				require.InDelta(t, 0.35, seconds(g.total), 3*seconds(maxWatch), "a part of each is a wait that was meant")
				require.LessOrEqual(t, g.total, int64(351*time.Millisecond))
				require.InDelta(t, 0.2, seconds(g.longest), seconds(maxWatch)+0.001)
				require.Zero(t, g.others)
			})
		}
	}
}

// TestATargetThatStandsStillMakesNoGaps has the target answer late for a while.
func TestATargetThatStandsStillMakesNoGaps(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\n"+closedLoad), "load", time.Millisecond)
	defer b.g.close()
	b.l.meter = idleMeter(t)
	b.server(0).latency = func(n int) time.Duration {
		if n%1000 < 4 {
			return 300 * time.Millisecond
		}
		return time.Millisecond
	}
	totals := b.run(worker.Load)
	require.Zero(t, totals.Stalls)
	require.Equal(t, &gaps{}, b.l.gaps)
}

// TestALoopThatHasNothingOutstandingSleepsAsLongAsItMay counts the waits of a second in which sessions think.
func TestALoopThatHasNothingOutstandingSleepsAsLongAsItMay(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\n"+closedLoad), "load", time.Millisecond)
	defer b.g.close()
	b.equip(worker.Load)
	b.l.meter = idleMeter(t)
	b.l.meter.begin()
	b.l.countGaps()
	b.l.sweepAt, b.l.sealAt = never, never
	b.l.timers.drop(startSlots)
	require.Equal(t, maxSleep, b.l.wake(0))
	b.l.running = 1
	require.Equal(t, maxWatch, b.l.wake(0))
}

// A late cycle is a gap as far as others had the processor meanwhile. All of it is one if the loop only looked at the clock, and in a closed load if
// it is long.
func TestWhichLateCyclesAreGaps(t *testing.T) {
	const short, long = int64(time.Millisecond), int64(20 * time.Millisecond)
	known, unknown := idleMeter(t), &meter{schedstat: -1}
	known.begin()
	for _, tt := range []struct {
		excess         int64
		looked, closed bool
		meter          *meter
		gaps           uint64
	}{
		{long, false, false, known, 0},
		{short, true, false, known, 1},
		{short, true, true, known, 1},
		{long, true, false, unknown, 0},
		{long, false, true, known, 1},
		{long - 1, false, true, known, 0},
	} {
		l := &loop{rec: measure.NewTotals(0, 1), gaps: new(gaps), looked: tt.looked, closed: tt.closed, meter: tt.meter}
		l.overran(tt.excess)
		require.Equal(t, gaps{times: tt.gaps, total: tt.excess * int64(tt.gaps), longest: tt.excess * int64(tt.gaps)}, *l.gaps, "%+v", tt)
	}
}
