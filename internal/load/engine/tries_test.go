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

const busy = "-ERR busy\r\n"

// failing has the first server answer requests with an error as fails says of each, counted from 1.
func (b *bench) failing(fails func(n int) bool) {
	n, s := 0, b.server(0)
	s.took = func() {
		n++
		s.words = nil
		if fails(n) {
			s.words = []byte(busy)
		}
	}
}

// Each fourth request fails, so that 300 ops take 399 of them: the ledger of requests has each try, that of ops each op once.
func TestEachTryIsARequestAndNoOp(t *testing.T) {
	for name, phase := range map[string]string{
		"closed":    "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 300\n}",
		"open":      "ops = { get = 1 }\nopen {\n sessions = 1\n rate = 100\n duration = \"3s\"\n}",
		"scenarios": "scenario \"three\" {\n step \"get\" {}\n step \"get\" {}\n step \"get\" {}\n}\nclosed {\n sessions = 1\n iterations = 100\n}",
	} {
		for _, cluster := range []string{"", "cluster = true"} {
			t.Run(name+" "+cluster, func(t *testing.T) {
				b := newBench(t, redisPlan(t, 1, cluster+"\nretry {\n attempts = 3\n backoff = \"1ms\"\n jitter = 0.5\n}", phase), "load", time.Millisecond)
				b.failing(func(n int) bool { return n%4 == 0 })
				got := b.run(worker.Load)
				get := got.Ops[driver.Get]
				require.EqualValues(t, 300, get.Due)
				require.EqualValues(t, 300, get.Outcomes[driver.OK]+get.Outcomes[driver.Miss])
				require.Equal(t, measure.Requests{Sent: 399, Answered: 300, Error: 99}, *got.Request(0, driver.Get))
				require.Equal(t, 399, *b.server(0).got["GET"])
			})
		}
	}
}

// An op whose last try fails has failed once, as that try did. Its latency is from when it was due to then: three answers, and waits of 10 and 20 ms,
// of which jitter leaves out a part that the plan's seed decides.
func TestTriesThatAllFail(t *testing.T) {
	var before measure.Totals
	for i, jitter := range []string{"0", "0.5", "0.5"} {
		b := newBench(t, redisPlan(t, 1, fmt.Sprintf("retry {\n attempts = 3\n backoff = \"10ms\"\n jitter = %s\n}", jitter), `
			ops = { put = 1 }
			closed {
				sessions   = 2
				pipeline   = 3
				iterations = 50
			}`), "load", time.Millisecond)
		b.failing(func(int) bool { return true })
		got := b.run(worker.Load)
		put := got.Ops[driver.Put]
		require.Equal(t, put.Due, put.Outcomes[driver.Error])
		require.Equal(t, put.Due, put.Causes[op.Replied])
		require.Equal(t, measure.Requests{Sent: 3 * put.Due, Error: 3 * put.Due}, *got.Request(0, driver.Put))
		times := put.Response[measure.ClassBad]
		if jitter == "0" {
			require.GreaterOrEqual(t, times.Min(), int64(33*time.Millisecond))
			continue
		}
		require.GreaterOrEqual(t, times.Min(), int64(18*time.Millisecond))
		require.Less(t, float64(times.Quantile(0.5)), 33e6)
		if i == 2 {
			require.Equal(t, before.Ops[driver.Put], put, "the same seed waits the same")
		}
		before = got
	}
}

// What is not in on is not tried again, and neither is an op that may not be repeated.
func TestWhatIsTriedOnce(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, `
		timeout = "50ms"
		retry {
			attempts = 4
			on       = ["timeout"]
		}
		op "twice" {
			repeat = true
			request { command = ["SET", "{key}", "a"] }
		}
		op "once" {
			repeat = false
			request { command = ["SET", "{key}", "b"] }
		}`, `
		ops = {
			get   = 1
			twice = 1
			once  = 1
		}
		closed {
			sessions   = 1
			iterations = 90
		}`), "load", time.Millisecond)
	b.server(0).latency = func(int) time.Duration { return 70 * time.Millisecond }
	got := b.run(worker.Load)
	words := b.e.plan.Words()
	for name, tries := range map[string]uint64{"get": 4, "twice": 4, "once": 1} {
		verb, _ := words.Verb(name)
		require.Positive(t, got.Ops[verb].Due)
		require.Equal(t, got.Ops[verb].Due, got.Ops[verb].Outcomes[driver.Timeout], name)
		require.Equal(t, tries*got.Ops[verb].Due, got.Request(0, verb).Timeout, name)
	}

	b = newBench(t, redisPlan(t, 1, "retry {\n attempts = 4\n on = [\"timeout\"]\n}", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 30\n}"), "load", time.Millisecond)
	b.failing(func(int) bool { return true })
	got = b.run(worker.Load)
	require.EqualValues(t, 30, got.Ops[driver.Get].Outcomes[driver.Error])
	require.EqualValues(t, 30, got.Request(0, driver.Get).Error)
}

// A step that is asked to end begins no other try: ops that wait for one end as the last one did, at once.
func TestStopsDuringBackoff(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "retry {\n attempts = 3\n backoff = \"1m\"\n}", "ops = { get = 1 }\nclosed {\n sessions = 2\n pipeline = 3\n duration = \"10m\"\n}"), "load", time.Millisecond)
	b.failing(func(int) bool { return true })
	began := b.net.clock.t
	b.net.at(time.Duration(began)+time.Second, func() { b.l.halt.Store(drain) })
	got := b.run(worker.Load)
	get := got.Ops[driver.Get]
	require.EqualValues(t, 6, get.Due)
	require.EqualValues(t, 6, get.Outcomes[driver.Error])
	require.EqualValues(t, 6, get.Causes[op.Replied])
	require.Equal(t, measure.Requests{Sent: 6, Error: 6}, *got.Request(0, driver.Get))
	require.Less(t, time.Duration(b.net.clock.t-began), time.Second+200*time.Millisecond)
}
