package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/reuse"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// throughPlan is a plan whose one phase reads through a cache, from a source at 127.0.0.1:7002. A remote cache is at 127.0.0.1:7003.
func throughPlan(t testing.TB, cache, keys, load string) *plan.Plan {
	return throughPlanOf(t, `endpoints = ["127.0.0.1:7002"]`, `endpoints = ["127.0.0.1:7003"]`, cache, keys, load)
}

// throughPlanOf is throughPlan with a source and a remote cache of any kind.
func throughPlanOf(t testing.TB, source, remote, cache, keys, load string) *plan.Plan {
	return parsePlan(t, fmt.Sprintf(`
		target "db" {
			driver    = "redis"
			%s
			timeout   = "20ms"
		}
		target "redis" {
			driver    = "redis"
			%s
			timeout   = "20ms"
		}
		target "rows" {
			source  = target.db
			timeout = "200ms"
			cache {
				%s
			}
		}
		dataset "d" {
			keys {
				%s
			}
			values { size = 88 }
		}
		phase "also" {
			target  = target.redis
			dataset = dataset.d
			clear {}
		}
		phase "load" {
			target  = target.rows
			dataset = dataset.d
			max_bad = 1
			%s
		}`, source, remote, cache, keys, load))
}

// stocked has the source hold all keys.
func (b *bench) stocked(keys int) *virtualServer {
	source := b.server(1)
	for i := range keys {
		source.keys[fmt.Sprintf("key:%012d", i)] = fmt.Appendf(nil, "$88\r\n%088d\r\n", i)
	}
	return source
}

// balanced checks what holds of every load through a cache that has ended: each get hits or misses, each miss, or get that the cache did not answer, loads or waits for another's load, and the
// source was asked as often as there were loads.
func balanced(t *testing.T, got *measure.Totals, seed int) {
	t.Helper()
	c := got.Cache
	require.Equal(t, c.Gets, c.Hits+c.Misses, "seed %d", seed)
	require.Equal(t, c.Misses+c.Unavailable, c.Loads+c.Coalesced, "seed %d", seed)
	asked := got.Request(1, driver.Get)
	require.Equal(t, c.Loads, asked.Sent+asked.Refused, "seed %d", seed)
}

// TestSchedulesThroughCaches runs schedules of answers, silence and lost connections through caches of every scope: both ledgers balance, and so does
// what the caches count.
func TestSchedulesThroughCaches(t *testing.T) {
	for seed := range 200 {
		random := rand.New(rand.NewPCG(uint64(seed), 3))
		cache := []string{"scope = \"shared\"\n memory = \"600B\"", "scope = \"session\"\n memory = \"2KiB\"\n full = \"clear\"", "scope = \"remote\"\n target = target.redis", "scope = \"none\""}[seed%4]
		if seed/4%2 == 1 {
			cache += "\n coalesce = true"
		}
		cache += "\n on_put = \"" + []string{"invalidate", "update", "none"}[random.IntN(3)] + "\"\n on_cache_error = \"" + []string{"source", "fail"}[random.IntN(2)] + "\""
		p := throughPlan(t, cache, "count = 12", "ops = {\n get = 4\n put = 1\n delete = 1\n}\n closed {\n sessions = 3\n iterations = 40\n pipeline = 2\n}")
		b := newBench(t, p, "load", 0)
		b.stocked(9)
		for _, server := range b.net.servers {
			server.latency = func(int) time.Duration {
				if random.IntN(15) == 0 {
					return -1
				}
				return time.Duration(random.IntN(3000)) * time.Microsecond
			}
			b.net.at(time.Duration(b.net.clock.t)+time.Duration(random.IntN(30000))*time.Microsecond, server.sever)
		}
		got := b.run(worker.Load)
		balanced(t, &got, seed)
		require.EqualValues(t, 240/2, got.Ops[driver.Get].Due+got.Ops[driver.Put].Due+got.Ops[driver.Delete].Due)
		for _, f := range b.l.inside() {
			require.Zero(t, f.waiting, "seed %d", seed)
		}
	}
}

// TestCachesOfManyServers reads through caches whose source, or which themselves, are a cluster or a quorum, while answers are late or missing and
// connections break. A get of a quorum asks all three servers, one of a cluster one.
func TestCachesOfManyServers(t *testing.T) {
	const quorum, cluster = "endpoints = [%s]\n replication {\n coordinate = \"client\"\n n = 3\n w = 2\n r = 2\n}", "endpoints = [%s]\n cluster = true"
	places := func(from int) string {
		return fmt.Sprintf("\"127.0.0.1:%d\", \"127.0.0.1:%d\", \"127.0.0.1:%d\"", firstPort+from, firstPort+from+1, firstPort+from+2)
	}
	for seed := range 120 {
		random := rand.New(rand.NewPCG(uint64(seed), 5))
		source, asks := quorum, uint64(3)
		if seed%2 == 0 {
			source, asks = cluster, 1
		}
		scope := []string{"scope = \"shared\"\n memory = \"600B\"", "scope = \"remote\"\n target = target.redis"}[seed/2%2]
		remote := []string{quorum, cluster}[seed/4%2]
		faults := seed/8%2 == 1
		p := throughPlanOf(t, fmt.Sprintf(source, places(1)), fmt.Sprintf(remote, places(4)), fmt.Sprintf("%s\n coalesce = %v\n on_put = \"update\"", scope, seed%3 == 0), "count = 12",
			"ops = {\n get = 4\n put = 1\n}\n closed {\n sessions = 3\n iterations = 60\n pipeline = 2\n}")
		b := newBench(t, p, "load", time.Millisecond)
		for _, server := range b.net.servers {
			if faults {
				server.latency = func(int) time.Duration {
					if random.IntN(20) == 0 {
						return -1
					}
					return time.Duration(random.IntN(3000)) * time.Microsecond
				}
				b.net.at(time.Duration(b.net.clock.t)+time.Duration(random.IntN(30000))*time.Microsecond, server.sever)
			}
		}
		got := b.run(worker.Load)
		c := got.Cache
		require.Equal(t, c.Gets, c.Hits+c.Misses, "seed %d", seed)
		require.Equal(t, c.Misses+c.Unavailable, c.Loads+c.Coalesced, "seed %d", seed)
		require.EqualValues(t, 180, got.Ops[driver.Get].Due+got.Ops[driver.Put].Due)
		require.Zero(t, got.Ops[driver.Get].InFlight+got.Ops[driver.Put].InFlight)
		if faults {
			continue
		}
		var asked uint64
		for i := range 3 {
			asked += got.Request(1+i, driver.Get).Answered
		}
		require.Equal(t, asks*c.Loads, asked, "seed %d", seed)
		require.Equal(t, got.Ops[driver.Get].Due, c.Gets)
		require.Positive(t, c.Hits, "seed %d", seed)
	}
}

// A shared cache and private ones have hit ratios that a model of them has on the same draws, and private ones hit less.
func TestHitRatiosOfCaches(t *testing.T) {
	const sessions, each, memory = 4, 4000, 40_000
	shares := map[string]float64{}
	for _, scope := range []string{"shared", "session"} {
		p := throughPlan(t, fmt.Sprintf("scope = %q\n memory = %d", scope, memory), "count = 2000\n pick = \"zipf(0.9)\"",
			fmt.Sprintf("ops = { get = 1 }\n closed {\n sessions = %d\n iterations = %d\n}", sessions, each))
		b := newBench(t, p, "load", time.Millisecond)
		b.stocked(2000)
		got := b.run(worker.Load)
		balanced(t, &got, 0)
		c := got.Cache
		require.EqualValues(t, sessions*each, c.Gets)
		require.LessOrEqual(t, c.Bytes, int64(memory))
		shares[scope] = float64(c.Hits) / float64(c.Gets)
		require.InDelta(t, simulated(t, p, scope == "shared", memory/104, uint64(c.Gets)), shares[scope], 0.01, scope) // keys of 16 bytes and values of 88
	}
	require.Greater(t, shares["shared"], shares["session"]+0.05)
}

// simulated is the hit ratio of LRU caches of this many entries in all on a plan's draws.
func simulated(t *testing.T, p *plan.Plan, shared bool, entries int, gets uint64) float64 {
	ph := p.Phase("load")
	c := reuse.Caches{Target: "rows", OnPut: p.Target("rows").Cache.OnPut, Rollback: p.Target("rows").Cache.Rollback, Shared: shared}
	for i := range ph.Sessions() {
		if i == 0 || !shared {
			c.Room = append(c.Room, entries)
		}
		c.Of = append(c.Of, len(c.Room)-1)
	}
	for i := range c.Room {
		c.Room[i] /= len(c.Room)
	}
	ratio, known, err := c.HitRatio(p, ph, 1, gets)
	require.NoError(t, err)
	require.True(t, known)
	return ratio
}

// A rollback empties its session's cache, or drops its keys from a cache that is shared: what hits is what hits in simulated
// caches with the same rollbacks.
func TestRollbacks(t *testing.T) {
	for scope, sessions := range map[string]int{"shared": 1, "session": 3} { // with three, when others see a rollback would matter
		hits := map[string]float64{}
		for _, share := range []string{"0", "0.3"} {
			p := throughPlan(t, fmt.Sprintf("scope = %q\n memory = \"1MiB\"\n rollback = %s", scope, share), "count = 200\n pick = \"zipf(1)\"",
				fmt.Sprintf("scenario \"page\" {\n step \"get\" { times = 5 }\n}\n closed {\n sessions = %d\n iterations = 400\n}", sessions))
			b := newBench(t, p, "load", time.Millisecond)
			b.stocked(200)
			got := b.run(worker.Load)
			balanced(t, &got, 0)
			hits[share] = float64(got.Cache.Hits) / float64(got.Cache.Gets)
			require.InDelta(t, simulated(t, p, scope == "shared", 30_000, got.Cache.Gets), hits[share], 0, "%s, %s", scope, share)
			if scope == "session" && share != "0" {
				require.InDelta(t, sessions*400*3/10, got.Cache.Cleared, 60)
			} else {
				require.Zero(t, got.Cache.Cleared)
			}
		}
		require.Less(t, hits["0.3"], hits["0"]-0.02, scope)
	}
}

// An entry is good for ttl after it was put.
func TestTTLOfCaches(t *testing.T) {
	for _, scope := range []string{"shared", "session"} {
		p := throughPlan(t, fmt.Sprintf("scope = %q\n ttl = \"1s\"\n memory = \"64KiB\"", scope), "count = 1", "ops = { get = 1 }\n closed {\n sessions = 1\n iterations = 95\n think = \"49ms\"\n}")
		b := newBench(t, p, "load", time.Millisecond)
		b.stocked(1)
		got := b.run(worker.Load)
		balanced(t, &got, 0)
		require.EqualValues(t, 5, got.Cache.Loads, "%s: one in each second of 4.75", scope)
	}
}

// When a hot key goes, every get that comes before its first load has ended loads as well: at a rate λ, of a source that serves one at a time in s, that is
// ⌈λ·s⌉ loads, of which the last ends so many times s after the first began. If gets wait for a load under way, there is one.
func TestStampede(t *testing.T) {
	const rate, takes = 160, 20 * time.Millisecond
	for _, coalesce := range []bool{false, true} {
		p := throughPlan(t, fmt.Sprintf("scope = \"shared\"\n memory = \"64KiB\"\n coalesce = %v", coalesce), "count = 1",
			fmt.Sprintf("ops = { get = 1 }\n open {\n rate = %d\n duration = \"1s\"\n sessions = 20\n}", rate))
		p.Target("db").Timeout = time.Second
		b := newBench(t, p, "load", 0)
		source := b.stocked(1)
		var free, first, last int64
		source.latency = func(int) time.Duration {
			now := b.net.clock.t
			if free = max(free, now) + int64(takes); first == 0 {
				first = now
			}
			last = free
			return time.Duration(free - now)
		}
		got := b.run(worker.Load)
		balanced(t, &got, 0)
		want := uint64(4) // 160/s × 20 ms, rounded up
		if coalesce {
			want = 1
			require.EqualValues(t, 3, got.Cache.Coalesced)
			require.EqualValues(t, 3, got.Cache.Blocked)
			require.InDelta(t, 3*20e6-(1+2+3)*1e9/rate, got.Cache.BlockedTime, 1e5)
		}
		require.Equal(t, want, got.Cache.Loads)
		require.Equal(t, want, got.Cache.MostLoads)
		require.InDelta(t, want*uint64(takes), last-first, 1e5)
		require.EqualValues(t, rate, got.Ops[driver.Get].Outcomes[driver.OK])
	}
}

// A flush empties caches at its time: what is asked for after it is loaded again, once. An event past the end of the load does not happen.
func TestFlush(t *testing.T) {
	const keys = 10
	for scope, caches := range map[string]uint64{"shared": 1, "session": 2} {
		p := throughPlan(t, fmt.Sprintf("scope = %q\n memory = \"64KiB\"\n coalesce = %v", scope, scope == "shared"), fmt.Sprintf("count = %d", keys), `
			event "cold" {
				at = "1s"
				do = "flush"
			}
			event "late" {
				at = "4s"
				do = "flush"
			}
			ops = { get = 1 }
			closed {
				sessions   = 2
				iterations = 200
				think      = "10ms"
			}`)
		b := newBench(t, p, "load", time.Millisecond)
		b.stocked(keys)
		got := b.run(worker.Load)
		balanced(t, &got, 0)
		require.Equal(t, 2*keys*caches, got.Cache.Loads, scope)
		require.Equal(t, caches, got.Cache.Cleared, scope)
		at := b.l.origin + int64(time.Second)
		require.Equal(t, []measure.Event{{Times: 1, First: at, Last: at}}, got.Events, scope)
	}
}

// While a source is away, slots behind a cache wait as others do, instead of failing one get after another.
func TestSlotsBehindACacheWaitForTheSource(t *testing.T) {
	b := newBench(t, throughPlan(t, "scope = \"shared\"\n memory = \"600B\"", "count = 1000", "ops = { get = 1 }\n closed {\n sessions = 2\n duration = \"2s\"\n}"), "load", 0)
	source := b.stocked(1000)
	source.latency = func(int) time.Duration { return time.Millisecond }
	b.after(500*time.Millisecond, func() { source.down = true; source.sever() })
	b.after(1500*time.Millisecond, func() { source.down = false })
	got := b.run(worker.Load)
	balanced(t, &got, 0)
	require.Positive(t, badOps(&got))
	require.Less(t, badOps(&got), uint64(210), "each slot tries every 10 ms")
	asked := got.Request(1, driver.Get)
	require.EqualValues(t, *source.got["GET"], asked.Sent, "the source counted what it was sent")
	require.Equal(t, got.Cache.Loads, asked.Sent+asked.Refused, "and a load that was not sent is refused")
}
