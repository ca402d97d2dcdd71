package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/policy"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// missed returns how many gets missed, and how many puts there were.
func missed(of *measure.Totals) (misses, puts uint64) {
	if o := of.Ops[driver.Put]; o != nil {
		puts = o.Due
	}
	return of.Ops[driver.Get].Outcomes[driver.Miss], puts
}

// With on_miss = "put", each miss is followed by a put of that key, in the same slot: from then on the key is there.
func TestEachMissIsFilled(t *testing.T) {
	for name, load := range map[string]string{
		"closed":    "closed {\n sessions = 4\n pipeline = 2\n iterations = 500\n}",
		"open":      "open {\n rate = 1000\n duration = \"2s\"\n sessions = 4\n}",
		"scenarios": "scenario \"page\" {\n step \"get\" { times = 3 }\n}\n closed {\n sessions = 2\n iterations = 300\n}",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, redisPlanOf(t, 2, "size = 100", "", "ops = { get = 1 }\n on_miss = \"put\"\n"+load), "load", time.Millisecond)
			got := b.run(worker.Load)
			misses, puts := missed(&got)
			require.Equal(t, misses, puts)
			require.GreaterOrEqual(t, misses, uint64(100), "of 100 keys")
			require.LessOrEqual(t, misses, uint64(110), "few are missed by two at once")
			require.Equal(t, puts, got.Ops[driver.Put].Outcomes[driver.OK])
			require.Len(t, b.server(0).keys, 100-len(b.server(1).keys))
			require.InDelta(t, time.Millisecond, got.Ops[driver.Get].Response[measure.ClassMiss].Max(), 3e5, "the put is not part of it")
			again := b.run(worker.Load)
			misses, puts = missed(&again)
			require.Zero(t, misses+puts)
		})
	}
}

// What a key is filled with is the same each time, in size too, as it would be from a source.
func TestFillsAreTheSameEachTime(t *testing.T) {
	b := newBench(t, redisPlanOf(t, 1, `size = "uniform(10, 1000)"`, "", "ops = { get = 1 }\n on_miss = \"put\"\n closed {\n sessions = 2\n iterations = 400\n}"),
		"load", time.Millisecond)
	first := map[string]string{}
	b.run(worker.Load)
	for key, value := range b.server(0).keys {
		first[key] = string(value)
	}
	clear(b.server(0).keys)
	b.run(worker.Load)
	require.Len(t, first, 100)
	for key, value := range b.server(0).keys {
		require.Equal(t, first[key], string(value))
	}
}

// A trace's gets say how large the values were that they found.
func TestTracesFillWithTheirOwnSizes(t *testing.T) {
	b := newReplayBench(t, "", "time,op,key,size\n1,get,a,300\n2,get,a,300\n3,get,b,\n4,delete,a,\n5,get,a,20\n", 1, time.Millisecond)
	b.g.phase.Open.Trace.Form, b.g.phase.OnMiss = "csv", "put"
	b.g.plan.Datasets[0].Values.Size = 77
	var sizes []int
	b.server(0).put = func(value []byte) { sizes = append(sizes, len(value)) }
	_, got := b.replay()
	misses, puts := missed(&got)
	require.EqualValues(t, 2, misses)
	require.EqualValues(t, 2, puts)
	require.Equal(t, []int{300, 77}, sizes, "this server's deletes leave the key")
}

// TestSchedulesWithFills runs schedules of answers, silence and lost connections: both ledgers balance, and no more is put than was missed.
func TestSchedulesWithFills(t *testing.T) {
	for seed := range 300 {
		random := rand.New(rand.NewPCG(uint64(seed), 2))
		load := "ops = { get = 3, put = 1 }\n"
		if seed%2 == 1 {
			load = "scenario \"page\" {\n step \"get\" { times = 2 }\n step \"get\" {\n think = \"1ms\"\n as = \"late\"\n}\n}\n"
		}
		b := newBench(t, redisPlan(t, 2, `timeout = "20ms"`, "on_miss = \"put\"\n max_bad = 1\n"+load+"closed {\n sessions = 3\n iterations = 20\n pipeline = 2\n}"), "load", 0)
		for i := range 2 {
			server := b.server(i)
			server.latency = func(int) time.Duration {
				if random.IntN(12) == 0 {
					return -1
				}
				return time.Duration(random.IntN(3000)) * time.Microsecond
			}
			b.net.at(time.Duration(b.net.clock.t)+time.Duration(random.IntN(30000))*time.Microsecond, server.sever)
		}
		got := b.run(worker.Load)
		misses, puts := missed(&got)
		require.Positive(t, misses)
		if seed%2 == 1 {
			require.Equal(t, misses, puts)
			require.EqualValues(t, 60, got.Scenarios[0].Due)
		} else {
			require.Greater(t, puts, misses)
		}
	}
}

// The puts that fill a cache are requests like any other to the policy of a worker's node.
func TestFillsKeepToThePolicy(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\n on_miss = \"put\"\n closed {\n sessions = 4\n pipeline = 4\n duration = \"3s\"\n}"), "load", time.Millisecond)
	clear(b.server(0).keys)
	b.server(0).heard = func(_, key []byte) { delete(b.server(0).keys, string(key)) }
	a := b.under(&policy.Policy{Rate: 500})
	got := b.run(worker.Load)
	misses, puts := missed(&got)
	require.Equal(t, misses, puts)
	a.whole(t, 0.05)
}
