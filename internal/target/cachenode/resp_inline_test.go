package cachenode

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

func TestInlineByteByByte(t *testing.T) {
	widest := strings.Repeat("x", maxInline)
	tests := []struct {
		line string
		want []string
	}{
		{"PING\r\n", []string{"PING"}},
		{"PING\n", []string{"PING"}},
		{"\r\n", []string{}},
		{" \t\v \n", []string{}},
		{"  SET\ta  b \r\n", []string{"SET", "a", "b"}},
		{`SET "a b" 'c d'` + "\r\n", []string{"SET", "a b", "c d"}},
		{`"" ''` + "\n", []string{"", ""}},
		{`"\x41\x0d\x0A\x00\n\r\t\b\a\\\"\q\x4g\x"` + "\n", []string{"A\r\n\x00\n\r\t\b\a\\\"qx4gx"}},
		{`'\x41\n\'"' "'"` + "\n", []string{`\x41\n'"`, "'"}},
		{`a"b c" d'e'` + "\n", []string{"ab c", "de"}},
		{`a\x41\n b\` + "\n", []string{`a\x41\n`, `b\`}},
		{"ü \xff\x01\n", []string{"ü", "\xff\x01"}},
		{"$5 +a :1\n", []string{"$5", "+a", ":1"}},
		{widest + "\n", []string{widest}},
		{strings.Repeat("x ", maxArgs) + "\n", slices.Repeat([]string{"x"}, maxArgs)},
	}
	for _, test := range tests {
		b := []byte(test.line)
		r := newRequest(1 << 20)
		for cut := range b {
			complete, err := r.parse(b[:cut:cut])
			require.NoError(t, err)
			require.False(t, complete, "%.40q", b[:cut])
		}
		b = append(b, "*1\r\n"...)
		complete, err := r.parse(b)
		require.NoError(t, err, "%.40q", test.line)
		require.True(t, complete)
		require.Equal(t, test.want, arguments(r, b))
		require.Equal(t, len(test.line), r.at)
	}
}

func TestInlineRefuses(t *testing.T) {
	tests := []struct{ in, want string }{
		{"\x00", "NUL in an inline request"},
		{"PING\x00\r\n", "NUL in an inline request"},
		{`PING "a` + "\r\n", "unbalanced quotes in request"},
		{`PING 'a\'` + "\r\n", "unbalanced quotes in request"},
		{`PING "a\` + "\n", "unbalanced quotes in request"},
		{`PING "a"b` + "\n", "unbalanced quotes in request"},
		{`PING "a"'b'` + "\n", "unbalanced quotes in request"},
		{strings.Repeat("x", maxInline+1), "too big inline request"},
		{strings.Repeat("x", maxInline) + "\r\n", "too big inline request"},
		{strings.Repeat("x ", maxArgs+1) + "\n", "too many words in an inline request"},
		{"POST / HTTP/1.1\r\n", "this is no HTTP server"},
		{"host: there\r\n", "this is no HTTP server"},
	}
	for _, test := range tests {
		_, err := newRequest(1 << 20).parse([]byte(test.in))
		require.EqualError(t, err, "Protocol error: "+test.want, "%.40q", test.in)
	}
}

// TestInlineAgainstRedis sends lines of random quotes and escapes to a node and to Redis, on a separate connection for each line that may break it.
func TestInlineAgainstRedis(t *testing.T) {
	addr := servertest.Redis(t)
	n := startNode(t, Config{})
	dialed := func() *session {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
		return &session{t, conn, bufio.NewReader(conn)}
	}
	pieces := []string{`"`, `'`, `\`, `\x41`, `\x0`, `\n`, `\'`, `\"`, " ", "\t", "\v", "\r", "a", "bc", "\xff", `""`, `''`}
	rnd := rand.New(rand.NewPCG(5, 6))
	want, got := dialed(), open(t, n)
	refused := 0
	for range 1000 {
		var line strings.Builder
		line.WriteString("PING ")
		for range rnd.IntN(8) {
			line.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		line.WriteString([]string{"\n", "\r\n"}[rnd.IntN(2)])
		want.send(line.String())
		got.send(line.String())
		reply := want.reply()
		require.Equal(t, reply, got.reply(), "%q", line.String())
		if strings.HasPrefix(reply, "-ERR Protocol error") {
			want.closed()
			got.closed()
			want, got = dialed(), open(t, n)
			refused++
		}
	}
	require.Greater(t, refused, 30)
}

// TestInlineAmongArrays mixes both forms in one write.
func TestInlineAmongArrays(t *testing.T) {
	s := open(t, startNode(t, Config{}))
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, "SET key:%d \"%s\"\r\n\r\n", i, strings.Repeat("v ", i))
		b.WriteString(wire("GET", fmt.Sprintf("key:%d", i)))
		b.WriteString("BLPOP key 0\n")
	}
	go func() { _, _ = io.WriteString(s.conn, b.String()) }() // ends when all is written, or with the connection; the replies tell
	for i := range 500 {
		require.Equal(t, "+OK\r\n", s.reply())
		require.Equal(t, fmt.Sprintf("$%d\r\n%s\r\n", 2*i, strings.Repeat("v ", i)), s.reply())
		require.Equal(t, unknownCommand("BLPOP"), s.reply())
	}
	require.Contains(t, s.do("INFO", "commandstats"), "cmdstat_get:calls=500\r\ncmdstat_set:calls=500\r\ncmdstat_del:calls=0\r\ncmdstat_other:calls=501\r\n")
}
