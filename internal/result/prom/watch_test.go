package prom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/pkg/driver"
)

// script is a worker that delivers two snapshots of 100 ops and then calls during.
type script struct {
	calls  []string
	during func()
}

func (s *script) Assign(_ context.Context, a worker.Assignment) error {
	s.calls = append(s.calls, "assign "+a.RunID)
	return nil
}

func (s *script) Prepare(_ context.Context, step worker.Step) (worker.Ready, error) {
	s.calls = append(s.calls, "prepare "+step.Phase)
	return worker.Ready{Step: step.Seq}, nil
}

func (s *script) Run(_ context.Context, at time.Duration, sink worker.Sink) (worker.Final, error) {
	s.calls = append(s.calls, "run "+at.String())
	for range 2 {
		delta := counted([]driver.Verb{driver.Get}, 1, 4, 3)
		kept, err := sink(&measure.Snapshot{Delta: *delta, To: 1e9})
		if err != nil {
			return worker.Final{}, err
		}
		if err := kept(); err != nil {
			return worker.Final{}, err
		}
	}
	s.during()
	return worker.Final{Stopped: true}, nil
}

func (s *script) Drain() { s.calls = append(s.calls, "drain") }

// kept is what a sink returns that does not wait for a disk.
func kept() error { return nil }

// TestWatch: calls reach the wrapped worker, its answers come back, and the page shows the accepted snapshots.
func TestWatch(t *testing.T) {
	p := parse(t, samplePlan)
	c := with()
	feed := prom.NewFeed(c, "r", p)
	due := func() float64 { return value(t, gather(t, c)["loadgen_ops_due_total"], "phase=get", "op=get") }
	active := func() float64 { return value(t, gather(t, c)["loadgen_phase_active"], "phase=get") }
	step := worker.Step{Seq: 7, Phase: "get", Kind: worker.Load, To: 10}

	inner := &script{during: func() { require.EqualValues(t, 1, active()) }}
	w := prom.Watch(inner, func(a worker.Assignment) *prom.Feed {
		require.Equal(t, "r", a.RunID)
		return feed
	})
	require.NoError(t, w.Assign(t.Context(), worker.Assignment{RunID: "r"}))
	ready, err := w.Prepare(t.Context(), step)
	require.NoError(t, err)
	require.Equal(t, 7, ready.Step)
	require.Zero(t, active())

	taken := 0
	full := errors.New("disk full")
	_, err = w.Run(t.Context(), time.Second, func(*measure.Snapshot) (func() error, error) {
		if taken == 1 {
			return nil, full
		}
		taken++
		return kept, nil
	})
	require.ErrorIs(t, err, full)
	require.EqualValues(t, 100, due(), "a snapshot that was not taken is not shown")
	require.Zero(t, active())

	final, err := w.Run(t.Context(), 2*time.Second, func(*measure.Snapshot) (func() error, error) { return kept, nil })
	require.NoError(t, err)
	require.True(t, final.Stopped)
	require.EqualValues(t, 300, due())
	w.Drain()
	require.Equal(t, []string{"assign r", "prepare get", "run 1s", "run 2s", "drain"}, inner.calls)
}

func TestWatchWithoutAFeed(t *testing.T) {
	taken := 0
	w := prom.Watch(&script{during: func() {}}, func(worker.Assignment) *prom.Feed { return nil })
	require.NoError(t, w.Assign(t.Context(), worker.Assignment{}))
	_, err := w.Run(t.Context(), 0, func(*measure.Snapshot) (func() error, error) { taken++; return kept, nil })
	require.NoError(t, err)
	require.Equal(t, 2, taken)
}
