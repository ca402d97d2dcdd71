package prom

import (
	"context"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// Watch returns a worker that acts as w and feeds the metrics with its steps and with each snapshot that the sink accepts. feed is called at each
// assignment and returns its Feed; nil for none. On a coordinator all workers share one Feed, which shows their sum; a worker makes a new one for each
// run.
func Watch(w worker.Worker, feed func(worker.Assignment) *Feed) worker.Worker {
	return &watched{Worker: w, feedOf: feed}
}

// Watch returns the members of a run, each wrapped to feed f.
func (f *Feed) Watch(members []worker.Member) []worker.Member {
	list := slices.Clone(members)
	for i, m := range members {
		list[i].Worker = Watch(m.Worker, func(worker.Assignment) *Feed { return f })
	}
	return list
}

// watched is a worker with a feed. Like any worker it is used by one goroutine at a time, except for Drain.
type watched struct {
	worker.Worker
	feedOf func(worker.Assignment) *Feed
	feed   *Feed
	step   worker.Step
}

func (w *watched) Assign(ctx context.Context, a worker.Assignment) error {
	w.feed = w.feedOf(a)
	return w.Worker.Assign(ctx, a)
}

// Progress returns the worker's progress, if it reports any.
func (w *watched) Progress() int64 { return worker.Progress(w.Worker) }

func (w *watched) Prepare(ctx context.Context, step worker.Step) (worker.Ready, error) {
	w.step = step
	ready, err := w.Worker.Prepare(ctx, step)
	if w.feed != nil && err == nil {
		w.feed.Found(step.Phase, ready.Nodes)
	}
	return ready, err
}

func (w *watched) Run(ctx context.Context, at time.Duration, sink worker.Sink) (worker.Final, error) {
	if w.feed == nil {
		return w.Worker.Run(ctx, at, sink)
	}
	w.feed.Begin(w.step)
	defer w.feed.Done(w.step)
	return w.Worker.Run(ctx, at, func(s *measure.Snapshot) (func() error, error) {
		kept, err := sink(s)
		if err != nil {
			return nil, err
		}
		w.feed.Add(&s.Delta, s.To)
		return kept, nil
	})
}
