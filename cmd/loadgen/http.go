package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/loadgen/loadgen/internal/drivers"
	"github.com/loadgen/loadgen/internal/prom"
	"github.com/loadgen/loadgen/internal/rpc"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/plan"
)

// scrapeWithin is how long the end of a run waits for those who have been scraping it to fetch the last counts.
const scrapeWithin = 5 * time.Second

// page serves a collector while a run goes on.
type page struct {
	collector *prom.Collector
	address   string // host:port
	server    *http.Server
	served    chan error
}

// servePage begins to serve c at an address of the loopback.
func servePage(address string, c *prom.Collector, words io.Writer, log *slog.Logger) (*page, error) {
	listener, err := prom.Listen(address)
	if err != nil {
		return nil, fmt.Errorf("--http: %w", err)
	}
	p := &page{collector: c, address: listener.Addr().String(), served: make(chan error, 1)}
	p.server = prom.NewServer(c, log)
	fmt.Fprintf(words, "metrics at http://%s/metrics\n", p.address)
	go func() { p.served <- p.server.Serve(listener) }() // ends with close, which waits for it
	return p, nil
}

// close goes on serving until everybody who has been fetching counts has fetched the last ones, and ends the server.
func (p *page) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, scrapeWithin)
	defer cancel()
	missed := p.collector.AwaitScrape(ctx)
	err := p.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, p.server.Close())
	}
	if served := <-p.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if missed != nil {
		err = errors.Join(fmt.Errorf("metrics, for %v: %w", scrapeWithin, missed), err)
	}
	return err
}

// metrics shows a run to Prometheus, on the coordinator. A nil metrics does nothing.
type metrics struct {
	page *page
	feed *prom.Feed
}

// serve begins to serve the metrics of a run of p and of its workers, if they are asked for.
func (f *runFlags) serve(id string, p *plan.Plan, workers func() []prom.Worker, words io.Writer, log *slog.Logger) (*metrics, error) {
	if f.http == "" {
		return nil, nil
	}
	page, err := servePage(f.http, prom.New(workers), words, log)
	if err != nil {
		return nil, err
	}
	return &metrics{page: page, feed: prom.NewFeed(page.collector, id, p)}, nil
}

// watch returns the members with their steps and snapshots passing by the metrics.
func (m *metrics) watch(members []worker.Member) []worker.Member {
	if m == nil {
		return members
	}
	watched := make([]worker.Member, len(members))
	for i, member := range members {
		member.Worker = prom.Watch(member.Worker, func(worker.Assignment) *prom.Feed { return m.feed })
		watched[i] = member
	}
	return watched
}

// judge shows the verdict as it stands.
func (m *metrics) judge(v run.Verdict) {
	if m != nil {
		m.feed.Judge(v)
	}
}

// close shows the verdict until it has been fetched, if anyone fetches, and ends the server.
func (m *metrics) close(ctx context.Context, verdict run.Verdict) error {
	if m == nil {
		return nil
	}
	m.feed.End(verdict)
	return m.page.close(ctx)
}

// shownWorker is a worker with its steps and snapshots passing by a page of its own.
type shownWorker struct {
	worker.Worker
	local rpc.Local
	feed  *prom.Feed // of the run; nil: none has been assigned
}

// show returns a worker that does what local does, in one run, and shows on the page what it counts.
func (p *page) show(local rpc.Local) rpc.Local {
	w := &shownWorker{local: local}
	w.Worker = prom.Watch(local, func(a worker.Assignment) *prom.Feed {
		decoded, err := plan.Decode(a.Plan, drivers.All())
		if err != nil {
			return nil // the worker will say so itself
		}
		w.feed = prom.NewFeed(p.collector, a.RunID, decoded)
		return w.feed
	})
	return w
}

func (w *shownWorker) SetLease(until time.Duration) { w.local.SetLease(until) }

func (w *shownWorker) Progress() int64 { return worker.Progress(w.local) }

func (w *shownWorker) Close() {
	w.local.Close()
	if w.feed != nil {
		w.feed.End(run.Verdict{}) // which only the coordinator knows
	}
}
