package examples

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/examples/etcd"
	"github.com/loadgen/loadgen/examples/mysql"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

// built is the directory of the programs that the tests run.
var built string

func TestMain(m *testing.M) {
	os.Exit(withPrograms(m))
}

func withPrograms(m *testing.M) int {
	var err error
	if built, err = os.MkdirTemp("", "loadgen-examples-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(built)
	for name, from := range map[string]string{"loadgen": "./loadgen", "stock": "github.com/loadgen/loadgen/cmd/loadgen"} {
		if out, err := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-w", "-o", filepath.Join(built, name), from).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}

// run runs a program of the tests and returns what it says and its exit code.
func run(t *testing.T, dir, program string, args ...string) (string, int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(built, program), args...)
	c.Dir, c.Env = dir, append(os.Environ(), "XDG_STATE_HOME="+dir)
	out, err := c.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit, "%s", out)
	}
	return string(out), c.ProcessState.ExitCode()
}

func TestDrivers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		driver driver.Driver
		start  func(testing.TB) *servertest.Server
	}{"etcd": {etcd.Driver{}, servertest.Etcd}, "mysql": {mysql.Driver{}, servertest.MariaDB}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.start(t)
			drivertest.Run(t, drivertest.Suite{Driver: c.driver, Dial: func() (net.Conn, error) { return net.Dial("tcp", s.Addr) }})
		})
	}
}

const ping = "*1\r\n$4\r\nPING\r\n"

// adapters start the adapters, by the names of their languages.
var adapters = map[string]func(t testing.TB) *servertest.Server{
	"python": func(t testing.TB) *servertest.Server {
		file := filepath.Join(t.TempDir(), "db")
		return servertest.Program(t, "python3", ping, func(port string) []string { return []string{"adapters/adapter.py", port, file} })
	},
	"node": func(t testing.TB) *servertest.Server {
		return servertest.Program(t, "node", ping, func(port string) []string { return []string{"adapters/adapter.mjs", port} })
	},
	"java": func(t testing.TB) *servertest.Server {
		return servertest.Program(t, "java", ping, func(port string) []string { return []string{"-XX:+UseSerialGC", "adapters/Adapter.java", port} })
	},
}

func TestAdaptersHaveNoFault(t *testing.T) {
	t.Parallel()
	for name, start := range adapters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, code := run(t, t.TempDir(), "stock", "adapter", "check", start(t).Addr)
			require.Zero(t, code, said)
			require.Regexp(t, `PING: p50 \S+s, p99 \S+s`, said)
		})
	}
}

// counts are a server's counts of gets, puts and deletes.
type counts [3]uint64

// matched returns the numbers that a pattern finds in a text for each of three names.
func matched(t *testing.T, text, pattern string, names ...string) (c counts) {
	t.Helper()
	for i, name := range names {
		for _, m := range regexp.MustCompile(fmt.Sprintf(pattern, name)).FindAllStringSubmatch(text, -1) {
			n, err := strconv.ParseUint(m[1], 10, 64)
			require.NoError(t, err)
			c[i] += n
		}
	}
	return c
}

func ofEtcd(t *testing.T, addr string) counts {
	r, err := http.Get("http://" + addr + "/metrics")
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return matched(t, string(text), `grpc_server_handled_total\{[^}]*grpc_method="%s"[^}]*\} (\d+)`, "Range", "Put", "DeleteRange")
}

func ofMariaDB(t *testing.T, addr string) counts {
	db, err := sql.Open("mysql", "root@tcp("+addr+")/")
	require.NoError(t, err)
	defer db.Close()
	var b bytes.Buffer
	for _, what := range []string{"Com_select", "Com_insert", "Com_delete"} {
		var name, n string
		require.NoError(t, db.QueryRow("show global status like '"+what+"'").Scan(&name, &n))
		fmt.Fprintf(&b, "%s=%s\n", name, n)
	}
	return matched(t, b.String(), `%s=(\d+)`, "Com_select", "Com_insert", "Com_delete")
}

func ofAdapter(t *testing.T, addr string) counts {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("*1\r\n$4\r\nINFO\r\n"))
	require.NoError(t, err)
	b := make([]byte, 4096)
	n, err := io.ReadAtLeast(conn, b, 100)
	require.NoError(t, err)
	return matched(t, string(b[:n]), `cmdstat_%s:calls=(\d+)`, "get", "set", "del")
}

// observed has a plan show what an adapter says of itself.
const observed = `observe "adapter" {
	server {
		target = target.t
		fields = ["cmdstat_get_calls", "cmdstat_get_usec"]
	}
}`

// TestBooksAreTheServers: what a run says it has done is what the server has counted, verb by verb.
func TestBooksAreTheServers(t *testing.T) {
	t.Parallel()
	type server struct {
		start  func(testing.TB) *servertest.Server
		driver string
		counts func(*testing.T, string) counts
	}
	all := map[string]server{"etcd": {servertest.Etcd, "etcd", ofEtcd}, "mysql": {servertest.MariaDB, "mysql", ofMariaDB}}
	for name, start := range adapters {
		all[name] = server{start, "redis", ofAdapter}
	}
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, addr := t.TempDir(), s.start(t).Addr
			before := s.counts(t, addr)
			text := fmt.Sprintf(`plan "books" {}
target "t" {
	driver    = %q
	endpoints = [%q]
}
%s
dataset "d" {
	keys { count = 100 }
	values { size = 100 }
}
phase "load" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 6, put = 3, delete = 1 }
	closed {
		sessions   = 4
		iterations = 2000
	}
}
`, s.driver, addr, map[string]string{"redis": observed}[s.driver])
			require.NoError(t, os.WriteFile(filepath.Join(dir, "books.hcl"), []byte(text), 0o600))
			said, _ := run(t, dir, "loadgen", "run", "books.hcl", "--out", "run.json", "--loops", "1")
			b, err := os.ReadFile(filepath.Join(dir, "run.json"))
			require.NoError(t, err, said)
			var result struct {
				Drivers map[string]string
				Phase   map[string]struct {
					Op      map[string]struct{ Due, OK, Miss uint64 }
					Observe map[string]map[string]struct{ Delta float64 }
				}
			}
			require.NoError(t, json.Unmarshal(b, &result))
			after := s.counts(t, addr)
			for i, verb := range []string{"get", "put", "delete"} {
				op := result.Phase["load"].Op[verb]
				require.NotZero(t, op.Due, said)
				require.Equal(t, op.Due, op.OK+op.Miss, said)
				require.Equal(t, op.Due, after[i]-before[i], "%s as the server has counted", verb)
			}
			if s.driver == "redis" {
				require.Empty(t, result.Drivers)
				told := result.Phase["load"].Observe["adapter"]
				require.EqualValues(t, result.Phase["load"].Op["get"].Due, told["cmdstat_get_calls"].Delta, "%s", b)
				require.Positive(t, told["cmdstat_get_usec"].Delta, "its own time is shown beside")
			} else {
				require.Regexp(t, `^github.com/loadgen/loadgen/examples@\S+ sha256:\w+$`, result.Drivers[s.driver])
			}
		})
	}
}

// TestCommandWithDrivers: the command knows its own drivers, wherever it names drivers, and what its fleets need of them.
func TestCommandWithDrivers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	said, code := run(t, dir, "loadgen", "version", "--json")
	require.Zero(t, code, said)
	require.Regexp(t, `"drivers":\{"etcd":"github.com/loadgen/loadgen/examples@`, said)
	require.Contains(t, said, `"module":"github.com/loadgen/loadgen"`)

	said, code = run(t, dir, "loadgen", "plan", "init", "--driver", "etcd", "first.hcl")
	require.Zero(t, code, said)
	said, code = run(t, dir, "loadgen", "plan", "check", "first.hcl")
	require.Zero(t, code, said)
	said, code = run(t, dir, "stock", "plan", "check", "first.hcl")
	require.Equal(t, 2, code)
	require.Contains(t, said, `unknown driver "etcd"`)
	require.Contains(t, said, "docs/drivers.md")

	coordinator := exec.CommandContext(t.Context(), filepath.Join(built, "loadgen"), "run", "first.hcl", "--workers", "1", "--wait", "10m")
	coordinator.Dir, coordinator.Env = dir, append(os.Environ(), "XDG_STATE_HOME="+dir)
	words, err := coordinator.StdoutPipe()
	require.NoError(t, err)
	coordinator.Stderr = coordinator.Stdout
	require.NoError(t, coordinator.Start())
	said, code = run(t, dir, "stock", "worker", "--name", "w1", "--once")
	require.Equal(t, 6, code, said)
	const refusal = `the plan uses driver "etcd", which the coordinator has from github.com/loadgen/loadgen/examples@`
	require.Contains(t, said, refusal)
	require.Contains(t, said, "and this worker does not have it: run the same program on both sides (docs/drivers.md)")
	lines := bufio.NewScanner(words)
	for lines.Scan() && !strings.Contains(lines.Text(), "refused") {
	}
	require.Contains(t, lines.Text(), "worker w1 was refused: "+refusal, "the coordinator says so at once, and waits on")
	require.NoError(t, coordinator.Process.Kill())
	require.Error(t, coordinator.Wait())
}
