package command_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/plan/trace"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// ownCommands are those by which the tests and loadgen look at a server.
var ownCommands = []string{"info", "ping", "config|get", "monitor", "command", "command|info", "client|setname", "hello"}

// commandstats returns how often a server has carried out each command, but for ownCommands.
func commandstats(l *link) map[string]int64 {
	l.t.Helper()
	calls := map[string]int64{}
	for _, m := range regexp.MustCompile(`cmdstat_([a-z|]+):calls=(\d+)`).FindAllStringSubmatch(l.ask("INFO", "commandstats"), -1) {
		calls[m[1]], _ = strconv.ParseInt(m[2], 10, 64) // they are digits
	}
	for _, own := range ownCommands {
		delete(calls, own)
	}
	return calls
}

// asked returns what a result says that a replay's trace asks for, but for ownCommands, and how many SELECTs loadgen has added to it.
func asked(r *run.Run) (calls map[string]int64, added int64) {
	calls = map[string]int64{}
	for _, c := range r.Phase["replay"].Trace.Ops {
		calls[c.Op] = c.Lines
	}
	added = calls["select, added by loadgen"]
	delete(calls, "select, added by loadgen")
	for _, own := range ownCommands {
		delete(calls, own)
	}
	return calls, added
}

// TestReplayOfARecording records by MONITOR what three clients ask of a Redis in two databases, and replays it on another: both have carried out the
// same commands, and hold the same.
func TestReplayOfARecording(t *testing.T) {
	t.Parallel()
	servers := []*servertest.Server{servertest.StartRedis(t, "--enable-debug-command", "yes"), servertest.StartRedis(t, "--enable-debug-command", "yes")}
	watch := dial(t, servers[0].Addr)
	require.Equal(t, "OK", watch.ask("MONITOR"))
	recorded := filepath.Join(t.TempDir(), "monitor.txt")
	text := make(chan string, 1)
	go func() {
		var b strings.Builder
		in := bufio.NewScanner(watch.in)
		for in.Scan() && !strings.Contains(in.Text(), `"ECHO" "the end"`) {
			b.WriteString(in.Text() + "\n")
		}
		text <- b.String()
	}()
	clients := []*link{dial(t, servers[0].Addr), dial(t, servers[0].Addr), dial(t, servers[0].Addr)}
	clients[0].ask("FLUSHDB")
	clients[2].ask("SELECT", "3")
	for i := range 300 {
		c := clients[i%3]
		key := fmt.Sprintf("key \r\n\x00%d of %d", i%7, i%3) // between clients, replay keeps times and not the order
		c.ask("SET", key, strings.Repeat("v\xff", i))
		c.ask("APPEND", key, "\"\\")
		c.ask("GET", key)
		if i%50 == 0 {
			require.Equal(t, "OK", c.ask("MULTI"))
			require.Equal(t, "QUEUED", c.ask("INCR", "n"))
			require.Equal(t, "QUEUED", c.ask("LPUSH", "list", "a"))
			require.Equal(t, "2", c.ask("EXEC"))
			c.reply() // the first of its two elements
			c.reply()
		}
	}
	clients[0].ask("EVAL", `return redis.call("INCR", KEYS[1])`, "1", "by script")
	clients[0].ask("ECHO", "the end")
	require.NoError(t, os.WriteFile(recorded, []byte(<-text), 0o600))

	stem := filepath.Join(t.TempDir(), "shop")
	out, err := command(t, "trace", "import", recorded, "-o", stem).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "left out        1  lua\n")
	require.Contains(t, string(out), "left out        1  manages the server: --allow FLUSHDB\n")
	again, err := command(t, "trace", "import", recorded, "-o", stem).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(again), "already exists: name another stem, or overwrite it with --force")
	info, err := os.Stat(stem + ".trace")
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	r := beginFile(t, stem+".hcl", "-var", nodes(servers[1].Addr)).whole()
	ops := r.Phase["replay"].Op
	for name, n := range map[string]uint64{"set": 300, "get": 300, "command_append": 300, "multi": 6, "eval": 1, "select": 1} {
		require.Equal(t, n, ops[name].OK, name)
	}
	was, is := dial(t, servers[0].Addr), dial(t, servers[1].Addr)
	before, after := commandstats(was), commandstats(is)
	commands, added := asked(r)
	commands["select"] += added
	require.EqualValues(t, 300*3+6+1+1, added, "one before each request")
	commands["incr"]++ // by the script
	require.Equal(t, after, commands)
	for _, of := range []map[string]int64{before, after} {
		for _, own := range []string{"select", "flushdb", "echo"} { // a SELECT stands before each request; the others were left out, or not recorded
			delete(of, own)
		}
	}
	require.Equal(t, before, after)
	for _, database := range []string{"0", "3"} {
		was.ask("SELECT", database)
		is.ask("SELECT", database)
		require.Equal(t, was.ask("DEBUG", "DIGEST"), is.ask("DEBUG", "DIGEST"), "database %s", database)
	}
}

// TestReplayOfPackets: the server has carried out what the trace of a pcap asks for.
func TestReplayOfPackets(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	stem := filepath.Join(t.TempDir(), "packets")
	out, err := command(t, "trace", "import", filepath.Join("..", "target", "capture", "testdata", "redis.pcap"), "-o", stem).CombinedOutput()
	require.NoError(t, err, string(out))
	commands, added := asked(beginFile(t, stem+".hcl", "-var", nodes(server.Addr), "-var", "speed=100").whole())
	require.Len(t, commands, 11)
	require.Zero(t, added)
	require.Equal(t, commandstats(dial(t, server.Addr)), commands)

	out, err = command(t, "plan", "init", "--trace", stem+".trace", stem+"-like.hcl").CombinedOutput()
	require.NoError(t, err, string(out))
	plan, err := os.ReadFile(stem + "-like.hcl")
	require.NoError(t, err)
	require.Contains(t, string(plan), "of its 100 commands with one key; 8 others are left out")
	require.Contains(t, string(plan), "too few requests a key to tell")
	like := beginFile(t, stem+"-like.hcl", "-var", nodes(server.Addr), "-var", "rate=2k/s", "-var", "duration=200ms").whole()
	ops := like.Phase["load"].Op
	require.Len(t, ops, 11)
	for name, o := range ops {
		require.Zero(t, o.Error, name)
	}
}

// TestReplayOfALog replays what PostgreSQL logged of a psql and a program: the table is as they had left it.
func TestReplayOfALog(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	stem := filepath.Join(t.TempDir(), "log")
	out, err := command(t, "trace", "import", filepath.Join("..", "target", "capture", "testdata", "postgres-15.csv"), "-o", stem).CombinedOutput()
	require.NoError(t, err, string(out))
	plan, err := os.ReadFile(stem + ".hcl")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(stem+".hcl", []byte(strings.NewReplacer(`# password = secret("PASSWORD")`, `password = secret("PG")`).Replace(string(plan))), 0o600))
	r := beginFile(t, stem+".hcl", "-var", nodes(d.place), "-var", "user=loadgen", "-var", "speed=20").result(time.Minute)
	ops := r.Phase["replay"].Op
	selects := ops["select_request"]
	require.Equal(t, []uint64{5, 1, 1, 1}, []uint64{selects.OK, selects.Miss, selects.Error, ops["update_request"].OK}, "a row that a COPY had brought is missing; one divides by zero")
	require.Equal(t, []string{"1 x", "7 "}, d.ask("SELECT id, v FROM t ORDER BY id"))
}

// TestAnonymizedTraceHasNoNames looks for ten thousand names and numbers in the trace of requests that had them.
func TestAnonymizedTraceHasNoNames(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	var planted []string
	for i := range 5000 {
		name, number := "", fmt.Sprint(1e11+random.Int64N(9e11))
		for range 12 {
			name += string(rune('a' + random.IntN(26)))
		}
		planted = append(planted, name, number)
		fmt.Fprintf(&b, "1795824949.%06d [0 127.0.0.1:5000%d] \"HSET\" \"user:%s\" \"phone\" \"%s-%s\"\n", i, i%3, name, number, name)
	}
	b.WriteString("1795824950.000000 [0 127.0.0.1:50000] \"EVAL\" \"return 1\" \"0\"\n")
	stem := filepath.Join(t.TempDir(), "hidden")
	require.NoError(t, os.WriteFile(stem+".txt", []byte(b.String()), 0o600))
	out, err := command(t, "trace", "import", stem+".txt", "--anonymize", "-o", stem).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "5001 records: 5000 requests\n  left out        1  not covered by --anonymize: EVAL\n")
	file, err := os.Open(stem + ".trace")
	require.NoError(t, err)
	defer file.Close()
	r, err := trace.NewReader(file, trace.Requests, false)
	require.NoError(t, err)
	var all strings.Builder
	for rec := (trace.Record{}); err == nil; {
		_, err = r.Next(&rec)
		all.Write(rec.Key)
	}
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 5001, strings.Count(all.String(), "$4\r\nHSET\r\n$17\r\n"), "the last one twice, at the end")
	for _, name := range planted {
		require.NotContains(t, all.String(), name)
	}
}

// flipped is a proxy before a server, which answers wrong where a reply has a word.
func flipped(t *testing.T, server, word string) (addr string) {
	return servertest.Serve(t, nil, func(client net.Conn) {
		to, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer to.Close()
		go func() {
			_, _ = io.Copy(to, client) // until either side ends
			_ = to.Close()
		}()
		in := bufio.NewReader(to)
		for err == nil {
			var line string
			if line, err = in.ReadString('\n'); err == nil {
				_, err = io.WriteString(client, strings.ReplaceAll(line, word, strings.ToUpper(word)))
			}
		}
	})
}

// TestDiffFindsWhatDiffers: ten wrong answers of 20,000 are found, each once, and one on the same key follows; what may differ is not judged.
func TestDiffFindsWhatDiffers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "some.trace")
	file, err := os.Create(path)
	require.NoError(t, err)
	out, err := trace.NewWriter(file, trace.Header{Names: []string{"other"}, Clients: 1})
	require.NoError(t, err)
	requests := 0
	send := func(words ...string) {
		request := fmt.Appendf(nil, "*%d\r\n", len(words))
		for _, w := range words {
			request = fmt.Appendf(request, "$%d\r\n%s\r\n", len(w), w)
		}
		require.NoError(t, out.Write(0, 0, 0, request))
		requests++
	}
	for i := range 10_000 {
		key, value := fmt.Sprint("k", i%3000), fmt.Sprint("v", i)
		if i%1000 == 7 {
			key, value = fmt.Sprint("planted", i), "planted"
		}
		send("SET", key, value)
		send("GET", key)
	}
	send("GET", "planted7") // follows
	for i := range 200 {
		send("SADD", "members", fmt.Sprint(i))
		send("ZADD", "scores", fmt.Sprint(float64(i)/7), fmt.Sprint(i))
	}
	send("SMEMBERS", "members")
	send("SPOP", "members")
	send("SCARD", "members")
	send("SMEMBERS", "members")
	send("SET", "short", "planted", "PX", "100")
	send("GET", "short")
	require.NoError(t, out.Close())
	require.NoError(t, file.Close())

	servers := cluster(t, 2)
	a, secret := servers[0].Addr, "LOADGEN_SECRET_A="
	diff := func(b string, more ...string) (string, int) {
		cmd := command(t, append([]string{"trace", "diff", path, a, b}, more...)...)
		cmd.Env = append(cmd.Environ(), secret)
		text, err := cmd.CombinedOutput()
		if err != nil {
			require.IsType(t, new(exec.ExitError), err)
		}
		return string(text), cmd.ProcessState.ExitCode()
	}
	same, code := diff(servers[1].Addr)
	require.Equal(t, exit.OK, code, same)
	unjudged := "not judged        1  answered by chance\nnot judged        2  on a key that a command changed by chance\nnot judged        1  on a key that expires soon\n"
	require.Equal(t, fmt.Sprintf("No difference in %d replies.\n", requests-4)+unjudged, same)
	wrong, code := diff(flipped(t, servers[1].Addr, "planted"))
	require.Equal(t, exit.Assert, code, wrong)
	require.Contains(t, wrong, fmt.Sprintf("11 of %d replies differ: 10 first on their keys, 1 after those.\n", requests-4))
	require.Contains(t, wrong, "  request 16: GET planted7\n    A: \"planted\"\n    B: \"PLANTED\"\n")
	for _, s := range servers {
		require.Equal(t, "0", dial(t, s.Addr).ask("DBSIZE"), "nothing is left")
	}
	dial(t, servers[1].Addr).ask("SET", "a", "b")
	full, code := diff(servers[1].Addr)
	require.Equal(t, exit.Failed, code)
	require.Contains(t, full, "it holds keys: name an empty server, or have --flush empty both")
	filled, code := diff(servers[1].Addr, "--before", `sh -c 'redis-cli -u "redis://$LOADGEN_ENDPOINT" SET a b'`)
	require.Equal(t, exit.OK, code, filled)
	dial(t, servers[1].Addr).ask("DEL", "a")

	authority := servertest.NewAuthority(t)
	closed := servertest.StartRedisTLS(t, authority, authority.Issue("127.0.0.1", time.Hour), "--tls-auth-clients", "no", "--requirepass", "word")
	a = "rediss://" + closed.Addr
	refused, code := diff(servers[1].Addr, "--ca", authority.CA)
	require.Equal(t, exit.Failed, code)
	require.Contains(t, refused, "NOAUTH")
	secret += "word"
	same, code = diff(servers[1].Addr, "--ca", authority.CA)
	require.Equal(t, exit.OK, code, same)
}

// TestRecord records from a server whose client goes on asking; Ctrl-C keeps what there is.
func TestRecord(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	stem := filepath.Join(t.TempDir(), "shop")
	p := start(t, command(t, "trace", "record", "redis://"+server.Addr, "--for", "1m", "-o", stem))
	p.told("recording " + server.Addr)
	client := dial(t, server.Addr)
	p.until(func() bool { return strings.Contains(client.ask("CLIENT", "LIST"), "cmd=monitor") })
	for range 50 {
		client.ask("SET", "a", "b")
	}
	p.signal(syscall.SIGINT)
	require.Equal(t, exit.OK, p.wait(60*time.Second))
	p.said("50 requests, 1 client")
	plan, err := os.ReadFile(stem + ".hcl")
	require.NoError(t, err)
	require.Contains(t, string(plan), "from\n# "+server.Addr)
}

// TestReplayOfAnAccessLog replays what nginx has logged.
func TestReplayOfAnAccessLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log strings.Builder
	for i := range 40 {
		fmt.Fprintf(&log, "10.0.0.%d - - [28/Nov/2026:00:18:%02d +0000] \"GET /page?n=%d HTTP/1.1\" 200 3 \"-\" \"-\"\n", i%4, i/20, i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "access.log"), []byte(log.String()+"nonsense\n"), 0o600))
	out, err := command(t, "trace", "import", filepath.Join(dir, "access.log"), "-o", filepath.Join(dir, "site")).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "41 records: 40 requests\n  left out        1  not a line of this form\n")
	refused, err := command(t, "trace", "import", filepath.Join(dir, "access.log"), "-o", filepath.Join(dir, "site"), "--force", "--database", "shop").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(refused), "--database is of PostgreSQL's logs: leave it out")
	hits := servertest.Nginx(t, 0, nil)
	r := beginFile(t, filepath.Join(dir, "site.hcl"), "-var", nodes(hits.Addr)).whole()
	require.EqualValues(t, 40, r.Phase["replay"].Op["get_request"].Due)
}
