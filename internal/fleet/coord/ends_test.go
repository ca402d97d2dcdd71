package coord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Each second is shown once, in order, and covers only the step itself, whether anything has come of it or not.
func TestProvisionalSeconds(t *testing.T) {
	for name, c := range map[string]struct {
		shown, to, came int64 // run clock; of what has come, the end of its interval
		from            int64 // of the interval that is shown; 0: none is
		rate            float64
	}{
		"nothing has come":              {to: 3e9, from: 2e9},
		"a worker's part has come":      {to: 3e9, came: 3e9, from: 1e9, rate: 3.5}, // 7 ops in two seconds
		"what has come ends elsewhere":  {to: 3e9, came: 4e9, from: 2e9},
		"the one after what was shown":  {shown: 2e9, to: 3e9, from: 2e9},
		"what was shown":                {shown: 3e9, to: 3e9},
		"before what was shown":         {shown: 4e9, to: 3e9},
		"part of a second":              {to: 15e8, from: 1e9},
		"just behind what was shown":    {shown: 3e9 - 1, to: 3e9, from: 2e9},
		"the second before the start":   {to: 1e9},
		"a second that ends before it":  {to: 5e8},
		"what was shown, and has grown": {shown: 3e9, to: 3e9, came: 3e9},
	} {
		t.Run(name, func(t *testing.T) {
			s := stepOf(t, "open {\n sessions = 4\n rate = 100\n duration = \"30s\"\n}", 2)
			s.shown, s.joiner = c.shown, measure.NewJoiner(2, int64(s.at))
			s.steps[0].Shape.Ramp = 10 * time.Second // so that what is offered says where the interval begins
			var told []run.Update
			s.c.Progress = func(u run.Update) { told = append(told, u) }
			if c.came > 0 {
				s.joiner.Add(0, c.came, false, measureOf(time.Millisecond, 7))
			}
			s.provisional(c.to)
			if c.from == 0 {
				require.Empty(t, told)
				require.Equal(t, c.shown, s.shown)
				return
			}
			require.Len(t, told, 1)
			require.Equal(t, time.Duration(c.to)-s.at, told[0].Elapsed)
			require.InDelta(t, c.rate, told[0].Achieved, 1e-9)
			require.InDelta(t, s.steps[0].Shape.Between(time.Duration(c.from)-s.at, time.Duration(c.to)-s.at), told[0].Offered, 1e-9)
			require.False(t, told[0].Final)
			require.Equal(t, c.to, s.shown)
			s.provisional(c.to)
			require.Len(t, told, 1, "once")
		})
	}
}

// A loss records what is known of the worker. It ends the run only if that was wanted, and is an error only when no worker is left.
func TestLosingAWorker(t *testing.T) {
	replace := func(context.Context) (worker.Member, error) { return worker.Member{}, nil }
	for name, c := range map[string]struct {
		abort, alone bool
		change       func(s *step)
		want         worker.Loss // but for worker, phase and why
		drained      int         // times that the other was told to end
		err          error
	}{
		"others go on":        {want: worker.Loss{UnseenOps: 8}},
		"the run is to end":   {abort: true, want: worker.Loss{UnseenOps: 8}, drained: 1},
		"nobody is left":      {alone: true, want: worker.Loss{UnseenOps: 8}, err: errNobody},
		"nobody to be told":   {abort: true, alone: true, want: worker.Loss{UnseenOps: 8}, err: errNobody},
		"somebody will come":  {alone: true, change: func(s *step) { s.c.Replace = replace }, want: worker.Loss{UnseenOps: 8}},
		"before the start":    {change: func(s *step) { s.joiner = nil }},
		"behind its last":     {change: func(s *step) { s.sources[0].final = true }},
		"both, to end":        {abort: true, change: func(s *step) { s.joiner, s.sources[0].final = nil, true }, drained: 1},
		"a lease before that": {change: func(s *step) { s.sources[0].upTo = 9e9 }, want: worker.Loss{KnownSeconds: 9, LoadedSeconds: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 2)
			s.c.AbortOnLoss, s.c.lost[1] = c.abort, c.alone
			s.joiner = measure.NewJoiner(2, int64(s.at))
			s.sources[0].counted.Add(measureOf(time.Millisecond, 7))
			s.sources[0].seq, s.sources[0].upTo = 4, 2e9
			if c.change != nil {
				c.change(s)
			}
			require.Equal(t, c.err, s.lose(0, &worker.Loss{Worker: "a", Why: "why", LoadedSeconds: 5}))
			if c.want.KnownSeconds == 0 {
				c.want.KnownSeconds, c.want.LoadedSeconds = 2, 5
			}
			c.want.Worker, c.want.Phase, c.want.Why, c.want.Seq = "a", "p", "why", 4
			require.Equal(t, []worker.Loss{c.want}, s.c.result.Losses)
			require.Equal(t, []int{0}, s.c.of)
			require.True(t, s.c.isLost(0))
			require.Equal(t, s.joiner != nil, s.sources[0].lost)
			require.Equal(t, c.drained, s.c.Workers[1].Worker.(*counted).drains)
			require.Zero(t, s.c.Workers[0].Worker.(*counted).drains, "it is lost")
			require.Equal(t, c.drained > 0, s.asked.Load())
		})
	}
}

// What a lost worker has counted stays, and nobody waits for its interval any longer. If it had a part and had not yet reported on its log, that log
// counts as unread.
func TestStrike(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *step)
		unread []string
	}{
		"in mid-step":    {unread: []string{"a"}},
		"with its log":   {change: func(s *step) { s.logs[0] = new(worker.Log) }},
		"without a part": {change: func(s *step) { s.steps[0].To = s.steps[0].From }},
	} {
		s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 2)
		s.joiner = measure.NewJoiner(2, int64(s.at))
		if c.change != nil {
			c.change(s)
		}
		s.sources[0].counted.Add(measureOf(time.Millisecond, 7))
		s.joiner.Add(1, 3e9, false, measureOf(time.Millisecond, 5))
		ended := func() uint64 { n, _, _ := s.totals.Ended(); return n }
		require.Zero(t, ended(), name)
		s.strike(0)
		require.EqualValues(t, 5, ended(), "%s: the other's was waiting", name)
		require.EqualValues(t, 7, s.unfinished.Ops[driver.Put].Due, name)
		require.Equal(t, c.unread, s.unread, name)
	}
}

// The code of a verdict reflects the kind of error, however deeply wrapped.
func TestWhyOfAnError(t *testing.T) {
	for _, c := range []struct {
		err  error
		code reason.Code
	}{
		{errors.New("why"), reason.NotCarriedOut},
		{errNobody, reason.WorkerLost},
		{fmt.Errorf("phase p: %w", errNobody), reason.WorkerLost},
		{&shortfallError{}, reason.SetupFailed},
		{fmt.Errorf("phase p: %w", &shortfallError{}), reason.SetupFailed},
		{errors.Join(errNobody, &shortfallError{}), reason.SetupFailed},
	} {
		require.Equal(t, reason.Why{Code: c.code, Text: c.err.Error()}, whyOf(c.err))
	}
}

// If a run ends for several reasons, the first in this order decides its completeness; losses come after it among the reasons.
func TestConclude(t *testing.T) {
	stopped := "phase p: ended by the plan"
	for name, c := range map[string]struct {
		stopped, drained, cancelled, failed, loss, abort bool
		is                                               run.Completeness
		codes                                            []reason.Code
	}{
		"to the end":             {is: run.Complete, codes: []reason.Code{}},
		"nothing lost":           {abort: true, is: run.Complete, codes: []reason.Code{}},
		"the plan, and all else": {stopped: true, drained: true, cancelled: true, failed: true, loss: true, abort: true, is: run.Aborted, codes: []reason.Code{reason.StoppedByPlan, reason.WorkerLost}},
		"the plan":               {stopped: true, is: run.Aborted, codes: []reason.Code{reason.StoppedByPlan}},
		"the user, and an error": {drained: true, failed: true, loss: true, abort: true, is: run.Aborted, codes: []reason.Code{reason.User.Code, reason.WorkerLost}},
		"the user's second wish": {cancelled: true, is: run.Aborted, codes: []reason.Code{reason.User.Code}},
		"an error, and a loss":   {failed: true, loss: true, abort: true, is: run.Failed, codes: []reason.Code{reason.NotCarriedOut, reason.WorkerLost}},
		"a loss that ends it":    {loss: true, abort: true, is: run.Aborted, codes: []reason.Code{reason.WorkerLost, reason.WorkerLost}},
		"a loss":                 {loss: true, is: run.Degraded, codes: []reason.Code{reason.WorkerLost}},
	} {
		t.Run(name, func(t *testing.T) {
			drain := make(chan struct{})
			k := &coordinator{Config: Config{Logger: slog.New(slog.DiscardHandler), Drain: drain, AbortOnLoss: c.abort}, result: run.New(run.Header{}, run.Environment{})}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.stopped {
				k.stopped.Store(&stopped)
			}
			if c.drained {
				close(drain)
			}
			if c.cancelled {
				cancel()
			}
			if c.loss {
				k.result.Losses = []worker.Loss{{Worker: "w", Why: "it is gone"}}
			}
			var err error
			if c.failed {
				err = errors.New("why")
			}
			require.Equal(t, c.stopped || c.drained || c.cancelled || c.loss && c.abort, k.stopping(ctx))
			k.result.Verdict.Completeness = "unfinished"
			k.conclude(ctx, err)
			require.Equal(t, c.is, k.result.Verdict.Completeness)
			require.Equal(t, c.codes, k.result.Verdict.Codes)
		})
	}
}

// A probe is kept if it belongs to the phase and can be written.
func TestWhichProbesAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		when  string
		value float64
		kept  int
		fails string
	}{
		"in its place":      {when: "before", value: 1, kept: 1},
		"out of place":      {value: 1},
		"no number":         {when: "after", value: math.NaN(), fails: `observe "disk": encode a probe: `},
		"no number, either": {value: math.Inf(1)},
	} {
		k := &kept{}
		j := newJournal(k)
		w := &watcher{c: &coordinator{journal: j, zero: time.Now()}, phase: "p", o: &plan.Observe{Name: "disk"}}
		w.enter(func(p *run.Probe) { p.When = c.when }, time.Now(), probed{value: map[string]float64{"bytes": c.value}})
		j.close()
		require.Equal(t, c.kept, k.appended, name)
		require.Equal(t, c.kept > 0, w.last != nil, name)
		if c.fails == "" {
			require.NoError(t, w.err, name)
			continue
		}
		require.ErrorContains(t, w.err, c.fails, name)
		require.Equal(t, w.err, w.kept(), name)
	}
}

// When a run is read back, the emptying of nodes must come from the very next record; an earlier error stays.
func TestFlushesThatWereKept(t *testing.T) {
	damaged := errors.New("damaged")
	flush := func(phase string) *keptRecord {
		return &keptRecord{entry: entry{Flush: &flushed{Phase: phase, Origin: 2}}}
	}
	for name, c := range map[string]struct {
		ahead *keptRecord
		pull  *keptRecord // what comes next; nil: nothing
		fails error       // the next record, or one before
		found bool        // that was before
		upTo  time.Duration
		want  time.Duration // up to which there is something now
		err   string
	}{
		"it is next":            {ahead: flush("p"), upTo: time.Second, want: 2 * time.Second},
		"it is behind":          {ahead: flush("p"), upTo: 3 * time.Second, want: 3 * time.Second},
		"it has yet to be read": {pull: flush("p"), want: 2 * time.Second},
		"nothing is next":       {err: errEnded.Error()},
		"another phase":         {ahead: flush("q"), err: `phase "p" was to empty its nodes`},
		"a step":                {ahead: &keptRecord{entry: entry{Step: &begun{}}}, err: `phase "p" was to empty its nodes`},
		"a snapshot":            {pull: &keptRecord{worker: "w"}, err: `a snapshot of worker "w" is of no step`},
		"what cannot be read":   {fails: damaged, err: "damaged"},
		"an error before it":    {ahead: flush("p"), fails: damaged, found: true, err: "damaged"},
	} {
		k := &past{c: &coordinator{}, ahead: c.ahead, upTo: c.upTo}
		if c.found {
			k.err = c.fails
		}
		k.pull = func() (*keptRecord, error, bool) { return c.pull, c.fails, c.pull != nil || c.fails != nil }
		origin, err := k.flush(&plan.Phase{Name: "p"})
		if c.err != "" {
			require.ErrorContains(t, err, c.err, name)
			require.Zero(t, origin, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, []any{2.0, c.want}, []any{origin, k.upTo}, name)
		require.Nil(t, k.ahead, name)
	}
}
