package coord_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
)

// logPhase is a phase that loads log files.
const logPhase = `
plan "test" {}
target "t" { driver = "log" }
dataset "d" {
	keys { count = 1 }
	values { size = 100 }
}
phase "fill" {
	target  = target.t
	dataset = dataset.d
	ops     = { append = 1 }
	closed { iterations = 1 }
}`

// said lists the messages other than figures, with their times.
func said(cfg *coord.Config) *[]string {
	all := &[]string{}
	cfg.Progress = func(u run.Update) {
		if u.Doing != "" {
			*all = append(*all, u.Phase+" "+u.Elapsed.String()+" "+u.Doing)
		}
	}
	return all
}

// TestLongWaitsAreTold if a worker takes long to create its files, and to verify them.
func TestLongWaitsAreTold(t *testing.T) {
	for text, want := range map[string][]string{
		logPhase: {
			"fill 1s its log files are being made ready", "fill 2s its log files are being made ready",
			"fill 1s its log files are being verified, and deleted unless a later phase has them",
		},
		strings.NewReplacer(`"log"`, `"null"`, "append", "put").Replace(logPhase): {"fill 1s getting ready", "fill 2s getting ready", "fill 1s ending"},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			w := newFake()
			if text == logPhase {
				w.count = appended
			}
			w.prepare = func(context.Context) { time.Sleep(2500 * time.Millisecond) }
			w.lie = func(*worker.Final) { time.Sleep(1500 * time.Millisecond) }
			cfg := configOf(t, text, local, w)
			all := said(&cfg)
			coord.Run(t.Context(), cfg)
			require.Equal(t, want, *all)
		})
	}
}

// TestDeletingIsTold within a second of Ctrl-C: the kernel takes long to free large files.
func TestDeletingIsTold(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		w := newFake()
		w.prepare = func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(2200 * time.Millisecond)
		}
		w.prepareErr = context.Canceled
		cfg := configOf(t, logPhase, local, w)
		all := said(&cfg)
		drain := make(chan struct{})
		cfg.Drain = drain
		time.AfterFunc(1500*time.Millisecond, func() { close(drain) })
		r := coord.Run(t.Context(), cfg)
		require.Equal(t, exit.Aborted, r.ExitCode)
		require.Equal(t, []string{
			"fill 1s its log files are being made ready",
			"fill 2s stopping: its log files are being deleted", "fill 3s stopping: its log files are being deleted",
		}, *all)
	})
}

// TestUpdates: quantiles are nearest ranks, here of 1 to 1,000 ms, and including failed ops, which are slower. Figures are of an interval, counts of the
// step so far.
func TestUpdates(t *testing.T) {
	for _, c := range []struct{ answered, failed, p50, p99 int }{{1000, 0, 500, 990}, {990, 10, 500, 990}, {989, 11, 500, 0}, {500, 500, 500, 0}, {499, 501, 0, 0}, {1, 0, 1, 1}, {}} {
		w := &scripted{fakeWorker: newFake()}
		w.run = func(_ context.Context, f *fakeWorker, at time.Duration, sink worker.Sink) (worker.Final, error) {
			all := measure.NewTotals(int64(at), 1)
			for i := range c.answered + c.failed {
				outcome := driver.Outcome(i % 2) // ok and miss
				if i >= c.answered {
					outcome = driver.Error
				}
				all.AddDue(driver.Put)
				all.Record(&measure.Sample{Verb: driver.Put, Outcome: outcome, Due: all.Origin, Start: all.Origin, End: all.Origin + int64(i+1)*1e6})
			}
			nothing := measure.NewTotals(int64(at), 1)
			to := int64(at + time.Second)
			for _, s := range []*measure.Snapshot{
				{SeqFirst: 1, SeqLast: 1, From: int64(at), To: to, Delta: *all, Running: all.Counters()},
				{SeqFirst: 2, SeqLast: 2, From: to, To: to, Delta: *nothing, Running: all.Counters(), Final: true},
			} {
				if kept, err := sink(s); err != nil || kept() != nil {
					return worker.Final{}, err
				}
			}
			return worker.Final{Totals: all}, nil
		}
		cfg := configOf(t, onePhase, local, w.fakeWorker)
		cfg.Workers[0].Worker = w
		var updates []run.Update
		cfg.Progress = func(u run.Update) { updates = append(updates, u) }
		coord.Run(t.Context(), cfg)
		require.Len(t, updates, 2)
		for want, is := range map[*int]time.Duration{&c.p50: updates[0].P50, &c.p99: updates[0].P99} {
			require.InEpsilon(t, 1+*want, 1+is.Seconds()*1e3, 0.01, "%+v", c)
		}
		require.InDelta(t, c.answered+c.failed, updates[0].Achieved, 1e-9, "in a second")
		require.Equal(t, []any{0.0, time.Duration(0)}, []any{updates[1].Achieved, updates[1].P50}, "an interval of no length, and without an op")
		for i, u := range updates {
			require.EqualValues(t, c.answered+c.failed, u.Done)
			require.EqualValues(t, c.failed, u.Bad)
			require.Equal(t, time.Second, u.Elapsed)
			require.Empty(t, u.Awaited)
			require.Equal(t, i > 0, u.Final)
		}
	}
}

// TestProgressGoesOnWithoutASilentWorker, and says who is awaited.
func TestProgressGoesOnWithoutASilentWorker(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		steady, silent := &scripted{fakeWorker: newFake()}, newFake()
		steady.run = func(_ context.Context, f *fakeWorker, at time.Duration, sink worker.Sink) (worker.Final, error) {
			all := measure.NewTotals(int64(at), 1)
			for n := range uint64(5) {
				time.Sleep(time.Second)
				from := int64(at) + int64(n)*1e9
				kept, err := sink(&measure.Snapshot{
					SeqFirst: n + 1, SeqLast: n + 1, From: from, To: from + 1e9, Delta: *measure.NewTotals(int64(at), 1), Running: all.Counters(), Final: n == 4,
				})
				if err != nil || kept() != nil {
					return worker.Final{}, err
				}
			}
			return worker.Final{Totals: all}, nil
		}
		silent.count = func(_ context.Context, _ *fakeWorker, step worker.Step, t *measure.Totals) {
			time.Sleep(10 * time.Second)
			done(t, step.To-step.From)
		}
		cfg := configOf(t, onePhase, local, steady.fakeWorker, silent)
		cfg.Workers[0].Worker = steady
		var awaited [][]string
		cfg.Progress = func(u run.Update) { awaited = append(awaited, u.Awaited) }
		coord.Run(t.Context(), cfg)
		require.Contains(t, awaited, []string{"w1"})
		require.Empty(t, awaited[len(awaited)-1])
	})
}

// moving is a worker that says how far it is.
type moving struct {
	*fakeWorker
	done atomic.Int64
}

func (m *moving) Progress() int64 { return m.done.Load() }

// TestSlowIsNotStuck: a worker may make ready for as long as it gets on. It is given up when it does not, or says nothing of it.
func TestSlowIsNotStuck(t *testing.T) {
	for name, getsOn := range map[string]int{"gets on": 6, "says nothing": 0} {
		t.Run(name, func(t *testing.T) {
			servertest.Bubble(t, func(t *testing.T) {
				w := &moving{fakeWorker: newFake()}
				w.prepare = func(ctx context.Context) {
					for range getsOn {
						time.Sleep(20 * time.Second)
						w.done.Add(1)
					}
					<-ctx.Done()
					w.prepareErr = context.Cause(ctx)
				}
				cfg := configOf(t, onePhase, local, w.fakeWorker)
				if getsOn > 0 {
					cfg.Workers[0].Worker = w
				}
				began := time.Now()
				r := coord.Run(t.Context(), cfg)
				require.Equal(t, []string{`phase "only": not ready, and no progress for 30s`}, r.Verdict.Reasons)
				require.InDelta(t, getsOn*20+30, time.Since(began).Seconds(), 2)
			})
		})
	}
}
