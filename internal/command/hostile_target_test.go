package command_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
)

// hostileServer greets as servers do, and answers a get with whatever it likes.
type hostileServer struct {
	addr   string
	answer func(conn net.Conn, addr string)
}

// serveHostile starts one that ends with the test.
func serveHostile(t *testing.T, answer func(conn net.Conn, addr string)) string {
	t.Helper()
	s := &hostileServer{answer: answer}
	s.addr = servertest.Serve(t, nil, s.talk)
	return s.addr
}

// talk answers lines until the client has gone.
func (s *hostileServer) talk(conn net.Conn) {
	for in := bufio.NewReader(conn); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		host, port, _ := net.SplitHostPort(s.addr)
		switch word, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.ToUpper(word) {
		case "PING":
			_, err = io.WriteString(conn, "+PONG\r\n")
		case "INFO":
			text := "redis_version:7.0\x1b]0;x\a\u202e\r\nredis_mode:cluster\r\n"
			_, err = fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(text), text)
		case "CONFIG", "CLIENT", "MGET":
			_, err = io.WriteString(conn, "-ERR no\r\n")
		case "SLOTS", "SHARDS":
			_, err = fmt.Fprintf(conn, "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$%d\r\n%s\r\n:%s\r\n$1\r\na\r\n", len(host), host, port)
		case "NODES":
			text := fmt.Sprintf("%040d %s:%s@1 myself,master - 0 0 1 connected 0-16383\n", 7, host, port)
			_, err = fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(text), text)
		case "MN":
			_, err = io.WriteString(conn, "MN\r\n")
		case "VERSION":
			_, err = io.WriteString(conn, "VERSION 1.6.21\r\n")
		case "STATS":
			_, err = io.WriteString(conn, "END\r\n")
		case "GET", "MG": // of memcached's commands it is the line's first word, of RESP a line of its own
			s.answer(conn, s.addr)
		}
		if err != nil {
			return
		}
	}
}

// pours writes a beginning, and then a piece again and again for as long as the client reads.
func pours(beginning, piece string) func(net.Conn, string) {
	block := strings.Repeat(piece, 64<<10/len(piece))
	return func(conn net.Conn, _ string) {
		_, err := io.WriteString(conn, beginning)
		for err == nil {
			_, err = io.WriteString(conn, block)
		}
	}
}

// says writes a text.
func says(text string) func(net.Conn, string) {
	return func(conn net.Conn, addr string) { _, _ = io.WriteString(conn, strings.ReplaceAll(text, "ADDR", addr)) }
}

// TestHostileTargets loads servers that answer with garbage. The load ends in time, errors are counted, and memory is bounded, whatever the servers
// announce and however much they send.
func TestHostileTargets(t *testing.T) {
	t.Parallel()
	const bound = 256 << 20 // bytes
	for name, c := range map[string]struct {
		target string
		answer func(net.Conn, string)
	}{
		"redis, a line without an end":        {`driver = "redis"`, pours("+", "x")},
		"redis, replies without an end":       {`driver = "redis"`, pours("$1\r\nv\r\n", "$1\r\nv\r\n")},
		"redis, a value of 1 GiB":             {`driver = "redis"`, pours("$1073741824\r\n", "x")},
		"redis, values of 512 MiB":            {`driver = "redis"`, pours("$536870912\r\n", "x")},
		"cluster, values of 512 MiB":          {"driver = \"redis\"\n cluster = true", pours("$536870912\r\n", "x")},
		"redis, a negative length":            {`driver = "redis"`, says("$-9223372036854775808\r\n")},
		"redis, a length beyond int64":        {`driver = "redis"`, says("$99999999999999999999999\r\n")},
		"redis, arrays in arrays":             {`driver = "redis"`, pours("", "*1\r\n")},
		"redis, an array of a billion":        {`driver = "redis"`, pours("*1000000000\r\n", "$1\r\nv\r\n")},
		"redis, maps in RESP3":                {"driver = \"redis\"", pours("%1000000000\r\n", "+a\r\n")},
		"redis, half a reply":                 {`driver = "redis"`, says("$100\r\nhalf")},
		"redis, an error that a terminal has": {`driver = "redis"`, says("-ERR \x1b]0;x\a\u202etxt\r\n")},
		"redis, nothing":                      {`driver = "redis"`, says("")},
		"redis, the end":                      {`driver = "redis"`, func(conn net.Conn, _ string) { _ = conn.Close() }},
		"cluster, to itself for ever":         {"driver = \"redis\"\n cluster = true", says("-MOVED 1 ADDR\r\n")},
		"cluster, asking for ever":            {"driver = \"redis\"\n cluster = true", says("-ASK 1 ADDR\r\n")},
		"cluster, to where nobody is":         {"driver = \"redis\"\n cluster = true", says("-MOVED 1 127.0.0.1:1\r\n")},
		"cluster, to no address":              {"driver = \"redis\"\n cluster = true", says("-MOVED 99999999 \x1b[2J:x\r\n")},
		"memcached, a line without an end":    {`driver = "memcached"`, pours("VA ", "1")},
		"memcached, a value of 1 GiB":         {`driver = "memcached"`, pours("VA 1073741824\r\n", "x")},
		"memcached, a value of 2 GiB":         {`driver = "memcached"`, pours("VA 2147483648\r\n", "x")},
		"memcached, a negative length":        {`driver = "memcached"`, says("VA -1\r\n")},
		"memcached, replies without an end":   {`driver = "memcached"`, pours("", "VA 1\r\nv\r\n")},
		"memcached, half a reply":             {`driver = "memcached"`, says("VA 100\r\nhalf")},
		"memcached, classic, 1 GiB":           {"driver = \"memcached\"\n protocol = \"text\"", pours("VALUE key:000000000000 0 1073741824\r\n", "x")},
		"memcached, classic, no end":          {"driver = \"memcached\"\n protocol = \"text\"", pours("", "VALUE k 0 1\r\nv\r\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := serveHostile(t, c.answer)
			long := strings.HasSuffix(name, "classic, 1 GiB") || name == "cluster, values of 512 MiB"
			timeout := "300ms"
			if long {
				timeout = "20s" // a slow machine, too, is to see more than the budget before it
			}
			l := begin(t, fmt.Sprintf(`
plan "hostile" {}
target "t" {
	%s
	endpoints = [%q]
	timeout   = %q
}
dataset "d" {
	keys { count = 1 }
	values { size = 1 }
}
phase "gets" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed {
		sessions = 4
		duration = "1s"
	}
}`, c.target, addr, timeout))
			used := peak(l.cmd.Process.Pid)
			code := l.wait(3 * time.Minute)
			most := used()
			t.Logf("%d MiB, exit code %d", most>>20, code)
			r := l.result(time.Second)
			require.Contains(t, []int{exit.Invalid, exit.Failed}, code, "%s", &l.stdout)
			require.Positive(t, most)
			require.Less(t, most, int64(bound))
			require.NotRegexp(t, "[\x00-\x08\x0b-\x1f\x7f\u202e]", l.stdout.String()+l.stderr.String())
			if long {
				require.Contains(t, strings.Join(strings.Fields(l.stdout.String()), " "), "all incomplete replies would take more than 128 MiB")
			}
			if r.ExitCode == exit.Invalid {
				o := r.Phase["gets"].Op["get"]
				require.Positive(t, o.Timeout+o.Error+o.Miss, "it is counted")
			}
		})
	}
}

// TestRepliesOutOfOrderAreNamed: an adapter that answers the second of two requests first is found by the keys that its values carry.
func TestRepliesOutOfOrderAreNamed(t *testing.T) {
	t.Parallel()
	addr := servertest.Serve(t, nil, func(conn net.Conn) {
		held := ""
		for in := bufio.NewReader(conn); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			reply := ""
			switch word := strings.TrimSpace(line); {
			case word == "PING":
				reply = "+PONG\r\n"
			case word == "MGET": // asked of servers that do not send back what PING says
				reply = "*2\r\n$-1\r\n$-1\r\n"
			case word == "INFO" || word == "CONFIG":
				reply = "-ERR unknown command\r\n"
			case strings.HasPrefix(word, "key:"):
				v := driver.Value{Size: 100, Key: driver.KeyHash([]byte(word))}
				if reply = fmt.Sprintf("$100\r\n%s\r\n", v.AppendTo(nil)); held == "" && in.Buffered() > 0 {
					held, reply = reply, ""
				}
			}
			if reply == "" {
				continue
			}
			if _, err = io.WriteString(conn, reply+held); err != nil {
				return
			}
			held = ""
		}
	})
	l := begin(t, fmt.Sprintf(`
plan "swapped" {}
target "t" {
	driver    = "redis"
	endpoints = [%q]
}
dataset "d" {
	keys { count = 1000 }
	values { size = 100 }
}
phase "gets" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed {
		sessions   = 1
		pipeline   = 16
		iterations = 64
	}
}`, addr))
	require.Equal(t, exit.Invalid, l.wait(time.Minute), "%s", &l.stdout)
	require.Contains(t, strings.Join(strings.Fields(l.stdout.String()), " "), "read belong to other keys: answers are mixed up")
}

// TestLongValues reads and checks values longer than a connection's buffer: all of them arrive.
func TestLongValues(t *testing.T) {
	t.Parallel()
	l := begin(t, `
plan "long" {}
variable "endpoints" { type = list(string) }
target "t" {
	driver    = "redis"
	endpoints = var.endpoints
	timeout   = "60s"
}
dataset "d" {
	keys { count = 4 }
	values {
		size    = "6MiB"
		checked = true
	}
}`+fillD+`
phase "gets" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed {
		sessions   = 4
		iterations = 10
		pipeline   = 2
	}
}`, "-var", nodes(addresses(cluster(t, 1))...))
	r := l.result(60 * time.Second)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	get := r.Phase["gets"].Op["get"]
	require.EqualValues(t, 40, get.OK, "%s", &l.stdout)
}
