package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/selfcheck"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// requireQuantiles compares what was measured in virtual time with theory. Measuring costs no more than a few readings of the clock, and the same
// histogram rounds both sides: they differ by a microsecond at most, or by a bucket.
func requireQuantiles(t *testing.T, want, got *hist.Hist) {
	t.Helper()
	require.Equal(t, want.Count(), got.Count())
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		theory := float64(want.Quantile(q))
		require.InDelta(t, theory, got.Quantile(q), max(1e3, theory/128), "p%v", 100*q)
	}
}

// TestKnownDelays has a target answer after a fixed and after a drawn time.
func TestKnownDelays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() time.Duration{
		"constant":    func() time.Duration { return 100 * time.Microsecond },
		"exponential": func() time.Duration { return time.Duration(random.ExpFloat64() * 1e5) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, redisPlan(t, 1, "", `
				ops = { get = 1 }
				closed {
					sessions   = 8
					iterations = 2500
				}`), "load", 0)
			var drawn []int64
			b.server(0).latency = func(int) time.Duration {
				d := draw()
				drawn = append(drawn, int64(d))
				return d
			}
			get := b.run(worker.Load).Ops[driver.Get]
			response, service := get.ResponseAll().Answered, get.ServiceAll().Answered
			requireQuantiles(t, selfcheck.Above(drawn, nil), &response)
			requireQuantiles(t, selfcheck.Above(drawn, nil), &service)
		})
	}
}

// TestKnownQueue offers Poisson arrivals to a queue with one server, and compares every response with Lindley's recursion over the arrivals
// that the server saw and the times that it drew.
func TestKnownQueue(t *testing.T) {
	for _, load := range []string{"300/s", "700/s", "950/s"} {
		t.Run(load, func(t *testing.T) {
			b := newBench(t, redisPlan(t, 1, `timeout = "1m"`, `
				ops = { get = 1 }
				open {
					rate     = "`+load+`"
					duration = "20s"
					arrivals = "poisson"
					sessions = 16
					pipeline = 64
					drain    = "10s"
				}`), "load", 0)
			random := rand.New(rand.NewPCG(3, 4))
			var visits []selfcheck.Visit
			free := int64(0)
			b.server(0).latency = func(int) time.Duration {
				v := selfcheck.Visit{Arrival: b.net.clock.t, Service: int64(random.ExpFloat64() * 1e6)}
				visits = append(visits, v)
				free = max(free, v.Arrival) + v.Service
				return time.Duration(free - v.Arrival)
			}
			get := b.run(worker.Load).Ops[driver.Get]
			response := get.ResponseAll().Answered
			require.Less(t, get.Lag.Max(), int64(time.Millisecond), "there was room")
			requireQuantiles(t, selfcheck.Above(selfcheck.Sojourns(visits), nil), &response)
		})
	}
}

// TestKnownStall has a target stand still for a second: each connection has one slow service, and every op that was due in that second is a slow
// response.
func TestKnownStall(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, `timeout = "5s"`, `
		ops = { get = 1 }
		open {
			rate     = 1000
			duration = "3s"
			arrivals = "constant"
			sessions = 4
			pipeline = 1
		}`), "load", 10*time.Microsecond)
	b.net.at(time.Duration(b.net.clock.t)+time.Second, func() {
		until := b.net.clock.t + int64(time.Second)
		b.server(0).latency = func(int) time.Duration { return time.Duration(max(until-b.net.clock.t, int64(10*time.Microsecond))) }
	})
	get := b.run(worker.Load).Ops[driver.Get]
	response, service := get.ResponseAll().Answered, get.ServiceAll().Answered
	require.Equal(t, 4, above(&service, 100*time.Millisecond))
	require.InDelta(t, 903, above(&response, 100*time.Millisecond), 3) // and those who wait while the queue is worked off
	require.InDelta(t, 1e9, response.Max(), 1e7)
}
