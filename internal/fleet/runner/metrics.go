package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/result/push"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// metrics shows a run to Prometheus and to people, on the coordinator. A nil metrics does nothing.
type metrics struct {
	page *livePage    // nil if none is served
	push *push.Pusher // nil if metrics are not pushed
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
		var err error
		if m.page, err = c.open(j, workers, collector); err != nil {
			return nil, fmt.Errorf("--http: %w", err)
		}
	}
	if c.Push != nil {
		m.push = push.Start(c.Push, collector.Registry(), func(note string) {
			fmt.Fprintf(c.Words, "loadgen: remote write: %s\n", quantity.Plain(strings.Join(strings.Fields(note), " ")))
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

// show shows how far the run has got.
func (m *metrics) show(u run.Update) {
	if m == nil {
		return
	}
	m.feed.Judge(u.Verdict)
	if m.page != nil {
		m.page.show(u)
	}
}

// watched returns a function that shows the run as it stands, after show; nil if nobody can see it.
func (m *metrics) watched() func(soFar func() *run.Run) {
	if m == nil || m.page == nil {
		return nil
	}
	return m.page.showRun
}

// keeps returns a store that shows the snapshots which another one keeps.
func (m *metrics) keeps(s coord.Store) coord.Store {
	if m == nil || m.page == nil {
		return s
	}
	return &shownStore{s, m.page}
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

// end pushes and shows the result, which has been kept, and then ends the server, or leaves that to the configuration's Stay.
func (m *metrics) end(ctx context.Context, c *Config, result *run.Run) {
	if m == nil {
		return
	}
	m.feed.End(result.Verdict, result.Asserts)
	if m.push != nil {
		m.push.Close(ctx)
	}
	if m.page != nil {
		m.page.end(ctx, c, result)
	}
}
