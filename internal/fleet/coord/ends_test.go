package coord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/result/run"
)

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
