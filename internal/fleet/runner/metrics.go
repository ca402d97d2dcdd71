package runner

import (
	"context"
	"fmt"

	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/result/push"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// metrics exposes a run to Prometheus, on the coordinator. A nil metrics does nothing.
type metrics struct {
	page *prom.Page   // nil: none is served
	push *push.Pusher // nil: none
	feed *prom.Feed
}

// serve starts serving the metrics of a run and of its workers, and pushing them, if asked to.
func (c *Config) serve(j job, workers *Fleet) (*metrics, error) {
	if c.Page == nil && c.Push == nil {
		return nil, nil
	}
	collector := prom.New(workers.Status)
	m := &metrics{feed: prom.NewFeed(collector, j.header.ID, j.plan)}
	if c.Page != nil {
		door, err := c.Page()
		if err != nil {
			return nil, fmt.Errorf("--http: %w", err)
		}
		m.page = prom.Serve(door, collector, c.Logger)
		fmt.Fprint(c.Words, door.Words())
	}
	if c.Push != nil {
		m.push = push.Start(c.Push, collector.Registry(), func(note string) {
			fmt.Fprintf(c.Words, "loadgen: remote write: %s\n", dialect.Printable(note))
		})
	}
	return m, nil
}

// watch wraps workers of the run so that what they report is shown.
func (m *metrics) watch(members ...worker.Member) []worker.Member {
	if m == nil {
		return members
	}
	return m.feed.Watch(members)
}

// judge shows the current verdict.
func (m *metrics) judge(v run.Verdict) {
	if m != nil {
		m.feed.Judge(v)
	}
}

// happens shows the events that a function carries out, or undoes.
func (m *metrics) happens(carryOut func(context.Context, *plan.Phase, *plan.Event, bool) error) func(context.Context, *plan.Phase, *plan.Event, bool) error {
	if m == nil {
		return carryOut
	}
	return func(ctx context.Context, ph *plan.Phase, ev *plan.Event, undo bool) error {
		err := carryOut(ctx, ph, ev, undo)
		m.feed.Happen(ph.Name, ev.Name, !undo)
		return err
	}
}

// probed shows what a probe has read.
func (m *metrics) probed(p *run.Probe) {
	if m != nil {
		m.feed.Probe(p)
	}
}

// close pushes the result's verdict, keeps showing it until it has been fetched, if anyone fetches, and then ends the server.
func (m *metrics) close(ctx context.Context, result *run.Run) error {
	if m == nil {
		return nil
	}
	m.feed.End(result.Verdict, result.Asserts)
	if m.push != nil {
		m.push.Close(ctx)
	}
	if m.page == nil {
		return nil
	}
	return m.page.Close(ctx)
}
