package command

import (
	"time"

	"github.com/loadgen/loadgen/internal/fleet/rpc"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

// shownWorker is a worker whose steps and snapshots are shown on its own metrics page.
type shownWorker struct {
	worker.Worker
	local rpc.Local
	feed  *prom.Feed // feed of the run; nil if none is assigned
}

// showOn returns a worker that does what local does, in one run, and shows its counts by the collector.
func showOn(known *drivers.Set, collector *prom.Collector, local rpc.Local) rpc.Local {
	w := &shownWorker{local: local}
	w.Worker = prom.Watch(local, func(a worker.Assignment) *prom.Feed {
		decoded, err := plan.Decode(a.Plan, known.All)
		if err != nil {
			return nil // the worker will report the error itself
		}
		w.feed = prom.NewFeed(collector, a.RunID, decoded)
		return w.feed
	})
	return w
}

func (w *shownWorker) SetLease(until time.Duration) { w.local.SetLease(until) }

func (w *shownWorker) Progress() int64 { return worker.Progress(w.local) }

func (w *shownWorker) Close() {
	w.local.Close()
	if w.feed != nil {
		w.feed.End(run.Verdict{}, nil) // only the coordinator knows the verdict
	}
}
