package engine

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

const nwr321 = `replication {
	coordinate = "client"
	n = 3
	w = 2
	r = 1
	timeout = "300ms"
}`

func TestClosedLoop(t *testing.T) {
	p := redisPlan(t, 1, "", `
		ops = { get = 1, put = 1 }
		closed {
			sessions   = 4
			iterations = 1000
			pipeline   = 3
		}`)
	b := newBench(t, p, "load", time.Millisecond)
	got := b.run(worker.Load)
	get, put := got.Ops[driver.Get], got.Ops[driver.Put]
	require.EqualValues(t, 4000, get.Due+put.Due)
	require.Equal(t, put.Due, put.Outcomes[driver.OK])
	require.Equal(t, get.Due, get.Outcomes[driver.OK]+get.Outcomes[driver.Miss])
	require.EqualValues(t, get.Due, *b.server(0).got["GET"])
	require.EqualValues(t, put.Due, *b.server(0).got["SET"])
	require.Zero(t, get.InFlight)

	// Four sessions with three slots each and a millisecond a reply are 12 ops a millisecond.
	service := get.ServiceAll().Answered
	require.InDelta(t, 1e6, service.Quantile(0.5), 2e4)
	require.InDelta(t, 4000.0/12*1e6, got.Span.Last-got.Span.First, 1e7)
	require.EqualValues(t, 4, got.Span.Sessions)
}

// above counts the samples above a duration.
func above(h interface {
	Quantile(float64) int64
	Count() uint64
}, d time.Duration,
) int {
	n := int(h.Count())
	for k := n; k > 0; k-- {
		if h.Quantile(float64(k)/float64(n)) <= int64(d) {
			return n - k
		}
	}
	return n
}

// A sparse load lasts as long as it says, so that what is to happen meanwhile does.
func TestSparseOpenLoadsLast(t *testing.T) {
	p := redisPlan(t, 1, "", `
		ops = { get = 1 }
		open {
			rate     = 0.05
			duration = "19s"
			arrivals = "constant"
		}`)
	b := newBench(t, p, "load", time.Millisecond)
	origin := b.net.clock.t
	require.EqualValues(t, 1, b.run(worker.Load).Ops[driver.Get].Due)
	require.GreaterOrEqual(t, b.net.clock.t-origin, int64(19*time.Second))
}

// TestOpenLoopStallWithoutRoom has the target of an open load stop answering, with room for 20 ops: only they are slow as services, but every op that
// was due meanwhile is slow as a response.
func TestOpenLoopStallWithoutRoom(t *testing.T) {
	p := redisPlan(t, 1, `timeout = "5s"`, `
		ops = { get = 1 }
		open {
			rate     = 1000
			duration = "5s"
			arrivals = "constant"
			sessions = 10
			pipeline = 2
		}`)
	b := newBench(t, p, "load", time.Millisecond)
	b.net.at(time.Duration(b.net.clock.t)+2*time.Second, func() {
		until := b.net.clock.t + int64(time.Second)
		b.server(0).latency = func(int) time.Duration { return time.Duration(max(until-b.net.clock.t, int64(time.Millisecond))) }
	})
	got := b.run(worker.Load)
	get := got.Ops[driver.Get]
	late := above(&get.Lag, time.Millisecond)
	require.Greater(t, late, 900)
	require.InDelta(t, late, above(&got.Waited, time.Millisecond), 5, "they waited for room, and not for the loop")
	require.EqualValues(t, 5000, get.Due)
	response, service := get.ResponseAll().Answered, get.ServiceAll().Answered
	require.InDelta(t, 1000, above(&response, 10*time.Millisecond), 120) // and those who wait while the queue is worked off
	require.LessOrEqual(t, above(&service, 10*time.Millisecond), 20)
}

// TestInFlightIsABound has a bound smaller than the sessions' room, whether ops wait for it or are shed.
func TestInFlightIsABound(t *testing.T) {
	const most = 3
	for _, loop := range []string{"direct", "programs"} {
		for onFull, ended := range map[string]int{"wait": 2000, "shed": 2000 / 10 * most} {
			t.Run(loop+"/"+onFull, func(t *testing.T) {
				p := redisPlan(t, 1, `timeout = "10s"`, `
		ops = { get = 1 }
		open {
			rate      = 1000
			duration  = "2s"
			arrivals  = "constant"
			sessions  = 10
			pipeline  = 2
			in_flight = 3
			on_full   = "`+onFull+`"
			drain     = "10s"
		}`)
				b := &bench{t: t, net: newVirtualNet(10), indirect: loop == "programs"}
				require.NoError(t, b.connect(p, "load", 0, b.net.clock))
				var open []int64 // when the requests that are under way will be answered
				worst := 0
				b.server(0).latency = func(int) time.Duration {
					open = slices.DeleteFunc(open, func(until int64) bool { return until <= b.net.clock.t })
					open = append(open, b.net.clock.t+int64(10*time.Millisecond))
					worst = max(worst, len(open))
					return 10 * time.Millisecond
				}
				get := b.run(worker.Load).Ops[driver.Get]
				require.Equal(t, most, worst, "ops under way at the same time")
				require.EqualValues(t, 2000, get.Due)
				require.InDelta(t, ended, get.Outcomes[driver.OK]+get.Outcomes[driver.Miss], float64(ended)*0.1)
				require.EqualValues(t, 2000, get.Outcomes[driver.OK]+get.Outcomes[driver.Miss]+get.Outcomes[driver.Shed])
			})
		}
	}
}

// TestALateLoopIsNoWantOfRoom stops the loop for a while, after which more ops are due than there is room for.
func TestALateLoopIsNoWantOfRoom(t *testing.T) {
	p := redisPlan(t, 1, `timeout = "5s"`, `
		ops = { get = 1 }
		open {
			rate     = 1000
			duration = "5s"
			arrivals = "constant"
			sessions = 10
			pipeline = 2
		}`)
	b := newBench(t, p, "load", time.Millisecond)
	b.net.at(time.Duration(b.net.clock.t)+2*time.Second, func() { b.net.clock.t += int64(200 * time.Millisecond) })
	got := b.run(worker.Load)
	late := above(&got.Ops[driver.Get].Lag, 10*time.Millisecond)
	require.Greater(t, late, 180)
	require.Less(t, above(&got.Waited, 10*time.Millisecond), late/10)
	require.Zero(t, b.l.excess, "the nanoseconds that a cycle takes longer are none")
}

// TestNoConnectionComesUp: servers that accept and say nothing, all of them or the last ones.
func TestNoConnectionComesUp(t *testing.T) {
	p := redisPlan(t, 3, "", `
		ops = { get = 1 }
		closed {
			sessions   = 2
			iterations = 10
		}`)
	for silent, want := range map[int]string{
		3: "connect to n0 (127.0.0.1:7001): no answer in time; 0 of 6 connections were made",
		2: "connect to n1 (127.0.0.1:7002): no answer in time; 2 of 6 connections were made",
		1: "connect to n2 (127.0.0.1:7003): no answer in time; 4 of 6 connections were made",
	} {
		b := &bench{t: t, net: newVirtualNet(10), silent: silent}
		require.EqualError(t, b.connect(p, "load", time.Millisecond, b.net.clock), want)
	}
}

// TestWaitingForTheBoundOnAllSessions counts as waiting for room what starts late because as many ops as may be are in flight.
func TestWaitingForTheBoundOnAllSessions(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nopen {\n rate = 4000\n duration = \"1s\"\n sessions = 10\n pipeline = 4\n in_flight = 2\n}"), "load", time.Millisecond)
	got := b.run(worker.Load)
	due := got.Ops[driver.Get].Due
	require.Less(t, due, uint64(4001))
	late := above(&got.Ops[driver.Get].Lag, 10*time.Millisecond)
	require.Greater(t, late, int(due)*8/10, "two in flight, a millisecond each, are half of what is due")
	require.InDelta(t, late, above(&got.Waited, 10*time.Millisecond), 5)
}

// TestSlowCollector does not take a loop's intervals for a while: the loop goes on, and joins what it counted meanwhile into one.
func TestSlowCollector(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nopen {\n rate = 1000\n duration = \"6s\"\n sessions = 4\n}"), "load", time.Millisecond)
	b.equip(worker.Load)
	parts := make(chan part, 2)
	b.l.parts = parts
	var all []part
	take := func() {
		for len(parts) > 0 {
			all = append(all, <-parts)
		}
	}
	begun := b.l.origin
	b.net.at(time.Duration(begun)+4500*time.Millisecond, take)
	b.net.at(time.Duration(begun)+5900*time.Millisecond, take)
	b.l.run()
	take()
	var due []uint64
	for i, p := range all {
		due = append(due, p.totals.Ops[driver.Get].Due)
		require.Equal(t, i == len(all)-1, p.final)
		if i > 0 {
			require.Greater(t, p.upTo, all[i-1].upTo)
		}
	}
	sum := uint64(0)
	for _, n := range due {
		sum += n
	}
	require.EqualValues(t, 6000, sum)
	require.InDelta(t, 3000, due[2], 1100, "the third to fifth second: %v", due)
}

// TestServerThatDoesNotGreet is connected to again and again: each attempt is given up in time, and the load goes on once the server answers.
func TestServerThatDoesNotGreet(t *testing.T) {
	for _, indirect := range []bool{false, true} {
		b := newBench(t, redisPlan(t, 1, `timeout = "100ms"`, "ops = { get = 1 }\nclosed {\n sessions = 2\n duration = \"20s\"\n}"), "load", time.Millisecond)
		b.indirect = indirect
		start := time.Duration(b.net.clock.t)
		b.net.at(start+time.Second, func() {
			b.server(0).mute = true
			b.server(0).sever()
		})
		b.net.at(start+10*time.Second, func() { b.server(0).mute = false })
		greeted := *b.server(0).got["PING"]
		got := b.run(worker.Load)
		require.Greater(t, got.Ops[driver.Get].Outcomes[driver.Miss], uint64(2*7000))
		require.EqualValues(t, 2, got.Reconnects)
		attempts := *b.server(0).got["PING"] - greeted
		require.Greater(t, attempts, 2*3, "a second to answer, and at most one until the next attempt")
		require.Less(t, attempts, 2*10)
		n := uint64(0)
		for text, times := range got.Errors.All() {
			if strings.HasSuffix(text, ": connect: no answer") {
				n += times
			}
		}
		require.GreaterOrEqual(t, n, uint64(attempts-2))
	}
}

// TestRecordersOfEarlierSteps runs two steps of more than a second on one loop. What panicked: the second step counted in a
// recorder of the first, with its origin.
func TestRecordersOfEarlierSteps(t *testing.T) {
	p := redisPlan(t, 1, "", `
		ops = { get = 1 }
		closed {
			sessions = 1
			duration = "3s"
		}`)
	b := newBench(t, p, "load", time.Millisecond)
	first := b.run(worker.Load)
	second := b.run(worker.Load)
	require.InDelta(t, first.Ops[driver.Get].Due, second.Ops[driver.Get].Due, 10)
	require.Len(t, b.snaps, 8)
}

// What an earlier step left in flight is not counted as ended in this one.
func TestWhatAnEarlierStepLeftInFlight(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 3\n}"), "load", time.Millisecond)
	b.l.opsBefore[driver.Get], b.l.keyBefore[driver.Get], b.l.reqBefore[driver.Get].InFlight = 1, 1, 1
	got := b.run(worker.Load)
	require.Zero(t, got.Ops[driver.Get].InFlight)
	require.Zero(t, got.Ops[driver.Get].Keys.InFlight)
	require.Zero(t, got.Request(0, driver.Get).InFlight)
}

// A step that follows one that was ended early, such as a load after a warm-up that is steady, is as long as any.
func TestTheStepAfterOneThatWasDrained(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n duration = \"3s\"\n}"), "load", time.Millisecond)
	b.net.at(time.Duration(b.net.clock.t)+time.Second, b.e.Drain)
	first := b.run(worker.Load)
	b.e.halt.Store(goOn)
	second := b.run(worker.Load)
	require.InDelta(t, 1000, first.Ops[driver.Get].Due, 15)
	require.InDelta(t, 3000, second.Ops[driver.Get].Due, 45)
}

// TestRepliesOfSeveralServersShareWrites has three servers answer all of a session's ops in one turn: the next requests leave in one write per
// server, not in one per server and reply.
func TestRepliesOfSeveralServersShareWrites(t *testing.T) {
	b := newBench(t, redisPlan(t, 3, "", `
		ops = { put = 1 }
		closed {
			sessions = 5
			pipeline = 16
			duration = "1h"
		}`), "load", 0)
	net := newCannedNet(b.net, b.l.tr.(*wire).codec.codec, driver.Put, 100)
	b.l.tr.(*wire).poll = net
	b.equip(worker.Load)
	b.l.enter()
	for net.answered < 10_000 {
		b.l.cycle()
	}
	require.LessOrEqual(t, net.writes, 3*(net.answered/16+5))
}

// TestSocketsThatTakeFewBytes has sockets take a part of what is written, and more of it in the turn in which other servers' replies to the same session
// come. Whatever part that is, requests leave whole and in order, large values lent to them in their places; those that are gathered meanwhile leave along,
// with their timestamp.
func TestSocketsThatTakeFewBytes(t *testing.T) {
	for _, c := range []struct{ values, ops string }{
		{"size = 100", "ops = { put = 1 }"},
		{"size = \"9KiB\"", "ops = { get = 1, put = 3 }"},
		{"size = \"uniform(100B, 20KiB)\"", "ops = { get = 1, put = 3 }"},
		{"size = \"4KiB\"", "ops = { get = 1, put = 1 }\nbatch = 4"},
	} {
		p := redisPlanOf(t, 3, c.values, "timeout = \"1h\"", c.ops+"\nmax_bad = 1\nclosed {\n sessions = 1\n pipeline = 64\n iterations = 120\n}")
		play := func(takes func(n int) int) (got measure.Totals, held []map[string][]byte) {
			b := newBench(t, p, "load", time.Millisecond)
			defer b.g.close()
			if w := b.l.tr.(*wire); takes != nil {
				b.net.takes = func(fd, n int) int {
					at := slices.IndexFunc(w.conns, func(c *wireConn) bool { return c.fd == fd })
					require.Zero(t, w.conns[at].fresh, "requests of connection %d without a start", at)
					return takes(n)
				}
			}
			got = b.run(worker.Load)
			for i := range 3 {
				held = append(held, b.server(i).keys)
			}
			return got, held
		}
		want, kept := play(nil)
		writes := 0
		for name, takes := range map[string]func(n int) int{
			"half of every third": func(n int) int {
				if writes++; writes%3 == 0 {
					return (n + 1) / 2
				}
				return n
			},
			"700 bytes":    func(n int) int { return min(n, 700) },
			"50,000 bytes": func(n int) int { return min(n, 50_000) },
		} {
			got, held := play(takes)
			require.Equal(t, want.Digest, got.Digest, "%v, %s", c, name)
			for v, o := range want.Ops {
				require.Equal(t, o.Ledger().Due, got.Ops[v].Ledger().Outcomes[driver.OK]+got.Ops[v].Ledger().Outcomes[driver.Miss], "%v, %s", c, name)
			}
			require.True(t, reflect.DeepEqual(kept, held), "%v, %s", c, name)
		}
	}
}

// What a loop counts is sealed at the end of each interval of the run clock, beginning with the interval in which its step begins.
func TestTheFirstIntervalEndsBehindTheStart(t *testing.T) {
	for at, want := range map[int64]int64{0: 1, 1: 1, interval - 1: 1, interval: 2, interval + 1: 2, 7*interval + interval/2: 8} {
		b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0)
		b.equip(worker.Load)
		b.net.clock.tick, b.net.clock.t = 0, at
		b.l.enter()
		require.Equal(t, want*interval, b.l.sealAt, "%d", at)
		require.Equal(t, at, b.l.entered)
	}
}
