package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TestUsersComeAndGo: sessions that come act at once, those that go finish what they have begun, and think times have the mean that the plan says.
func TestUsersComeAndGo(t *testing.T) {
	for _, c := range []struct {
		load  string
		least uint64
		most  uint64
	}{
		// The second stage has 585 to 595 ops, not the integral of 550; the first has 10.
		{`stages {
			think = "1s"
			stage {
				sessions = 10
				duration = "1s"
			}
			stage {
				sessions = 100
				duration = "10s"
				ramp     = "10s"
			}
		}`, 10 + 585, 10 + 595},
		// With a latency of 1 ms, a session has 29.7 ops in 3 s.
		{`stages {
			think = "100ms"
			stage {
				sessions = 100
				duration = "3s"
			}
			stage {
				sessions = 5
				duration = "3s"
			}
			stage {
				sessions = 100
				duration = "3s"
			}
		}`, 95*2*29 + 5*88, 95*2*30 + 5*90},
		{`stages {
			pipeline = 2
			think = "100ms"
			stage {
				sessions = 10
				duration = "3s"
			}
			stage {
				sessions = 0
				duration = "1ms"
			}
			stage {
				sessions = 10
				duration = "3s"
			}
		}`, 2 * 10 * 2 * 29, 2 * 10 * 2 * 30},
		{`closed {
			sessions = 50
			duration = "100s"
			think    = "exponential(1s, 10s)"
		}`, 4800, 5300},
		{`scenario "s" {
			step "get" {}
			step "get" { think = "lognormal(1s, 0.5, 20s)" }
		}
		closed {
			sessions = 50
			duration = "100s"
			think    = "uniform(500ms, 1s)"
		}`, 5000, 5600}, // 2 in 1.133 + 0.75 s
	} {
		var first uint64
		for range 2 {
			mix := "ops = { get = 1 }\n"
			if c.load[:2] == "sc" {
				mix = ""
			}
			b := newBench(t, redisPlan(t, 1, "", mix+c.load), "load", time.Millisecond)
			got := b.run(worker.Load).Ops[driver.Get]
			require.Zero(t, got.InFlight)
			sum := uint64(0)
			for _, stage := range got.Steps {
				sum += stage.Due
			}
			if len(b.g.phase.Closed.Stages) > 0 {
				require.Equal(t, got.Due, sum, c.load)
			} else {
				require.Empty(t, got.Steps)
			}
			require.GreaterOrEqual(t, got.Due, c.least, c.load)
			require.LessOrEqual(t, got.Due, c.most, c.load)
			if first > 0 {
				require.Equal(t, fmt.Sprint(first), fmt.Sprint(got.Due), "the same seed draws the same times")
			}
			first = got.Due
		}
	}
}

// TestAnOpCountsInTheStageInWhichItWasDue, also one that goes on across a boundary.
func TestAnOpCountsInTheStageInWhichItWasDue(t *testing.T) {
	stages := `stages {
		stage {
			sessions = 1
			duration = "1s"
		}
		stage {
			sessions = 2
			duration = "1s"
		}
	}`
	due := func(phase string) (all []uint64) {
		b := newBench(t, redisPlan(t, 1, "", phase+stages), "load", 400*time.Millisecond)
		for _, stage := range b.run(worker.Load).Ops[driver.Get].Steps {
			require.Equal(t, stage.Due, stage.Outcomes[driver.OK]+stage.Outcomes[driver.Miss])
			all = append(all, stage.Due)
		}
		return all
	}
	// One session at 0, 0.4, 0.8, 1.2 and 1.6 s, the other at 1, 1.4 and 1.8 s.
	require.Equal(t, []uint64{3, 5}, due("ops = { get = 1 }\n"))
	// In scenarios, those of 0.8, 1.6 and 1.8 s are first steps; each second step is due 0.4 s later, also after the last stage.
	require.Equal(t, []uint64{3, 5, 2}, due("scenario \"s\" {\n step \"get\" {}\n step \"get\" {}\n}\n"))
}
