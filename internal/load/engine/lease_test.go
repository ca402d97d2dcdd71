package engine

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
)

// leased runs a load of 10 s on one scripted server, with a lease that ends after a time, and returns how many requests the server got and
// what was counted.
func leased(t *testing.T, load string, until time.Duration, meanwhile func(b *bench)) (got int, due, answered, left uint64) {
	t.Helper()
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\n"+load), "load", time.Millisecond)
	defer b.g.close()
	b.e.SetLease(until)
	answers := b.server(0).latency
	b.server(0).latency = func(n int) time.Duration {
		require.Less(t, b.net.clock.t, int64(until), "sent when the lease was over")
		return answers(n)
	}
	if meanwhile != nil {
		meanwhile(b)
	}
	totals := b.run(worker.Load)
	require.True(t, b.l.lapsed)
	require.EqualValues(t, *b.server(0).got["GET"], totals.Request(0, driver.Get).Sent)
	gets := totals.Ops[driver.Get]
	return *b.server(0).got["GET"], gets.Due, gets.Outcomes[driver.OK] + gets.Outcomes[driver.Miss], uint64(gets.InFlight)
}

const (
	closedLoad = "closed {\n sessions = 4\n duration = \"10s\"\n}"
	openLoad   = "open {\n sessions = 4\n rate = \"4000/s\"\n duration = \"10s\"\n}"
)

// TestLoadEndsWithTheLease is about a worker whose lease runs out while it works.
func TestLoadEndsWithTheLease(t *testing.T) {
	for name, load := range map[string]string{"closed": closedLoad, "open": openLoad} {
		t.Run(name, func(t *testing.T) {
			got, due, answered, left := leased(t, load, 2*time.Second, nil)
			require.InEpsilon(t, 8000, got, 0.02)
			require.EqualValues(t, due, answered+left)
			require.LessOrEqual(t, left, uint64(64))
			require.InDelta(t, due, got, 64)
		})
	}
}

// TestRequestsThatNeverLeft has the lease run out at every moment of a turn of the loop, also between gathering requests and writing them: unwritten
// requests do not count as sent.
func TestRequestsThatNeverLeft(t *testing.T) {
	for name, load := range map[string]string{"closed": closedLoad, "open": openLoad} {
		t.Run(name, func(t *testing.T) {
			for moment := range 120 {
				leased(t, load, 50*time.Millisecond+time.Duration(moment)*7*time.Microsecond, func(b *bench) {
					b.net.clock.tick = int64(20 * time.Microsecond) // whatever the loop does takes its time
				})
			}
		})
	}
}

// TestSendsNothingAfterWakingLate stops the whole process, in the middle of an open load, for longer than the lease: thousands of ops are
// due when it wakes, and none of them leaves.
func TestSendsNothingAfterWakingLate(t *testing.T) {
	for name, load := range map[string]string{"closed": closedLoad, "open": openLoad} {
		t.Run(name, func(t *testing.T) {
			asleep := 0
			got, due, _, _ := leased(t, load, 3*time.Second, func(b *bench) {
				b.net.at(2*time.Second, func() {
					asleep = *b.server(0).got["GET"]
					b.net.clock.t += int64(4 * time.Second)
				})
			})
			require.Positive(t, asleep)
			require.Equal(t, asleep, got)
			require.EqualValues(t, got, due, "nor does the answer that it finds start another op")
		})
	}
}

// TestCallsThatNobodyTookUp has the lease run out while calls are with blocking clients: no more are taken up.
func TestCallsThatNobodyTookUp(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		p := nullPlan(t, 1, "executor = \"blocking\"\nlatency = \"10ms\"", "ops = { get = 1 }\nclosed {\n sessions = 1\n pipeline = 8\n duration = \"10s\"\n}")
		e := assigned(t, Config{Loops: servertest.Loops(), Sleep: time.Sleep}, p)
		loaded(t, e)
		e.SetLease(55 * time.Millisecond)
		final := ran(t, e)
		require.True(t, final.Expired)
		requests := final.Totals.Request(0, driver.Get)
		require.EqualValues(t, 6*8, requests.Sent, "eight each 10 ms")
		require.EqualValues(t, 6*8, requests.Answered+uint64(requests.InFlight))
		require.EqualValues(t, final.Totals.Ops[driver.Get].Due, requests.Sent+requests.Refused)
	})
}

// TestSleepOfTheMachineCountsAgainstTheLease suspends the machine in the middle of a load: the run clock stands still, except while processes are
// being thawed. Nothing leaves after a sleep longer than the lease; a shorter one is deducted from it.
func TestSleepOfTheMachineCountsAgainstTheLease(t *testing.T) {
	for name, load := range map[string]string{"closed": closedLoad, "open": openLoad} {
		for slept, ends := range map[time.Duration]time.Duration{time.Hour: 2 * time.Second, 400 * time.Millisecond: 2600 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " ", slept), func(t *testing.T) {
				asleep, suspended := 0, time.Duration(0)
				last := time.Duration(0)
				got, due, _, _ := leased(t, load, 3*time.Second, func(b *bench) {
					b.e.lease.suspended = func() time.Duration { return suspended }
					b.net.at(2*time.Second, func() {
						asleep, suspended = *b.server(0).got["GET"], slept
						b.net.clock.t += int64(5 * time.Millisecond)
					})
					answers := b.server(0).latency
					b.server(0).latency = func(n int) time.Duration {
						last = time.Duration(b.net.clock.t)
						return answers(n)
					}
				})
				require.Positive(t, asleep)
				require.InDelta(t, ends, last, float64(6*time.Millisecond))
				if slept > time.Second {
					require.Equal(t, asleep, got)
					require.EqualValues(t, got, due, "nor does the answer that it finds start another op")
				}
			})
		}
	}
}

// How long the machine slept is looked up at most once a millisecond, and at the first timestamp after that.
func TestLooksAtTheSleepOfTheMachine(t *testing.T) {
	looks, slept := 0, time.Duration(0)
	le := lease{suspended: func() time.Duration { looks++; return slept }}
	le.set(time.Second)
	for now := range int64(10_000) {
		require.False(t, le.over(now*int64(time.Microsecond)/2))
	}
	require.Equal(t, 5, looks)
	slept = 2 * time.Second
	require.False(t, le.over(5*int64(time.Millisecond)-1))
	require.True(t, le.over(5*int64(time.Millisecond)))
	slept = 0
	require.True(t, le.over(7*int64(time.Millisecond)), "it never falls")
}

// A request that its program sends when the lease has just ended is refused, also where there is no connection to send it on.
func TestNothingIsSentToATimedDriverAfterTheLease(t *testing.T) {
	e := assigned(t, Config{Loops: 1}, nullPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 1 }"))
	loaded(t, e)
	l := e.group.loops[0]
	tr := l.tr.(*timed)
	req := driver.Request{Verb: driver.Get, Key: []byte("key")}
	e.SetLease(e.now())
	require.False(t, tr.send(l.sessions[0], new(opState), &req))
	require.Zero(t, tr.owed[0])
	e.SetLease(time.Hour)
	l.lapsed = false
	require.True(t, tr.send(l.sessions[0], new(opState), &req))
	require.Equal(t, 1, tr.owed[0])
}

// A lease is over at its end, not only after it.
func TestTheEndOfALease(t *testing.T) {
	le := lease{suspended: func() time.Duration { return 0 }}
	le.set(time.Second)
	for _, now := range []int64{0, 1e9 - 1, 1e9, 1e9 + 1} {
		require.Equal(t, now >= 1e9, le.over(now), "%d", now)
	}
}

// Of what several loops see at a time, the longest sleep counts.
func TestLoopsThatSeeSleepsAtATime(t *testing.T) {
	const loops, looks = 4, 100_000
	var le lease
	var all sync.WaitGroup
	for loop := range int64(loops) {
		all.Go(func() {
			for look := range int64(looks) {
				le.see(look*loops + loop)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, loops*looks-1, le.slept.Load())
}
