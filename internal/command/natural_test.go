package command_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// secureServer is a web server that shows a certificate.
func secureServer(t *testing.T, shows servertest.Certificate, http2 bool, serve http.HandlerFunc) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(shows.Cert, shows.Key)
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(serve)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// TestNaturalMistakes says where each mistake is, and what to write instead.
func TestNaturalMistakes(t *testing.T) {
	t.Parallel()
	a, dir := servertest.NewAuthority(t), t.TempDir()
	plain := servertest.Redis(t)
	ok := func(http.ResponseWriter, *http.Request) {}
	nameless, stranger := secureServer(t, a.Issue("", time.Hour), false, ok), secureServer(t, a.Issue("127.0.0.1", time.Hour), false, ok)
	field := strings.Replace(strings.Replace(briefly, `{ driver = "null" }`, "{\ndriver = \"redis\"\nendpoints = [\"127.0.0.1:1\"]\nop \"put\" {\nrequest {\ncommand = [\"SET\", \"{key}\", \"{field.x}\"]\nbody = 1\n}\n}\n}", 1),
		"get = 1", "put = 1", 1)
	for name, text := range map[string]string{
		"run": briefly, "p99": briefly + "assert \"quick\" {\n\tthat = phase.p.op.get.p99 < duration(\"5ms\")\n}", "field": field,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".hcl"), []byte(text), 0o600))
	}
	runs := filepath.Join(dir, "runs")
	for range 2 {
		require.Zero(t, start(t, command(t, "run", dir+"/run.hcl", "--runs", runs)).wait(time.Minute))
	}
	made, err := os.ReadDir(runs)
	require.NoError(t, err)
	var ends []string
	for _, d := range made {
		if at := strings.LastIndexByte(d.Name(), '-'); d.IsDir() && at > 0 {
			ends = append(ends, d.Name()[at+1:])
		}
	}
	require.Len(t, ends, 2)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"redis://:hush@" + plain, 2, "this looks like a server's address, not like a command: write loadgen bench URL, or loadgen capacity URL"},
		{"run redis://" + plain, 2, "loadgen capacity or bench takes it"},
		{"bench " + plain + " --rate 10000", 2, `--rate "10000": write how many per which time, such as 10k/s`},
		{"bench " + plain + " --size 200", 2, `--size: "200" has no unit; write "200B"`},
		{"bench rediss://" + plain, 6, "it seems to be Redis that answers there: write redis://"},
		{"bench postgres://u@" + plain + "/d", 6, "it seems to be Redis that answers there: write redis://"},
		{"bench memcached://" + plain, 6, "it seems to be Redis that answers there: write redis://"},
		{"bench http://" + plain, 6, "GET /: unexpected EOF: it seems to be Redis that answers there: write redis://"},
		{"plan check " + dir + "/p99.hcl", 2, `p99.hcl:15: assert "quick": phase.p.op.get has no "p99". Write response.p99.`},
		{"bench -X POST http://" + plain, 2, "'X' in -X: write --method"},
		{"bench -k https://" + plain, 2, "'k' in -k: write --insecure"},
		{"bench -a hush " + plain, 2, "'a' in -a: set LOADGEN_SECRET_TARGET in the environment, or write --password-file FILE"},
		{"bench --host 127.0.0.1", 2, "--host: write the address as it is, such as 127.0.0.1:6379 or redis://127.0.0.1:6379"},
		{"run -X x.hcl", 2, `'X' in -X: that is in the plan: write method = "POST" in the request`},
		{"bench " + plain + " --method PUT", 2, "--method and --body are for http:// and https://"},
		{"bench http://" + plain + " --method get --body x", 2, "--body: a GET has none: write --method POST"},
		{"bench " + plain + " --insecure", 2, "--insecure is for rediss:// and https://"},
		{"bench " + plain + " --http2", 2, "--http2 is for http:// and https://"},
		{"bench " + stranger + " --http2 --insecure", 6, "it does not speak h2 at this port: turn that on there, or leave --http2 out"},
		{"bench " + strings.Replace(stranger, "https", "http", 1) + " --http2", 6, "or needs TLS: leave --http2 out, or write https://"},
		{"bench " + nameless + " --ca " + a.CA, 6, "the certificate names no host: issue one with a subjectAltName, or, where nobody can pose as the server, write --insecure"},
		{"bench " + stranger, 6, "write the path of its authority's certificate: --ca PATH"},
		{fmt.Sprintf("runs compare %s..%[1]s %s --runs %s", ends[0], ends[1], runs), 0, ends[1]},
		{"explain runqueue", 2, "Did you mean run_queue?"},
		{"plan check " + dir + "/field.hcl", 2, `An argument named "body" is not expected here`},
		{"plan check " + dir + "/field.hcl", 2, `op "put" takes {field.x}, which dataset "d" does not have. Write record = { x = "lorem(4)" } in the values of dataset "d"`},
	} {
		p := start(t, command(t, strings.Fields(c.args)...))
		require.Equal(t, c.code, p.wait(time.Minute), "%s: %s", c.args, &p.stderr)
		said := p.stdout.String() + p.stderr.String()
		require.Contains(t, said, c.want, c.args)
		require.NotContains(t, said, "says otherwise")
		require.NotContains(t, said, "hush", c.args)
	}
}

// TestBenchSendsABody by its method, over TLS that nobody verifies, which the result says.
func TestBenchSendsABody(t *testing.T) {
	t.Parallel()
	const body = `{"sku": "${a}", "n": [{}]}`
	var wrong atomic.Uint64
	var wants atomic.Int64 // the version
	address := secureServer(t, servertest.NewAuthority(t).Issue("elsewhere.example.org", time.Hour), true, func(_ http.ResponseWriter, r *http.Request) {
		if got, err := io.ReadAll(r.Body); r.URL.Path == "/orders" && (err != nil || string(got) != body || r.Method != "PUT" || wants.Load() != int64(r.ProtoMajor)) {
			wrong.Add(1)
		}
	})
	file := filepath.Join(t.TempDir(), "order.json")
	require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
	for version, flags := range map[int64][]string{1: nil, 2: {"--pipeline", "4", "--http2"}} {
		wants.Store(version)
		r, p := quick(t, append([]string{"bench", address + "/orders", "--method", "put", "--body", "@" + file, "--insecure", "--sessions", "2", "--duration", "300ms"}, flags...)...)
		require.Zero(t, wrong.Load(), "%s", &p.stderr)
		require.Positive(t, r.Phase["bench"].Op["page"].OK)
		require.Contains(t, p.stdout.String(), "target server: certificates were not verified")
		for _, facts := range r.Environment.Servers["server"] {
			require.Contains(t, facts["tls"], ", certificate not verified")
		}
	}
}
