package redis

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

func newTestCodec(t testing.TB, cfg Config) *codec {
	t.Helper()
	c, err := Driver{}.NewCodec(driver.Link{Config: &cfg, Secrets: func(string) (string, error) { return testPassword, nil }})
	require.NoError(t, err)
	return c.(*codec)
}

func TestAppendRequest(t *testing.T) {
	long := strings.Repeat("k", 1234)
	tests := []struct {
		req  driver.Request
		want string
	}{
		{driver.Request{Verb: driver.Get, Key: []byte("k")}, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"},
		{driver.Request{Verb: driver.Get, Key: []byte("a\r\nb")}, "*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n"},
		{driver.Request{Verb: driver.Get, Key: []byte(long)}, "*2\r\n$3\r\nGET\r\n$1234\r\n" + long + "\r\n"},
		{driver.Request{Verb: driver.Delete, Key: []byte("key:000000000001")}, "*2\r\n$3\r\nDEL\r\n$16\r\nkey:000000000001\r\n"},
		{driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{}}, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"},
	}
	c := newTestCodec(t, Config{Protocol: 2})
	for _, test := range tests {
		require.Equal(t, test.want, string(c.AppendRequest(nil, &test.req)))
	}
	v := driver.Value{Size: 200, Seed: 9}
	require.Equal(t, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$200\r\n"+string(v.AppendTo(nil))+"\r\n",
		string(c.AppendRequest(nil, &driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &v})))
}

func TestAppendLength(t *testing.T) {
	for n, want := range map[int]string{
		0: "0", 9: "9", 10: "10", 99: "99", 100: "100", 109: "109", 999: "999", 1000: "1000", 536870912: "536870912",
	} {
		require.Equal(t, "x"+want+"\r\n", string(appendLength([]byte("x"), n)))
	}
}

// replies are all replies that a server may give to each verb.
var replies = []struct {
	verb driver.Verb
	in   string
	want driver.Reply
}{
	{driver.Get, "$5\r\nvalue\r\n", driver.Reply{Outcome: driver.OK, Value: []byte("value")}},
	{driver.Get, "$99999\r\n" + strings.Repeat("v", 99999) + "\r\n", driver.Reply{Outcome: driver.OK, Value: bytes.Repeat([]byte("v"), 99999)}},
	{driver.Get, "$100000\r\n" + strings.Repeat("v", 100000) + "\r\n", driver.Reply{Outcome: driver.OK, Value: bytes.Repeat([]byte("v"), 100000)}},
	{driver.Get, "$0\r\n\r\n", driver.Reply{Outcome: driver.OK, Value: []byte{}}},
	{driver.Get, "$12\r\n\r\n+OK\r\n$-1\r\n\r\n", driver.Reply{Outcome: driver.OK, Value: []byte("\r\n+OK\r\n$-1\r\n")}},
	{driver.Get, "$-1\r\n", driver.Reply{Outcome: driver.Miss}},
	{driver.Get, "-WRONGTYPE not a string\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("WRONGTYPE not a string")}},
	{driver.Get, "-\r\n", driver.Reply{Outcome: driver.Error, Message: []byte{}}},
	{driver.Get, "_\r\n", driver.Reply{Outcome: driver.Miss}},
	{driver.Get, "*-1\r\n", driver.Reply{Outcome: driver.Miss}},
	{driver.Delete, "$-1\r\n", driver.Reply{Outcome: driver.Miss}},
	{driver.Delete, "_\r\n", driver.Reply{Outcome: driver.Miss}},
	{driver.Put, "+OK\r\n", driver.Reply{Outcome: driver.OK}},
	{driver.Put, "-OOM command not allowed\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("OOM command not allowed")}},
	{driver.Delete, ":1\r\n", driver.Reply{Outcome: driver.OK}},
	{driver.Delete, ":0\r\n", driver.Reply{Outcome: driver.Miss}},
	{driver.Delete, "-LOADING still\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("LOADING still")}},
}

func TestParseAtEverySplit(t *testing.T) {
	c := newTestCodec(t, Config{Protocol: 2})
	for _, test := range replies {
		in := []byte(test.in) // copied once: some are long
		for cut := range in {
			if cut > 100 && cut < len(in)-100 {
				continue // all alike
			}
			got := driver.Reply{Value: []byte("left over")}
			n, err := c.Parse(in[:cut:cut], test.verb, &got)
			require.NoError(t, err, "%q", test.in[:cut])
			require.Zero(t, n, "%q", test.in[:cut])
		}
		for _, behind := range []string{"", "\r", "$1\r\nx\r\n"} {
			got := driver.Reply{Outcome: driver.Shed, Value: []byte("left over"), Message: []byte("left over")}
			n, err := c.Parse([]byte(test.in+behind), test.verb, &got)
			require.NoError(t, err, "%q", test.in)
			require.Equal(t, len(test.in), n)
			require.Equal(t, test.want, got)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name string
		verb driver.Verb
		in   string
		want string
	}{
		{"integer for a get", driver.Get, ":1\r\n", `reply to a redis get: got ":1\r\n"`},
		{"status for a get", driver.Get, "+QUEUED\r\n", `reply to a redis get: got "+QUEUED\r\n"`},
		{"null for a put", driver.Put, "$-1\r\n", `reply to a redis put: got "$-1\r\n"`},
		{"another status for a put", driver.Put, "+QUEUED\r\n", `reply to a redis put: got "+QUEUED\r\n"`},
		{"two deleted", driver.Delete, ":2\r\n", `reply to a redis delete: got ":2\r\n"`},
		{"array", driver.Get, "*1\r\n$1\r\nx\r\n", `reply to a redis get: got "*1\r\n"`},
		{"array for a get", driver.Get, "*0\r\n", `reply to a redis get: got "*0\r\n"`},
		{"RESP3 boolean", driver.Get, "#t\r\n", `not RESP2: got "#t\r\n"`},
		{"another protocol", driver.Get, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n", `not RESP2: got "HTTP/1.1 400 Bad Request\r\nContent-Type: "…`},
		{"binary", driver.Get, "\x00\xff", `not RESP2: got "\x00\xff"`},
		{"length is no number", driver.Get, "$five\r\n", `not a number: got "$five\r\n"`},
		{"length is missing", driver.Get, "$\r\n", `not a number: got "$\r\n"`},
		{"length has a sign only", driver.Get, "$-\r\n", `not a number: got "$-\r\n"`},
		{"length has a plus", driver.Get, "$+5\r\n", `not a number: got "$+5\r\n"`},
		{"negative length", driver.Get, "$-2\r\n", `bulk string of negative length: got "$-2\r\n"`},
		{"length overflows", driver.Get, "$18446744073709551621\r\n", `not a number: got "$18446744073709551621\r\n"`},
		{"length goes on", driver.Get, "$" + strings.Repeat("1", 100), `not a number: got "$111111111111111111111111111111111111111"…`},
		{"length beyond the limit", driver.Get, "$536870913\r\n", "bulk string of 536870913 bytes is beyond the limit of 536870912"},
		{"length ends in LF", driver.Get, "$5\nvalue\r\n", `not a number: got "$5\nvalue\r\n"`},
		{"bulk is longer", driver.Get, "$4\r\nvalue\r\n", `bulk string of 4 bytes goes on after its end: got "e\r\n"`},
		{"bulk is shorter", driver.Get, "$6\r\nvalue\r\n+OK\r\n", `bulk string of 6 bytes goes on after its end: got "\n+OK\r\n"`},
		{"status ends in LF", driver.Put, "+OK\n", `line does not end in CR LF: got "+OK\n"`},
		{"LF in an error", driver.Put, "-ERR a\nb\r\n", `line does not end in CR LF: got "-ERR a\n"`},
		{"type and LF", driver.Put, "+\n", `line does not end in CR LF: got "+\n"`},
		{"error goes on", driver.Put, "-" + strings.Repeat("x", maxLine), `line does not end within 65536 bytes: got "-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"…`},
	}
	c := newTestCodec(t, Config{Protocol: 2})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var r driver.Reply
			n, err := c.Parse([]byte(test.in), test.verb, &r)
			require.EqualError(t, err, test.want)
			require.Zero(t, n)
		})
	}
}

// TestParseLargestBulk pins that the limit is inclusive, and that an incomplete value is incomplete whatever its size.
func TestParseLargestBulk(t *testing.T) {
	var r driver.Reply
	n, err := newTestCodec(t, Config{Protocol: 2}).Parse([]byte("$536870912\r\nonly the beginning"), driver.Get, &r)
	require.NoError(t, err)
	require.Zero(t, n)
}

func FuzzParse(f *testing.F) {
	for _, r := range replies {
		f.Add([]byte(r.in), uint8(r.verb), uint16(len(r.in)/2))
	}
	for _, r := range replies[:6] {
		f.Add([]byte(r.in), uint8(driver.Put), uint16(len(r.in))) // out of order: to another request
	}
	for _, in := range []string{"$18446744073709551621\r\n", "*2\r\n$1\r\na\r\n", "$1073741824\r\nx", "$5\r\nval", "%1\r\n+a\r\n:1\r\n", ">1\r\n+a\r\n", "#t\r\n", ""} {
		f.Add([]byte(in), uint8(0), uint16(3))
	}
	c := newTestCodec(f, Config{Protocol: 2})
	f.Fuzz(func(t *testing.T, b []byte, verb uint8, at uint16) {
		v := driver.Verb(int(verb) % driver.NumVerbs)
		var whole, part driver.Reply
		n, err := c.Parse(b, v, &whole)
		require.LessOrEqual(t, n, len(b))
		require.GreaterOrEqual(t, n, 0)
		if err != nil {
			require.Zero(t, n)
			return
		}
		cut := b[:min(int(at), len(b))]
		if size := c.Outline(cut, v); size > 0 {
			require.True(t, n == 0 && size > len(b) || n == size && whole.Outcome == driver.OK, "outline of %d bytes", size)
		}
		taken, err := c.Parse(cut, v, &part)
		require.NoError(t, err, "a beginning of what is no error")
		if n > 0 && len(cut) >= n {
			require.Equal(t, n, taken)
			require.Equal(t, whole, part)
		} else {
			require.Zero(t, taken)
		}
	})
}

func BenchmarkAppendRequest(b *testing.B) {
	key := []byte("key:000000000001")
	requests := []driver.Request{
		{Verb: driver.Get, Key: key},
		{Verb: driver.Put, Key: key, Value: &driver.Value{Size: 200, Seed: 1}},
		{Verb: driver.Delete, Key: key},
	}
	c := newTestCodec(b, Config{Protocol: 2})
	for _, req := range requests {
		b.Run("verb="+req.Verb.String(), func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]byte, 0, 1024)
			for b.Loop() {
				c.AppendRequest(dst, &req)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	tests := []struct {
		reply string
		verb  driver.Verb
		in    string
	}{
		{"bulk", driver.Get, "$200\r\n" + strings.Repeat("v", 200) + "\r\n"},
		{"null", driver.Get, "$-1\r\n"},
		{"status", driver.Put, "+OK\r\n"},
		{"integer", driver.Delete, ":1\r\n"},
		{"incomplete", driver.Get, "$1048576\r\n" + strings.Repeat("v", 1<<19)},
	}
	c := newTestCodec(b, Config{Protocol: 2})
	for _, test := range tests {
		b.Run("reply="+test.reply, func(b *testing.B) {
			b.ReportAllocs()
			in := []byte(test.in)
			var r driver.Reply
			for b.Loop() {
				if _, err := c.Parse(in, test.verb, &r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
