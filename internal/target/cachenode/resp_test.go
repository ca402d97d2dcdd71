package cachenode

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// session is a client that shows replies as they are.
type session struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func open(t testing.TB, n *Node) *session {
	conn := dial(t, n)
	return &session{t, conn, bufio.NewReader(conn)}
}

func (s *session) send(b string) {
	s.t.Helper()
	_, err := io.WriteString(s.conn, b)
	require.NoError(s.t, err)
}

// reply reads one reply, including nested values.
func (s *session) reply() string {
	s.t.Helper()
	line, err := s.in.ReadString('\n')
	require.NoError(s.t, err, "after %q", line)
	if !strings.ContainsAny(line[:1], "$*%") {
		return line
	}
	size, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	require.NoError(s.t, err)
	if size < 0 {
		return line
	}
	if line[0] != '$' {
		if line[0] == '%' {
			size *= 2
		}
		for range size {
			line += s.reply()
		}
		return line
	}
	body := make([]byte, size+2)
	_, err = io.ReadFull(s.in, body)
	require.NoError(s.t, err)
	return line + string(body)
}

func (s *session) do(args ...string) string {
	s.t.Helper()
	s.send(wire(args...))
	return s.reply()
}

// closed checks that the node closes the connection without another word.
func (s *session) closed() {
	s.t.Helper()
	rest, err := io.ReadAll(s.in)
	require.NoError(s.t, err)
	require.Empty(s.t, rest)
}

func TestCommands(t *testing.T) {
	long := strings.Repeat("x", 100)
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"PING"}, "+PONG\r\n"},
		{[]string{"ping", "a\r\nb"}, "$4\r\na\r\nb\r\n"},
		{[]string{"PING", "a", "b"}, "-ERR wrong number of arguments for 'ping' command\r\n"},
		{[]string{"GET", "k"}, "$-1\r\n"},
		{[]string{"SET", "k", "v"}, "+OK\r\n"},
		{[]string{"gEt", "k"}, "$1\r\nv\r\n"},
		{[]string{"SET", "", ""}, "+OK\r\n"},
		{[]string{"GET", ""}, "$0\r\n\r\n"},
		{[]string{"GET"}, "-ERR wrong number of arguments for 'get' command\r\n"},
		{[]string{"GET", "a", "b"}, "-ERR wrong number of arguments for 'get' command\r\n"},
		{[]string{"SET", "k"}, "-ERR wrong number of arguments for 'set' command\r\n"},
		{[]string{"SET", "k", "v", "NX"}, "-ERR SET takes EX or PX with a time here, and no other option\r\n"},
		{[]string{"SET", "k", "v", "EX", "10", "NX"}, "-ERR SET takes EX or PX with a time here, and no other option\r\n"},
		{[]string{"DBSIZE"}, ":2\r\n"},
		{[]string{"DEL", "k", "nothing", "k", ""}, ":2\r\n"},
		{[]string{"DEL"}, "-ERR wrong number of arguments for 'del' command\r\n"},
		{[]string{"SET", "zero", "db 0"}, "+OK\r\n"},
		{[]string{"SELECT", "15"}, "+OK\r\n"},
		{[]string{"GET", "zero"}, "$-1\r\n"},
		{[]string{"SET", "fifteen", "db 15"}, "+OK\r\n"},
		{[]string{"SELECT", "16"}, "-ERR DB index is out of range\r\n"},
		{[]string{"SELECT", "-1"}, "-ERR DB index is out of range\r\n"},
		{[]string{"SELECT", "x"}, "-ERR value is not an integer or out of range\r\n"},
		{[]string{"DBSIZE"}, ":1\r\n"},
		{[]string{"FLUSHALL", "NOW"}, "-ERR syntax error\r\n"},
		{[]string{"FLUSHALL", "async"}, "+OK\r\n"},
		{[]string{"DBSIZE"}, ":0\r\n"},
		{[]string{"SELECT", "0"}, "+OK\r\n"},
		{[]string{"DBSIZE"}, ":0\r\n"},
		{[]string{"LPUSH", "k"}, unknownCommand("LPUSH")},
		{[]string{""}, unknownCommand("")},
		{[]string{"a\r\nb'\x00ü"}, unknownCommand("a??b'??")},
		{[]string{long}, unknownCommand(long[:64])},
		{[]string{"AUTH", "x"}, "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n"},
		{[]string{"AUTH", "default", "x"}, "+OK\r\n"},
	}
	s := open(t, startNode(t, Config{}))
	for _, test := range tests {
		require.Equal(t, test.want, s.do(test.args...), "%q", test.args)
	}
}

func unknownCommand(name string) string {
	return "-ERR unknown command '" + name + "'. This node has a few commands only: COMMAND DOCS lists them.\r\n"
}

func TestPassword(t *testing.T) {
	const refused = "-NOAUTH Authentication required.\r\n"
	const wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"PING"}, refused},
		{[]string{"GET", "k"}, refused},
		{[]string{"AUTH"}, "-ERR wrong number of arguments for 'auth' command\r\n"},
		{[]string{"AUTH", "s3cre"}, wrong},
		{[]string{"AUTH", ""}, wrong},
		{[]string{"AUTH", "root", "s3cret"}, wrong},
		{[]string{"PING"}, refused},
		{[]string{"AUTH", "default", "s3cret"}, "+OK\r\n"},
		{[]string{"PING"}, "+PONG\r\n"},
		{[]string{"AUTH", "s3cret"}, "+OK\r\n"},
	}
	n := startNode(t, Config{Password: "s3cret"})
	s := open(t, n)
	for _, test := range tests {
		require.Equal(t, test.want, s.do(test.args...), "%q", test.args)
	}
	require.Equal(t, refused, open(t, n).do("PING"), "another connection")
}

// TestAgainstRedis sends the same random commands to a node and to Redis, many in one write, and compares every reply.
func TestAgainstRedis(t *testing.T) {
	conn, err := net.Dial("tcp", servertest.Redis(t))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	want := &session{t, conn, bufio.NewReader(conn)}
	got := open(t, startNode(t, Config{}))
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var batch strings.Builder
		var sent [][]string
		for range 1 + rnd.IntN(50) {
			args := randomCommand(rnd)
			sent = append(sent, args)
			batch.WriteString(wire(args...))
		}
		got.send(batch.String())
		want.send(batch.String())
		for _, args := range sent {
			require.Equal(t, want.reply(), got.reply(), "%q", args)
		}
	}
}

func randomCommand(rnd *rand.Rand) []string {
	key := func() string {
		return []string{"a", "b", "c", "d", "e", "", "\r\n", "\x00\xff", strings.Repeat("k", 300)}[rnd.IntN(9)]
	}
	switch rnd.IntN(26) {
	case 24:
		by := []string{"1", "-7", "0", "9223372036854775807", "-9223372036854775808", "x", "01", ""}[rnd.IntN(8)]
		return [][]string{{"INCR", key()}, {"DECR", key()}, {"INCRBY", key(), by}, {"DECRBY", key(), by}, {"INCR"}, {"INCRBY", "a"}}[rnd.IntN(6)]
	case 25:
		return [][]string{{"MEMORY", "USAGE", "never"}, {"MEMORY"}, {"SCAN", "0", "TYPE", "list", "COUNT", "1000"}, {"SCAN", "0", "TYPE"}}[rnd.IntN(4)]
	case 22:
		return [][]string{{"STRLEN", key()}, {"STRLEN", "a"}, {"STRLEN"}}[rnd.IntN(3)]
	case 23:
		return [][]string{{"TYPE", key()}, {"TYPE"}, {"ECHO", key()}, {"ECHO"}}[rnd.IntN(4)]
	case 16:
		return []string{"MGET", key(), key(), key()}
	case 17:
		return [][]string{{"MSET", key(), "1", key(), "2"}, {"MSET", key(), "1", key()}, {"MSET", key()}, {"MGET"}}[rnd.IntN(4)]
	case 18:
		return [][]string{{"EXISTS", key(), key(), "a", "a"}, {"EXISTS"}}[rnd.IntN(2)]
	case 19:
		seconds := []string{"1000", "0", "-1", "x", "9223372036854775807", "1.5"}[rnd.IntN(6)]
		return [][]string{{"EXPIRE", key(), seconds}, {"PEXPIRE", key(), seconds + "000"}, {"EXPIRE", key()}}[rnd.IntN(3)]
	case 20:
		return [][]string{{"TTL", key()}, {"TTL", key()}, {"PTTL", "never"}, {"TTL"}}[rnd.IntN(4)]
	case 21:
		seconds := []string{"1000", "0", "-1", "x", "9223372036854775807"}[rnd.IntN(5)]
		return [][]string{{"SET", key(), "v", "EX", seconds}, {"SET", key(), "v", "px", seconds + "000"}}[rnd.IntN(2)]
	case 0, 1, 2, 3:
		return []string{"GET", key()}
	case 4, 5, 6, 7:
		return []string{"SET", key(), strings.Repeat("v\r\n\x00", rnd.IntN(1<<rnd.IntN(12)))}
	case 8, 9:
		args := []string{"DEL"}
		for range 1 + rnd.IntN(4) {
			args = append(args, key())
		}
		return args
	case 10:
		return []string{"dbsize"}
	case 11:
		return [][]string{{"PING"}, {"PING", key()}, {"PING", "a", "b"}}[rnd.IntN(3)]
	case 12:
		return []string{"SELECT", []string{"0", "1", "15", "16", "-1", "x", ""}[rnd.IntN(7)]}
	case 13:
		return [][]string{{"GET"}, {"GET", "a", "b"}, {"SET", "a"}, {"DEL"}, {"DBSIZE", "x"}, {"SELECT"}, {"AUTH"}}[rnd.IntN(7)]
	case 14:
		return [][]string{{"AUTH", "x"}, {"AUTH", "default", "x"}, {"AUTH", "nobody", "x"}}[rnd.IntN(3)]
	default:
		return [][]string{{"FLUSHALL"}, {"FLUSHALL", "SYNC"}, {"FLUSHALL", "x"}, {"GET", "a"}, {"GET", "b"}}[rnd.IntN(5)]
	}
}

// TestThirdProtocol is a client that asks for RESP3, says who it is, and looks around.
func TestThirdProtocol(t *testing.T) {
	n := startNode(t, Config{Password: "s3cret", Memory: 1 << 20})
	s := open(t, n)
	tests := []struct{ args, want string }{
		{"HELLO 3", "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> " +
			"option can be used to authenticate the client and select the RESP protocol version at the same time\r\n"},
		{"HELLO 3 AUTH default wrong", "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
		{"HELLO 4 AUTH default s3cret", "-NOPROTO unsupported protocol version\r\n"},
		{"HELLO x", "-ERR Protocol version is not an integer or out of range\r\n"},
		{"HELLO 3 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'\r\n"},
		{"HELLO 3 AUTH default s3cret SETNAME me", "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$9\r\n0-loadgen\r\n$5\r\nproto\r\n:3\r\n" +
			"$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"},
		{"GET nothing", "_\r\n"},
		{"MGET nothing", "*1\r\n_\r\n"},
		{"CLIENT GETNAME", "$2\r\nme\r\n"},
		{"CLIENT SETINFO LIB-NAME loadgen", "+OK\r\n"},
		{"CLIENT ID", ":1\r\n"},
		{"CLIENT KILL", "-ERR unknown subcommand or wrong number of arguments for 'KILL'. This node has a few CLIENT commands only.\r\n"},
		{"CONFIG GET MAXMEM*ry sav[a-f]", "%2\r\n$9\r\nmaxmemory\r\n$7\r\n1048576\r\n$4\r\nsave\r\n$0\r\n\r\n"},
		{"CONFIG SET save x", "-ERR unknown subcommand or wrong number of arguments for 'SET'. This node has a few CONFIG commands only.\r\n"},
		{"COMMAND INFO mset nothing", "*2\r\n*10\r\n$4\r\nmset\r\n:-3\r\n*0\r\n:1\r\n:-1\r\n:2\r\n*0\r\n*0\r\n*0\r\n*0\r\n_\r\n"},
		{"COMMAND COUNT", fmt.Sprintf(":%d\r\n", len(respCommands))},
		{"COMMAND DOCS nothing", "%0\r\n"},
		{"COMMAND DOCS ping nothing", "%1\r\n$4\r\nping\r\n%3\r\n$7\r\nsummary\r\n$37\r\nAnswer, with the text if there is one\r\n" +
			"$5\r\ngroup\r\n$10\r\nconnection\r\n$9\r\narguments\r\n*1\r\n%3\r\n$4\r\nname\r\n$4\r\ntext\r\n$4\r\ntype\r\n$6\r\nstring\r\n" +
			"$5\r\nflags\r\n*1\r\n+optional\r\n"},
		{"MEMORY USAGE nothing", "_\r\n"},
		{"MEMORY DOCTOR", "-ERR unknown subcommand or wrong number of arguments for 'DOCTOR'. This node has a few MEMORY commands only.\r\n"},
		{"HELLO 2", "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$9\r\n0-loadgen\r\n$5\r\nproto\r\n:2\r\n" +
			"$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"},
		{"GET nothing", "$-1\r\n"},
		{"CONFIG GET nothing", "*0\r\n"},
	}
	for _, test := range tests {
		require.Equal(t, test.want, s.do(strings.Fields(test.args)...), test.args)
	}
	require.Equal(t, "-ERR Client names cannot contain spaces, newlines or special characters.\r\n", s.do("CLIENT", "SETNAME", "a b"))
	require.Equal(t, len(respCommands), strings.Count(s.do("COMMAND"), "*10\r\n"))
	for _, cmd := range respCommands {
		require.NotContains(t, open(t, startNode(t, Config{})).do(append([]string{cmd.name}, strings.Fields(strings.Repeat(" 1", cmd.min-1))...)...), "unknown command")
	}
	require.Equal(t, "+OK\r\n", s.do("QUIT"))
	s.closed()
}

// TestToolsOfRedis lets Redis' own tools load a node and look at it.
func TestToolsOfRedis(t *testing.T) {
	_, missing := exec.LookPath("redis-benchmark")
	servertest.Require(t, "redis", missing)
	_, port, err := net.SplitHostPort(startNode(t, Config{}).Addr().String())
	require.NoError(t, err)
	started := func(in, name string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, append([]string{"-p", port}, args...)...)
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	tool := func(name string, args ...string) string {
		out, err := started("", name, args...)
		require.NoError(t, err, "%s %q: %s", name, args, out)
		return out
	}
	loaded := tool("redis-benchmark", "-t", "ping,set,get,incr,mset", "-n", "2000", "-r", "100", "-P", "16", "--threads", "2", "--csv")
	require.Regexp(t, `(?s)"PING_INLINE".*"PING_MBULK".*"SET".*"GET".*"INCR".*"MSET \(10 keys\)"`, loaded)
	out, err := started("", "redis-benchmark", "-n", "100", "-q")
	require.Error(t, err, "its whole list has what this node has not")
	require.Contains(t, out, "Error from server: ERR unknown command 'LPUSH'. This node has a few commands only")
	require.Equal(t, "OK\n", tool("redis-cli", "SET", "a key", "v", "EX", "100"))
	require.Equal(t, "100\n", tool("redis-cli", "-3", "TTL", "a key"))
	require.Equal(t, "1\n2\n", tool("redis-cli", "EXISTS", "a key")+tool("redis-cli", "EXISTS", "a key", "a key"))
	require.Equal(t, "a key\n", tool("redis-cli", "--scan", "--pattern", "a*"))
	require.Equal(t, tool("redis-cli", "DBSIZE"), fmt.Sprintln(strings.Count(tool("redis-cli", "--scan"), "\n")))
	out, err = started("SET 'in a pipe' 'of 10000'\r\nLPUSH x\r\n"+wire("SET", "b", strings.Repeat("v", 5000)), "redis-cli", "--pipe")
	require.Error(t, err, "one of three is refused")
	require.Contains(t, out, "ERR unknown command 'LPUSH'")
	require.Contains(t, out, "errors: 1, replies: 3")
	out, err = started("GET 'in a pipe'\nDECR 'in a pipe'\nINCR b\nSTRLEN b\n", "redis-cli")
	require.NoError(t, err)
	require.Equal(t, "of 10000\nERR value is not an integer or out of range\n\nERR value is not an integer or out of range\n\n5000\n", out)
	require.Contains(t, tool("redis-cli", "--bigkeys"), `Biggest string found '"b"' has 5000 bytes`)
	require.Contains(t, tool("redis-cli", "--memkeys"), `Biggest string found '"b"' has 5097 bytes`)
	require.Contains(t, tool("redis-cli", "INFO"), "\nloadgen_version:")
}

// TestScan goes through all keys of a database, and through those of a pattern.
func TestScan(t *testing.T) {
	s := open(t, startNode(t, Config{}))
	for i := range 25 {
		s.do("SET", fmt.Sprintf("key:%02d", i), "v")
	}
	begins := func(want string, args ...string) {
		t.Helper()
		require.True(t, strings.HasPrefix(s.do(args...), want), args)
	}
	begins("*2\r\n$2\r\n11\r\n*10\r\n$6\r\nkey:00\r\n", "SCAN", "0")
	begins("*2\r\n$1\r\n0\r\n*5\r\n$6\r\nkey:20\r\n", "SCAN", "21")
	begins("*2\r\n$2\r\n19\r\n*3\r\n$6\r\nkey:07\r\n$6\r\nkey:08\r\n$6\r\nkey:17\r\n", "SCAN", "0", "MATCH", "*[78]", "COUNT", "18")
	require.Equal(t, "*2\r\n$1\r\n0\r\n*0\r\n", s.do("SCAN", "99"))
	begins("*2\r\n$1\r\n0\r\n*2\r\n$6\r\nkey:07\r\n", "SCAN", "0", "TYPE", "String", "COUNT", "100", "MATCH", "*7")
	begins("*2\r\n$1\r\n0\r\n*0\r\n", "SCAN", "0", "TYPE", "list", "COUNT", "100")
	s.do("SELECT", "1")
	require.Equal(t, "*2\r\n$1\r\n0\r\n*0\r\n", s.do("SCAN", "0", "COUNT", "100"))
	for args, want := range map[string]string{
		"SCAN x": "-ERR invalid cursor\r\n", "SCAN 0 COUNT": "-ERR syntax error\r\n", "SCAN 0 COUNT 0": "-ERR syntax error\r\n",
		"SCAN 0 COUNT x": "-ERR value is not an integer or out of range\r\n", "SCAN 0 TYPE": "-ERR syntax error\r\n",
	} {
		require.Equal(t, want, s.do(strings.Fields(args)...), args)
	}
}

func TestManyRequestsInOneWrite(t *testing.T) {
	s := open(t, startNode(t, Config{}))
	const n = 5000
	go func() { // ends when all is written, or with the connection
		var b strings.Builder
		for i := range n {
			b.WriteString(wire("SET", fmt.Sprint(i), strings.Repeat("v", i%500)))
			b.WriteString(wire("GET", fmt.Sprint(i)))
		}
		_, _ = io.WriteString(s.conn, b.String()) // the replies tell
	}()
	for i := range n {
		require.Equal(t, "+OK\r\n", s.reply())
		require.Equal(t, fmt.Sprintf("$%d\r\n%s\r\n", i%500, strings.Repeat("v", i%500)), s.reply())
	}
}

func TestMemoryBound(t *testing.T) {
	n := startNode(t, Config{Memory: 10_000})
	s := open(t, n)
	require.Equal(t, "-OOM command not allowed when used memory > 'maxmemory'.\r\n", s.do("SET", "k", strings.Repeat("v", 10_000)))
	require.Equal(t, "$-1\r\n", s.do("GET", "k"))
	for i := range 100 {
		require.Equal(t, "+OK\r\n", s.do("SET", fmt.Sprintf("%04d", i), strings.Repeat("v", 400)))
		require.Equal(t, "$400\r\n"+strings.Repeat("v", 400)+"\r\n", s.do("GET", "0000"), "kept by its reads")
	}
	require.Equal(t, ":20\r\n", s.do("DBSIZE"), "20 × (4 + 400 + 96) = 10,000")
	require.Equal(t, "$-1\r\n", s.do("GET", "0080"))
	require.Equal(t, "$400\r\n"+strings.Repeat("v", 400)+"\r\n", s.do("GET", "0081"))
	info := s.do("INFO", "memory", "stats")
	for _, line := range []string{"used_memory:10000", "maxmemory:10000", "maxmemory_policy:allkeys-lru", "evicted_keys:80"} {
		require.Contains(t, info, line+"\r\n")
	}
	// The largest request that is read to its end, and one byte more.
	require.Equal(t, "-OOM command not allowed when used memory > 'maxmemory'.\r\n", s.do("SET", "k", strings.Repeat("v", 1<<20)))
	s.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$" + strconv.Itoa(n.requestLimit()-3) + "\r\n")
	require.Equal(t, "-ERR Protocol error: invalid bulk length\r\n", s.reply())
	s.closed()
}

func TestInfo(t *testing.T) {
	n := startNode(t, Config{Version: "1.2.3", Memory: 1 << 20})
	a, b := open(t, n), open(t, n)
	a.do("SET", "k", "v")
	a.do("GET", "k")
	a.do("GET", "nothing")
	a.do("DEL", "k")
	a.do("GET")
	b.do("SELECT", "2")
	b.do("SET", "k", "v")
	tests := []struct {
		sections []string
		want     string
	}{
		{[]string{"commandstats"}, "# Commandstats\r\ncmdstat_get:calls=2\r\ncmdstat_set:calls=2\r\ncmdstat_del:calls=1\r\ncmdstat_other:calls=3\r\n"},
		{[]string{"KEYSPACE"}, "# Keyspace\r\ndb2:keys=1,expires=0,avg_ttl=0\r\n"},
		{[]string{"stats"}, "# Stats\r\ntotal_connections_received:2\r\nrejected_connections:0\r\ntotal_commands_processed:10\r\n" +
			"total_net_input_bytes:242\r\ntotal_net_output_bytes:242\r\nevicted_keys:0\r\nkeyspace_hits:1\r\nkeyspace_misses:1\r\n"},
		{[]string{"memory"}, "# Memory\r\nused_memory:98\r\nmaxmemory:1048576\r\nmaxmemory_policy:allkeys-lru\r\n"},
		{[]string{"clients"}, "# Clients\r\nconnected_clients:2\r\nmaxclients:10000\r\n"},
		{[]string{"peers"}, fmt.Sprintf("# Peers\r\npeer_%s:get=2,set=1,del=1,other=1\r\npeer_%s:get=0,set=1,del=0,other=7\r\n",
			a.conn.LocalAddr(), b.conn.LocalAddr())},
		{[]string{"keyspace", "persistence"}, "# Persistence\r\nloading:0\r\naof_enabled:0\r\n\r\n# Keyspace\r\ndb2:keys=1,expires=0,avg_ttl=0\r\n"},
		{[]string{"nothing"}, ""},
	}
	for _, test := range tests {
		reply := b.do(append([]string{"INFO"}, test.sections...)...)
		require.Equal(t, fmt.Sprintf("$%d\r\n%s\r\n", len(test.want), test.want), reply, "%q", test.sections)
	}
	for _, sections := range [][]string{{"INFO"}, {"INFO", "default"}, {"INFO", "all"}} {
		info := b.do(sections...)
		require.Contains(t, info, "redis_version:0-loadgen\r\n")
		require.Contains(t, info, "server_name:loadgen\r\nloadgen_version:1.2.3\r\n")
		require.Equal(t, sections[len(sections)-1] == "all", strings.Contains(info, "# Peers"))
	}
}

func TestPeersAreBounded(t *testing.T) {
	n := startNode(t, Config{}, func(n *Node) { n.peers.limit = 1 })
	a, b, c := open(t, n), open(t, n), open(t, n)
	a.do("PING") // first, so that its address is the one kept
	b.do("GET", "k")
	c.do("GET", "k")
	info := a.do("INFO", "peers")
	require.Contains(t, info, fmt.Sprintf("peer_%s:get=0,set=0,del=0,other=2\r\npeer_others:get=2,set=0,del=0,other=0\r\n", a.conn.LocalAddr()))
	require.Contains(t, a.do("INFO", "commandstats"), "cmdstat_get:calls=2\r\n")
}
