package cachenode

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// memcachedSession is a client of the memcached protocol that shows replies as they are.
type memcachedSession struct{ *session }

func openMemcached(t testing.TB, n *Node) memcachedSession { return memcachedSession{open(t, n)} }

// reply reads one reply: a line and its value, or all the lines of a reply to stats.
func (s memcachedSession) reply() string {
	s.t.Helper()
	line, err := s.in.ReadString('\n')
	require.NoError(s.t, err, "after %q", line)
	switch words := strings.Fields(line); words[0] {
	case "VA":
		size, err := strconv.Atoi(words[1])
		require.NoError(s.t, err)
		value := make([]byte, size+2)
		_, err = io.ReadFull(s.in, value)
		require.NoError(s.t, err)
		return line + string(value)
	case "VALUE":
		size, err := strconv.Atoi(strings.Split(strings.TrimSuffix(line, "\r\n"), " ")[3]) // a tab may be part of the key
		require.NoError(s.t, err)
		value := make([]byte, size+2)
		_, err = io.ReadFull(s.in, value)
		require.NoError(s.t, err)
		return line + string(value) + s.reply()
	case "STAT":
		return line + s.reply()
	}
	return line
}

func (s memcachedSession) do(request string) string {
	s.t.Helper()
	s.send(request)
	return s.reply()
}

func TestMemcachedCommands(t *testing.T) {
	const format, flag = "CLIENT_ERROR bad command line format\r\n", "CLIENT_ERROR invalid flag\r\n"
	const unkept = "CLIENT_ERROR this node keeps no client flags\r\n"
	longest := strings.Repeat("k", 250)
	tests := []struct{ request, want string }{
		{"mn\r\n", "MN\r\n"},
		{"mn\n", "MN\r\n"},
		{"version\r\n", "VERSION 0-loadgen\r\n"},
		{"mg k v\r\n", "EN\r\n"},
		{"mg k v k s t f O1\r\n", "EN kk O1\r\n"},
		{"ms k 5\r\nvalue\r\n", "HD\r\n"},
		{"mg k v\r\n", "VA 5\r\nvalue\r\n"},
		{"mg k\r\n", "HD\r\n"},
		{"mg k s v t O12 f k\r\n", "VA 5 s5 t-1 O12 f0 kk\r\nvalue\r\n"},
		{"mg k s t O12 f k\r\n", "HD s5 t-1 O12 f0 kk\r\n"},
		{"ms k 7 k T0 F0 O9\r\na\r\nmn\r\n\r\n", "HD kk O9\r\n"},
		{"mg k v O\r\n", "VA 7 O\r\na\r\nmn\r\n\r\n"},
		{"ms k 0\r\n\r\n", "HD\r\n"},
		{"mg k v\r\n", "VA 0\r\n\r\n"},
		{"mg k c\r\n", flag},
		{"mg k v q\r\n", flag},
		{"mg k N30\r\n", flag},
		{"mg k v v\r\n", "CLIENT_ERROR duplicate flag\r\n"},
		{"mg k O" + strings.Repeat("1", 32) + "\r\n", "CLIENT_ERROR opaque token too long\r\n"},
		{"ms k 1 I\r\nx\r\n", flag},
		{"ms k 1 v\r\nx\r\n", flag},
		{"ms k 1 Tx\r\nx\r\n", "CLIENT_ERROR bad token in command line format\r\n"},
		{"ms l 1 T300\r\nx\r\n", "HD\r\n"},
		{"mg l t\r\n", "HD t300\r\n"},
		{"ms l 1 T-1 k\r\nx\r\n", "HD kl\r\n"},
		{"set t 0 0 5\r\nvalue\r\n", "STORED\r\n"},
		{"get t\r\n", "VALUE t 0 5\r\nvalue\r\nEND\r\n"},
		{"mg t v\r\n", "VA 5\r\nvalue\r\n"},
		{"get none t none t\r\n", "VALUE t 0 5\r\nvalue\r\nVALUE t 0 5\r\nvalue\r\nEND\r\n"},
		{"gets none\r\n", "END\r\n"},
		{"get\r\n", format},
		{"get t " + longest + "k\r\n", format},
		{"get" + strings.Repeat(" none", 1000) + "\r\n", "END\r\n"},
		{"set u 0 300 1\r\nx\r\n", "STORED\r\n"},
		{"mg u t\r\n", "HD t300\r\n"},
		{"set u 0 -1 1\r\nx\r\n", "STORED\r\n"},
		{"get u\r\n", "END\r\n"},
		{"set u 1 0 1\r\nx\r\n", "CLIENT_ERROR this node keeps no client flags\r\n"},
		{"set u 0 soon 1\r\nx\r\n", format},
		{"set u 0 0 1 noreply\r\nx\r\n", format},
		{"delete t\r\n", "DELETED\r\n"},
		{"delete t\r\n", "NOT_FOUND\r\n"},
		{"delete t 0\r\n", format},
		{"mg l v\r\n", "EN\r\n"},
		{"ms l 1 T2592001\r\nx\r\n", "HD\r\n"}, // a date in 1970
		{"mg l v\r\n", "EN\r\n"},
		{"ms l 1 T2147483647\r\nx\r\n", "HD\r\n"}, // one in 2038
		{"mg l v\r\n", "VA 1\r\nx\r\n"},
		{"md l\r\n", "HD\r\n"},
		{"ms k 1 F7\r\nx\r\n", unkept},
		{"md k I\r\n", flag},
		{"mg k v\r\n", "VA 0\r\n\r\n"},
		{"md k k O1\r\n", "HD kk O1\r\n"},
		{"md k k O1\r\n", "NF kk O1\r\n"},
		{"md k\r\n", "NF\r\n"},
		{"mg " + longest + "\r\n", "EN\r\n"},
		{"mg " + longest + "k\r\n", format},
		{"ms " + longest + "k 2\r\nmn\r\n", format},
		{"md " + longest + "k\r\n", format},
		{"mg\r\n", format},
		{"md\r\n", format},
		{"mn x\r\n", format},
		{"quit now\r\n", format},
		{"\r\n", "ERROR\r\n"},
		{"MG k\r\n", "ERROR\r\n"},
		{"touch k 1\r\n", "ERROR\r\n"},
		{"stats cachedump\r\n", "CLIENT_ERROR this node knows stats, stats settings, stats faults and stats peers\r\n"},
		{"stats settings peers\r\n", format},
		{"ms a 1\r\nx\r\n", "HD\r\n"},
		{"flush_all 10\r\n", "CLIENT_ERROR this node flushes at once only\r\n"},
		{"mg a\r\n", "HD\r\n"},
		{"flush_all\r\n", "OK\r\n"},
		{"mg a\r\n", "EN\r\n"},
		{"flush_all 0\r\n", "OK\r\n"},
	}
	s := openMemcached(t, startNode(t, Config{Protocol: "memcached"}))
	for _, test := range tests {
		require.Equal(t, test.want, s.do(test.request), "%q", test.request)
	}
}

// TestMemcachedCASUniques are equal as long as the value is.
func TestMemcachedCASUniques(t *testing.T) {
	s := openMemcached(t, startNode(t, Config{Protocol: "memcached"}))
	put := func(key, value string) { require.Equal(t, "STORED\r\n", s.do("set "+key+" 0 0 1\r\n"+value+"\r\n")) }
	put("a", "x")
	put("b", "x")
	first := s.do("gets a\r\n")
	require.Regexp(t, `^VALUE a 0 1 [0-9]+\r\nx\r\nEND\r\n$`, first)
	require.Equal(t, first, strings.Replace(s.do("gets b\r\n"), "VALUE b", "VALUE a", 1))
	put("a", "y")
	second := s.do("gets a\r\n")
	require.NotEqual(t, strings.Fields(first)[4], strings.Fields(second)[4])
}

func TestMemcachedConnectionEnds(t *testing.T) {
	n := startNode(t, Config{Protocol: "memcached"})
	tests := []struct{ in, want string }{
		{"quit\r\nmn\r\n", ""},
		{"ms k\r\nmn\r\n", "CLIENT_ERROR bad command line format\r\n"},
		{"set k 0 0\r\nmn\r\n", "CLIENT_ERROR bad command line format\r\n"},
		{"set k 0 0 1\r\nabc\r\nmn\r\n", "CLIENT_ERROR bad data chunk\r\n"},
		{"get " + strings.Repeat("x", 200_000), "CLIENT_ERROR line too long\r\n"},
		{"ms k 1\r\nabc\r\nmn\r\n", "CLIENT_ERROR bad data chunk\r\n"},
		{"ms k 999999999\r\n" + strings.Repeat("x", 100_000), "SERVER_ERROR object too large for cache\r\n"},
		{strings.Repeat("x", 100_000), "CLIENT_ERROR line too long\r\n"},
	}
	for _, test := range tests {
		s := openMemcached(t, n)
		s.send("mn\r\n" + test.in)
		require.NoError(t, s.conn.(*net.TCPConn).CloseWrite())
		said, err := io.ReadAll(s.in)
		require.NoError(t, err)
		require.Equal(t, "MN\r\n"+test.want, string(said), "%.40q", test.in)
	}
	require.Equal(t, "MN\r\n", openMemcached(t, n).do("mn\r\n"))
}

func TestMemcachedConnectionsAreBounded(t *testing.T) {
	n := startNode(t, Config{Protocol: "memcached", MaxConnections: 1})
	require.Equal(t, "MN\r\n", openMemcached(t, n).do("mn\r\n"))
	s := openMemcached(t, n)
	require.Equal(t, "SERVER_ERROR max number of clients reached\r\n", s.reply())
	s.closed()
}

// TestAgainstMemcached sends the same random commands to a node and to memcached, many in one write, and compares every reply. For an error it
// compares only the kind, as the words change with memcached's versions.
func TestAgainstMemcached(t *testing.T) {
	conn, err := net.Dial("tcp", servertest.Memcached(t))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	want := memcachedSession{&session{t, conn, bufio.NewReader(conn)}}
	got := openMemcached(t, startNode(t, Config{Protocol: "memcached"}))
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var batch strings.Builder
		var sent []string
		for range 1 + rnd.IntN(50) {
			request := randomMemcached(rnd)
			sent = append(sent, request)
			batch.WriteString(request)
		}
		got.send(batch.String())
		want.send(batch.String())
		for _, request := range sent {
			require.Equal(t, errorKind(want.reply()), errorKind(got.reply()), "%q", request)
		}
	}
}

// errorKind cuts the words off an error.
func errorKind(reply string) string {
	if kind, _, found := strings.Cut(reply, "_ERROR "); found {
		return kind + "_ERROR"
	}
	return reply
}

func randomMemcached(rnd *rand.Rand) string {
	key := []string{"a", "b", "c", "d", "e", "\x01\xff", "tab\tbed", strings.Repeat("k", 250)}[rnd.IntN(8)]
	flags := func(letters ...string) string {
		rnd.Shuffle(len(letters), func(i, j int) { letters[i], letters[j] = letters[j], letters[i] })
		return strings.Repeat(" ", 1+rnd.IntN(2)) + strings.Join(letters[:rnd.IntN(len(letters)+1)], " ") + "\r\n"
	}
	switch rnd.IntN(24) {
	case 16, 17, 18, 19:
		return "get " + key + []string{"", " b", " c d e", " " + key}[rnd.IntN(4)] + "\r\n"
	case 20, 21, 22:
		v := strings.Repeat("v\r\n\x00", rnd.IntN(1<<rnd.IntN(12)))
		return fmt.Sprintf("set %s 0 %d %d\r\n%s\r\n", key, -rnd.IntN(2), len(v), v)
	case 23:
		return "delete " + key + "\r\n"
	case 0, 1, 2, 3, 4, 5:
		return "mg " + key + flags("v", "k", "s", "t", "f", "O12")
	case 6, 7, 8, 9:
		v := strings.Repeat("v\r\n\x00", rnd.IntN(1<<rnd.IntN(12)))
		return fmt.Sprintf("ms %s %d%s%s\r\n", key, len(v), flags("k", "O34", "F0", []string{"T0", "T0", "T-1"}[rnd.IntN(3)]), v)
	case 10, 11:
		return "md " + key + flags("k", "O56")
	case 12:
		return []string{"mn\r\n", "mn\n", "\r\n", "MN\r\n", "what\r\n"}[rnd.IntN(5)]
	case 13:
		return []string{"mg a v v\r\n", "mg a !\r\n", "md a z\r\n", "mg a v O" + strings.Repeat("1", 40) + "\r\n"}[rnd.IntN(4)]
	case 14:
		long := strings.Repeat("k", 251)
		return []string{"mg " + long + " v\r\n", "md " + long + "\r\n", "ms a 3 z\r\nabc\r\n"}[rnd.IntN(3)]
	default:
		return []string{"flush_all\r\n", "flush_all 0\r\n", "mg a v\r\n"}[rnd.IntN(3)]
	}
}

func TestMemcachedMemoryBound(t *testing.T) {
	s := openMemcached(t, startNode(t, Config{Protocol: "memcached", Memory: 10_000}))
	set := func(key string, size int) string {
		return s.do(fmt.Sprintf("ms %s %d\r\n%s\r\n", key, size, strings.Repeat("v", size)))
	}
	require.Equal(t, "SERVER_ERROR object too large for cache\r\n", set("k", 10_000))
	for i := range 100 {
		require.Equal(t, "HD\r\n", set(fmt.Sprintf("%04d", i), 400))
		require.Equal(t, "HD s400\r\n", s.do("mg 0000 s\r\n"), "kept by its reads")
	}
	stats := s.do("stats\r\n")
	for _, line := range []string{"bytes 10000", "limit_maxbytes 10000", "curr_items 20", "evictions 80"} {
		require.Contains(t, stats, "STAT "+line+"\r\n", "20 × (4 + 400 + 96) = 10,000")
	}
	require.Equal(t, "EN\r\n", s.do("mg 0080\r\n"))
	require.Equal(t, "HD\r\n", s.do("mg 0081\r\n"))
	require.Equal(t, "SERVER_ERROR object too large for cache\r\n", set("k", 1<<20), "read to its end")
	require.Equal(t, "MN\r\n", s.do("mn\r\n"))
}

func TestMemcachedStats(t *testing.T) {
	n := startNode(t, Config{Protocol: "memcached", Version: "1.2.3", Memory: 1 << 20})
	a, b := openMemcached(t, n), openMemcached(t, n)
	for _, request := range []string{"ms k 1\r\nv\r\n", "mg k v\r\n", "mg nothing\r\n", "md k\r\n", "mg k z\r\n"} {
		a.do(request)
	}
	b.do("ms k 1\r\nv\r\n")
	stats := b.do("stats\r\n")
	for _, line := range []string{
		"version 0-loadgen", "server_name loadgen", "loadgen_version 1.2.3", "curr_connections 2", "total_connections 2",
		"rejected_connections 0", "cmd_get 2", "cmd_set 2", "cmd_delete 1", "cmd_other 2", "get_hits 1", "get_misses 1",
		"bytes 98", "curr_items 1", "limit_maxbytes 1048576", "evictions 0",
	} {
		require.Contains(t, stats, "STAT "+line+"\r\n")
	}
	require.Regexp(t, `^STAT pid \d+\r\nSTAT uptime \d+\r\n(STAT \S+ \S+\r\n)+END\r\n$`, stats)
	require.Equal(t, fmt.Sprintf("STAT peer_%s get=2,set=1,del=1,other=1\r\nSTAT peer_%s get=0,set=1,del=0,other=2\r\nEND\r\n",
		a.conn.LocalAddr(), b.conn.LocalAddr()), b.do("stats peers\r\n"))
	require.Equal(t, "STAT maxbytes 1048576\r\nSTAT maxconns 10000\r\nSTAT evictions on\r\nEND\r\n", b.do("stats settings\r\n"))
}
