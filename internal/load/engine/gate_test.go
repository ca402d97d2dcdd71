package engine

import (
	"cmp"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/policy"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// allowed counts requests, and how far they exceed what a policy allows by the time of each.
type allowed struct {
	rate float64
	now  func() int64 // since the first run began

	mu   sync.Mutex // of what stands below: behind pipes, each connection of a server has a goroutine
	n    int
	over float64 // the most requests beyond rate × (time + 1 s)
	last int64   // when the latest came
}

func (a *allowed) took() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	a.last = a.now()
	a.over = max(a.over, float64(a.n)-a.rate*(float64(a.last)/1e9+1))
}

// whole checks that no request came too early, and that no more than a share of what was allowed was not used.
func (a *allowed) whole(t *testing.T, unused float64) {
	t.Helper()
	const rounding = 1e-6
	require.LessOrEqual(t, a.over, rounding, "of %d requests", a.n)
	require.InEpsilon(t, a.rate*(float64(a.last)/1e9+1), a.n, unused)
}

// under puts the bench's loop under a policy, and has the servers count.
func (b *bench) under(p *policy.Policy) *allowed {
	b.e.cfg.Budget = p.Budget()
	b.l.gate = newGate(b.e.cfg.Budget, b.e.apart, b.l)
	a := &allowed{rate: p.Rate, now: b.e.clock.now}
	if c, virtual := b.e.clock.(*virtualClock); virtual {
		a.now = func() int64 { return c.t }
	}
	for _, s := range b.net.servers {
		s.took = a.took
	}
	return a
}

// A policy's rate limits the requests of loads of every kind, by every way: at no time have servers got more than those of that time and a second, and
// loads that want more get as much. An op that waits is late.
func TestNoLoadExceedsThePolicysRate(t *testing.T) {
	const hungry = "max_bad = 1\nexpect_hits = 0\nops = { get = 2, put = 1 }\n"
	const closed = hungry + "closed {\n sessions = 3\n duration = \"3s\"\n pipeline = 5\n}"
	const readsOne = "timeout = \"20ms\"\nreplication {\n coordinate = \"client\"\n n = 3\n w = 2\n r = 1\n read_fanout = \"r\"\n}"
	_, text := recorded(20_000)
	on := func(endpoints int, target, phase string) func(t *testing.T) *bench {
		return func(t *testing.T) *bench {
			return newBench(t, redisPlan(t, endpoints, target, phase), "load", time.Millisecond)
		}
	}
	for name, c := range map[string]struct {
		load   func(t *testing.T) *bench
		kind   worker.StepKind
		script func(b *bench)
	}{
		"closed":           {load: on(2, "", closed)},
		"alike":            {load: on(1, "", "ops = { put = 1 }\nclosed {\n sessions = 2\n duration = \"3s\"\n pipeline = 200\n}")},
		"many sessions":    {load: on(1, "", hungry+"closed {\n sessions = 5000\n duration = \"3s\"\n}")},
		"open":             {load: on(2, "", hungry+"open {\n rate = 4000\n duration = \"3s\"\n sessions = 8\n pipeline = 4\n}")},
		"shedding":         {load: on(1, "", hungry+"open {\n rate = 4000\n duration = \"3s\"\n sessions = 8\n on_full = \"shed\"\n}")},
		"quorum":           {load: on(3, nwr321, closed)},
		"quorum of five":   {load: on(5, nwr321, closed)},
		"reads of one":     {load: on(3, readsOne, closed)},
		"reads of another": {load: on(3, readsOne, closed), script: func(b *bench) { b.server(0).latency = every(2, -1) }},
		"batches":          {load: on(3, "", "batch = 4\n"+closed)},
		"scenarios":        {load: on(2, "", checkout+"max_bad = 1\nclosed {\n sessions = 30\n duration = \"3s\"\n}")},
		"open scenarios":   {load: on(2, "", checkout+"max_bad = 1\nopen {\n rate = 1500\n duration = \"3s\"\n sessions = 30\n}")},
		"populate":         {load: on(1, "", "populate {\n sessions = 2\n pipeline = 50\n}"), kind: worker.Populate},
		"replay": {load: func(t *testing.T) *bench {
			return newReplayBench(t, "sessions = 8\n pipeline = 4", text, 20_000, time.Millisecond)
		}},
		"rerun": {load: func(t *testing.T) *bench {
			return newRerunBench(t, "", "sessions = 8\n pipeline = 4", text, time.Millisecond)
		}},
		"cluster": {load: on(3, "cluster = true", closed)},
		"redirects": {load: on(3, "cluster = true", closed), script: func(b *bench) {
			b.server(0).words = fmt.Appendf(nil, "-ASK 7 127.0.0.1:%d\r\n", firstPort+2)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.load(t)
			t.Cleanup(b.g.close)
			p := &policy.Policy{Rate: 1000}
			if c.kind == worker.Populate { // which has few ops
				p.Rate = 20
			}
			a := b.under(p)
			if c.script != nil {
				c.script(b)
			}
			var got measure.Totals
			if f := b.g.trace; f != nil {
				_, got = b.replay()
			} else {
				got = b.run(cmp.Or(c.kind, worker.Load))
			}
			sent := 0
			for _, r := range got.Requests {
				sent += int(r.Sent)
			}
			require.Equal(t, sent, a.n)
			unused := 0.02
			if name == "reads of another" { // requests that were refused
				unused = 0.1
			}
			a.whole(t, unused)
			require.Zero(t, b.l.gate.held.next()-never)
			if name == "closed" { // fifteen slots share the requests of 10 ms
				response := got.Ops[driver.Get].ResponseAll().Answered
				require.InDelta(t, 10e6, response.Quantile(0.5), 1e6, "an op that waits has been due")
			}
		})
	}
}

// On the blocking executor, too.
func TestNoBlockingLoadExceedsThePolicysRate(t *testing.T) {
	for _, target := range []string{"", nwr321} {
		inBubble(t, 3, target, "max_bad = 1\nexpect_hits = 0\nops = { get = 1 }\nclosed {\n sessions = 4\n pipeline = 3\n duration = \"3s\"\n}", func(b *bench) {
			a := b.under(&policy.Policy{Rate: 500})
			for _, s := range b.net.servers {
				s.took = a.took
			}
			b.run(worker.Load)
			a.whole(t, 0.02)
		})
	}
}

// A worker's process has one budget, which the loops of all steps of all its runs share.
func TestOneBudgetForAllLoopsStepsAndRuns(t *testing.T) {
	const phases = `
		dataset "d" {
			keys { count = 1500 }
			values { size = 100 }
		}
		phase "fill" {
			target  = target.t
			dataset = dataset.d
			populate {}
		}
		phase "load" {
			target  = target.t
			dataset = dataset.d
			max_bad = 1
			ops     = { put = 1 }
			closed {
				sessions = 8
				duration = "6s"
			}
		}`
	for _, loops := range []int{1, 4} {
		for _, name := range []string{"null", "moody", "paper"} {
			if loops == 1 && name != "null" {
				continue
			}
			t.Run(fmt.Sprint(name, " on ", loops), func(t *testing.T) {
				servertest.Bubble(t, func(t *testing.T) {
					began := time.Now()
					a := &allowed{rate: 1000, now: func() int64 { return int64(time.Since(began)) }}
					m := &moody{timeout: time.Second, began: began, got: map[string]*heard{}, took: a.took}
					var d driver.Driver
					config := `endpoints = ["e0:1"]` + onBlocking // which does not watch the clock, since that stands still in a bubble
					switch name {
					case "null":
						d = nullBefore{do: func(req *driver.Request) { m.take("", req) }}
					case "moody":
						d = moodyClients{null.Driver{}, m}
					case "paper":
						d, config = moodyFiles{m}, ""
					}
					p := parsePlanFor(t, []driver.Driver{d}, fmt.Sprintf("target \"t\" {\n driver = %q\n timeout = \"1s\"\n %s\n}\n%s", name, config, phases))
					of := &policy.Policy{Rate: a.rate}
					budget := of.Budget()
					var waits []float64
					for range 2 {
						e := assigned(t, Config{Loops: loops, Drivers: []driver.Driver{d}, Sleep: time.Sleep, Policy: of, Budget: budget, LogRoot: func() (string, error) { return "/", nil }}, p)
						for i, kind := range []worker.StepKind{worker.Populate, worker.Load} {
							waits = append(waits, runAlone(t, e, p, kind, i).RateWait)
						}
						e.Close()
						time.Sleep(100 * time.Millisecond)
					}
					a.whole(t, 0.04) // at first, before the first connection, the bucket is full
					require.InDelta(t, 15_000, a.n, 1500, "1,500 keys and 6 s, twice, and a second's worth")
					require.Greater(t, waits[1], 0.9)
					require.Greater(t, waits[3], 0.9)
				})
			})
		}
	}
}

// runAlone carries out the only step of a phase, whose number is seq.
func runAlone(t *testing.T, e *Engine, p *plan.Plan, kind worker.StepKind, seq int) measure.Generator {
	t.Helper()
	step := stepOf(p.Phases[seq], kind)
	step.Seq = seq
	prepared(t, e, step)
	final := ran(t, e)
	return final.Generator
}

// The bytes that a load moves exceed its policy by no more than what is in flight, whether or not they are replies.
func TestNoLoadExceedsThePolicysBytes(t *testing.T) {
	const limit = 500e3
	for name, ops := range map[string]string{"put": "{ put = 1 }\n", "get": "{ get = 1 }\nexpect_hits = 0\n", "garbage": "{ get = 1 }\nexpect_hits = 0\n"} {
		b := newBench(t, redisPlanOf(t, 1, "size = 1000", "", "max_bad = 1\nops = "+ops+"closed {\n sessions = 4\n pipeline = 4\n duration = \"5s\"\n}"), "load", time.Millisecond)
		s := b.server(0)
		unused := 0.02
		switch name {
		case "get":
			s.words = fmt.Appendf(nil, "$1000\r\n%01000d\r\n", 0)
		case "garbage":
			s.words, unused = make([]byte, 2000), 0.2
		}
		b.under(&policy.Policy{Bytes: limit})
		over := 0.0
		s.took = func() { over = max(over, float64(s.told+s.said)-limit*(float64(b.net.clock.t)/1e9+1)) }
		b.run(worker.Load)
		require.LessOrEqual(t, over, 16*2200.0, name)
		require.InEpsilon(t, limit*(float64(b.net.clock.t)/1e9+1), s.told+s.said, unused, name)
		b.g.close()
	}
}

// A load that stays within its policy does not wait.
func TestALoadWithinItsPolicyDoesNotWait(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nopen {\n rate = 900\n duration = \"5s\"\n arrivals = \"poisson\"\n sessions = 50\n}"), "load", time.Millisecond)
	b.under(&policy.Policy{Rate: 1000, Bytes: 1e9})
	got := b.run(worker.Load).Ops[driver.Get]
	require.Less(t, got.Lag.Max(), int64(time.Millisecond))
	require.Zero(t, b.use.rateWait+b.use.bytesWait)
}
