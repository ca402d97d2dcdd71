package prom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits of the server. A silent client is cut off; one that scrapes every minute keeps its connection.
const (
	readHeaderWithin = 5 * time.Second
	readWithin       = 10 * time.Second
	writeWithin      = 30 * time.Second
	idleFor          = 2 * time.Minute
	maxHeaderBytes   = 16 << 10
)

// Door is the port that a page is served on, and its access control.
type Door interface {
	Listener() net.Listener
	// Guard makes a server, which is not serving yet, admit only those who may see the page.
	Guard(server *http.Server)
	// Words say where the page is, and how to get access.
	Words() string
}

// NewServer returns a server of c's Handler with every wait bounded. It logs client errors to log, at debug level.
func NewServer(c *Collector, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           Handler(c),
		ConnState:         c.connection,
		ReadHeaderTimeout: readHeaderWithin,
		ReadTimeout:       readWithin,
		WriteTimeout:      writeWithin,
		IdleTimeout:       idleFor,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// scrapeWithin is how long the end of a run waits for its scrapers to fetch the final counts.
const scrapeWithin = 5 * time.Second

// Page serves a collector during a run.
type Page struct {
	collector *Collector
	server    *http.Server
	served    chan error
}

// Serve begins to serve c at a door, and other pages by their patterns, which are those of an http.ServeMux. The caller must close the page.
func Serve(door Door, c *Collector, log *slog.Logger, others map[string]http.Handler) *Page {
	p := &Page{collector: c, server: NewServer(c, log), served: make(chan error, 1)}
	if len(others) > 0 {
		mux := http.NewServeMux()
		mux.Handle("/", p.server.Handler)
		for pattern, h := range others {
			mux.Handle(pattern, h)
		}
		p.server.Handler = mux
	}
	door.Guard(p.server)
	go func() { p.served <- p.server.Serve(door.Listener()) }() // ends with Close, which waits for it
	return p
}

// Close keeps serving until every scraper has fetched the final counts, for at most 5 s, then stops the server.
func (p *Page) Close(ctx context.Context) error {
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
