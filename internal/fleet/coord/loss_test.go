package coord_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestOpsThatNobodySawAreBoundedOrEstimated loses one of two workers a second after the start, with 5 ops of a millisecond each counted. What it may
// have sent by the end of its lease is a bound where the plan sets one, is called an estimate where it does not, and never goes beyond the phase.
func TestOpsThatNobodySawAreBoundedOrEstimated(t *testing.T) {
	trace := func(trace plan.Trace) func(*plan.Phase) {
		return func(ph *plan.Phase) {
			if ph.Open != nil {
				ph.Open.Trace = &trace
				return
			}
			ph.Closed.Trace = &trace
		}
	}
	chain := func(ph *plan.Phase) { // scenarios, of which the longest has three ops
		three := []plan.ScenarioStep{{Op: "put"}, {Op: "put"}, {Op: "put"}}
		ph.Scenarios = []plan.Scenario{{Name: "a", Weight: 1, Steps: three[:2]}, {Name: "b", Weight: 1, Steps: three}, {Name: "c", Weight: 1, Steps: three[:1]}}
	}
	for name, c := range map[string]struct {
		load      string
		change    func(*plan.Phase)
		said      uint64        // how many ops the worker has, when it is ready
		lease     time.Duration // when it ends, after the start
		ops       uint64
		estimated bool
	}{
		"iterations":                       {load: "closed {\n sessions = 10\n iterations = 20\n}", lease: 11 * time.Second, ops: 5*20 - 5},
		"closed":                           {load: "closed {\n sessions = 10\n duration = \"30s\"\n}", lease: 11 * time.Second, ops: 5 * (1 + 10_000), estimated: true},
		"closed, that ends before":         {load: "closed {\n sessions = 10\n duration = \"2s\"\n}", lease: 11 * time.Second, ops: 5 * (1 + 1000), estimated: true},
		"closed, seen to its end":          {load: "closed {\n sessions = 10\n duration = \"1s\"\n}", lease: 11 * time.Second},
		"constant":                         {load: "open {\n sessions = 10\n rate = 100\n duration = \"30s\"\n}", lease: 11 * time.Second, ops: 1100/2 - 5},
		"constant, that ends before":       {load: "open {\n sessions = 10\n rate = 100\n duration = \"3s\"\n}", lease: 11 * time.Second, ops: 300/2 - 5},
		"constant, sessions in turn":       {load: "open {\n sessions = 10\n rate = 107\n duration = \"1s\"\n}", lease: 11 * time.Second, ops: 50 + 2 - 5},
		"poisson":                          {load: "open {\n sessions = 10\n rate = 100\n arrivals = \"poisson\"\n duration = \"3s\"\n}", lease: 11 * time.Second, ops: 224 - 5, estimated: true},
		"trace with a burst":               {load: "open {\n sessions = 10\n rate = 1\n duration = \"3s\"\n}", change: trace(plan.Trace{Lines: 15_000}), lease: 2 * time.Second, ops: 15_000 - 5},
		"trace at even distances":          {load: "open {\n sessions = 10\n rate = 100\n duration = \"30s\"\n}", change: trace(plan.Trace{Lines: 3000, Even: true}), lease: 2 * time.Second, ops: 201 - 5},
		"closed trace":                     {load: "closed {\n sessions = 10\n duration = \"30s\"\n}", change: trace(plan.Trace{Lines: 700}), lease: 11 * time.Second, ops: 700 - 5},
		"closed trace in a loop":           {load: "closed {\n sessions = 10\n duration = \"2s\"\n}", change: trace(plan.Trace{Lines: 700, Loop: true}), lease: 11 * time.Second, ops: 5 * (1 + 1000), estimated: true},
		"closed trace and iterations":      {load: "closed {\n sessions = 10\n iterations = 20\n}", change: trace(plan.Trace{Lines: 700}), lease: 11 * time.Second, ops: 5*20 - 5},
		"trace whose lines nobody counted": {load: "closed {\n sessions = 10\n iterations = 20\n}", change: trace(plan.Trace{}), lease: 11 * time.Second, ops: 5*20 - 5},
		"trace of a line":                  {load: "closed {\n sessions = 10\n iterations = 20\n}", change: trace(plan.Trace{Lines: 1}), lease: 11 * time.Second},
		"a line of a trace each":           {load: "closed {\n sessions = 10\n iterations = 1\n}", change: trace(plan.Trace{Lines: 700}), lease: 11 * time.Second},
		"iterations of scenarios":          {load: "closed {\n sessions = 10\n iterations = 1\n}", change: chain, lease: 11 * time.Second, ops: 5*3 - 5},
		"scenarios go on to their end":     {load: "closed {\n sessions = 10\n duration = \"30s\"\n}", change: chain, lease: 11 * time.Second, ops: 5 * (3 + 10_000), estimated: true},
		"those that had begun do, too":     {load: "closed {\n sessions = 10\n pipeline = 4\n duration = \"1s\"\n}", change: chain, lease: 11 * time.Second, ops: 5 * 4 * 2},
		"trace in a loop":                  {load: "open {\n sessions = 10\n rate = 100\n duration = \"30s\"\n}", change: trace(plan.Trace{Lines: 700, Loop: true}), lease: 2 * time.Second, ops: 100 + 6*10 - 5, estimated: true},
		"what the worker said":             {load: "closed {\n sessions = 10\n duration = \"30s\"\n}", said: 7, lease: 11 * time.Second, ops: 7 - 5},
		"less than it has done":            {load: "closed {\n sessions = 10\n duration = \"30s\"\n}", said: 1, lease: 11 * time.Second},
		"constant scenarios":               {load: "open {\n sessions = 10\n rate = 100\n duration = \"30s\"\n}", change: chain, lease: 11 * time.Second, ops: 3*1100/2 - 5},
		"poisson scenarios":                {load: "open {\n sessions = 10\n rate = 100\n arrivals = \"poisson\"\n duration = \"3s\"\n}", change: chain, lease: 11 * time.Second, ops: 3*224 - 5, estimated: true},
		"poisson, cut by the lease":        {load: "open {\n sessions = 10\n rate = 100\n arrivals = \"poisson\"\n duration = \"30s\"\n}", lease: 2 * time.Second, ops: 100 + 6*10 - 5, estimated: true},
		"several at a time":                {load: "closed {\n sessions = 10\n pipeline = 4\n duration = \"30s\"\n}", lease: 11 * time.Second, ops: 20 * (1 + 10_000), estimated: true},
		"with pauses":                      {load: "closed {\n sessions = 10\n think = \"9ms\"\n duration = \"30s\"\n}", lease: 11 * time.Second, ops: 5 * (1 + 1000), estimated: true},
		"lease over before the last":       {load: "closed {\n sessions = 10\n duration = \"30s\"\n}", lease: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			servertest.Bubble(t, func(t *testing.T) {
				r := loseOne(t, c.load, c.change, c.said, c.lease)
				require.Equal(t, run.Degraded, r.Verdict.Completeness, r.Verdict.Reasons)
				require.Len(t, r.Losses, 1)
				require.Equal(t, []any{c.ops, c.estimated}, []any{r.Losses[0].UnseenOps, r.Losses[0].UnseenEstimated})
				words := "; at most "
				switch {
				case c.estimated:
					words = "; an estimated "
				case c.ops == 0:
					words = ", and no op after it is missing"
				}
				require.Contains(t, r.Losses[0].Error(), words)
				require.NoError(t, r.CheckValid())
			})
		})
	}
}

// loseOne runs a load with two workers. The second is lost after its first snapshot, and may load until the given time after the start.
func loseOne(t *testing.T, load string, change func(*plan.Phase), said uint64, lease time.Duration) *run.Run {
	lost := make(chan struct{})
	gone, stays := &scripted{fakeWorker: newFake(), ops: said}, newFake()
	gone.run = func(_ context.Context, f *fakeWorker, at time.Duration, sink worker.Sink) (worker.Final, error) {
		first, _, _ := halves(f, at)
		if kept, err := sink(first); err != nil || kept() != nil {
			return worker.Final{}, err
		}
		close(lost)
		return worker.Final{}, &worker.Loss{Worker: "w1", Why: "it is gone", LoadedSeconds: (at + lease).Seconds()}
	}
	stays.count = func(_ context.Context, _ *fakeWorker, step worker.Step, t *measure.Totals) {
		<-lost
		time.Sleep(time.Second) // until the loss is entered
		done(t, step.To-step.From)
	}
	text, _, _ := strings.Cut(onePhase, "closed {")
	cfg := configOf(t, text+load+"\n}", local, stays, gone.fakeWorker)
	cfg.Workers[1].Worker = gone
	if change != nil {
		change(cfg.Plan.Phases[0])
	}
	return coord.Run(t.Context(), cfg)
}

// TestALossEndsTheOthers at once if that is wanted.
func TestALossEndsTheOthers(t *testing.T) {
	for abort, want := range map[bool]run.Completeness{true: run.Aborted, false: run.Degraded} {
		servertest.Bubble(t, func(t *testing.T) {
			a, b := newFake(), newFake()
			a.count = func(_ context.Context, w *fakeWorker, step worker.Step, t *measure.Totals) {
				done(t, step.To-step.From)
				select {
				case <-w.drained:
				case <-time.After(time.Minute):
				}
			}
			cfg := configOf(t, onePhase, local, a, b)
			cfg.Workers[1].Worker = &leaving{fakeWorker: b}
			cfg.AbortOnLoss = abort
			began := time.Now()
			r := coord.Run(t.Context(), cfg)
			require.Equal(t, want, r.Verdict.Completeness, r.Verdict.Reasons)
			require.Equal(t, abort, time.Since(began) < time.Minute)
		})
	}
}
