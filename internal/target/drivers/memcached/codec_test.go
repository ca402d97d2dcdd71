package memcached

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

func TestAppendRequest(t *testing.T) {
	long := strings.Repeat("k", 250)
	v := driver.Value{Size: 200, Seed: 9}
	tests := []struct {
		req  driver.Request
		want string
	}{
		{driver.Request{Verb: driver.Get, Key: []byte("k")}, "mg k v\r\n"},
		{driver.Request{Verb: driver.Get, Key: []byte(long)}, "mg " + long + " v\r\n"},
		{driver.Request{Verb: driver.Delete, Key: []byte("key:000000000001")}, "md key:000000000001\r\n"},
		{driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{}}, "ms k 0\r\n\r\n"},
		{driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &v}, "ms k 200\r\n" + string(v.AppendTo(nil)) + "\r\n"},
	}
	for _, test := range tests {
		require.Equal(t, test.want, string(codec{}.AppendRequest(nil, &test.req)))
	}
}

func TestNewCodecRefusesAnotherConfig(t *testing.T) {
	_, err := Driver{}.NewCodec(driver.Link{Config: "text"})
	require.EqualError(t, err, "memcached: config is a string, want a *memcached.Config")
}

// replies are all replies that a server may give to each verb.
var replies = []struct {
	verb driver.Verb
	in   string
	want driver.Reply
}{
	{driver.Get, "VA 5\r\nvalue\r\n", driver.Reply{Outcome: driver.OK, Value: []byte("value")}},
	{driver.Get, "VA 0\r\n\r\n", driver.Reply{Outcome: driver.OK, Value: []byte{}}},
	{driver.Get, "VA 12\r\n\r\nEN\r\nHD\r\n\r\n\r\n", driver.Reply{Outcome: driver.OK, Value: []byte("\r\nEN\r\nHD\r\n\r\n")}},
	{driver.Get, "VA 5 W X\r\nvalue\r\n", driver.Reply{Outcome: driver.OK, Value: []byte("value")}},
	{driver.Get, "VA 2 \r\nok\r\n", driver.Reply{Outcome: driver.OK, Value: []byte("ok")}},
	{driver.Get, "EN\r\n", driver.Reply{Outcome: driver.Miss}},
	{driver.Get, "ERROR\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("ERROR")}},
	{driver.Get, "SERVER_ERROR out of memory writing get response\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("SERVER_ERROR out of memory writing get response")}},
	{driver.Put, "HD\r\n", driver.Reply{Outcome: driver.OK}},
	{driver.Put, "HD \r\n", driver.Reply{Outcome: driver.OK}},
	{driver.Put, "NS\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("NS: not stored")}},
	{driver.Put, "EX\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("EX: not stored, the item has changed")}},
	{driver.Put, "NF\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("NF: not stored, there is no such item")}},
	{driver.Put, "SERVER_ERROR object too large for cache\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("SERVER_ERROR object too large for cache: start the server with a larger -I, or put smaller values")}},
	{driver.Delete, "HD\r\n", driver.Reply{Outcome: driver.OK}},
	{driver.Delete, "NF\r\n", driver.Reply{Outcome: driver.Miss}},
	{driver.Delete, "NS\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("NS: not deleted")}},
	{driver.Delete, "EX\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("EX: not deleted, the item has changed")}},
	{driver.Delete, "CLIENT_ERROR bad command line format\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("CLIENT_ERROR bad command line format")}},
}

func TestParseAtEverySplit(t *testing.T) {
	for _, test := range replies {
		for cut := range test.in {
			got := driver.Reply{Value: []byte("left over")}
			n, err := codec{}.Parse([]byte(test.in[:cut]), test.verb, &got)
			require.NoError(t, err, "%q", test.in[:cut])
			require.Zero(t, n, "%q", test.in[:cut])
		}
		for _, behind := range []string{"", "\r", "VA 1\r\nx\r\n"} {
			got := driver.Reply{Outcome: driver.Shed, Value: []byte("left over"), Message: []byte("left over")}
			n, err := codec{}.Parse([]byte(test.in+behind), test.verb, &got)
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
		{"no value for a get", driver.Get, "HD\r\n", `reply to a memcached get: got "HD\r\n"`},
		{"no item for a get", driver.Get, "NF\r\n", `reply to a memcached get: got "NF\r\n"`},
		{"miss for a put", driver.Put, "EN\r\n", `reply to a memcached put: got "EN\r\n"`},
		{"value for a put", driver.Put, "VA 1\r\nx\r\n", `reply to a memcached put: got "VA 1\r\n"`},
		{"miss for a delete", driver.Delete, "EN\r\n", `reply to a memcached delete: got "EN\r\n"`},
		{"no-op for a get", driver.Get, "MN\r\n", `reply to a memcached get: got "MN\r\n"`},
		{"classic value", driver.Get, "VALUE k 0 5\r\nvalue\r\nEND\r\n", `reply to a memcached get: got "VALUE k 0 5\r\n"`},
		{"classic set", driver.Put, "STORED\r\n", `reply to a memcached put: got "STORED\r\n"`},
		{"earlier form of success", driver.Put, "OK\r\n", `reply to a memcached put: got "OK\r\n"`},
		{"code goes on", driver.Put, "HDX\r\n", `reply to a memcached put: got "HDX\r\n"`},
		{"error goes on", driver.Put, "ERRORS\r\n", `reply to a memcached put: got "ERRORS\r\n"`},
		{"another protocol", driver.Get, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n", `reply to a memcached get: got "HTTP/1.1 400 Bad Request\r\n"`},
		{"RESP", driver.Get, "-ERR unknown command 'mg'\r\n", `not the memcached protocol: got "-ERR unknown command 'mg'\r\n"`},
		{"binary", driver.Get, "\x81\x00", `not the memcached protocol: got "\x81\x00"`},
		{"bare end of line", driver.Get, "\r\n", `not the memcached protocol: got "\r\n"`},
		{"size is no number", driver.Get, "VA five\r\n", `not a size: got "VA five\r\n"`},
		{"size is missing", driver.Get, "VA\r\n", `not a size: got "VA\r\n"`},
		{"size is empty", driver.Get, "VA \r\n", `not a size: got "VA \r\n"`},
		{"size is negative", driver.Get, "VA -1\r\n", `not a size: got "VA -1\r\n"`},
		{"size goes on", driver.Get, "VA 5x\r\n", `not a size: got "VA 5x\r\n"`},
		{"size overflows", driver.Get, "VA 18446744073709551621\r\n", `not a size: got "VA 18446744073709551621\r\n"`},
		{"size beyond the limit", driver.Get, "VA 1073741825\r\n", "value of 1073741825 bytes is beyond the limit of 1073741824"},
		{"value is longer", driver.Get, "VA 4\r\nvalue\r\n", `value of 4 bytes goes on after its end: got "e\r\n"`},
		{"value is shorter", driver.Get, "VA 6\r\nvalue\r\nHD\r\n", `value of 6 bytes goes on after its end: got "\nHD\r\n"`},
		{"line ends in LF", driver.Put, "HD\n", `line does not end in CR LF: got "HD\n"`},
		{"line goes on", driver.Put, "SERVER_ERROR " + strings.Repeat("x", maxLine), `line does not end within 2048 bytes: got "SERVER_ERROR xxxxxxxxxxxxxxxxxxxxxxxxxxx"…`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var r driver.Reply
			n, err := codec{}.Parse([]byte(test.in), test.verb, &r)
			require.EqualError(t, err, test.want)
			require.Zero(t, n)
		})
	}
}

// TestParseLargestValue pins that the limit is inclusive, and that an incomplete value is incomplete whatever its size.
func TestParseLargestValue(t *testing.T) {
	var r driver.Reply
	n, err := codec{}.Parse([]byte("VA 1073741824\r\nonly the beginning"), driver.Get, &r)
	require.NoError(t, err)
	require.Zero(t, n)
}

func FuzzParse(f *testing.F) {
	for _, r := range replies {
		f.Add([]byte(r.in), uint8(r.verb), uint16(len(r.in)/2))
	}
	f.Add([]byte("VA 18446744073709551621\r\n"), uint8(0), uint16(3))
	f.Add([]byte("VA\r\n"), uint8(0), uint16(3))
	f.Fuzz(func(t *testing.T, b []byte, verb uint8, at uint16) {
		v := driver.Verb(int(verb) % driver.NumVerbs)
		var whole, part driver.Reply
		n, err := codec{}.Parse(b, v, &whole)
		require.LessOrEqual(t, n, len(b))
		require.GreaterOrEqual(t, n, 0)
		if err != nil {
			require.Zero(t, n)
			return
		}
		cut := b[:min(int(at), len(b))]
		if size := (codec{}).Outline(cut, v); size > 0 {
			require.True(t, n == 0 && size > len(b) || n == size && whole.Outcome == driver.OK, "outline of %d bytes", size)
		}
		taken, err := codec{}.Parse(cut, v, &part)
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
	for _, req := range requests {
		b.Run("verb="+req.Verb.String(), func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]byte, 0, 1024)
			for b.Loop() {
				codec{}.AppendRequest(dst, &req)
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
		{"value", driver.Get, "VA 200\r\n" + strings.Repeat("v", 200) + "\r\n"},
		{"miss", driver.Get, "EN\r\n"},
		{"stored", driver.Put, "HD\r\n"},
		{"deleted", driver.Delete, "HD\r\n"},
		{"incomplete", driver.Get, "VA 1048576\r\n" + strings.Repeat("v", 1<<19)},
	}
	for _, test := range tests {
		b.Run("reply="+test.reply, func(b *testing.B) {
			b.ReportAllocs()
			in := []byte(test.in)
			var r driver.Reply
			for b.Loop() {
				if _, err := (codec{}).Parse(in, test.verb, &r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
