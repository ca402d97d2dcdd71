package engine

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/faultproxy"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
)

func webPlan(endpoint, target, size, load string) string {
	return fmt.Sprintf(`
		target "t" {
			driver    = "web"
			endpoints = [%q]
			timeout   = "30s" # a server that is slow for once has still carried out what it says
			%s
		}
		dataset "d" {
			keys { count = 50 }
			values { size = %q }
		}
		phase "load" {
			target      = target.t
			dataset     = dataset.d
			ops = {
				get    = 2
				put    = 2
				delete = 1
			}
			max_bad     = 1
			expect_hits = 0
			%s
		}`, endpoint, target, size, load)
}

// webCounts compares the ledgers of a load that no fault has disturbed with the server's log.
func webCounts(t *testing.T, s *servertest.WebServer, final *worker.Final) {
	t.Helper()
	var sent uint64
	for _, v := range []driver.Verb{driver.Get, driver.Put, driver.Delete} {
		sent += final.Totals.Request(0, v).Sent
	}
	counts := s.Counts(int(sent))
	for v, statuses := range map[driver.Verb][2][]string{
		driver.Get:    {{"GET 200"}, {"GET 404"}},
		driver.Put:    {{"PUT 201", "PUT 204"}, nil},
		driver.Delete: {{"DELETE 204"}, {"DELETE 404"}},
	} {
		sum := func(statuses []string) (n int) {
			for _, s := range statuses {
				n += counts[s]
			}
			return n
		}
		o, r := final.Totals.Ops[v], final.Totals.Request(0, v)
		require.EqualValues(t, sum(statuses[0]), o.Outcomes[driver.OK], "%v: %v", v, counts)
		require.EqualValues(t, sum(statuses[1]), o.Outcomes[driver.Miss], "%v: %v", v, counts)
		require.EqualValues(t, r.Sent, sum(statuses[0])+sum(statuses[1]), "%v: %v", v, counts)
		require.Equal(t, r.Sent, r.Answered)
		require.Positive(t, r.Sent)
	}
}

// TestWebAgainstNginx compares the ledgers with a real server's own counts, over TCP, TLS, connections that it closes after each 20 requests, with
// large bodies and at a rate.
func TestWebAgainstNginx(t *testing.T) {
	a := servertest.NewAuthority(t)
	shows := a.Issue("127.0.0.1", time.Hour)
	const closed = "closed {\n sessions = 2\n pipeline = 2\n iterations = 150\n}"
	const streams = "closed {\n sessions = 2\n pipeline = 8\n iterations = 600\n}"
	for _, c := range []struct {
		name, driver, target, size, load string
		requests                         int
		secure                           bool
	}{
		{name: "plain", size: "200B", load: closed},
		{name: "closing", size: "200B", load: closed, requests: 20},
		{name: "TLS", size: "200B", load: closed, secure: true},
		{name: "1 MiB", size: "1MiB", load: "closed {\n sessions = 2\n iterations = 50\n}"},
		{name: "open", size: "200B", load: "open {\n rate = 2000\n duration = \"1s\"\n sessions = 8\n}"},
		{name: "h2", driver: "http2", size: "200B", load: streams},
		{name: "h2, closing", driver: "http2", size: "200B", load: streams, requests: 20},
		{name: "h2, TLS", driver: "http2", size: "200B", load: streams, secure: true},
		{name: "h2, TLS, closing", driver: "http2", size: "200B", load: streams, secure: true, requests: 20},
		{name: "h2, 1 MiB", driver: "http2", size: "1MiB", load: "closed {\n sessions = 2\n pipeline = 4\n iterations = 16\n}"},
		{name: "h2, open", driver: "http2", size: "200B", load: "open {\n rate = 2000\n duration = \"1s\"\n sessions = 8\n}", requests: 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			var certificate *servertest.Certificate
			if c.secure {
				certificate = &shows
				c.target = fmt.Sprintf("tls {\n ca = %q\n}", a.CA)
			}
			var also []string
			if c.driver = cmp.Or(c.driver, "web"); c.driver == "http2" {
				also = []string{"http2"}
			}
			s := servertest.Nginx(t, c.requests, certificate, also...)
			ready, final, err := driveLines(t, Config{Loops: 1, Drivers: drivers.All(), Open: openAny}, strings.Replace(webPlan(s.Addr, c.target, c.size, c.load), `"web"`, strconv.Quote(c.driver), 1))
			require.NoError(t, err)
			require.Equal(t, "nginx", ready.Servers["t"][s.Addr]["server"])
			require.NotEmpty(t, ready.Servers["t"][s.Addr]["version"])
			webCounts(t, s, &final)
			require.Equal(t, c.requests > 0, final.Totals.Reconnects > 0)
			if strings.HasPrefix(c.load, "open") && c.size == "200B" {
				require.EqualValues(t, 2000, final.Totals.Ops[driver.Get].Due+final.Totals.Ops[driver.Put].Due+final.Totals.Ops[driver.Delete].Due)
				require.NotZero(t, final.Totals.Ops[driver.Get].Lag.Count(), "an open load shows how late its ops began")
			}
		})
	}
}

// TestWebConnectionsCutInMidRun has a network that resets connections: requests in flight fail, and the rest goes on over new connections.
func TestWebConnectionsCutInMidRun(t *testing.T) {
	t.Parallel()
	s := servertest.Nginx(t, 0, nil)
	proxy, err := faultproxy.Start(s.Addr)
	require.NoError(t, err)
	defer proxy.Close()
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		s.Counts(200) // requests, of all sessions: the load is under way
		proxy.Reset()
	}()
	_, final, err := driveLines(t, Config{Loops: 1, Drivers: drivers.All()}, webPlan(proxy.Addr(), "", "200B", "closed {\n sessions = 4\n iterations = 500\n think = \"5ms\"\n}"))
	<-cut
	require.NoError(t, err)
	for text := range final.Totals.Errors.All() {
		require.NotContains(t, text, "->", "our port is another for each connection")
	}
	require.Positive(t, final.Totals.Reconnects)
	require.LessOrEqual(t, final.Totals.Reconnects, uint64(4))
	failed, fine := uint64(0), uint64(0)
	for _, v := range []driver.Verb{driver.Get, driver.Put, driver.Delete} {
		failed += final.Totals.Ops[v].Outcomes[driver.Error]
		fine += final.Totals.Ops[v].Outcomes[driver.OK] + final.Totals.Ops[v].Outcomes[driver.Miss]
	}
	require.LessOrEqual(t, failed, uint64(8))
	require.Greater(t, fine, uint64(100))
}
