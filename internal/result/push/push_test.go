package push_test

import (
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/push"
	"github.com/loadgen/loadgen/internal/servertest"
)

// notes are what a pusher has noted.
type notes struct {
	mu   sync.Mutex
	text string
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text += text + "\n"
}

func (n *notes) await(t *testing.T, words string) {
	t.Helper()
	require.Eventually(t, func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return strings.Contains(n.text, words)
	}, time.Minute, 5*time.Millisecond, words)
}

// receiver is a server that answers pushes with a handler.
func receiver(t *testing.T, serve http.HandlerFunc) *push.Receiver {
	t.Helper()
	s := httptest.NewServer(serve)
	t.Cleanup(s.Close)
	to, err := push.NewReceiver(s.URL + "/api/v1/write?key=never-to-be-seen")
	require.NoError(t, err)
	return to
}

// counting returns a registry with a counter.
func counting() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "pushed_total"}))
	return r
}

// TestWhatAReceiverRefuses: a refusal is noted with what to do about it and not tried again; what may pass is tried again until the time is up.
func TestWhatAReceiverRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		body   string
		again  bool
		words  string
	}{
		{400, strings.Repeat("out of order\n", 10_000), false, "400 Bad Request: out of order"},
		{401, "", false, "401 Unauthorized (it needs a token, or another one: --remote-write-token-file)"},
		{404, "", false, "404 Not Found (it receives elsewhere, or not at all: Prometheus does at /api/v1/write, with --web.enable-remote-write-receiver)"},
		{413, "too big", false, "413 Request Entity Too Large: too big (raise its limit; a request has at most 2000 series)"},
		{429, "", true, "429 Too Many Requests (pushes were tried again until the time was up; raise its limit)"},
		{307, "", false, "307 Temporary Redirect"},
		{503, "", true, "503 Service Unavailable"},
	} {
		t.Run(http.StatusText(test.status), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			again := 0
			to := receiver(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if r.Header.Get("Retry-Attempt") != "" {
					again++
				}
				w.Header().Set("Retry-After", "-5")
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(test.status)
				_, err := w.Write([]byte(test.body))
				require.NoError(t, err)
			})
			var said notes
			p := push.Start(to, counting(), said.add)
			if !test.again {
				said.await(t, "does not accept the figures: "+test.words)
			}
			p.Close(t.Context())
			said.await(t, "the last figures did not reach "+to.String()+": "+test.words)
			require.NotContains(t, said.text, "never-to-be-seen")
			require.Less(t, len(said.text), 2000)
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, test.again, again > 0)
		})
	}
}

// TestEndlessAnswers are not read to their end, whether head or body.
func TestEndlessAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ begins, goesOn, words string }{
		{"HTTP/1.1 200 OK\r\n", "X-Long: " + strings.Repeat("x", 1000) + "\r\n", "server response headers exceeded 65536 bytes"},
		{"HTTP/1.1 400 Bad Request\r\n\r\nno", strings.Repeat(" never", 1000), "400 Bad Request: no never"},
	} {
		wrote := make(chan int, 100)
		addr := servertest.Serve(t, nil, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4096)) // of the request
			all, err := io.WriteString(conn, c.begins)
			for n := 0; err == nil; all += n {
				n, err = io.WriteString(conn, c.goesOn)
			}
			wrote <- all // the pusher has ended it
		})
		to, err := push.NewReceiver("http://" + addr + "/api/v1/write")
		require.NoError(t, err)
		var said notes
		p := push.Start(to, counting(), said.add)
		said.await(t, c.words)
		require.Less(t, <-wrote, 32<<20, "what sockets hold")
		p.Close(t.Context())
	}
}

// TestTriedAgain: a receiver that is busy at first takes what is sent again, which needs no note.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	to := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Retry-Attempt") == "" {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	p := push.Start(to, counting(), func(note string) { t.Error(note) })
	p.Close(t.Context())
}

// TestReceiverThatIsDown is noted once however many pushes fail.
func TestReceiverThatIsDown(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(nil)
	s.Close()
	to, err := push.NewReceiver(s.URL + "/w")
	require.NoError(t, err)
	var said notes
	push.Start(to, counting(), said.add).Close(t.Context())
	require.Regexp(t, `^the last figures did not reach http://127.0.0.1:\d+/w: dial tcp .*: connect: connection refused; the result has them all\n$`, said.text)
}

// TestWhoPushes: the receiver is shown the token and the headers, over TLS if its CA is known.
func TestWhoPushes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got http.Header
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = r.Header
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	to, err := push.NewReceiver(s.URL + "/api/v1/push")
	require.NoError(t, err)
	var said notes
	push.Start(to, counting(), said.add).Close(t.Context())
	require.Contains(t, said.text, "certificate signed by unknown authority")
	to.CAs = x509.NewCertPool()
	to.CAs.AddCert(s.Certificate())
	to.Token = "secret"
	require.NoError(t, to.Header("x-scope-orgid: team"))
	require.NoError(t, to.Check())
	push.Start(to, counting(), func(note string) { t.Error(note) }).Close(t.Context())
	mu.Lock()
	defer mu.Unlock()
	for name, want := range map[string]string{
		"Authorization": "Bearer secret", "X-Scope-Orgid": "team", "X-Prometheus-Remote-Write-Version": "0.1.0",
		"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf",
	} {
		require.Equal(t, want, got.Get(name), name)
	}
}

// TestHostileLabels has a Prometheus store, in several requests, labels with whatever UTF-8 holds.
func TestHostileLabels(t *testing.T) {
	t.Parallel()
	db, _ := servertest.RemoteWrite(t)
	to, err := push.NewReceiver("http://" + db.Addr + "/api/v1/write")
	require.NoError(t, err)
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "g"}, []string{"Zone", "name"})
	hostile := []string{"", "\"}\n# HELP g\\", "\u202e \x00\x1b[2J", strings.Repeat("é", 2000)}
	for i, name := range hostile {
		gauge.WithLabelValues("z", name).Set(float64(i))
	}
	many := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "many"}, []string{"n"})
	for i := range 4500 {
		many.WithLabelValues(strconv.Itoa(i)).Set(1)
	}
	r := prometheus.NewRegistry()
	r.MustRegister(gauge, many)
	push.Start(to, r, func(note string) { t.Error(note) }).Close(t.Context())
	got := map[string]string{}
	for _, s := range ask(t, db.Addr, "g") {
		require.Equal(t, "loadgen", s.Metric["job"])
		require.Equal(t, "z", s.Metric["Zone"])
		got[s.Metric["name"]] = s.Value[1].(string)
	}
	require.Equal(t, map[string]string{hostile[0]: "0", hostile[1]: "1", hostile[2]: "2", hostile[3]: "3"}, got)
	require.Equal(t, "4500", ask(t, db.Addr, "sum(many)")[0].Value[1])
}

// stored is a series of an answer.
type stored struct {
	Metric map[string]string
	Value  [2]any
}

// ask has a Prometheus answer a query.
func ask(t *testing.T, addr, expr string) []stored {
	t.Helper()
	response, err := http.Get("http://" + addr + "/api/v1/query?" + url.Values{"query": {expr}}.Encode())
	require.NoError(t, err)
	defer response.Body.Close()
	var answer struct{ Data struct{ Result []stored } }
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer.Data.Result
}
