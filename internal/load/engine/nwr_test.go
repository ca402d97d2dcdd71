package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TestReplicatedPutWaitsForTheSecond has three of four servers answer after 1, 5 and 20 ms: W = 2 ends with the 5, and all three acks
// are recorded.
func TestReplicatedPutWaitsForTheSecond(t *testing.T) {
	p := redisPlan(t, 3, nwr321, `
		ops = { put = 1 }
		closed {
			sessions   = 2
			iterations = 200
		}`)
	b := newBench(t, p, "load", 0)
	for i, d := range []time.Duration{5, 20, 1} {
		b.server(i).latency = func(int) time.Duration { return d * time.Millisecond }
	}
	got := b.run(worker.Load)
	put := got.Ops[driver.Put]
	require.EqualValues(t, 400, put.Outcomes[driver.OK])
	require.Len(t, put.Acks, 3)
	for k, want := range []float64{1e6, 5e6, 20e6} {
		require.EqualValues(t, 400, put.Acks[k].Count())
		require.InDelta(t, want, put.Acks[k].Quantile(0.5), 0.02*want)
	}
	service := put.ServiceAll().Answered
	require.InDelta(t, 5e6, service.Quantile(0.5), 1e5)
	for i := range 3 {
		require.EqualValues(t, 400, got.Request(i, driver.Put).Answered)
	}
}

// TestPutsWaitForReplicas has a server say in turn that 2, 1 and 0 of 2 replicas have a put. Each ends with the answer to its WAIT, and is ok only with
// both.
func TestPutsWaitForReplicas(t *testing.T) {
	p := redisPlan(t, 1, "wait {\n replicas = 2\n timeout = \"100ms\"\n}", `
		ops = { put = 1 }
		closed {
			sessions   = 2
			pipeline   = 3
			iterations = 300
		}`)
	b := newBench(t, p, "load", time.Millisecond)
	b.server(0).copies = func(n int) int { return 2 - n%3 }
	got := b.run(worker.Load)
	put := got.Ops[driver.Put]
	require.EqualValues(t, 200, put.Outcomes[driver.OK])
	require.EqualValues(t, 400, put.Outcomes[driver.QuorumFailed])
	require.Len(t, put.Acks, 3)
	for k, want := range []uint64{600, 400, 200} {
		require.Equal(t, want, put.Acks[k].Count())
		require.GreaterOrEqual(t, put.Acks[k].Min(), int64(2*time.Millisecond), "a put is known to have copies when WAIT is answered")
	}
	require.Equal(t, measure.Requests{Sent: 600, Answered: 200, Error: 400}, *got.Request(0, driver.Put), "a put and its WAIT are one request")
	require.Equal(t, [2]int{600, 600}, [2]int{*b.server(0).got["SET"], *b.server(0).got["WAIT"]})
}

// TestOneServerDown loses one of three servers for good: with W = 2 and R = 1 every op succeeds, with W = 3 no put does.
func TestOneServerDown(t *testing.T) {
	for w, want := range map[string]driver.Outcome{"2": driver.OK, "3": driver.QuorumFailed} {
		p := redisPlan(t, 3, "replication {\n coordinate = \"client\"\n n = 3\n w = "+w+"\n r = 1\n}", `
			ops = {
				put = 1
				get = 1
			}
			expect_hits = 0
			max_bad = 1
			closed {
				sessions = 2
				duration = "2s"
			}`)
		b := newBench(t, p, "load", time.Millisecond)
		b.server(1).down = true
		b.server(1).sever()
		got := b.run(worker.Load)
		put, get := got.Ops[driver.Put], got.Ops[driver.Get]
		require.Equal(t, put.Due, put.Outcomes[want], w)
		require.Equal(t, get.Due, get.Outcomes[driver.OK]+get.Outcomes[driver.Miss], w)
		require.Positive(t, got.Request(1, driver.Put).Refused)
		require.Zero(t, got.Request(1, driver.Put).Answered)
		require.Equal(t, put.Outcomes[driver.QuorumFailed], put.Causes[op.Refused]+put.Causes[op.Lost], w)
	}
}

// While no server is there, ops fail at once; they go on when the servers are back.
func TestAllServersDown(t *testing.T) {
	for _, indirect := range []bool{false, true} {
		b := newBench(t, redisPlan(t, 3, nwr321, "ops = { put = 1 }\nclosed {\n sessions = 2\n pipeline = 4\n duration = \"3s\"\n}"), "load", time.Millisecond)
		b.indirect = indirect
		start := time.Duration(b.net.clock.t)
		b.net.at(start+time.Second, func() {
			for i := range 3 {
				b.server(i).down = true
				b.server(i).sever()
			}
		})
		b.net.at(start+1500*time.Millisecond, func() {
			for i := range 3 {
				b.server(i).down = false
			}
		})
		got := b.run(worker.Load)
		put := got.Ops[driver.Put]
		require.Equal(t, put.Due, put.Outcomes[driver.OK]+put.Outcomes[driver.QuorumFailed])
		require.Greater(t, put.Outcomes[driver.OK], uint64(8*1500))
		require.Greater(t, put.Causes[op.Refused], uint64(8), "and not only those that were in flight")
		require.EqualValues(t, 6, got.Reconnects)
	}
}

// What populates a target has every copy acknowledged, whatever W is: a load that only reads could not tell a copy that is missing from a stale one.
func TestPopulateWantsEveryCopy(t *testing.T) {
	for _, down := range []bool{false, true} {
		b := newBench(t, redisPlan(t, 3, "replication {\n coordinate = \"client\"\n n = 3\n w = 1\n r = 1\n}", "populate {\n sessions = 2\n}"), "load", time.Millisecond)
		b.server(2).latency = func(int) time.Duration { return 3 * time.Millisecond }
		if down {
			b.server(1).down = true
			b.server(1).sever()
		}
		put := b.run(worker.Populate).Ops[driver.Put]
		require.EqualValues(t, 100, put.Due)
		if down {
			require.Equal(t, put.Due, put.Outcomes[driver.QuorumFailed])
			continue
		}
		require.Equal(t, put.Due, put.Outcomes[driver.OK])
		require.GreaterOrEqual(t, put.Service[measure.ClassOK].Min(), int64(3*time.Millisecond))
	}
}

// TestOpTimeout has the op's deadline pass long before the requests': the op fails, its requests are still awaited.
func TestOpTimeout(t *testing.T) {
	p := redisPlan(t, 3, "timeout = \"1s\"\nreplication {\n coordinate = \"client\"\n n = 3\n w = 3\n r = 1\n timeout = \"20ms\"\n}", `
		ops = { put = 1 }
		max_bad = 1
		closed {
			sessions   = 1
			iterations = 20
		}`)
	b := newBench(t, p, "load", time.Millisecond)
	b.server(2).latency = func(int) time.Duration { return 50 * time.Millisecond }
	got := b.run(worker.Load)
	put := got.Ops[driver.Put]
	require.EqualValues(t, 20, put.Outcomes[driver.QuorumFailed])
	require.EqualValues(t, 20, put.Causes[op.OpTimeout])
	require.InDelta(t, 20e6, put.Response[measure.ClassBad].Quantile(0.5), 2e6)
	require.EqualValues(t, 20, got.Request(2, driver.Put).Answered)
	require.EqualValues(t, 20, put.Acks[2].Count())
}

// TestBacklogIsBounded has one server of three answer nothing: at most 64 + pipeline requests wait for it, more are refused, and the
// ops go on.
func TestBacklogIsBounded(t *testing.T) {
	p := redisPlan(t, 3, "timeout = \"10s\"\n"+nwr321, `
		ops = { put = 1 }
		closed {
			sessions   = 1
			iterations = 1000
		}`)
	b := newBench(t, p, "load", time.Millisecond)
	b.server(0).latency = func(int) time.Duration { return -1 }
	got := b.run(worker.Load)
	require.EqualValues(t, 1000, got.Ops[driver.Put].Outcomes[driver.OK])
	ledger := got.Request(0, driver.Put)
	require.EqualValues(t, 1000, ledger.Sent+ledger.Refused)
	require.EqualValues(t, 64+1, ledger.Sent)
}

// TestReadsFallBack asks one replica of three; when that is down, the next one answers.
func TestReadsFallBack(t *testing.T) {
	p := redisPlan(t, 3, "replication {\n coordinate = \"client\"\n n = 3\n w = 2\n r = 1\n read_fanout = \"r\"\n}", `
		ops = { get = 1 }
		expect_hits = 0
		closed {
			sessions   = 3
			iterations = 100
		}`)
	b := newBench(t, p, "load", time.Millisecond)
	b.server(1).down = true
	b.server(1).sever()
	got := b.run(worker.Load)
	require.EqualValues(t, 300, got.Ops[driver.Get].Outcomes[driver.Miss])
	refused := got.Request(1, driver.Get).Refused + got.Request(1, driver.Get).Error
	require.Positive(t, refused)
	require.EqualValues(t, 300, got.Request(0, driver.Get).Answered+got.Request(2, driver.Get).Answered)
}

// TestForeignValues reads values that loadgen did not write: they count as answers, and are counted.
// TestForeignValuesAreCounted has servers answer with values that nobody put, in each way that ops are carried out; they are foreign if values are
// checked, and nobody looks if not.
func TestForeignValuesAreCounted(t *testing.T) {
	for _, checked := range []bool{true, false} {
		for phase, keys := range map[string]uint64{"": 200, "batch = 4": 800} {
			for _, indirect := range []bool{false, true} {
				p := redisPlanOf(t, 1, fmt.Sprintf("size = 100\n checked = %t", checked), "", "ops = { get = 1 }\n"+phase+"\nclosed {\n sessions = 2\n iterations = 100\n}")
				b := newBench(t, p, "load", time.Millisecond)
				b.indirect = indirect
				for i := range 100 {
					b.server(0).keys[fmt.Sprintf("key:%012d", i)] = []byte("$5\r\nhello\r\n")
				}
				got := b.run(worker.Load)
				require.EqualValues(t, 200, got.Ops[driver.Get].Due)
				if !checked {
					keys = 0
				}
				require.Equal(t, keys, got.Foreign, "%q, indirect=%t", phase, indirect)
			}
		}
	}
}

func TestForeignValues(t *testing.T) {
	p := redisPlan(t, 3, nwr321, `
		ops = { get = 1 }
		closed {
			sessions   = 1
			iterations = 50
		}`)
	b := newBench(t, p, "load", time.Millisecond)
	b.server(0).words = []byte("$5\r\nhello\r\n")
	got := b.run(worker.Load)
	require.EqualValues(t, 50, got.Foreign)
	require.EqualValues(t, 50, got.Ops[driver.Get].Outcomes[driver.OK]+got.Ops[driver.Get].Outcomes[driver.Miss])
}
