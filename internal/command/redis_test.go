package command_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// cluster starts n Redis servers.
func cluster(t testing.TB, n int) []*servertest.Server {
	t.Helper()
	servers := make([]*servertest.Server, n)
	for i := range servers {
		servers[i] = servertest.StartRedis(t)
	}
	return servers
}

// addresses lists where servers listen.
func addresses(servers []*servertest.Server) []string {
	var list []string
	for _, s := range servers {
		list = append(list, s.Addr)
	}
	return list
}

// nodes writes addresses as the value of a list variable.
func nodes(addrs ...string) string {
	quoted := make([]string, len(addrs))
	for i, a := range addrs {
		quoted[i] = strconv.Quote(a)
	}
	return "endpoints=[" + strings.Join(quoted, ",") + "]"
}

// link is a connection to a Redis server.
type link struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func dial(t testing.TB, addr string) *link {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(60*time.Second)))
	return &link{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// ask sends a command and returns its reply: a status, a number or a text.
func (l *link) ask(args ...string) string {
	l.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	_, err := io.WriteString(l.conn, b.String())
	require.NoError(l.t, err)
	return l.reply()
}

func (l *link) reply() string {
	l.t.Helper()
	line := l.line()
	require.NotEqual(l.t, byte('-'), line[0], line)
	if line[0] != '$' {
		return line[1:]
	}
	n, err := strconv.Atoi(line[1:])
	require.NoError(l.t, err)
	require.GreaterOrEqual(l.t, n, 0, "nothing there")
	body := make([]byte, n+2)
	_, err = io.ReadFull(l.in, body)
	require.NoError(l.t, err)
	return string(body[:n])
}

func (l *link) line() string {
	l.t.Helper()
	line, err := l.in.ReadString('\n')
	require.NoError(l.t, err)
	return strings.TrimRight(line, "\r\n")
}

// ask sends a command to a server.
func ask(t testing.TB, addr string, args ...string) string {
	t.Helper()
	l := dial(t, addr)
	defer l.conn.Close()
	return l.ask(args...)
}

// number asks for a number.
func number(t testing.TB, addr string, args ...string) int {
	t.Helper()
	n, err := strconv.Atoi(ask(t, addr, args...))
	require.NoError(t, err)
	return n
}

// calls is how often a server carried out each verb.
type calls map[string]uint64

// countCalls reads a server's own counters.
func countCalls(t testing.TB, addr string) calls {
	t.Helper()
	return parseCalls(t, ask(t, addr, "INFO", "commandstats"))
}

func parseCalls(t testing.TB, info string) calls {
	t.Helper()
	verbs := map[string]string{"cmdstat_get": "get", "cmdstat_set": "put", "cmdstat_del": "delete"}
	c := calls{}
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":calls=")
		if verb := verbs[name]; verb != "" {
			digits, _, _ := strings.Cut(rest, ",")
			n, err := strconv.ParseUint(digits, 10, 64)
			require.NoError(t, err)
			c[verb] = n
		}
	}
	return c
}

// stat reads a number from INFO.
func stat(t testing.TB, addr, name string) int {
	t.Helper()
	for line := range strings.Lines(ask(t, addr, "INFO")) {
		if digits, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			n, err := strconv.Atoi(digits)
			require.NoError(t, err)
			return n
		}
	}
	require.Fail(t, "INFO has no "+name)
	return 0
}
