package prom_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/live"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/servertest"
)

func TestHandler(t *testing.T) {
	h := prom.Handler(sampleCollector(t, 1))
	for _, test := range []struct {
		method, path, host string
		status             int
		body               string // "": not checked
	}{
		{"GET", "/healthz", "127.0.0.1:9464", 200, "ok\n"},
		{"HEAD", "/healthz", "127.0.0.1:9464", 200, ""},
		{"GET", "/sd", "localhost:9464", 200, `[{"targets":["127.0.0.1:9465"],"labels":{"__meta_loadgen_worker":"a"}},` +
			`{"targets":["127.0.0.1:9466"],"labels":{"__meta_loadgen_worker":"b"}}]` + "\n"},
		{"GET", "/metrics", "[::1]:9464", 200, ""},
		{"GET", "/metrics", "[::1]", 200, ""},
		{"GET", "/metrics", "LOCALHOST", 200, ""},
		{"GET", "/metrics", "[::ffff:127.0.0.1]:1", 200, ""},
		{"HEAD", "/metrics", "127.0.0.1", 200, ""},

		{"GET", "/", "localhost", 404, ""},
		{"GET", "/metrics/x", "localhost", 404, ""},
		{"GET", "/debug/pprof/", "localhost", 404, ""},
		{"POST", "/metrics", "localhost", 405, ""},
		{"DELETE", "/healthz", "localhost", 405, ""},
		{"OPTIONS", "/sd", "localhost", 405, ""},
		{"TRACE", "/metrics", "localhost", 405, ""},
	} {
		t.Run(test.method+" "+test.path+" at "+test.host, func(t *testing.T) {
			r := httptest.NewRequest(test.method, test.path, nil)
			r.Host = test.host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Equal(t, test.status, w.Code)
			if test.body != "" {
				require.Equal(t, test.body, w.Body.String())
			}
		})
	}
}

// TestDiscoveryWithoutPages: Prometheus requires a list, not null.
func TestDiscoveryWithoutPages(t *testing.T) {
	response := get(t, with(worker.Status{Name: "a"}), "/sd", "")
	b, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, "[]\n", string(b))
	require.Equal(t, "application/json; charset=utf-8", response.Header.Get("Content-Type"))
}

func TestServer(t *testing.T) {
	c := sampleCollector(t, 1)
	address := serve(t, c)
	response, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	b, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, page(t, c), string(b))

	s := prom.NewServer(with(), slog.New(slog.DiscardHandler))
	for _, limit := range []time.Duration{s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout} {
		require.Positive(t, limit)
		require.LessOrEqual(t, limit, 2*time.Minute)
	}
}

// TestDiscoveryOfPagesBeyondTheLoopback says that they are served over TLS.
func TestDiscoveryOfPagesBeyondTheLoopback(t *testing.T) {
	response := get(t, with(worker.Status{Name: "a", Metrics: "10.0.0.8:9465"}), "/sd", "")
	b, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, `[{"targets":["10.0.0.8:9465"],"labels":{"__meta_loadgen_worker":"a","__scheme__":"https"}}]`+"\n", string(b))
}

// TestEveryScraperGetsTheLastCounts has two scrapers, one of them rare, and one that looked once and is gone.
func TestEveryScraperGetsTheLastCounts(t *testing.T) {
	p := parse(t, samplePlan)
	c := with()
	c.Set(sampleView(p, 1))
	address := serve(t, c)
	scraper := func() (*http.Client, func()) {
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		client := &http.Client{Transport: transport}
		return client, func() {
			response, err := client.Get("http://" + address + "/metrics")
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
		}
	}
	_, often := scraper()
	_, rarely := scraper()
	once, look := scraper()
	often()
	rarely()
	look()
	c.Set(sampleView(p, 2))
	await := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return c.AwaitScrape(ctx)
	}
	require.ErrorContains(t, await(time.Millisecond), "3 of those who scrape have not fetched the last counts")
	often()
	once.CloseIdleConnections()
	require.Eventually(t, func() bool {
		err := await(time.Millisecond)
		return err != nil && strings.HasPrefix(err.Error(), "1 of those who scrape")
	}, 10*time.Second, 10*time.Millisecond, "who has gone is not waited for")
	var last sync.WaitGroup
	defer last.Wait()
	last.Go(rarely)
	require.NoError(t, await(10*time.Second))
}

// cramped is a door whose connections hold few bytes on their way.
type cramped struct{ port *bufconn.Listener }

func (d cramped) Listener() net.Listener { return d.port }
func (cramped) Guard(*http.Server)       {}
func (cramped) Words() string            { return "" }

// TestTheEndOfTheServerEndsStreamsThatNobodyReads: it gives a watcher of the live page 5 s to take the report, and then hangs up.
func TestTheEndOfTheServerEndsStreamsThatNobodyReads(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		const bytes = 64
		door, feed := cramped{bufconn.Listen(bytes)}, live.New(func(*http.Request) {})
		p := prom.Serve(door, with(), slog.New(slog.DiscardHandler), map[string]http.Handler{"GET /stream": feed})
		watcher, err := door.port.Dial()
		require.NoError(t, err)
		_, err = io.WriteString(watcher, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		synctest.Wait()
		require.True(t, feed.Watched())

		feed.Close("the report", false)
		began := time.Now()
		require.ErrorIs(t, p.Close(t.Context()), context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(began), 5*time.Second)
		late, err := io.ReadAll(watcher)
		require.NoError(t, err)
		require.LessOrEqual(t, len(late), bytes)
	})
}

// serve serves c until the end of the test and returns the address.
func serve(t testing.TB, c *prom.Collector) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := prom.NewServer(c, slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return l.Addr().String()
}
