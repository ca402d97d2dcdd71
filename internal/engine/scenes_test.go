package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/internal/workload"
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

// A target that is not there fails scenarios as it fails ops: no faster than the pause allows, and with ledgers that balance.
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
	require.InDelta(t, 300, bad, 60, "each of six slots tries every 10 ms")
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
