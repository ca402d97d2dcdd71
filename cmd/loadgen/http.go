package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/loadgen/loadgen/internal/coord"
	"github.com/loadgen/loadgen/internal/prom"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// scrapeWithin is how long the end of a run waits for a Prometheus that has been scraping it to fetch the last counts.
const scrapeWithin = 5 * time.Second

// metrics serves what is known of a run, while it goes on, to Prometheus. A nil metrics does nothing.
type metrics struct {
	collector *prom.Collector
	feed      *prom.Feed
	server    *http.Server
	served    chan error
}

// serveMetrics begins to serve the metrics of a run of p at an address.
func serveMetrics(address, id string, p *plan.Plan, words io.Writer, log *slog.Logger) (*metrics, error) {
	listener, err := prom.Listen(address)
	if err != nil {
		return nil, fmt.Errorf("--http: %w", err)
	}
	m := &metrics{collector: prom.New(), served: make(chan error, 1)}
	m.feed = prom.NewFeed(m.collector, id, p)
	m.server = prom.NewServer(prom.Handler(m.collector, nil), log)
	fmt.Fprintf(words, "metrics at http://%s/metrics\n", listener.Addr())
	go func() { m.served <- m.server.Serve(listener) }() // ends with close, which waits for it
	return m, nil
}

// watch returns the members with their steps and snapshots passing by the metrics.
func (m *metrics) watch(members []coord.Member) []coord.Member {
	if m == nil {
		return members
	}
	watched := make([]coord.Member, len(members))
	for i, member := range members {
		member.Worker = prom.Watch(member.Worker, func(run.Assignment) *prom.Feed { return m.feed })
		watched[i] = member
	}
	return watched
}

// close shows the verdict until it has been fetched, if anyone fetches, and ends the server.
func (m *metrics) close(ctx context.Context, verdict run.Verdict) error {
	if m == nil {
		return nil
	}
	m.feed.End(verdict)
	ctx, cancel := context.WithTimeout(ctx, scrapeWithin)
	defer cancel()
	missed := m.collector.AwaitScrape(ctx)
	err := m.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, m.server.Close())
	}
	if served := <-m.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if missed != nil {
		err = errors.Join(fmt.Errorf("nobody fetched the last counts within %v", scrapeWithin), err)
	}
	return err
}
