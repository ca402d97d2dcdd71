package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
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

// TestALongStandstillIsNoFloodOfIntervals has a loop stand still. How long it does decides into how many rows that is divided, not when.
func TestALongStandstillIsNoFloodOfIntervals(t *testing.T) {
	for _, begin := range []time.Duration{0, 1000 * time.Second} {
		for still, rows := range map[time.Duration]int{40 * time.Second: 40, time.Hour: mostIdle} {
			b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\n"+closedLoad), "load", time.Millisecond)
			b.net.clock.t = int64(begin)
			b.net.at(begin+1500*time.Millisecond, func() { b.net.clock.t += int64(still) })
			_, seconds := b.bySecond()
			b.g.close()
			require.InDelta(t, rows, len(seconds), 3, "%v after %v", still, begin)
			require.Greater(t, seconds[len(seconds)-1].to, int64(begin+still))
		}
	}
}

// A recorder whose counts were passed on is used again, empty.
func TestRecordersAreUsedAgain(t *testing.T) {
	b := newBench(t, redisPlan(t, 3, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n duration = \"2500ms\"\n}"), "load", time.Millisecond)
	totals := b.run(worker.Load)
	require.Len(t, totals.Requests, 3*driver.NumVerbs)
	require.Len(t, b.l.spare, 3)
	require.Zero(t, (<-b.l.spare).Ops[driver.Get].Due)
}

// Sessions begin each step anew. From the first of three ops in a row to the last there are two turns.
func TestSpansOfStepsOnTheSameSessions(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 3\n}"), "load", time.Millisecond)
	for range 2 {
		span := b.run(worker.Load).Span
		require.InDeltaSlice(t, []int64{0, 2e6, 3e6, 1e6}, []int64{span.First - b.l.origin, span.FirstOut - b.l.origin, span.Last - b.l.origin, span.Turn}, 1e4)
	}
}

// TestAnOutageIsAsLongAsItWas has a target answer nothing for 3 s of an open load, as a process that is stopped: what was asked then is answered once it
// goes on, or times out before. The longest response says for how long it was; so do the puts that failed, but for those of its last moments, which were
// answered before their timeout.
func TestAnOutageIsAsLongAsItWas(t *testing.T) {
	const rate, stopped, goesOn = 1000, 4 * time.Second, 7 * time.Second
	for _, timeout := range []time.Duration{500 * time.Millisecond, 10 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			b := newBench(t, redisPlan(t, 1, fmt.Sprintf("timeout = %q", timeout), fmt.Sprintf(`
				ops = { put = 1 }
				open {
					rate      = %d
					duration  = "12s"
					sessions  = 64
					pipeline  = 64
					in_flight = 4096
				}`, rate)), "load", 0)
			defer b.g.close()
			b.server(0).latency = func(int) time.Duration {
				if now := time.Duration(b.net.clock.t); now >= stopped && now < goesOn {
					return goesOn - now + time.Millisecond
				}
				return time.Millisecond
			}
			got := b.run(worker.Load)
			put := got.Ops[driver.Put]
			require.EqualValues(t, 12*rate, put.Due)
			bad := put.Due - put.Outcomes[driver.OK]
			if timeout > goesOn-stopped {
				require.Zero(t, bad)
				require.InDelta(t, 3, time.Duration(put.Response[measure.ClassOK].Max()).Seconds(), 0.2)
				return
			}
			require.InDelta(t, 3, float64(bad)/rate+timeout.Seconds(), 0.2)
		})
	}
}
