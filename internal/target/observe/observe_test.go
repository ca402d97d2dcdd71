package observe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/internal/target/observe"
	"github.com/loadgen/loadgen/pkg/plan"
)

// probe makes the probe of an observe block named x, of the target t at the endpoints.
func probe(t *testing.T, driver, endpoints, block string) observe.Probe {
	t.Helper()
	return probeOf(t, planOf(driver, endpoints, block))
}

// planOf returns a plan whose target has further attributes.
func planOf(driver, endpoints, block string, further ...string) string {
	return fmt.Sprintf(`
plan "p" {}
target "t" {
	driver    = %q
	endpoints = [%s]
	%s
}
dataset "d" {
	keys { count = 1 }
	values { size = 1 }
}
phase "fill" {
	target  = target.t
	dataset = dataset.d
	populate {}
}
observe "x" {
	%s
}`, driver, endpoints, strings.Join(further, "\n"), block)
}

func probeOf(t *testing.T, text string) observe.Probe {
	t.Helper()
	return probeBy(t, means, text)
}

var means = observe.Means{
	Drivers: drivers.All(), Dial: dial,
	Secrets: func(string) (string, error) { return "correct", nil },
	Hook: func(_ context.Context, name string) (string, error) {
		if name == "fails" {
			return "", errors.New("exit status 3")
		}
		return "live_bytes 12\nratio=0.5\nwords: three\n\n# a remark\n", nil
	},
}

func probeBy(t *testing.T, means observe.Means, text string) observe.Probe {
	t.Helper()
	file, diags := plan.Parse([]byte(text), "plan.hcl", drivers.All())
	require.Empty(t, diags)
	p, diags := file.Resolve(plan.Vars{})
	require.Empty(t, diags)
	o := p.Observes[0]
	target := p.Target(o.Target)
	var endpoints []string
	if target != nil {
		endpoints = target.Endpoints
	}
	made := means.New(o, target, endpoints)
	t.Cleanup(made.Close)
	return made
}

// take takes a probe, which has more time for it than any machine needs.
func take(t *testing.T, p observe.Probe) (value map[string]float64, missing map[string]string) {
	t.Helper()
	return takeWithin(t, p, time.Minute)
}

// takeWithin takes a probe within a time.
func takeWithin(t *testing.T, p observe.Probe, within time.Duration) (value map[string]float64, missing map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return p.Take(ctx)
}

// talk says something to a server and reads an answer.
func talk(t *testing.T, addr, words string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte(words))
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1000))
	require.NoError(t, err)
}

func TestRedis(t *testing.T) {
	s := servertest.StartRedis(t)
	p := probe(t, "redis", fmt.Sprintf("%q", s.Addr), `server { target = target.t }`)
	before, missing := take(t, p)
	require.Empty(t, missing)
	require.Len(t, before, 13)
	for range 100 {
		talk(t, s.Addr, "GET nothing\r\n")
	}
	after, missing := take(t, p)
	require.Empty(t, missing)
	require.InDelta(t, 100, after["keyspace_misses"]-before["keyspace_misses"], 0)
	require.GreaterOrEqual(t, after["total_commands_processed"]-before["total_commands_processed"], 100.0)
	require.Greater(t, after["used_memory"], 500e3)
	require.Equal(t, s.Addr, p.Of())
}

func TestRedisFields(t *testing.T) {
	s := servertest.StartRedis(t)
	p := probe(t, "redis", fmt.Sprintf("%q", s.Addr), `server {
		target = target.t
		fields = ["cmdstat_set_calls", "cmdstat_set_usec", "cmdstat_get_calls", "db0_keys", "redis_version", "nothing"]
	}`)
	talk(t, s.Addr, "SET a 1\r\n")
	value, missing := take(t, p)
	require.InDelta(t, 1, value["cmdstat_set_calls"], 0)
	require.Greater(t, value["cmdstat_set_usec"], 0.0)
	require.Contains(t, value, "cmdstat_get_calls", "never called")
	require.InDelta(t, 0, value["cmdstat_get_calls"], 0)
	require.InDelta(t, 1, value["db0_keys"], 0)
	require.Equal(t, "the server does not tell it", missing["nothing"])
	require.Contains(t, missing["redis_version"], "no number")
}

// A restarted server answers the next probe.
func TestRedisRestarts(t *testing.T) {
	s := servertest.StartRedis(t)
	_, port, _ := net.SplitHostPort(s.Addr)
	p := probe(t, "redis", fmt.Sprintf("%q", s.Addr), `server { target = target.t }`)
	_, missing := take(t, p)
	require.Empty(t, missing)
	s.Kill()
	value, missing := take(t, p)
	require.Empty(t, value)
	require.Contains(t, missing[""], "connection refused")
	require.Contains(t, missing[""], s.Addr)
	servertest.StartRedis(t, "--port", port)
	_, missing = take(t, p)
	require.Empty(t, missing)
}

// A target that speaks TLS is asked over TLS, and one whose certificate is not signed is not trusted.
func TestTLS(t *testing.T) {
	a, other := servertest.NewAuthority(t), servertest.NewAuthority(t)
	s := servertest.StartRedisTLS(t, a, a.Issue("127.0.0.1", time.Hour), "--tls-auth-clients", "no")
	for ca, trusted := range map[string]bool{a.CA: true, other.CA: false} {
		p := probeOf(t, planOf("redis", strconv.Quote(s.Addr), `server { target = target.t }`, fmt.Sprintf(`tls { ca = %q }`, ca)))
		value, missing := take(t, p)
		if trusted {
			require.Empty(t, missing)
			require.Greater(t, value["used_memory"], 0.0)
			continue
		}
		require.Empty(t, value)
		require.Contains(t, missing[""], "write the path of its authority's certificate")
	}
}

// Passwords are those of the target, and appear in no reason.
func TestRedisPassword(t *testing.T) {
	for password, want := range map[string]string{"correct": "", "other": "WRONGPASS"} {
		s := servertest.StartRedis(t, "--requirepass", password)
		p := probeOf(t, planOf("redis", strconv.Quote(s.Addr), `server { target = target.t }`, `password = secret("PW")`))
		value, missing := take(t, p)
		if want == "" {
			require.Empty(t, missing)
			continue
		}
		require.Empty(t, value)
		require.Contains(t, missing[""], want)
		require.NotContains(t, missing[""], "correct")
	}
}

func TestMemcached(t *testing.T) {
	a, b := servertest.StartMemcached(t), servertest.StartMemcached(t)
	p := probe(t, "memcached", fmt.Sprintf("%q, %q", a.Addr, b.Addr), `server { target = target.t }`)
	before, missing := take(t, p)
	require.Empty(t, missing)
	require.InDelta(t, 2*64<<20, before["limit_maxbytes"], 0, "of both")
	talk(t, a.Addr, "get nothing\r\n")
	talk(t, b.Addr, "get nothing\r\n")
	after, missing := take(t, p)
	require.Empty(t, missing)
	require.InDelta(t, 2, after["get_misses"]-before["get_misses"], 0)
	b.Kill()
	value, missing := take(t, p)
	require.Empty(t, value, "a sum with one of them missing is none")
	require.Contains(t, missing[""], b.Addr)
}

// saying is a server that answers a ping, and everything else with the same words; without words, it hangs up.
func saying(t *testing.T, words string) (addr string) {
	return servertest.Serve(t, nil, func(conn net.Conn) {
		for b := make([]byte, 1000); ; {
			n, err := conn.Read(b)
			if err != nil || words == "" {
				return
			}
			answer := words
			if strings.Contains(string(b[:n]), "PING") {
				answer = "+PONG\r\n"
			}
			if _, err := io.WriteString(conn, answer); err != nil {
				return
			}
		}
	})
}

// The figures of a target's servers are combined as the plan says, each server once, however many names lead to it.
func TestFiguresAreCombined(t *testing.T) {
	info := func(memory string) string { return strings.Repeat("$13\r\nused_memory:"+memory+"\r\n", 2) }
	five, seven := saying(t, info("5")), saying(t, info("7"))
	endpoints := fmt.Sprintf("%q, %q", five, seven)
	for how, want := range map[string]float64{"sum": 12, "mean": 6, "min": 5, "max": 7} {
		one := means
		block := fmt.Sprintf(`server {
			target  = target.t
			fields  = ["used_memory"]
			combine = %q
		}`, how)
		for _, same := range []bool{false, true} {
			if same {
				want = 5
				one.Same = func(endpoints []string, facts map[string]map[string]string) [][]string {
					require.Equal(t, five, facts[five]["address"])
					return [][]string{endpoints}
				}
			}
			value, missing := take(t, probeBy(t, one, planOf("redis", endpoints, block)))
			require.Empty(t, missing)
			require.Equal(t, map[string]float64{"used_memory": want}, value, how)
		}
	}
	for words, says := range map[string]string{
		"":        "server closed the connection",
		"+OK\r\n": `INFO: want a text, server says "OK"`,
		"$9999999\r\n" + strings.Repeat("x", 5<<20): "reply goes on beyond 4194304 bytes",
	} {
		value, missing := take(t, probe(t, "redis", fmt.Sprintf("%q", saying(t, words)), "server { target = target.t }"))
		require.Empty(t, value)
		require.Contains(t, missing[""], says)
	}
}

// A server that accepts connections and says nothing costs a probe its timeout.
func TestSilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	p := probe(t, "redis", fmt.Sprintf("%q", l.Addr()), `server { target = target.t }`)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	value, missing := p.Take(ctx)
	require.Empty(t, value)
	require.Contains(t, missing[""], "no answer in time")
}

func TestProcessByPort(t *testing.T) {
	s := servertest.StartRedis(t)
	_, port, _ := net.SplitHostPort(s.Addr)
	for _, block := range []string{"process { target = target.t }", "process { port = " + port + " }"} {
		p := probe(t, "redis", fmt.Sprintf("%q", s.Addr), block)
		before, missing := take(t, p)
		require.Empty(t, missing)
		require.Len(t, before, len((&plan.Observe{Kind: plan.ObserveProcess}).UsualFields()))
		require.Greater(t, before["rss_bytes"], 1e6)
		require.GreaterOrEqual(t, before["threads"], 1.0)
		talk(t, s.Addr, "DEBUG SLEEP 0\r\n")
		talk(t, s.Addr, `EVAL "local x = 0 for i = 1, 2e7 do x = x + i end return x" 0`+"\r\n")
		after, missing := take(t, p)
		require.Empty(t, missing)
		require.Greater(t, after["cpu_seconds"]-before["cpu_seconds"], 0.02, "a script that computes")
		require.InDelta(t, after["cpu_user_seconds"]+after["cpu_system_seconds"], after["cpu_seconds"], 1e-9)
	}
	s.Kill()
	p := probe(t, "redis", fmt.Sprintf("%q", s.Addr), "process { target = target.t }")
	value, missing := take(t, p)
	require.Empty(t, value)
	require.Equal(t, "nobody listens on "+s.Addr+" on this machine", missing[""])
}

// TestProcessInAControlGroup has a server in loadgen's own control group, and in another.
func TestProcessInAControlGroup(t *testing.T) {
	s := servertest.StartRedis(t)
	p := probe(t, "redis", fmt.Sprintf("%q", s.Addr), "process {\n target = target.t\n fields = [\"cgroup_bytes\"]\n}")
	root, sum := "/sys/fs/cgroup/memory", "memory.usage_in_bytes" // version 1
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		root, sum = "/sys/fs/cgroup", "memory.current"
	}
	dir := filepath.Join(root, fmt.Sprintf("loadgen-test-observe-%d", os.Getpid()))
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		t.Cleanup(func() {
			s.Kill()
			require.Eventually(t, func() bool { return os.Remove(dir) == nil }, 10*time.Second, 10*time.Millisecond)
		})
		_, err = os.Stat(filepath.Join(dir, sum))
	}
	servertest.Require(t, "memory-cgroup", err)
	value, missing := take(t, p)
	require.Empty(t, value)
	require.Contains(t, missing["cgroup_bytes"], "loadgen is in its control group, too (/")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(s.Pid())), 0o600))
	before, missing := take(t, p)
	require.Empty(t, missing)
	talk(t, s.Addr, "SETBIT k 160000000 1\r\n") // 20 MB
	after, missing := take(t, p)
	require.Empty(t, missing)
	require.Greater(t, after["cgroup_bytes"]-before["cgroup_bytes"], 19e6)
}

// Two endpoints of one process count as one process; those of two processes are summed.
func TestProcessesOfATarget(t *testing.T) {
	here, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer here.Close()
	again, err := net.Listen("tcp", "[::1]:0")
	require.NoError(t, err)
	defer again.Close()
	p := probe(t, "redis", fmt.Sprintf("%q, %q", here.Addr(), again.Addr()), "process { target = target.t }")
	one, missing := take(t, p)
	require.Empty(t, missing)
	self := probe(t, "null", `"a"`, fmt.Sprintf("process { pid = %d }", os.Getpid()))
	own, missing := take(t, self)
	require.Empty(t, missing)
	require.InEpsilon(t, own["rss_bytes"], one["rss_bytes"], 0.2)

	s := servertest.StartRedis(t)
	both, missing := take(t, probe(t, "redis", fmt.Sprintf("%q, %q", here.Addr(), s.Addr), "process { target = target.t }"))
	require.Empty(t, missing)
	require.Greater(t, both["rss_bytes"], 1.02*own["rss_bytes"])
}

// A process that listens on all addresses is found by each of them.
func TestProcessOnAllAddresses(t *testing.T) {
	all, err := net.Listen("tcp4", "0.0.0.0:0")
	require.NoError(t, err)
	defer all.Close()
	port := all.Addr().(*net.TCPAddr).Port
	p := probe(t, "redis", fmt.Sprintf(`"127.0.0.1:%d", "127.0.0.2:%d"`, port, port), "process { target = target.t }")
	value, missing := take(t, p)
	require.Empty(t, missing)
	require.Greater(t, value["rss_bytes"], 1e6)
}

// A process that listens on a socket is found by its path.
func TestProcessOnASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	p := probe(t, "redis", fmt.Sprintf("%q", "unix://"+path), "process { target = target.t }")
	require.Equal(t, "who listens on unix://"+path, p.Of())
	value, missing := take(t, p)
	require.Empty(t, missing)
	require.Greater(t, value["rss_bytes"], 1e6)
	_, missing = take(t, probe(t, "redis", fmt.Sprintf("%q", "unix://"+path+"x"), "process { target = target.t }"))
	require.Equal(t, "nobody listens on unix://"+path+"x on this machine", missing[""])
}

func TestProcessElsewhere(t *testing.T) {
	value, missing := take(t, probe(t, "redis", `"192.0.2.1:6379"`, "process { target = target.t }"))
	require.Empty(t, value)
	require.Equal(t, "192.0.2.1:6379 is not on this machine, and a process can be observed only where the coordinator runs", missing[""])
	p := probe(t, "null", `"a"`, "process { pid = 4194304 }")
	require.Equal(t, "process 4194304", p.Of())
	value, missing = take(t, p)
	require.Empty(t, value)
	require.Equal(t, "there is no process 4194304 on this machine", missing[""])
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	p := probe(t, "null", `"a"`, fmt.Sprintf("directory { path = %q }", dir))
	before, missing := take(t, p)
	require.Empty(t, missing)
	require.Zero(t, before["files"])
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "a"), make([]byte, 100_000), 0o644))
	require.NoError(t, os.Link(filepath.Join(dir, "sub", "a"), filepath.Join(dir, "b")))
	require.NoError(t, os.Symlink("/", filepath.Join(dir, "root")))
	after, missing := take(t, p)
	require.Empty(t, missing)
	require.InDelta(t, 1, after["files"], 0, "a hard link is the same file")
	require.InDelta(t, 100_000, after["size_bytes"], 0)
	require.GreaterOrEqual(t, after["used_bytes"]-before["used_bytes"], 100_000.0)
	require.Less(t, after["used_bytes"]-before["used_bytes"], 200_000.0)
	require.Greater(t, after["free_bytes"], 0.0)

	value, missing := take(t, probe(t, "null", `"a"`, `directory { path = "/nowhere/at/all" }`))
	require.Empty(t, value)
	require.Contains(t, missing[""], "no such file or directory")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	value, missing = p.Take(ctx)
	require.Contains(t, value, "free_bytes")
	require.Contains(t, missing["files"], "no end in time")
}

const page = `# HELP rpc_total Calls.
# TYPE rpc_total counter
rpc_total{code="5",zone="a"} 3 1395066363000
rpc_total { zone = "b" , code="5" } 4
rpc_total{code="2",zone="}"} 8.5e1 # {trace_id="}"} 1 1520879607.789
rpc_total_more 7
heap_bytes 1.5e9
empty NaN
words{text="a \"quote\" and \\ and \n"} +Inf
`

func TestPrometheusFormat(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			_, _ = w.Write([]byte(page))
		case "/away":
			http.Redirect(w, r, "/metrics", http.StatusFound)
		default:
			_, _ = w.Write([]byte("rpc_total{code=\"5\" 3\nheap_bytes 1.5e9\n"))
		}
	}))
	defer server.Close()
	block := func(path string) string {
		return `prometheus {
		url    = "` + server.URL + path + `"
		series = {
			all    = "rpc_total"
			fives  = "rpc_total{code=\"5\"}"
			a      = "rpc_total{zone=\"a\",code=\"5\"}"
			odd    = "rpc_total{zone=\"}\"}"
			heap   = "heap_bytes"
			none   = "rpc_total{code=\"9\"}"
			empty  = "empty"
			words  = "words{text=\"a \\\"quote\\\" and \\\\ and \\n\"}"
		}
	}`
	}
	value, missing := take(t, probe(t, "null", `"a"`, block("/metrics")))
	require.Equal(t, map[string]float64{"all": 92, "fives": 7, "a": 3, "odd": 85, "heap": 1.5e9}, value)
	require.Equal(t, map[string]string{"none": `there is no series rpc_total{code="9"}`, "empty": "it is NaN", "words": "it is +Inf"}, missing)

	_, missing = take(t, probe(t, "null", `"a"`, block("/away")))
	require.Equal(t, "the endpoint says 302 Found", missing["heap"])
	require.Empty(t, missing[""], "it was reached")
	value, missing = take(t, probe(t, "null", `"a"`, block("/torn")))
	require.Equal(t, map[string]float64{"heap": 1.5e9}, value)
	require.Contains(t, missing["all"], "labels without an end")
	server.Close()
	_, missing = take(t, probe(t, "null", `"a"`, block("/metrics")))
	require.Contains(t, missing[""], "connection refused")
}

// A real Prometheus shows its own figures.
func TestPrometheus(t *testing.T) {
	config := filepath.Join(t.TempDir(), "prometheus.yml")
	require.NoError(t, os.WriteFile(config, []byte("global: {}\n"), 0o644))
	addr := servertest.Prometheus(t, config)
	p := probe(t, "null", `"a"`, `prometheus {
		url    = "http://`+addr+`/metrics"
		series = {
			rss      = "process_resident_memory_bytes"
			requests = "prometheus_http_requests_total{code=\"200\"}"
		}
	}`)
	first, missing := take(t, p)
	require.Empty(t, missing)
	require.Greater(t, first["rss"], 1e6)
	second, missing := take(t, p)
	require.Empty(t, missing)
	require.Greater(t, second["requests"], first["requests"], "the first probe was one")
}

func TestHook(t *testing.T) {
	block := `hook {
		run    = hook.NAME
		fields = ["live_bytes", "ratio", "words", "more"]
	}`
	value, missing := take(t, probe(t, "null", `"a"`, strings.Replace(block, "NAME", "prints", 1)))
	require.Equal(t, map[string]float64{"live_bytes": 12, "ratio": 0.5}, value)
	require.Equal(t, map[string]string{"words": `it is "three", no number`, "more": "the command did not print it"}, missing)
	value, missing = take(t, probe(t, "null", `"a"`, strings.Replace(block, "NAME", "fails", 1)))
	require.Empty(t, value)
	require.Equal(t, "exit status 3", missing[""])
}

// dial connects as the load does, with files of this process' user.
func dial(ctx context.Context, t *plan.Target, endpoint string) (net.Conn, error) {
	return engine.Dial(ctx, t, endpoint, func(path string) (engine.File, error) { return os.Open(path) }, nil)
}
