package coord

import (
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// stepOf is a step of a phase, given as in a plan, with some workers, at the moment it begins on the run clock.
func stepOf(t *testing.T, load string, workers int) *step {
	t.Helper()
	text := "plan \"test\" {}\ntarget \"t\" {\n driver = \"null\"\n endpoints = [\"a\"]\n}\n" +
		"dataset \"d\" {\n keys { count = 10 }\n values { size = 10 }\n}\nphase \"p\" {\n target = target.t\n dataset = dataset.d\n ops = { put = 1 }\n" + load + "\n}"
	file, diags := plan.Parse([]byte(text), "test.hcl", drivers.All())
	require.Empty(t, diags)
	p, diags := file.Resolve(plan.Vars{})
	require.Empty(t, diags)
	c := &coordinator{
		Config: Config{Plan: p, Logger: slog.New(slog.DiscardHandler), Drain: make(chan struct{})},
		result: run.New(run.Header{}, machine.Environment{}), seqs: make([]uint64, workers), lost: make([]bool, workers), zero: time.Now(),
	}
	s := &step{
		c: c, ph: p.Phases[0], at: time.Second, totals: &measure.Totals{}, passed: make(chan struct{}), sources: make([]source, workers), ready: make([]worker.Ready, workers),
		unsure: make([]time.Duration, workers), generators: make([]measure.Generator, workers), logs: make([]*worker.Log, workers),
	}
	for i := range workers {
		c.Workers = append(c.Workers, worker.Member{Name: string(rune('a' + i))})
		c.enlist(c.Workers[i])
		from, to := share(s.ph.Sessions(), i, workers)
		s.steps = append(s.steps, worker.Step{Kind: worker.Load, From: from, To: to})
		s.sources[i].upTo = int64(s.at)
	}
	return s
}

// plodding is a worker that is slow to report its progress, except the first time.
type plodding struct {
	worker.Worker
	asked  int
	saying atomic.Bool
}

func (p *plodding) Progress() int64 {
	if p.asked++; p.asked > 1 {
		p.saying.Store(true)
		time.Sleep(10 * time.Second)
		p.saying.Store(false)
	}
	return 0
}

// TestNothingGoesOnBehindARelease: every function that starts a goroutine and returns its release must wait for the goroutine, even in mid-action.
func TestNothingGoesOnBehindARelease(t *testing.T) {
	long := func(busy *atomic.Bool) {
		busy.Store(true)
		time.Sleep(10 * time.Second)
		busy.Store(false)
	}
	for name, begin := range map[string]func(t *testing.T, busy *atomic.Bool) (release func()){
		"whileMoving": func(t *testing.T, _ *atomic.Bool) func() {
			w := new(plodding)
			_, cancel := whileMoving(t.Context(), w, answerWithin)
			return func() {
				require.True(t, w.saying.Load())
				cancel()
				require.False(t, w.saying.Load())
			}
		},
		"tell": func(t *testing.T, busy *atomic.Bool) func() {
			s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 1)
			begun := make(chan struct{})
			close(begun)
			return s.tell(begun, func() string { long(busy); return "" })
		},
		"foresee": func(t *testing.T, busy *atomic.Bool) func() {
			s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 1)
			s.at, s.joiner = 0, measure.NewJoiner(1, 0)
			s.c.Progress = func(run.Update) { long(busy) }
			return s.foresee()
		},
		"onDrain": func(t *testing.T, busy *atomic.Bool) func() {
			s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 1)
			drain := make(chan struct{})
			s.c.Drain = drain
			close(drain)
			return s.c.onDrain(func() { long(busy) })
		},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			var busy atomic.Bool
			release := begin(t, &busy)
			time.Sleep(5 * time.Second)
			require.True(t, busy.Load() || name == "whileMoving", name)
			release()
			require.False(t, busy.Load(), name)
			synctest.Wait()
			require.False(t, busy.Load(), name)
		})
	}
}

// kept is a store that records when it was synced.
type kept struct {
	appended, syncs int
	err             error
}

func (k *kept) Append(string, []byte) error { k.appended++; return k.err }
func (k *kept) Observe([]byte) error        { k.appended++; return k.err }
func (k *kept) Sync() error                 { k.syncs++; return nil }

// TestShareIsExact gives every session to exactly one worker.
func TestShareIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sessions, workers := rapid.IntRange(0, 1_000_000).Draw(t, "sessions"), rapid.IntRange(1, 1000).Draw(t, "workers")
		next := 0
		for i := range workers {
			from, to := share(sessions, i, workers)
			require.Equal(t, next, from)
			require.LessOrEqual(t, to-from, sessions/workers+1)
			next = to
		}
		require.Equal(t, sessions, next)
	})
}

// TestWorkerThatFillsTheCoordinator goes on counting while another worker is silent. Once its counts no longer fit, even as one interval, the step
// fails, and the error names it.
func TestWorkerThatFillsTheCoordinator(t *testing.T) {
	s := stepOf(t, "closed {\n sessions = 4\n iterations = 1\n}", 2)
	s.begin(time.Second)
	s.joiner.Most = 180 << 10
	s.c.journal = newJournal(&kept{})
	defer s.c.journal.close()
	var sum measure.Totals
	add := func(from int64, slowest time.Duration) error {
		delta := measure.NewTotals(int64(s.at), 1)
		delta.AddDue(driver.Put)
		delta.Record(&measure.Sample{Verb: driver.Put, Due: 0, Start: int64(slowest), End: math.MaxInt64})
		sum.Merge(delta)
		seq := s.c.seqs[1] + 1
		_, _, err := s.join(1, &measure.Snapshot{SeqFirst: seq, SeqLast: seq, From: from, To: from + 1e9, Delta: *delta, Running: sum.Counters()})
		return err
	}
	require.NoError(t, add(1e9, 0))
	require.NoError(t, add(2e9, 0))
	err := add(3e9, math.MaxInt64)
	require.ErrorContains(t, err, "worker b: snapshot 3: with it, the snapshots that wait for other workers take ")
	require.ErrorContains(t, err, "use fewer scenarios, steps or replicas")
}

// A figure that JSON cannot represent keeps only its own entry out of the log.
func TestEntriesThatCannotBeKept(t *testing.T) {
	k := &kept{}
	c := &coordinator{Config: Config{Logger: slog.New(slog.DiscardHandler)}}
	require.Nil(t, c.note(entry{}), "of a run that keeps none")
	require.NoError(t, c.noteNow(entry{}))
	c.journal = newJournal(k)
	f := worker.Final{Generator: measure.Generator{Busy: math.NaN()}}
	require.Nil(t, c.note(entryOf(0, &f, false)))
	require.NoError(t, c.noteNow(entryOf(0, &f, false)))
	f.Generator.Busy = 1
	require.NoError(t, c.noteNow(entryOf(0, &f, false)))
	c.journal.close()
	require.Equal(t, 1, k.appended)
}

// All loads of a plan, of which stages and searches have several, share the rows that a result has room for.
func TestRowsAreSharedByAllLoads(t *testing.T) {
	of := func(phases ...*plan.Phase) int { return newCoordinator(Config{Plan: &plan.Plan{Phases: phases}}).rows }
	load, four := &plan.Phase{Closed: &plan.Closed{}}, &plan.Phase{Stages: &plan.Stages{Stages: make([]plan.Stage, 4)}}
	require.Equal(t, judge.RowsEach(0, 0), of())
	require.Equal(t, judge.RowsEach(1, 0), of(load))
	require.Equal(t, judge.RowsEach(16, 0), of(load, load, load, load, four, four, four))
	require.NotEqual(t, of(load), of(load, load, load, load, four, four, four))
}
