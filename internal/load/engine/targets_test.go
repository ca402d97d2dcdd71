package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// copier is a program whose gets put what they read into another target. Gets that caused such a put are of kind 2, others of kind 1.
type copier struct {
	t      testing.TB
	values []driver.Value // by slot
	bytes  []op.Verbatim  // likewise
}

const (
	tagOfGet = 3
	tagOfPut = 200
)

func (p *copier) Start(dst []driver.Request, o *op.Op) []driver.Request {
	for int(o.Slot) >= len(p.values) {
		p.values, p.bytes = append(p.values, driver.Value{}), append(p.bytes, op.Verbatim{})
	}
	return append(dst, driver.Request{Verb: driver.Get, Key: o.Key, Tag: tagOfGet})
}

func (p *copier) On(dst []driver.Request, ev op.Event) ([]driver.Request, op.Step) {
	outcome := driver.Error
	switch ev.Kind {
	case op.Replied:
		outcome = ev.Reply.Outcome
	case op.RequestTimeout:
		outcome = driver.Timeout
	}
	if ev.Tag == tagOfPut {
		require.Equal(p.t, [2]int{1, int(driver.Put)}, [2]int{ev.Target, int(ev.Verb)})
		return dst, op.Step{Done: true, Settled: true, Outcome: outcome, Kind: 2}
	}
	require.EqualValues(p.t, tagOfGet, ev.Tag)
	require.Equal(p.t, [2]int{0, int(driver.Get)}, [2]int{ev.Target, int(ev.Verb)})
	if outcome != driver.OK {
		return dst, op.Step{Done: true, Settled: true, Outcome: outcome, Kind: 1}
	}
	slot := ev.Op.Slot
	p.bytes[slot].Bytes = ev.Reply.Value
	p.values[slot] = driver.Value{Size: len(ev.Reply.Value), Maker: &p.bytes[slot]}
	return append(dst, driver.Request{Target: 1, Verb: driver.Put, Key: ev.Op.Key, Value: &p.values[slot], Tag: tagOfPut}), op.Step{}
}

// twoTargets is a plan whose sessions get from one target and put into another.
func twoTargets(t testing.TB, load string) *plan.Plan {
	return parsePlan(t, fmt.Sprintf(`
		target "a" {
			driver    = "redis"
			endpoints = ["127.0.0.1:7001"]
			timeout   = "20ms"
		}
		target "b" {
			driver    = "redis"
			endpoints = ["127.0.0.1:7002"]
			timeout   = "20ms"
		}
		dataset "d" {
			keys { count = 20 }
			values { size = 30 }
		}
		phase "load" {
			target  = target.a
			dataset = dataset.d
			max_bad = 1
			scenario "copy" {
				step "get" {}
				step "put" {
					target = target.b
					key    = "same"
					as     = "write"
					times  = 2
				}
			}
			%s
		}`, load))
}

// A wait that ends with one reply, from any target, was not for nothing.
func TestOneReplyEndsAWait(t *testing.T) {
	b := newBench(t, twoTargets(t, "closed {\n sessions = 1\n iterations = 1\n}"), "load", time.Millisecond)
	b.equip(worker.Load)
	b.l.enter()
	require.True(t, b.l.cycle())
	require.EqualValues(t, 1, *b.server(0).got["GET"])
	require.Zero(t, b.l.woken)
}

// TestSchedulesOverTwoTargets runs a thousand schedules of answers, silence and lost connections: every request is counted in its target's row, as
// often as the target got it, and both ledgers balance, also if a get issues a put to the other target.
func TestSchedulesOverTwoTargets(t *testing.T) {
	schedules := 400
	if !servertest.Whole() {
		schedules = 100
	}
	p := twoTargets(t, "closed {\n sessions = 2\n iterations = 4\n pipeline = 2\n}")
	for seed := range schedules {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		b := newBench(t, p, "load", 0)
		for i := range 2 {
			b.server(i).latency = func(int) time.Duration {
				if random.IntN(12) == 0 {
					return -1
				}
				return time.Duration(random.IntN(3000)) * time.Microsecond
			}
			if random.IntN(4) == 0 {
				server := b.server(i)
				b.net.at(time.Duration(b.net.clock.t)+time.Duration(random.IntN(8000))*time.Microsecond, server.sever)
			}
		}
		for key := range 20 {
			if random.IntN(4) > 0 {
				b.server(0).keys[fmt.Sprintf("key:%012d", key)] = []byte("$3\r\nabc\r\n")
			}
		}
		copies := seed%2 == 1
		parts := b.equip(worker.Load)
		if copies {
			b.l.lanes[0].programs.Program = &copier{t: t}
			b.server(1).put = func(value []byte) { require.Contains(t, []int{3, 30}, len(value)) }
		}
		b.l.run()
		seq := uint64(0)
		c := collector{g: b.g, begin: b.l.origin, seq: &seq, sink: func(*measure.Snapshot) {}}
		totals := c.collect(parts)
		require.NoError(t, totals.CheckValid(), "schedule %d", seed)
		requireRows(t, b, &totals, seed)
		s := totals.Scenarios[0]
		require.EqualValues(t, 8, s.Due)
		require.Zero(t, s.InFlight)
		require.Equal(t, totals.Ops[driver.Get].Due, s.Steps[0].Due)
		if put := totals.Ops[driver.Put]; put != nil && len(s.Steps) > 1 {
			require.Equal(t, put.Due, s.Steps[1].Due)
		}
		if copies {
			kinds := totals.Ops[driver.Get].Kinds
			sorted := uint64(0)
			for i := range kinds {
				sorted += kinds[i].Response.Count()
			}
			require.Equal(t, totals.Ops[driver.Get].Due, sorted)
		}
	}
}

// requireRows compares the ledger of requests with what the servers got: no gets at the second target, no puts at the first.
func requireRows(t *testing.T, b *bench, totals *measure.Totals, seed int) {
	t.Helper()
	for target, verbs := range [][2]driver.Verb{{driver.Get, driver.Put}, {driver.Put, driver.Get}} {
		mine, never := totals.Request(target, verbs[0]), totals.Request(target, verbs[1])
		got := map[driver.Verb]int{driver.Get: *b.server(target).got["GET"], driver.Put: *b.server(target).got["SET"]}
		require.Zero(t, never.Sent+never.Refused)
		require.Zero(t, got[verbs[1]])
		require.EqualValues(t, 0, mine.InFlight)
		require.LessOrEqual(t, uint64(got[verbs[0]]), mine.Sent, "schedule %d", seed)
		require.GreaterOrEqual(t, uint64(got[verbs[0]]), mine.Answered, "schedule %d", seed)
	}
}

// The time of a scenario is the sum of its steps' times, each counted as often as it runs.
func TestScenarioIsTheSumOfItsSteps(t *testing.T) {
	b := newBench(t, twoTargets(t, "closed {\n sessions = 3\n iterations = 50\n}"), "load", time.Millisecond)
	b.server(1).latency = func(int) time.Duration { return 3 * time.Millisecond }
	totals := b.run(worker.Load)
	s := totals.Scenarios[0]
	require.EqualValues(t, 150, s.Due)
	mean := func(o *measure.Op) float64 {
		all := o.ResponseAll()
		return all.Answered.Mean()
	}
	require.EqualValues(t, 300, s.Steps[1].Due)
	require.InEpsilon(t, mean(s), mean(s.Steps[0])+2*mean(s.Steps[1]), 1e-3)
	require.EqualValues(t, 300, totals.Request(1, driver.Put).Answered)
	require.EqualValues(t, 150, totals.Request(0, driver.Get).Answered)
}
