package prom

import (
	"context"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
)

// Runner carries out steps: a worker, as a coordinator sees it.
type Runner interface {
	Assign(ctx context.Context, a run.Assignment) error
	Prepare(ctx context.Context, step run.Step) (run.Ready, error)
	Run(ctx context.Context, at time.Duration, sink func(*measure.Snapshot) (kept func() error, err error)) (run.Final, error)
	Drain()
}

// Watch returns a Runner that does what r does and feeds the metrics with what passes by: the steps, and each snapshot once the
// sink has taken it. feed is asked at each assignment which Feed it is; nil: none is kept. On a coordinator all runners share
// one, so that it shows their sum; a worker makes a new one for each run.
func Watch(r Runner, feed func(run.Assignment) *Feed) Runner {
	return &watched{Runner: r, feedOf: feed}
}

// watched is a Runner with a feed. Like any Runner it is used by one goroutine at a time, but for Drain.
type watched struct {
	Runner
	feedOf func(run.Assignment) *Feed
	feed   *Feed
	step   run.Step
}

func (w *watched) Assign(ctx context.Context, a run.Assignment) error {
	w.feed = w.feedOf(a)
	return w.Runner.Assign(ctx, a)
}

// Progress is that of the Runner, where it says so.
func (w *watched) Progress() int64 {
	if p, ok := w.Runner.(interface{ Progress() int64 }); ok {
		return p.Progress()
	}
	return 0
}

func (w *watched) Prepare(ctx context.Context, step run.Step) (run.Ready, error) {
	w.step = step
	return w.Runner.Prepare(ctx, step)
}

func (w *watched) Run(ctx context.Context, at time.Duration, sink func(*measure.Snapshot) (kept func() error, err error)) (run.Final, error) {
	if w.feed == nil {
		return w.Runner.Run(ctx, at, sink)
	}
	w.feed.Begin(w.step)
	defer w.feed.Done(w.step)
	return w.Runner.Run(ctx, at, func(s *measure.Snapshot) (func() error, error) {
		kept, err := sink(s)
		if err != nil {
			return nil, err
		}
		w.feed.Add(&s.Delta, s.To)
		return kept, nil
	})
}
