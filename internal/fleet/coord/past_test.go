package coord_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
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
	"github.com/loadgen/loadgen/pkg/driver"
)

// ofKept is what a run has left if its coordinator ended after the given number of records.
func ofKept(cfg coord.Config, records []kept) coord.Kept {
	return coord.Kept{
		Plan: cfg.Plan, Canonical: cfg.Canonical,
		Records: func(f func(worker, record []byte) error) error {
			for _, r := range records {
				if err := f([]byte(r.worker), r.record); err != nil {
					return err
				}
			}
			return nil
		},
		Probes: func(f func(run.Probe) error) error {
			for _, line := range cfg.Store.(*memory).probes {
				var p run.Probe
				if err := json.Unmarshal([]byte(line), &p); err != nil {
					return err
				}
				if err := f(p); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// dueOf counts the ops of a result, by phase and for its setup apart.
func dueOf(r *run.Run) map[string]uint64 {
	n := map[string]uint64{}
	for name, p := range r.Phase {
		for _, o := range p.Op {
			n[name] += o.Due
		}
		if p.Setup != nil {
			for _, o := range p.Setup.Op {
				n[name+" setup"] += o.Due
			}
		}
	}
	return n
}

// dueIn adds up the snapshots among records, each by the phase of its step.
func dueIn(t *testing.T, records []kept, stepNames ...string) map[string]uint64 {
	n := map[string]uint64{}
	for _, r := range records {
		if r.worker == "" {
			continue
		}
		var s measure.Snapshot
		_, err := s.Decode(r.record)
		require.NoError(t, err)
		for _, o := range s.Delta.Ops {
			if o != nil {
				n[stepNames[s.Step]] += o.Ledger().Due
			}
		}
	}
	return n
}

// nonzero leaves out what is 0.
func nonzero(n map[string]uint64) map[string]uint64 {
	for name, count := range n {
		if count == 0 {
			delete(n, name)
		}
	}
	return n
}

// TestRecoverAfterAnyRecord ends a coordinator after each record that it has kept. The recovered result counts exactly what the snapshots do; recovered
// from all records, it equals the coordinator's own result.
func TestRecoverAfterAnyRecord(t *testing.T) {
	a, b := newFake(), newFake()
	b.lie = func(f *worker.Final) {
		f.Generator = measure.Generator{CPUSeconds: 2, Executor: "event loop", Loops: 1}
	}
	a.lie = b.lie
	cfg := config(t, local, a, b)
	live := coord.Run(context.Background(), cfg)
	require.Equal(t, run.Complete, live.Verdict.Completeness, live.Verdict.Reasons)
	records := cfg.Store.(*memory).records
	begun := false
	for n := range len(records) + 1 {
		r, err := coord.Recover(ofKept(cfg, records[:n]))
		if !begun && errors.Is(err, coord.ErrNothingKept) {
			continue
		}
		begun = true
		require.NoError(t, err, "%d of %d records", n, len(records))
		require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
		require.Contains(t, r.Verdict.Reasons[0], "the coordinator ended before the result was written")
		require.Equal(t, reason.CoordinatorEnded, r.Verdict.Codes[0])
		require.Equal(t, nonzero(dueIn(t, records[:n], "first setup", "first", "second")), nonzero(dueOf(r)), "%d of %d records", n, len(records))
		if n == len(records) {
			require.Equal(t, live.Phase, r.Phase)
			require.Equal(t, live.Fleet, r.Fleet)
			require.Empty(t, r.Losses)
		}
	}
	require.True(t, begun)
}

// TestRecoverNamesWhatIsMissing ends a coordinator in mid-phase. Workers without a final report are named, and the plan bounds what they may have done
// since.
func TestRecoverNamesWhatIsMissing(t *testing.T) {
	a, b := newFake(), newFake()
	cfg := config(t, local, a, b)
	coord.Run(context.Background(), cfg)
	records := cfg.Store.(*memory).records
	var upTo []kept // both have set up, and one has said something of its load
	snapshots := 0
	for _, r := range records {
		if upTo = append(upTo, r); r.worker != "" {
			if snapshots++; snapshots == 3 {
				break
			}
		}
	}
	r, err := coord.Recover(ofKept(cfg, upTo))
	require.NoError(t, err)
	require.Len(t, r.Losses, 2)
	unseen := uint64(0)
	for _, l := range r.Losses {
		require.Equal(t, "first", l.Phase)
		require.Equal(t, "it ended with the coordinator", l.Why)
		unseen += l.UnseenOps
	}
	require.EqualValues(t, 5, unseen, "each has five sessions with one iteration, and one of them is kept whole")
	require.Contains(t, r.Verdict.Reasons[0], "not begun: second")
}

// TestRecoverAKeptPopulate that was cut short by its coordinator's end: the run is degraded, but has not failed because of missing keys.
func TestRecoverAKeptPopulate(t *testing.T) {
	a, b := newFake(), newFake()
	cfg := configOf(t, fillAndRead, local, a, b)
	b.count = func(_ context.Context, w *fakeWorker, step worker.Step, t *measure.Totals) {
		done(t, step.To-step.From)
		w.open = step.Kind == worker.Populate
	}
	cfg.Workers[1].Worker = b
	coord.Run(context.Background(), cfg)
	var upTo []kept
	for _, r := range cfg.Store.(*memory).records {
		if r.worker == "w1" || strings.HasPrefix(string(r.record), `{"final"`) {
			continue // nothing was kept of it
		}
		if strings.HasPrefix(string(r.record), `{"stop"`) {
			break
		}
		upTo = append(upTo, r)
	}
	r, err := coord.Recover(ofKept(cfg, upTo))
	require.NoError(t, err)
	require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
	require.Contains(t, r.Verdict.Reasons[0], "not begun: read")
}

// TestRecoverBoundsWhatALeaseAllows adds the time for which a worker may have been heard from without a kept snapshot (the store's limit or three
// leases) and one more lease. Without a lease the worker was in the coordinator's process, and ended with it.
func TestRecoverBoundsWhatALeaseAllows(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{0: 2 * time.Second, 10 * time.Second: 40 * time.Second, 20 * time.Second: 80 * time.Second} {
		cfg := configOf(t, onePhase, local, newFake())
		cfg.Lease = lease
		coord.Run(t.Context(), cfg)
		records := cfg.Store.(*memory).records
		n := 0
		for records[n].worker == "" {
			n++
		}
		var last measure.Snapshot
		_, err := last.Decode(records[n].record)
		require.NoError(t, err)
		r, err := coord.Recover(ofKept(cfg, records[:n+1]))
		require.NoError(t, err)
		require.Len(t, r.Losses, 1)
		require.InDelta(t, (time.Duration(last.To) + want).Seconds(), r.Losses[0].LoadedSeconds, 1e-9, lease)
	}
}

// TestRecoverWithoutSurvivors ends a coordinator two seconds into loads of known rates, before any worker could report when its sessions were at work.
// Rate and duration are those of the two seconds. What nobody saw is estimated by twice that rate, until the load ends by its plan or its worker with the
// coordinator.
func TestRecoverWithoutSurvivors(t *testing.T) {
	const took = 10 * time.Millisecond
	for name, c := range map[string]struct {
		load      string
		rate      float64
		lease     time.Duration
		loaded    time.Duration // after the start
		unseen    uint64
		estimated bool
	}{
		"closed":                            {load: "closed {\n sessions = 10\n duration = \"30s\"\n}", rate: 1000, loaded: 4 * time.Second, unseen: 2*2*1001 + 10, estimated: true},
		"closed, a worker from elsewhere":   {load: "closed {\n sessions = 10\n duration = \"30s\"\n}", rate: 1000, lease: 10 * time.Second, loaded: 30 * time.Second, unseen: 2*28*1001 + 10, estimated: true},
		"closed, with pauses":               {load: "closed {\n sessions = 10\n duration = \"3s\"\n think = \"10ms\"\n}", rate: 500, loaded: 3 * time.Second, unseen: 1000 + 10, estimated: true},
		"open":                              {load: "open {\n sessions = 10\n rate = 1000\n duration = \"30s\"\n}", rate: 1000, loaded: 4 * time.Second, unseen: 2000 - 1},
		"open, that ends before, elsewhere": {load: "open {\n sessions = 10\n rate = 1000\n duration = \"2500ms\"\n drain = \"1s\"\n}", rate: 1000, lease: 10 * time.Second, loaded: 3500 * time.Millisecond, unseen: 500 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := &scripted{fakeWorker: newFake()}
			w.run = func(_ context.Context, f *fakeWorker, at time.Duration, sink worker.Sink) (worker.Final, error) {
				sum := measure.NewTotals(int64(at), 1)
				for second := range 2 {
					delta := measure.NewTotals(int64(at), 1)
					if second == 0 { // one op was a thousand times as fast as the others
						delta.AddDue(driver.Put)
						delta.Record(&measure.Sample{Verb: driver.Put, Outcome: driver.OK, Due: int64(at), Start: int64(at), End: int64(at + took/1000)})
						*delta.Request(0, driver.Put) = measure.Requests{Sent: 1, Answered: 1}
					}
					doneEvery(delta, time.Duration(second)*time.Second, time.Duration(1e9/c.rate), took)
					sum.Merge(delta)
					from := int64(at) + int64(second)*1e9
					kept, err := sink(&measure.Snapshot{
						Step: f.step.Seq, SeqFirst: uint64(second + 1), SeqLast: uint64(second + 1), From: from, To: from + 1e9, Delta: *delta, Running: sum.Counters(),
					})
					if err != nil || kept() != nil {
						return worker.Final{}, err
					}
				}
				return worker.Final{}, errors.New("the end")
			}
			text, _, _ := strings.Cut(onePhase, "closed {")
			cfg := configOf(t, text+c.load+"\n}", local, w.fakeWorker)
			cfg.Workers[0].Worker, cfg.Lease = w, c.lease
			coord.Run(t.Context(), cfg)
			var upTo []kept
			for _, r := range cfg.Store.(*memory).records {
				if r.worker != "" || !strings.HasPrefix(string(r.record), `{"failed"`) {
					upTo = append(upTo, r)
				}
			}
			r, err := coord.Recover(ofKept(cfg, upTo))
			require.NoError(t, err)
			require.NotNil(t, r.Phase["only"].Op["put"].Rate, r.Verdict.Reasons)
			require.InEpsilon(t, c.rate, *r.Phase["only"].Op["put"].Rate, 0.005)
			require.InDelta(t, 2, r.Phase["only"].Seconds, 0.011)
			l := r.Losses[0]
			require.InDelta(t, c.loaded.Seconds(), l.LoadedSeconds-l.KnownSeconds+2, 1e-9)
			require.Equal(t, []any{c.unseen, c.estimated}, []any{l.UnseenOps, l.UnseenEstimated})
		})
	}
}

// doneEvery counts ops that are due at even distances in the second after some time since the start, and take as long as that. Those that end in it
// are counted as ended, and those of the second before that end in it, too.
func doneEvery(t *measure.Totals, since, every, took time.Duration) {
	for due := max(0, since-took); due < since+time.Second; due += every {
		end := due + took
		if due >= since {
			t.AddDue(driver.Put)
			t.Request(0, driver.Put).Sent++
			t.AddInFlight(driver.Put, 1)
			t.Request(0, driver.Put).InFlight++
		}
		if end > since && end <= since+time.Second {
			at := t.Origin + int64(due)
			t.Record(&measure.Sample{Verb: driver.Put, Outcome: driver.OK, Due: at, Start: at, End: at + int64(took)})
			t.AddInFlight(driver.Put, -1)
			t.Request(0, driver.Put).Answered++
			t.Request(0, driver.Put).InFlight--
		}
	}
}

// TestRecoverASearchThatWasOver before the next phase began: its budget was spent, which the records do not say.
func TestRecoverASearchThatWasOver(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		w := newFake()
		count := queue(9000, new([]worker.Step))
		w.count = func(ctx context.Context, f *fakeWorker, step worker.Step, t *measure.Totals) {
			count(ctx, f, step, t)
			time.Sleep(4 * time.Second)
		}
		search := strings.Replace(aSearch, "step_duration", "budget = \"15s\"\n\tstep_duration", 1)
		text := levelsPlan(search)
		_, first, _ := strings.Cut(text, "phase \"p\"")
		cfg := configOf(t, text+"\nphase \"q\""+first, local, w)
		live := coord.Run(t.Context(), cfg)
		require.Equal(t, "the budget was spent", live.Phase["p"].Search.Ended)
		require.Len(t, live.Phase["p"].Levels, 4, "a step and its drain of a second each, 0, 4, 8 and 12 s after the first")
		r, err := coord.Recover(ofKept(cfg, cfg.Store.(*memory).records))
		require.NoError(t, err)
		require.Equal(t, live.Phase["p"], r.Phase["p"])
		require.Len(t, r.Phase["q"].Levels, 4)
	})
}

// losing is a worker that is lost in its first load, after its first snapshot.
type losing struct{ *fakeWorker }

func (w losing) Run(ctx context.Context, at time.Duration, sink worker.Sink) (worker.Final, error) {
	final, err := w.fakeWorker.Run(ctx, at, sink)
	if err == nil && w.step.Kind.Timed() {
		return final, &worker.Loss{Worker: "w1", Why: "no heartbeat for 10s", LoadedSeconds: at.Seconds() + 5}
	}
	return final, err
}

// TestRecoverRefuses what no coordinator has kept.
func TestRecoverRefuses(t *testing.T) {
	cfg := config(t, local, newFake(), newFake())
	coord.Run(context.Background(), cfg)
	records := cfg.Store.(*memory).records
	with := func(at int, r kept) []kept {
		return append(append(append([]kept(nil), records[:at]...), r), records[at:]...)
	}
	first := 0
	for records[first].worker == "" {
		first++
	}
	for name, c := range map[string]struct {
		records []kept
		want    string
	}{
		"a snapshot twice":         {with(first+1, records[first]), "does not follow"},
		"a snapshot of nobody":     {with(first, kept{"w7", records[first].record}), "is not a worker of step 0"},
		"a snapshot of no step":    {with(first-2, records[first]), "is of no step"},
		"no snapshot":              {with(first, kept{"w0", []byte("x")}), "worker w0"},
		"no JSON":                  {with(1, kept{"", []byte("{")}), "read what the coordinator has kept"},
		"an entry nobody knows":    {with(1, kept{"", []byte(`{"more":1}`)}), "unknown field"},
		"an entry of nothing":      {with(1, kept{"", []byte(`{}`)}), "without its place"},
		"a step twice":             {with(first, records[first-2]), "has no place there"},
		"a worker that is not":     {with(1, kept{"", []byte(`{"loss":{"worker":9,"is":{}}}`)}), "worker 9 of 2 is lost"},
		"a last word of nobody":    {with(first, kept{"", []byte(`{"final":{"worker":-1}}`)}), "has no place there"},
		"a step of another phase":  {append(append([]kept(nil), records[:first-2]...), kept{"", []byte(`{"step":{"step":{"Seq":0,"Phase":"x","Kind":"load"},"after":1,"facts":{}}}`)}), "is one of phase \"x\""},
		"a phase emptied":          {append(append([]kept(nil), records[:first-2]...), kept{"", []byte(`{"flush":{"phase":"first"}}`)}), "is not the one that was emptied"},
		"another coordinator's":    {records[1:], "another version"},
		"nothing but a beginning":  {records[:1], "before there was any load"},
		"nothing":                  {nil, "before there was any load"},
		"snapshots without a word": {records[first:], "another version"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := coord.Recover(ofKept(cfg, c.records))
			require.ErrorContains(t, err, c.want)
		})
	}
	other := ofKept(cfg, records)
	other.Canonical = []byte("{}")
	_, err := coord.Recover(other)
	require.ErrorContains(t, err, "its plan has the digest")
}

// FuzzRecover recovers random records: the outcome is an error or a complete result.
func FuzzRecover(f *testing.F) {
	t := new(testing.T)
	cfg := config(t, local, newFake(), newFake())
	coord.Run(context.Background(), cfg)
	records := cfg.Store.(*memory).records
	for i, r := range records {
		f.Add(i, r.worker, r.record)
	}
	f.Fuzz(func(t *testing.T, at int, worker string, record []byte) {
		if at < 0 || at >= len(records) {
			return
		}
		changed := append([]kept(nil), records...)
		changed[at] = kept{worker, record}
		r, err := coord.Recover(ofKept(cfg, changed))
		if err == nil {
			require.NoError(t, r.CheckValid())
		}
	})
}
