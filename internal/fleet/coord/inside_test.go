package coord

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
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
