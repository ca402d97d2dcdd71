package coord_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// replacing is a configuration in which w1 is lost in the first load, and the given workers arrive one after another.
func replacing(t *testing.T, come ...worker.Member) (cfg coord.Config, stays *fakeWorker) {
	a, b := newFake(), newFake()
	b.count = func(_ context.Context, w *fakeWorker, step worker.Step, t *measure.Totals) {
		done(t, step.To-step.From)
		w.open = step.Kind.Timed()
	}
	cfg = config(t, local, a, b)
	cfg.Workers[1].Worker = losing{b}
	cfg.ReplaceWithin = 50 * time.Millisecond
	cfg.Replace = func(ctx context.Context) (worker.Member, error) {
		if len(come) == 0 {
			<-ctx.Done()
			return worker.Member{}, errors.New("nobody came")
		}
		m := come[0]
		come = come[1:]
		return m, nil
	}
	return cfg, a
}

// TestLostWorkerIsReplaced from the next phase on. The new worker has the same sessions, the gap stays on record, and only the phase of the loss is
// in doubt. The result of a recovered run says the same.
func TestLostWorkerIsReplaced(t *testing.T) {
	for _, name := range []string{"w2", "w1"} { // it may be called as the lost one was
		t.Run(name, func(t *testing.T) {
			c := newFake()
			cfg, stays := replacing(t, worker.Member{Name: name, Host: "elsewhere", Worker: c})
			r := coord.Run(context.Background(), cfg)
			require.NoError(t, r.CheckValid())
			require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
			require.Equal(t, []string{"assign 1 of 2", "prepare second load 1–3 last=true", "run second load"}, c.noted())
			require.Contains(t, stays.noted(), "prepare second load 0–1 last=true")
			require.EqualValues(t, 3, r.Phase["second"].Op["put"].OK, "all sessions")
			require.NotContains(t, fmt.Sprint(r.Phase["second"].Reasons), "is missing")
			require.Contains(t, fmt.Sprint(r.Phase["first"].Reasons), "the load of worker w1 ended early or is missing")
			require.Len(t, r.Losses, 1)
			require.Equal(t, []string{name, "second"}, []string{r.Losses[0].ReplacedBy, r.Losses[0].ReplacedFrom})
			require.Contains(t, r.Verdict.Reasons[0], "worker w1 was lost in phase first")
			require.Equal(t, reason.WorkerLost, r.Verdict.Codes[0])
			require.Contains(t, r.Verdict.Reasons[0], "worker "+name+" took its sessions over from phase second on")
			require.Equal(t, []string{"w0", "w1", name}, r.Workers)
			require.Equal(t, run.Worker{Name: name, Host: "elsewhere", Sessions: 2, Replaces: "w1", Since: "second"}, r.Fleet[2])
			require.NotNil(t, r.LossOf(1))
			require.Nil(t, r.LossOf(2))

			kept, err := coord.Recover(ofKept(cfg, cfg.Store.(*memory).records))
			require.NoError(t, err)
			require.Equal(t, r.Phase, kept.Phase)
			require.Equal(t, r.Fleet, kept.Fleet)
			require.Equal(t, r.Losses, kept.Losses)
			require.Equal(t, r.Workers, kept.Workers)
		})
	}
}

// TestNobodyComes: no replacement arrives in time, so the run goes on without one, and says so.
func TestNobodyComes(t *testing.T) {
	cfg, _ := replacing(t)
	r := coord.Run(context.Background(), cfg)
	require.Equal(t, exit.Degraded, r.ExitCode)
	require.Empty(t, r.Losses[0].ReplacedBy)
	require.EqualValues(t, 1, r.Phase["second"].Op["put"].OK, "of one session")
	require.Contains(t, fmt.Sprint(r.Phase["second"].Reasons), "the load of worker w1 ended early or is missing")
}

// TestReplacementIsLost before it has taken the plan, so the next one takes over.
func TestReplacementIsLost(t *testing.T) {
	d := newFake()
	cfg, _ := replacing(t, worker.Member{Name: "w2", Worker: unreachable{}}, worker.Member{Name: "w3", Worker: d})
	r := coord.Run(context.Background(), cfg)
	require.NoError(t, r.CheckValid())
	require.Len(t, r.Losses, 2)
	require.Equal(t, "w2", r.Losses[0].ReplacedBy)
	require.Equal(t, "w3", r.Losses[1].ReplacedBy)
	require.Contains(t, d.noted(), "prepare second load 1–3 last=true")
	require.NotContains(t, fmt.Sprint(r.Phase["second"].Reasons), "is missing")
}

// unreachable is a worker that is lost before it has taken the plan.
type unreachable struct{ worker.Worker }

func (unreachable) Assign(context.Context, worker.Assignment) error {
	return &worker.Loss{Worker: "w2", Why: "no heartbeat for 10s"}
}

// TestReplacementRefuses the plan, as its node's policy may demand: the run ends, as it does when one of the first workers refuses.
func TestReplacementRefuses(t *testing.T) {
	cfg, _ := replacing(t, worker.Member{Name: "w2", Worker: refusing{}})
	r := coord.Run(context.Background(), cfg)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], `before phase "second": worker w2: the policy`)
}

type refusing struct{ worker.Worker }

func (refusing) Assign(context.Context, worker.Assignment) error {
	return errors.New("the policy of this node does not allow it")
}

// TestAllAreLostAndNobodyComes: the run ends, whether that happens in the middle or at its end.
func TestAllAreLostAndNobodyComes(t *testing.T) {
	for text, want := range map[string]string{
		twoPhases: `before phase "second": no worker is left, and none has come to take a place within 10ms`,
		onePhase:  "no worker is left",
	} {
		b := newFake()
		cfg := configOf(t, text, local, b)
		cfg.Workers[0].Name, cfg.Workers[0].Worker = "w1", losing{b}
		b.count = func(_ context.Context, w *fakeWorker, step worker.Step, t *measure.Totals) {
			done(t, step.To-step.From)
			w.open = step.Kind.Timed()
		}
		cfg.ReplaceWithin = 10 * time.Millisecond
		cfg.Replace = func(ctx context.Context) (worker.Member, error) {
			<-ctx.Done()
			return worker.Member{}, ctx.Err()
		}
		r := coord.Run(t.Context(), cfg)
		require.Equal(t, exit.Failed, r.ExitCode)
		require.Equal(t, want, r.Verdict.Reasons[0])
		require.Equal(t, reason.WorkerLost, r.Verdict.Codes[0])
	}
}

// TestReplacementIsNotAwaited if no worker was lost, or once the user wants the run to end.
func TestReplacementIsNotAwaited(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		cfg, stays := replacing(t)
		cfg.Workers = cfg.Workers[:1]
		asked := false
		cfg.Replace = func(context.Context) (worker.Member, error) {
			asked = true
			return worker.Member{}, errors.New("nobody")
		}
		r := coord.Run(t.Context(), cfg)
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		require.False(t, asked)
		require.Contains(t, stays.noted(), "prepare second load 0–3 last=true")
	})
	servertest.Bubble(t, func(t *testing.T) {
		cfg, stays := replacing(t)
		cfg.ReplaceWithin = time.Hour
		drain := make(chan struct{})
		cfg.Drain = drain
		const wanted = 59500 * time.Millisecond
		time.AfterFunc(wanted, func() { close(drain) })
		var told []string
		cfg.Progress = func(u run.Update) {
			if u.Doing != "" {
				told = append(told, fmt.Sprint(u.Phase, " ", u.Elapsed, " ", u.Doing))
			}
		}
		began := time.Now()
		r := coord.Run(t.Context(), cfg)
		require.Equal(t, wanted, time.Since(began))
		require.Equal(t, run.Aborted, r.Verdict.Completeness, r.Verdict.Reasons)
		require.NotContains(t, stays.noted(), "run second load")
		require.Equal(t, 59, len(told))
		require.Equal(t, "second 59s waiting for a worker in the place of a lost one, 1h0m0s at most", told[58])
	})
}
