package coord_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

const threeEvents = `
plan "events" {}
target "t" {
	driver = "redis"
	builtin {}
}
dataset "d" {
	keys { count = 10 }
	values { size = 100 }
}
phase "read" {
	target  = target.t
	dataset = dataset.d
	ops     = { put = 1 }
	closed {
		sessions   = 10
		iterations = 1
	}
	event "first" {
		at = "1s"
		do = "flush"
	}
	event "second" {
		at   = "1500ms"
		do   = "kill"
		node = 0
		for  = "300ms"
	}
	event "late" {
		at = "3s"
		do = "flush"
	}
}`

// TestEventsHappenAtTheirTime carries out a phase's events while it is loaded, each at its time and none once the load is over. One that fails makes the
// phase suspect. What was kept of the run says the same.
func TestEventsHappenAtTheirTime(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		a := newFake()
		a.count = func(_ context.Context, _ *fakeWorker, step worker.Step, t *measure.Totals) {
			time.Sleep(2 * time.Second)
			done(t, step.To-step.From)
		}
		cfg := configOf(t, threeEvents, local, a)
		cfg.Nodes = new(builtIn)
		cfg.Happen = func(_ context.Context, ph *plan.Phase, ev *plan.Event, undo bool) error {
			time.Sleep(100 * time.Millisecond)
			if ph.Name != "read" || ev.Name != "first" {
				return errors.New("it is made of stone")
			}
			return nil
		}
		live := coord.Run(context.Background(), cfg)
		require.Equal(t, run.Complete, live.Verdict.Completeness, live.Verdict.Reasons)
		ph := live.Phase["read"]
		for name, at := range map[string]float64{"first": 1, "second": 1.5} {
			require.InDelta(t, at, *ph.Event[name].HappenedSeconds, 0.003, name) // the order to start is sent ahead
			require.InDelta(t, 0.1, ph.Event[name].TookSeconds, 1e-9, name)
		}
		require.InDelta(t, 1.9, *ph.Event["second"].UndoneSeconds, 0.003, "what undoes it takes 0.1 s, too")
		require.Nil(t, ph.Event["first"].UndoneSeconds)
		require.Nil(t, ph.Event["late"].HappenedSeconds)
		require.Equal(t, "the load ended first", ph.Nulls["event.late.happened_seconds"])
		require.Equal(t, "it is made of stone; it is made of stone", ph.Event["second"].Failed)
		require.Contains(t, ph.Reasons, run.Reason{Validity: run.Suspect, Code: reason.EventFailed, Text: "event second: it is made of stone; it is made of stone", Touches: []string{"event.second"}})
		r, err := coord.Recover(ofKept(cfg, cfg.Store.(*memory).records))
		require.NoError(t, err)
		require.Equal(t, live.Phase, r.Phase)
	})
}
