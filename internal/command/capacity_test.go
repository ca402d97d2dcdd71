package command_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// quick runs capacity or bench, and returns its result.
func quick(t *testing.T, args ...string) (*run.Run, *process) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "run.json")
	l := &load{out: out, process: start(t, command(t, append(args, "--out", out)...))}
	return l.result(time.Minute), l.process
}

// A search on each kind of server finds a rate, and leaves nothing there.
func TestCapacityOfServers(t *testing.T) {
	redis := servertest.Redis(t)
	memcached := servertest.Memcached(t)
	postgres := servertest.Postgres(t)
	nginx := servertest.Nginx(t, 0, nil)
	for name, c := range map[string]struct {
		address string
		left    func(t *testing.T)
	}{
		"redis":     {"redis://" + redis, func(t *testing.T) { require.Zero(t, number(t, redis, "DBSIZE")) }},
		"memcached": {"memcached://" + memcached, nil},
		"postgres":  {strings.Replace(postgres, "postgresql://", "postgres://", 1), nil},
		"nginx":     {"http://" + nginx.Addr + "/stub_status", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"capacity", c.address, "--budget", "5s", "--slo", "p50=10s", "--keys", "1k", "--sessions", "8"}
			r, p := quick(t, args...)
			require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
			found := r.Phase["capacity"].Search
			require.Equal(t, "closed", r.Phase["capacity"].Levels[0].Outcome)
			require.NotNil(t, found.Rate, "%v", r.Phase["capacity"].Levels)
			require.NotEmpty(t, found.Ended)
			require.NotContains(t, p.stdout.String()+p.stderr.String(), servertest.PostgresPassword)
			require.Contains(t, p.stderr.String(), "It takes 5s")
			if name != "nginx" {
				require.Equal(t, uint64(1000), r.Phase["clean"].Op["delete"].OK, "keys deleted by name")
			}
			if c.left != nil {
				c.left(t)
			}
		})
	}
}

// One load, at a rate or of sessions, by the plan that --plan shows.
func TestBenchOfAServer(t *testing.T) {
	t.Parallel()
	addr := servertest.Redis(t, "--requirepass", "well-kept")
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("well-kept\n"), 0o600))
	shown := filepath.Join(t.TempDir(), "plan.hcl")
	r, p := quick(t, "bench", addr, "--rate", "500/s", "--duration", "1s", "--keys", "100", "--ops", "get=1,put=1", "--password-file", file, "--plan", shown)
	load := r.Phase["bench"]
	require.InEpsilon(t, 500, *load.OfferedRate, 0.25)
	require.Positive(t, load.Op["put"].OK)
	require.Equal(t, load.Op["get"].Due, load.Op["get"].OK, "every get finds its key")
	text, err := os.ReadFile(shown)
	require.NoError(t, err)
	require.Contains(t, string(text), `password  = secret("TARGET")`)
	require.NotContains(t, string(text)+p.stdout.String()+p.stderr.String(), "well-kept")

	r, _ = quick(t, "bench", "redis://:well-kept@"+addr, "--sessions", "3", "--duration", "300ms", "--keys", "100")
	require.Equal(t, 3, r.Phase["bench"].Load.Sessions)
	require.EqualValues(t, "closed", r.Phase["bench"].Model)
}

// One load on each kind of server, with and without TLS.
func TestBenchOfServers(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	shows := authority.Issue("127.0.0.1", time.Hour)
	for name, c := range map[string]struct{ address, op string }{
		"memcached":    {"memcached://" + servertest.Memcached(t), "get"},
		"postgres":     {servertest.Postgres(t), "get"},
		"nginx":        {"http://" + servertest.Nginx(t, 0, nil).Addr + "/stub_status?at=all", "page"},
		"nginx by TLS": {"https://" + servertest.Nginx(t, 0, &shows).Addr + "/stub_status", "page"},
		"redis by TLS": {"rediss://" + servertest.StartRedisTLS(t, authority, shows, "--tls-auth-clients", "no").Addr, "get"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"bench", c.address, "--sessions", "2", "--duration", "300ms", "--keys", "100"}
			if strings.HasSuffix(name, "TLS") {
				untrusted := start(t, command(t, args...))
				require.Equal(t, 6, untrusted.wait(30*time.Second), "%s", &untrusted.stderr)
				require.Contains(t, untrusted.stderr.String(), "certificate signed by unknown authority")
				args = append(args, "--ca", authority.CA)
			}
			r, p := quick(t, args...)
			require.Positive(t, r.Phase["bench"].Op[c.op].OK+r.Phase["bench"].Op[c.op].Miss, "%s", &p.stderr)
		})
	}
}

// A server that is too slow for the usual fill is filled with fewer ops in flight, and left empty.
func TestBenchOfASlowServer(t *testing.T) {
	t.Parallel()
	node := beginTarget(t, "--service", "6ms") // 256 in flight wait for 1.5 s, and time out after 1 s
	r, p := quick(t, "bench", node.addr, "--sessions", "2", "--duration", "300ms", "--keys", "300", "--ops", "get=1")
	require.Equal(t, run.Complete, r.Verdict.Completeness, "%s", &p.stderr)
	require.Contains(t, p.stderr.String(), "The fill timed out. It begins again, with fewer ops in flight.")
	require.NotContains(t, p.stdout.String(), "FAILED")
	require.Equal(t, uint64(300), r.Phase["clean"].Op["delete"].OK)
	require.Zero(t, number(t, node.addr, "DBSIZE"))
}

// The password of a server may be in the environment, in a file or in the URL: each gets as far as the keys of others.
func TestCapacityWithAPassword(t *testing.T) {
	t.Parallel()
	addr := servertest.Redis(t)
	require.Equal(t, "OK", ask(t, addr, "SET", "theirs", "1"))
	require.Equal(t, "OK", ask(t, addr, "CONFIG", "SET", "requirepass", "well-kept"))
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("well-kept\n"), 0o600))
	for name, c := range map[string]struct{ args, env []string }{
		"environment": {[]string{addr}, []string{"LOADGEN_SECRET_TARGET=well-kept"}},
		"file":        {[]string{addr, "--password-file", file}, nil},
		"URL":         {[]string{"redis://:well-kept@" + addr}, nil},
	} {
		cmd := command(t, append([]string{"capacity"}, c.args...)...)
		cmd.Env = append(cmd.Env, c.env...)
		p := start(t, cmd)
		require.Equal(t, 6, p.wait(30*time.Second), "%s: %s", name, &p.stderr)
		require.Contains(t, p.stderr.String(), "holds 1 key already", name)
		require.NotContains(t, p.stdout.String()+p.stderr.String(), "well-kept", name)
	}
}

// A server that is not there, that wants a password, or that should not be filled is refused within seconds, and nothing is written to it.
func TestServersThatAreNotLoaded(t *testing.T) {
	t.Parallel()
	primary := servertest.Redis(t)
	require.Equal(t, "OK", ask(t, primary, "SET", "theirs", "1"))
	host, port, _ := strings.Cut(primary, ":")
	replica := servertest.Redis(t, "--replicaof", host+" "+port)
	small := servertest.Redis(t, "--maxmemory", "3mb")
	locked := servertest.Redis(t, "--requirepass", "well-kept")
	silent, full := mute(t, false), mute(t, true)
	other := servertest.Serve(t, nil, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 100))
		_, _ = io.WriteString(conn, "ERROR\r\n")
	})
	empty := servertest.Serve(t, nil, func(conn net.Conn) { // as Infinispan
		for reply := "+PONG\r\n"; ; reply = strings.Repeat("$15\r\nused_memory:0\r\n\r\n", 2) {
			if _, err := conn.Read(make([]byte, 100)); err != nil {
				return
			}
			_, _ = io.WriteString(conn, reply)
		}
	})
	plain, indexed := servertest.StartIgnite(t), servertest.StartIgnite(t)
	indexed.Indexed = true
	for name, c := range map[string]struct{ args, want string }{
		"nobody is there":       {"capacity redis://127.0.0.1:1", "refused"},
		"no word":               {"capacity redis://" + silent, ": no answer in time\n"},
		"no page":               {"capacity http://" + silent + "/a%20page", "GET /a%20page: "},
		"no connection":         {"capacity redis://" + full, ": no answer in time\n"},
		"no such page":          {"capacity http://" + servertest.Nginx(t, 0, nil).Addr + "/none", "GET /none: the server says 404 Not Found: this would be the speed of that answer"},
		"no connection of HTTP": {"capacity http://" + full, "timeout"},
		"another server":        {"capacity " + other, "it seems to be memcached that answers there: write memcached://"},
		"a replica":             {"capacity " + replica, "is a replica: load its primary"},
		"a replica to size":     {"size " + replica, "is a replica: write the address of its primary"},
		"a cluster to size":     {"size " + servertest.RedisNode(t).Addr, "is a node of a cluster: fill all of it by a plan"},
		"too little room":       {"capacity " + small, "use fewer --keys, or a smaller --size"},
		"too little to size":    {"size " + small, "use --sample "},
		"other keys":            {"capacity " + primary, "holds 1 key already: if it may be loaded all the same, add --shared"},
		"other keys to size":    {"size " + primary, "holds 1 key already: the memory of these items could not be told from other memory: write the address of an empty server"},
		"no word of its memory": {"size ignite://" + plain.Addr, "put ignite-indexing on the node's class path (from libs/optional to libs), or observe its process"},
		"no memory":             {"size redis://" + empty, "does not say how much memory it uses (used_memory): observe its process instead"},
		"no such region":        {"size ignite://" + indexed.Addr + "/none", `has no data region "none": write the name of one that it has`},
		"no room in a region":   {"size ignite://" + indexed.Addr + " --sample 10M", ", or a smaller --value"},
		"no password":           {"capacity " + locked, "NOAUTH Authentication required: if it needs a password, set LOADGEN_SECRET_TARGET or use --password-file"},
		"a wrong password":      {"capacity redis://:never-said@" + locked, "WRONGPASS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, command(t, strings.Fields(c.args)...))
			require.Equal(t, 6, p.wait(30*time.Second), "%s", &p.stderr)
			require.Contains(t, p.stderr.String(), c.want)
			require.NotContains(t, p.stderr.String(), "never-said")
		})
	}
	t.Cleanup(func() { require.Equal(t, "1", ask(t, primary, "DBSIZE")) })
}

// mute listens and says nothing; if it is full, it takes no connection either, as if packets to it were dropped.
func mute(t *testing.T, full bool) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	if !full {
		return l.Addr().String()
	}
	raw, err := l.(*net.TCPListener).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { require.NoError(t, syscall.Listen(int(fd), 0)) }))
	for { // until a connection is left waiting
		conn, err := net.DialTimeout("tcp", l.Addr().String(), 300*time.Millisecond)
		if err != nil {
			return l.Addr().String()
		}
		t.Cleanup(func() { conn.Close() })
	}
}

// TestHeadersAreSecrets which arrive, and are in nothing that is kept; the plan that is kept reads them from the environment.
func TestHeadersAreSecrets(t *testing.T) {
	t.Parallel()
	var wrong atomic.Uint64
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page" && (r.Header.Get("Authorization") != "Bearer "+canary+"{}" || r.Header.Get("Accept") != "text/html") {
			wrong.Add(1)
		}
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	path, runs := filepath.Join(dir, "plan.hcl"), filepath.Join(dir, "runs")
	p := start(t, command(t, "bench", server.URL+"/page", "--header", "Authorization: Bearer "+canary+"{}", "--header", "Accept: text/html",
		"--sessions", "1", "--duration", "1s", "--plan", path, "--runs", runs, "--report", filepath.Join(dir, "page.html")))
	p.wait(time.Minute)
	require.Zero(t, wrong.Load())
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		require.NotContains(t, string(text), canary, path)
		return err
	}))
	require.NotContains(t, p.stdout.String()+p.stderr.String(), canary)
	again := command(t, "run", path, "--runs", runs)
	said, _ := again.CombinedOutput()
	require.Contains(t, string(said), "LOADGEN_SECRET_HEADER_AUTHORIZATION is not set")
	again = command(t, "run", path, "--runs", runs)
	again.Env = append(again.Environ(), "LOADGEN_SECRET_HEADER_AUTHORIZATION=Bearer "+canary+"{}")
	said, _ = again.CombinedOutput()
	require.Contains(t, string(said), "bench", "%s", said)
	require.Zero(t, wrong.Load())
}

// TestCleanOfAnImportedRun deletes others' keys only after a yes, and sends a secret only where --secret says.
func TestCleanOfAnImportedRun(t *testing.T) {
	t.Parallel()
	addr := servertest.Redis(t, "--requirepass", servertest.PostgresPassword)
	l := begin(t, `
plan "foreign" {}
target "t" {
	driver    = "redis"
	endpoints = ["`+addr+`"]
	password  = secret("PG")
}`+tenSmall+fillD+`
phase "clean" {
	target  = target.t
	dataset = dataset.d
	clear {}
}`)
	id := l.whole().ID
	pack, there := filepath.Join(t.TempDir(), "pack"), t.TempDir()
	output(t, nil, "loadgen", "runs", "export", id, "--runs", l.runs, "-o", pack)
	output(t, nil, "loadgen", "runs", "import", pack, "--runs", there)
	for says, args := range map[string][]string{
		"no terminal to ask whether to delete 10 keys key:%012d on " + addr + ": add --yes": nil,
		`secret "PG": it is not to go to ` + addr:                                           {"--yes"},
		"Deleted 0 keys.": {"--yes", "--secret", "PG=" + addr},
	} {
		said, _ := command(t, append([]string{"clean", id, "--runs", there}, args...)...).CombinedOutput()
		require.Contains(t, string(said), says)
	}
}

var cleanRun = regexp.MustCompile(`loadgen clean (\S+) deletes`)

// A run that is killed leaves keys, which expire, and the command that it has printed deletes them. After Ctrl-C they are deleted at once.
func TestKeysOfAKilledRun(t *testing.T) {
	t.Parallel()
	addr := servertest.Redis(t)
	p := start(t, command(t, "bench", addr, "--sessions", "1", "--duration", "1m", "--keys", "100"))
	p.told("clean")
	p.until(func() bool { return number(t, addr, "DBSIZE") == 100 })
	key := ask(t, addr, "RANDOMKEY")
	require.Regexp(t, `^loadgen-[0-9a-f]{8}:[0-9]+$`, key)
	require.Positive(t, number(t, addr, "TTL", key))
	p.signal(syscall.SIGKILL)
	p.wait(10 * time.Second)
	clean := command(t, "clean", cleanRun.FindStringSubmatch(p.stderr.String())[1])
	clean.Env = p.cmd.Env
	q := start(t, clean)
	require.Zero(t, q.wait(30*time.Second), "%s", &q.stderr)
	require.Contains(t, q.stderr.String(), "Deleted 100 keys.")
	require.Zero(t, number(t, addr, "DBSIZE"))

	p = start(t, command(t, "bench", addr, "--sessions", "1", "--duration", "1m", "--keys", "100"))
	p.told("clean") // whoever asks before that is another user
	p.until(func() bool { return number(t, addr, "DBSIZE") == 100 })
	p.signal(syscall.SIGINT)
	require.Equal(t, 5, p.wait(30*time.Second), "%s", &p.stderr)
	require.Contains(t, p.stderr.String(), "Deleted 100 keys.")
	require.Zero(t, number(t, addr, "DBSIZE"))
}
