package coord_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
)

// scripted is a worker whose steps are carried out by a function.
type scripted struct {
	*fakeWorker
	ops uint64 // that it says it has, when it is ready
	run func(ctx context.Context, w *fakeWorker, at time.Duration, sink worker.Sink) (worker.Final, error)
}

func (w *scripted) Prepare(ctx context.Context, step worker.Step) (worker.Ready, error) {
	ready, err := w.fakeWorker.Prepare(ctx, step)
	ready.Ops = w.ops
	return ready, err
}

func (w *scripted) Run(ctx context.Context, at time.Duration, sink worker.Sink) (worker.Final, error) {
	return w.run(ctx, w.fakeWorker, at, sink)
}

// onePhase is a load of ten sessions and one put each.
const onePhase = `
plan "test" {}
target "t" {
	driver    = "null"
	endpoints = ["a"]
}
dataset "d" {
	keys { count = 1 }
	values { size = 10 }
}
phase "only" {
	target  = target.t
	dataset = dataset.d
	ops     = { put = 1 }
	closed {
		sessions   = 10
		iterations = 1
	}
}`

// halves returns two snapshots that follow each other and the sum of both.
func halves(w *fakeWorker, at time.Duration) (first, second *measure.Snapshot, sum *measure.Totals) {
	sum = measure.NewTotals(int64(at), 1)
	half := func() *measure.Snapshot {
		t := measure.NewTotals(int64(at), 1)
		done(t, 5)
		*t.Request(0, driver.Put) = measure.Requests{Sent: 5, Answered: 5}
		sum.Merge(t)
		w.seq++
		from := int64(at) + int64(w.seq-1)*1e9
		return &measure.Snapshot{
			Step: w.step.Seq, SeqFirst: w.seq, SeqLast: w.seq, From: from, To: from + 1e9, Delta: *t, Running: sum.Counters(),
		}
	}
	first, second = half(), half()
	second.Final = true
	return first, second, sum
}

// TestSnapshotThatDoesNotFollow breaks each rule for snapshots on its own.
func TestSnapshotThatDoesNotFollow(t *testing.T) {
	for name, c := range map[string]struct {
		change func(first, second *measure.Snapshot)
		want   string
	}{
		"as it should be": {func(_, _ *measure.Snapshot) {}, ""},
		"several in one":  {func(_, s *measure.Snapshot) { s.SeqLast += 2 }, ""},
		"another step":    {func(_, s *measure.Snapshot) { s.Step++ }, "snapshot 2 is of step 1, not 0"},
		"an earlier step": {func(_, s *measure.Snapshot) { s.Step-- }, "snapshot 2 is of step -1, not 0"},
		"a number left out": {
			func(_, s *measure.Snapshot) { s.SeqFirst, s.SeqLast = 3, 3 },
			"snapshot 3–3 does not follow number 1",
		},
		"a number again": {
			func(_, s *measure.Snapshot) { s.SeqFirst = 1 },
			"snapshot 1–2 does not follow number 1",
		},
		"numbers backwards": {
			func(_, s *measure.Snapshot) { s.SeqLast = 1 },
			"snapshot 2–1 does not follow number 1",
		},
		"behind the last": {
			func(f, _ *measure.Snapshot) { f.Final = true },
			"snapshot 2–2 does not follow number 1",
		},
		"a gap":          {func(_, s *measure.Snapshot) { s.From++ }, "and the one before it to"},
		"an overlap":     {func(_, s *measure.Snapshot) { s.From-- }, "and the one before it to"},
		"time backwards": {func(_, s *measure.Snapshot) { s.To = s.From - 1 }, "and the one before it to"},
		"another origin": {func(_, s *measure.Snapshot) { s.Delta.Origin++ }, "the step from"},
		"an endpoint too many": {
			func(_, s *measure.Snapshot) {
				more := measure.NewTotals(s.Delta.Origin, 2)
				more.Merge(&s.Delta)
				s.Delta = *more
			},
			"snapshot 2 counts requests to more than 1 endpoints",
		},
		"another sum": {
			func(_, s *measure.Snapshot) { s.Running.Ops[driver.Put].Due++ },
			"snapshot 2: the sum of the intervals is not what it says the step has counted",
		},
		"more than can be kept": {
			func(_, s *measure.Snapshot) {
				kinds := make([]measure.Kind, measure.MaxKinds+1)
				kinds[measure.MaxKinds].Service.Record(1)
				s.Delta.Ops[driver.Put].Kinds = kinds
			},
			"9 kinds",
		},
		"another op": {
			func(_, s *measure.Snapshot) { s.Delta.AddDue(driver.Get) },
			"snapshot 2 counts ops of get, and its step has none",
		},
		"replicas that are none": {
			func(_, s *measure.Snapshot) { s.Delta.Ack(driver.Put, 1, 1) },
			"snapshot 2 counts 1 good answers of an op, put, and its step waits for at most 0",
		},
		"a scenario": {
			func(_, s *measure.Snapshot) { s.Delta.AddScenario(0) },
			"snapshot 2 counts scenario 1, and its step has 0",
		},
		"ordinals": {
			func(_, s *measure.Snapshot) { s.Delta.Grow(&measure.Sample{Verb: driver.Put}, 1) },
			"snapshot 2 counts put by ordinal, and its step does not",
		},
		"samples": {
			func(_, s *measure.Snapshot) { s.Samples.Add(1, []measure.DrawnOp{{Verb: driver.Put}}) },
			"snapshot 2 has up to 1 samples, and its step wants at most 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &scripted{fakeWorker: newFake()}
			refused := error(nil)
			w.run = func(_ context.Context, f *fakeWorker, at time.Duration, sink worker.Sink) (worker.Final, error) {
				first, second, sum := halves(f, at)
				c.change(first, second)
				for _, snap := range []*measure.Snapshot{first, second} {
					kept, err := sink(snap)
					if err != nil {
						refused = err
						return worker.Final{}, err
					}
					if err := kept(); err != nil {
						return worker.Final{}, err
					}
				}
				return worker.Final{Step: f.step.Seq, Totals: sum}, nil
			}
			cfg := configOf(t, onePhase, local, w.fakeWorker)
			cfg.Workers[0].Worker = w
			r := coord.Run(t.Context(), cfg)
			if c.want == "" {
				require.NoError(t, refused)
				require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
				require.Equal(t, 2, cfg.Store.(*memory).snapshots)
				return
			}
			require.ErrorContains(t, refused, c.want)
			require.Equal(t, run.Failed, r.Verdict.Completeness)
			require.Contains(t, r.Verdict.Reasons[0], c.want)
			require.Equal(t, 1, cfg.Store.(*memory).snapshots, "what does not follow is not kept")
		})
	}
}

// TestLostWorkersLateSnapshotEndsTheRun: a snapshot that comes after its worker's loss was bounded is not accepted, and is no reason to end the run.
func TestLostWorkersLateSnapshotEndsTheRun(t *testing.T) {
	servertest.Bubble(t, testLostWorkersLateSnapshotEndsTheRun)
}

func testLostWorkersLateSnapshotEndsTheRun(t *testing.T) {
	late := make(chan error, 1)
	lost := make(chan struct{})
	gone, stays := &scripted{fakeWorker: newFake()}, newFake()
	var send func()
	gone.run = func(_ context.Context, f *fakeWorker, at time.Duration, sink worker.Sink) (worker.Final, error) {
		first, second, _ := halves(f, at)
		if kept, err := sink(first); err != nil || kept() != nil {
			return worker.Final{}, err
		}
		send = func() {
			_, err := sink(second)
			late <- err
		}
		close(lost)
		return worker.Final{}, &worker.Loss{Worker: "w1", Why: "it is gone"}
	}
	stays.count = func(_ context.Context, _ *fakeWorker, step worker.Step, t *measure.Totals) {
		done(t, step.To-step.From)
		<-lost
		time.Sleep(time.Second) // until the loss is entered
		send()
	}
	cfg := configOf(t, onePhase, local, stays, gone.fakeWorker)
	cfg.Workers[1].Worker = gone
	var last run.Update
	cfg.Progress = func(u run.Update) { last = u }
	r := coord.Run(t.Context(), cfg)
	require.ErrorContains(t, <-late, "snapshot 2 came too late")
	require.Empty(t, last.Awaited, "nothing more comes of one that is lost")
	require.Equal(t, run.Degraded, r.Verdict.Completeness, r.Verdict.Reasons)
	require.Len(t, r.Losses, 1)
	require.EqualValues(t, 1, r.Losses[0].Seq)
	require.EqualValues(t, 10, r.Phase["only"].Op["put"].OK, "five of each")
	require.Equal(t, 2, cfg.Store.(*memory).snapshots)
	select {
	case <-stays.drained:
		t.Fatal("the others were told to end")
	default:
	}
}
