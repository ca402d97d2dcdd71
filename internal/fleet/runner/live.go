package runner

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/result/live"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/result/report/page"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/pkg/plan"
)

// livePage is the server of a run's metrics and of its live page.
type livePage struct {
	server  *prom.Page
	feed    *live.Feed
	plan    *plan.Plan
	workers func() []worker.Status

	update run.Update      // the last one
	src    timeline.Source // what the last rendering read

	mu     sync.Mutex    // guards what stands below
	detail *timeline.Run // histograms of the snapshots so far; nil if one cannot be shown, and then the page has none
}

// open opens the port for a run, and says where it is.
func (c *Config) open(j job, workers *Fleet, collector *prom.Collector) (*livePage, error) {
	door, err := c.Page()
	if err != nil {
		return nil, err
	}
	p := &livePage{
		feed: live.New(identity.Welcome), plan: j.plan, workers: workers.Status,
		src: timeline.Source{Plan: j.canonical}, detail: timeline.Live(j.plan.Words()),
	}
	p.server = prom.Serve(door, collector, c.Logger, map[string]http.Handler{"GET /stream": p.feed, "GET /{$}": http.HandlerFunc(p.frame)})
	fmt.Fprint(c.Words, door.Words())
	return p, nil
}

// frame answers with the page's frame; its content comes by the feed.
func (p *livePage) frame(w http.ResponseWriter, _ *http.Request) {
	text, policy, err := page.Frame(p.plan.Name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, text) // an error means that the client is gone
}

// show shows how far the run has got, unless the run as it stands is shown next.
func (p *livePage) show(u run.Update) {
	if p.update = u; u.Doing != "" && p.feed.Due() {
		p.render()
	}
}

// showRun shows the run as it stands, if anybody watches.
func (p *livePage) showRun(soFar func() *run.Run) {
	if p.feed.Due() {
		r := soFar()
		r.SetAsserts(expr.Evaluate(p.plan, r))
		p.src.Run = r
		p.render()
	}
}

// render renders the page, on another goroutine.
func (p *livePage) render() {
	src, u := p.src, p.update
	p.feed.Show(func() (string, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		src.Detail = p.detail
		return page.Content(&src, &u, p.workers())
	})
}

// shownStore is a store whose snapshots are shown.
type shownStore struct {
	coord.Store
	page *livePage
}

func (s *shownStore) Append(worker string, snapshot []byte) error {
	if err := s.Store.Append(worker, snapshot); err != nil || worker == "" {
		return err
	}
	s.page.mu.Lock()
	defer s.page.mu.Unlock()
	if d := s.page.detail; d != nil && d.Add(snapshot) != nil {
		s.page.detail = nil
	}
	return nil
}

// end shows the report on a run, and then ends the server, or leaves that to the configuration's Stay. The server ends once its scrapers have fetched
// the last counts.
func (p *livePage) end(ctx context.Context, c *Config, result *run.Run) {
	last := ""
	if c.Stay != nil || p.feed.Watched() {
		src, err := c.Source(result.ID)
		if err != nil {
			c.Logger.Warn("read what the page shows", "err", err)
		}
		src.Run = result
		if last, err = page.Ended(&src); err != nil {
			c.Logger.Warn("show the report", "err", err)
		}
	}
	p.feed.Close(last, result.Experiment != "")
	end := func(ctx context.Context) {
		if err := p.server.Close(ctx); err != nil {
			c.Logger.Warn("end metrics", "err", err)
		}
	}
	if c.Stay != nil {
		c.Stay(end)
		return
	}
	end(ctx)
}
