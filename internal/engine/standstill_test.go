package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TestSecondsOfALoopThatStoodStillAreRowsOfTheirOwn stops the whole process for 8 s. Each second is an interval; ops that ended when it woke are
// counted in that second.
func TestSecondsOfALoopThatStoodStillAreRowsOfTheirOwn(t *testing.T) {
	for name, load := range map[string]string{"closed": closedLoad, "open": openLoad} {
		for _, endpoints := range []int{1, 4} {
			t.Run(name, func(t *testing.T) {
				b := newBench(t, redisPlan(t, endpoints, "", "ops = { get = 1 }\n"+load), "load", time.Millisecond)
				defer b.g.close()
				const stopped, awake = 1500 * time.Millisecond, 9500 * time.Millisecond
				b.net.at(stopped, func() { b.net.clock.t = int64(awake) })
				totals, seconds := b.bySecond()
				require.GreaterOrEqual(t, len(seconds), 10)
				var ended uint64
				for i, s := range seconds {
					if i < len(seconds)-1 {
						require.Equal(t, time.Duration(i+1)*time.Second, time.Duration(s.to))
					}
					if from := time.Duration(i) * time.Second; stopped < from && from+time.Second < awake {
						require.Zero(t, s.ended, "second %d", i+1)
					}
					ended += s.ended
				}
				require.InDelta(t, 2000, seconds[1].ended, 20, "half a second")
				require.Positive(t, seconds[9].ended)
				gets := totals.Ops[driver.Get]
				require.Equal(t, ended, gets.Outcomes[driver.OK]+gets.Outcomes[driver.Miss])
			})
		}
	}
}

// endedBy is how many gets ended in an interval.
type endedBy struct {
	to    int64
	ended uint64
}

// bySecond carries the load out and returns the totals, and the counts of each of the consecutive intervals.
func (b *bench) bySecond() (measure.Totals, []endedBy) {
	parts := b.equip(worker.Load)
	b.l.run()
	at, seq, list := b.l.origin, uint64(0), []endedBy(nil)
	c := collector{g: b.g, begin: at, seq: &seq, sink: func(s *measure.Snapshot) {
		require.NoError(b.t, s.CheckValid())
		require.Equal(b.t, at, s.From)
		require.Equal(b.t, b.l.origin, s.Delta.Origin)
		at = s.To
		n := endedBy{to: s.To}
		if get := s.Delta.Ops[driver.Get]; get != nil {
			n.ended = get.Outcomes[driver.OK] + get.Outcomes[driver.Miss]
			for _, o := range []driver.Outcome{driver.OK, driver.Miss} {
				require.Equal(b.t, get.Outcomes[o], get.Bins[o].Total())
			}
		}
		list = append(list, n)
	}}
	return c.collect(parts), list
}

// TestALongStandstillIsNoFloodOfIntervals has a loop stand still for an hour.
func TestALongStandstillIsNoFloodOfIntervals(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\n"+closedLoad), "load", time.Millisecond)
	defer b.g.close()
	b.net.at(1500*time.Millisecond, func() { b.net.clock.t += int64(time.Hour) })
	_, seconds := b.bySecond()
	require.LessOrEqual(t, len(seconds), mostIdle+3)
	require.Greater(t, seconds[len(seconds)-1].to, int64(time.Hour))
}
