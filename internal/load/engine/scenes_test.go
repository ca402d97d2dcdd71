package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
)

// checkout is a mix of single gets and two scenarios.
const checkout = `
	ops = { get = 2 }
	scenario "modify" {
		weight = 1
		step "get" {}
		step "put" { key = "same" }
	}
	scenario "slow" {
		weight = 1
		step "put" {}
		step "get" {
			key   = "same"
			think = "5ms"
		}
		step "delete" {}
	}
`

// TestClosedScenarios runs each session's scenarios to their end: every step is an op of its verb, and each scenario takes as long as its steps
// and the thinking between them.
func TestClosedScenarios(t *testing.T) {
	for _, pipeline := range []int{1, 4} {
		p := redisPlan(t, 2, "", fmt.Sprintf(checkout+`
			closed {
				sessions   = 4
				iterations = 500
				pipeline   = %d
			}`, pipeline))
		b := newBench(t, p, "load", time.Millisecond)
		got := b.run(worker.Load)
		require.Len(t, got.Scenarios, 3)
		var due, steps uint64
		for i, s := range got.Scenarios {
			n := uint64(len(p.Phases[0].Scenarios[i].Steps))
			due += s.Due
			steps += n * s.Due
			require.InDelta(t, []int{1000, 500, 500}[i], s.Due, 120)
			require.Equal(t, s.Due, s.Outcomes[driver.OK]+s.Outcomes[driver.Miss])
			require.Zero(t, s.InFlight)
			require.Nil(t, s.Growth, "nobody asked for it")
			response := s.ResponseAll().Answered
			least := []time.Duration{time.Millisecond, 2 * time.Millisecond, 7 * time.Millisecond}[i] // deletes are answered at once
			require.InDelta(t, least, response.Min(), float64(200*time.Microsecond))
			require.InDelta(t, least, response.Quantile(0.5), float64(300*time.Microsecond))
		}
		require.EqualValues(t, 2000, due)
		var ops uint64
		for _, o := range got.Ops {
			if o != nil {
				ops += o.Due
			}
		}
		require.Equal(t, steps, ops)
		require.Equal(t, got.Scenarios[1].Due+got.Scenarios[2].Due, got.Ops[driver.Put].Due)
		require.EqualValues(t, got.Ops[driver.Put].Due, *b.server(0).got["SET"]+*b.server(1).got["SET"])
	}
}

// TestOpenScenarios measures scenarios of an open load from when they were due, however late they start.
func TestOpenScenarios(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, `timeout = "5s"`, checkout+`
		open {
			rate     = 200
			duration = "5s"
			sessions = 4
		}`), "load", time.Millisecond)
	b.net.at(time.Duration(b.net.clock.t)+2*time.Second, func() {
		until := b.net.clock.t + int64(time.Second)
		b.server(0).latency = func(int) time.Duration { return time.Duration(max(until-b.net.clock.t, int64(time.Millisecond))) }
	})
	got := b.run(worker.Load)
	late, due := 0, uint64(0)
	for _, s := range got.Scenarios {
		response := s.ResponseAll().Answered
		due += s.Due
		late += above(&response, 10*time.Millisecond)
		require.Equal(t, s.Due, response.Count())
	}
	require.EqualValues(t, 1000, due)
	require.InDelta(t, 200, late, 40, "those that were due in the second in which nothing was answered")
}

// A step that fails ends its scenario, with the same outcome.
func TestFailedStepEndsItsScenario(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", `
		scenario "modify" {
			step "get" {}
			step "put" { key = "same" }
		}
		closed {
			sessions   = 2
			iterations = 50
		}`), "load", time.Millisecond)
	b.server(0).words = []byte("-ERR out of order\r\n")
	got := b.run(worker.Load)
	require.EqualValues(t, 100, got.Scenarios[0].Due)
	require.EqualValues(t, 100, got.Scenarios[0].Outcomes[driver.Error])
	require.EqualValues(t, 100, got.Scenarios[0].Causes[op.Replied])
	require.EqualValues(t, 100, got.Ops[driver.Get].Outcomes[driver.Error])
	require.Nil(t, got.Ops[driver.Put])
}

// A target that is not there fails scenarios as it fails ops: once a slot, and with ledgers that balance.
func TestScenariosOfADeadTarget(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", checkout+`
		closed {
			sessions = 3
			pipeline = 2
			duration = "1s"
		}`), "load", time.Millisecond)
	b.net.at(time.Duration(b.net.clock.t)+500*time.Millisecond, func() { b.server(0).down = true; b.server(0).sever() })
	got := b.run(worker.Load)
	var bad uint64
	for _, s := range got.Scenarios {
		bad += s.Outcomes[driver.Error]
		require.Zero(t, s.InFlight)
	}
	require.EqualValues(t, 6+6, bad, "each of six slots loses what is under way, is refused once, and waits")
}

// A run that is stopped starts no further step: scenarios that this cuts stay in flight, their ops do not.
func TestDrainCutsScenarios(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", `
		scenario "slow" {
			step "get" {}
			step "get" { think = "10s" }
		}
		closed {
			sessions   = 5
			iterations = 3
		}`), "load", time.Millisecond)
	b.net.at(time.Duration(b.net.clock.t)+time.Second, func() { b.e.Drain() })
	began := b.net.clock.t
	got := b.run(worker.Load)
	require.EqualValues(t, 5, got.Scenarios[0].Due)
	require.EqualValues(t, 5, got.Scenarios[0].InFlight)
	require.EqualValues(t, 5, got.Ops[driver.Get].Due)
	require.Zero(t, got.Ops[driver.Get].InFlight)
	require.Less(t, time.Duration(b.net.clock.t-began), 1200*time.Millisecond)
}

// A scenario whose step is under way when the load is drained ends with that step, and counts as cut unless it was the last.
func TestDrainCutsScenariosBetweenSteps(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", `
		scenario "three" {
			step "get" {}
			step "get" {}
			step "put" {}
		}
		closed {
			sessions = 50
			duration = "10s"
		}`), "load", time.Millisecond)
	b.server(0).uneven = 1 // sessions are at different steps
	b.net.at(time.Duration(b.net.clock.t)+time.Second, func() { b.e.Drain() })
	got := b.run(worker.Load)
	s := got.Scenarios[0]
	done := s.Outcomes[driver.OK] + s.Outcomes[driver.Miss]
	require.Equal(t, s.Due, done+uint64(s.InFlight))
	require.Equal(t, got.Ops[driver.Put].Due, done, "those that came to their last step have ended")
	require.InDelta(t, 33, s.InFlight, 16)
	require.Zero(t, got.Ops[driver.Get].InFlight+got.Ops[driver.Put].InFlight)
}

// A load that is drained awaits the steps that are under way, and starts none that scenarios wait for, however soon it would be due.
func TestDrainStartsNoStepThatIsWaitedFor(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", `
		scenario "slow" {
			step "get" {}
			step "put" { think = "20ms" }
		}
		closed {
			sessions   = 2
			iterations = 1
		}`), "load", 0)
	b.server(0).latency = func(n int) time.Duration { return []time.Duration{0, 1, 15, 200}[n] * time.Millisecond }
	b.net.at(time.Duration(b.net.clock.t)+25*time.Millisecond, b.e.Drain) // the put of one was due 4 ms ago, that of the other will be in 10 ms
	got := b.run(worker.Load)
	s, put := got.Scenarios[0], got.Ops[driver.Put]
	require.Equal(t, [3]int{2, 1, 1}, [3]int{int(s.Due), int(s.Outcomes[driver.Miss]), int(s.InFlight)})
	require.Equal(t, [3]int{1, 1, 0}, [3]int{int(put.Due), int(put.Outcomes[driver.OK]), int(put.InFlight)})
	require.Equal(t, 1, *b.server(0).got["SET"])
}

// A step without think time leaves with the read that ends the one before it.
func TestStepsFollowAtOnce(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", `
		scenario "modify" {
			step "get" {}
			step "put" { key = "same" }
		}
		closed { iterations = 1 }`), "load", time.Millisecond)
	b.equip(worker.Load)
	b.l.enter()
	require.True(t, b.l.cycle())
	require.Equal(t, [2]int{1, 1}, [2]int{*b.server(0).got["GET"], *b.server(0).got["SET"]})
}

// Ops of steps end by the deadline of their own target's replication, long before their requests are overdue.
func TestDeadlinesOfSteps(t *testing.T) {
	const target = `
		target %q {
			driver    = "redis"
			endpoints = ["127.0.0.1:%d"]
			timeout   = "5s"
			replication {
				coordinate = "client"
				n          = 1
				w          = 1
				r          = 1
				timeout    = "%dms"
			}
		}`
	p := parsePlan(t, fmt.Sprintf(target, "a", firstPort, 30)+fmt.Sprintf(target, "b", firstPort+1, 50)+`
		dataset "d" {
			keys { count = 20 }
			values { size = 30 }
		}
		phase "load" {
			target  = target.a
			dataset = dataset.d
			max_bad = 1
			scenario "copy" {
				step "put" {}
				step "put" {
					target = target.b
					key    = "same"
					as     = "write"
				}
			}
			closed { iterations = 3 }
		}`)
	for silent, want := range []time.Duration{30 * time.Millisecond, 50 * time.Millisecond} {
		b := newBench(t, p, "load", time.Millisecond)
		b.server(silent).latency = every(1, -1)
		step := b.run(worker.Load)
		require.EqualValues(t, 3, step.Scenarios[0].Steps[silent].Outcomes[driver.QuorumFailed])
		took := &step.Scenarios[0].Steps[silent].Response[measure.ClassBad]
		require.InDelta(t, want, took.Min(), 1e5)
		require.InDelta(t, want, took.Max(), 1e5)
	}
}

// Scenarios are numbered in the order in which they are due, whichever they are, also by a single session.
func TestGrowthOfScenariosOfAnyLength(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", checkout+"closed { iterations = 50 }\ngrowth {}"), "load", time.Millisecond)
	got := b.run(worker.Load)
	var ended [50]uint64
	for _, s := range got.Scenarios {
		require.NotNil(t, s.Growth)
		for i := range s.Growth.Bins {
			ended[i] += s.Growth.Bins[i].Ended()
		}
	}
	for i, n := range ended {
		require.EqualValues(t, 1, n, "the %d. scenario", i+1)
	}
}

// What is recorded as the change from census to census adds up to what is in flight: the scenarios that have begun and not ended, also for the end of
// the run, and the steps of those that do not wait. Scenarios that have ended make room for others.
func TestCensusOfScenarios(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", checkout+"closed { iterations = 1 }"), "load", 0)
	b.equip(worker.Load)
	x, random := b.l.scenes, rand.New(rand.NewPCG(1, 1))
	var begun []*scene
	cut := map[int]int64{}
	for range 5000 {
		i := random.IntN(len(begun) + 1)
		switch {
		case i == len(begun) || len(begun) < 5:
			sc := x.take()
			sc.number, sc.at = random.IntN(3), 0
			begun = append(begun, sc)
		case random.IntN(3) > 0:
			sc := begun[i]
			sc.at, sc.waits = random.IntN(len(b.g.phase.Scenarios[sc.number].Steps)), random.IntN(3) == 0
		default:
			sc := begun[i]
			if random.IntN(20) == 0 {
				cut[sc.number]++
				x.cut[sc.number]++
			}
			x.release(sc)
			begun[i] = begun[len(begun)-1]
			begun = begun[:len(begun)-1]
		}
		x.census(&b.l.opsNow, &b.l.keyNow)
		want, got := maps.Clone(cut), map[int]int64{}
		wantSteps, gotSteps := map[measure.Step]int64{}, map[measure.Step]int64{}
		for _, sc := range begun {
			want[sc.number]++
			if !sc.waits {
				wantSteps[measure.Step{Scenario: sc.number, Step: sc.at}]++
			}
		}
		for i, s := range b.l.rec.Scenarios {
			if s.InFlight != 0 {
				got[i] = s.InFlight
			}
			for j, step := range s.Steps {
				if step.InFlight != 0 {
					gotSteps[measure.Step{Scenario: i, Step: j}] = step.InFlight
				}
			}
		}
		require.Equal(t, want, got)
		require.Equal(t, wantSteps, gotSteps)
	}
	require.Len(t, x.slab, minStates)
}

// A scenario that was due and found no room is shed as a whole; only its first op was due.
func TestScenariosAreShed(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", `
		scenario "modify" {
			step "get" {}
			step "put" { key = "same" }
		}
		open {
			rate     = 1000
			duration = "1s"
			sessions = 1
			on_full  = "shed"
		}`), "load", 5*time.Millisecond)
	got := b.run(worker.Load)
	s := got.Scenarios[0]
	require.EqualValues(t, 1000, s.Due)
	require.InDelta(t, 900, s.Outcomes[driver.Shed], 20)
	require.EqualValues(t, 1000, got.Ops[driver.Get].Due)
	require.Equal(t, s.Outcomes[driver.Shed], got.Ops[driver.Get].Outcomes[driver.Shed])
	require.Equal(t, s.Due-s.Outcomes[driver.Shed], got.Ops[driver.Put].Due)
}

// Both executors carry out the same scenarios, with and without replicas of each key.
func TestScenariosOnBothExecutors(t *testing.T) {
	const load = checkout + `
		closed {
			sessions   = 3
			iterations = 100
		}`
	const copies = `
		replication {
			n = 3
			w = 2
			r = 1
		}`
	for _, target := range []string{"", copies} {
		loop := newBench(t, redisPlan(t, 3, target, load), "load", time.Millisecond)
		want := loop.run(worker.Load)
		servertest.Bubble(t, func(t *testing.T) {
			b := newPipedBench(t, redisPlan(t, 3, target+"\n executor = \"blocking\"", load), "load", time.Millisecond)
			defer b.l.tr.close()
			got := b.run(worker.Load)
			require.Equal(t, want.Digest, got.Digest)
			for i, s := range got.Scenarios {
				require.Equal(t, want.Scenarios[i].Due, s.Due)
				require.Equal(t, s.Due, s.Outcomes[driver.OK]+s.Outcomes[driver.Miss])
			}
		})
	}
}

// The ops of a stream's scenarios are the same in whatever order and at whatever speed they end.
func TestScenariosDoNotDependOnTime(t *testing.T) {
	digests := map[uint64]bool{}
	for _, pipeline := range []int{1, 7} {
		for _, latency := range []time.Duration{time.Millisecond, 9 * time.Millisecond} {
			b := newBench(t, redisPlan(t, 2, "", fmt.Sprintf(checkout+`
				closed {
					sessions   = 3
					iterations = 200
					pipeline   = %d
				}`, pipeline)), "load", latency)
			b.server(1).uneven = 5
			totals := b.run(worker.Load)
			digests[totals.Digest] = true
		}
	}
	require.Len(t, digests, 1)
}

func TestScenariosAllocateNothing(t *testing.T) {
	p := redisPlan(t, 1, "", checkout+`
		closed {
			sessions = 1
			duration = "1h"
		}`)
	source, err := workload.New(p, p.Phases[0], workload.Step{Kind: "load"})
	require.NoError(t, err)
	stream, ops := source.Stream(0), make([]op.Op, source.Longest())
	for range 100 {
		stream.NextScenario(ops)
	}
	require.Zero(t, testing.AllocsPerRun(1000, func() { stream.NextScenario(ops) }))
	var rec measure.Totals
	sample := &measure.Sample{Due: 1, Start: 2, End: 3}
	rec.AddScenario(2)
	rec.RecordScenario(2, sample)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		rec.AddScenario(2)
		rec.RecordScenario(2, sample)
	}))
}
