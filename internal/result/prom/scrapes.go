package prom

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
)

// scrapes remembers who scrapes, and which view each has fetched. A Prometheus keeps its connection between scrapes, so a scraper is a connection,
// and is forgotten when that closes.
type scrapes struct {
	mu    sync.Mutex
	got   map[string]*View // the view that each scraper fetched last, by its address
	last  *View            // most recent view that any scraper fetched; nil if none has scraped
	moved chan struct{}    // closed when got changes; nil if no goroutine waits for that
}

// note records that a scraper has fetched a view; nil if the scraper is gone.
func (s *scrapes) note(from string, got *View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.got == nil {
		s.got = map[string]*View{}
	}
	if got == nil {
		delete(s.got, from)
	} else {
		s.got[from], s.last = got, got
	}
	if s.moved != nil {
		close(s.moved)
		s.moved = nil
	}
}

// await returns once every scraper, and the most recent one, has fetched this view, or when ctx ends.
func (s *scrapes) await(ctx context.Context, view *View) error {
	for {
		late, moved := s.late(view)
		if late == 0 {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("%d of those who scrape have not fetched the last counts: %w", late, ctx.Err())
		}
	}
}

// late counts the scrapers that have another view, and returns a channel that is closed when that may have changed.
func (s *scrapes) late(view *View) (n int, moved <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, got := range s.got {
		if got != view {
			n++
		}
	}
	if n == 0 && s.last != nil && s.last != view {
		n = 1 // that client opens a new connection for each scrape
	}
	if s.moved == nil {
		s.moved = make(chan struct{})
	}
	return n, s.moved
}

// noting records each page that next serves, once it is written.
func (c *Collector) noting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		view := c.latest.Load() // at least this one will be in the page
		next.ServeHTTP(w, r)
		if view != nil {
			c.scrapes.note(r.RemoteAddr, view)
		}
	})
}

// connection handles state changes of a server's connections.
func (c *Collector) connection(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed {
		c.scrapes.note(conn.RemoteAddr().String(), nil)
	}
}
