package observe_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An endpoint that answers with garbage costs a probe its figures and no more: the answer is read as it comes, up to a limit and until the probe's
// time is over.
func TestHostileEndpoints(t *testing.T) {
	const good = "a 1\n"
	for path, test := range map[string]struct {
		want  string
		serve func(w http.ResponseWriter, r *http.Request)
	}{
		"/bomb": {"there is no series a", func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				return
			}
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			for range 4 << 10 {
				_, _ = io.WriteString(zip, strings.Repeat("#\n", 16<<10))
			}
			_ = zip.Close()
		}},
		"/packed": {"there is no series a", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			_, _ = io.WriteString(zip, good)
			_ = zip.Close()
		}},
		"/around": {"302", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }},
		"/line":   {"token too long", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 2<<20)) }},
		"/drip": {"context deadline exceeded", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "#\n")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}},
		"/escape": {`\x1b`, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a{\x1b]0;x\a} 1\n") }},
	} {
		t.Run(path, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(test.serve))
			t.Cleanup(server.Close)
			p := probe(t, "null", `"a"`, `prometheus {
		url    = "`+server.URL+path+`"
		series = { a = "a" }
	}`)
			within := time.Minute
			if path == "/drip" {
				within = time.Second
			}
			value, missing := takeWithin(t, p, within)
			require.Empty(t, value)
			var said strings.Builder
			for _, why := range missing {
				said.WriteString(why)
			}
			require.Contains(t, said.String(), test.want)
			require.NotContains(t, said.String(), "\x1b")
		})
	}
}

// A line that was not asked for costs no figure, however wrong it is, before or after the one that counts.
func TestOnePrometheusLineIsWrong(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "torn{code=\"5\" 3\nheap_bytes 1.5e9\n}{\nwords few\n# TYPE a b c\nheap_bytes{zone=\"b\"} 5e8\nlast{")
	}))
	defer server.Close()
	value, missing := take(t, probe(t, "null", `"a"`, `prometheus {
		url    = "`+server.URL+`"
		series = { a = "heap_bytes" }
	}`))
	require.Equal(t, map[string]float64{"a": 2e9}, value)
	require.Empty(t, missing)
}
