package redis

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

func newCodec3(t testing.TB, cfg Config) *codec {
	t.Helper()
	cfg.Protocol = 3
	c, err := Driver{}.NewCodec(driver.Link{Config: &cfg, Secrets: func(string) (string, error) { return testPassword, nil }})
	require.NoError(t, err)
	return c.(*codec)
}

// asides have all types of values, in messages that a server may send before a reply.
var asides = []string{
	">2\r\n+pubsub\r\n:1\r\n",
	">3\r\n$7\r\nmessage\r\n$1\r\na\r\n*2\r\n_\r\n#t\r\n",
	">5\r\n,1.5e-3\r\n,-inf\r\n,nan\r\n(-349999999999999999999999999999\r\n#f\r\n",
	">4\r\n=8\r\ntxt:+OK\r\r\n!9\r\nERR \r\n$-1\r\n~2\r\n:1\r\n:2\r\n%1\r\n+a\r\n*-1\r\n",
	"|1\r\n+ttl\r\n:3600\r\n",
	"|1\r\n+a\r\n%2\r\n$1\r\nb\r\n*0\r\n_\r\n|1\r\n+c\r\n+d\r\n+e\r\n",
	">1\r\n|1\r\n+a\r\n+b\r\n+c\r\n",
}

func TestParse3AtEverySplit(t *testing.T) {
	c := newCodec3(t, Config{})
	all := append(replies[:len(replies):len(replies)], []struct {
		verb driver.Verb
		in   string
		want driver.Reply
	}{
		{driver.Get, "_\r\n", driver.Reply{Outcome: driver.Miss}},
		{driver.Get, "=9\r\ntxt:value\r\n", driver.Reply{Outcome: driver.OK, Value: []byte("value")}},
		{driver.Get, "!20\r\nSYNTAX invalid\r\nmore\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("SYNTAX invalid\r\nmore")}},
	}...)
	for _, test := range all {
		if len(test.in) > 2000 {
			continue // RESP2's test splits them
		}
		for _, before := range append(asides[:len(asides):len(asides)], "", strings.Join(asides, "")) {
			in := before + test.in
			for cut := range in {
				got := driver.Reply{Value: []byte("left over")}
				n, err := c.Parse([]byte(in[:cut]), test.verb, &got)
				require.NoError(t, err, "%q", in[:cut])
				require.Zero(t, n, "%q", in[:cut])
			}
			for _, behind := range []string{"", "\r", "$1\r\nx\r\n", ">"} {
				got := driver.Reply{Outcome: driver.Shed, Value: []byte("left over"), Message: []byte("left over")}
				n, err := c.Parse([]byte(in+behind), test.verb, &got)
				require.NoError(t, err, "%q", in)
				require.Equal(t, len(in), n, "%q", in)
				require.Equal(t, test.want, got)
			}
		}
	}
}

func TestAside(t *testing.T) {
	c := newCodec3(t, Config{})
	for _, message := range asides {
		if message[0] != '>' {
			continue
		}
		for cut := 1; cut < len(message); cut++ {
			n, err := c.Aside([]byte(message[:cut]))
			require.NoError(t, err, "%q", message[:cut])
			require.Zero(t, n, "%q", message[:cut])
		}
		n, err := c.Aside([]byte(message + message))
		require.NoError(t, err)
		require.Equal(t, len(message), n)
	}
	for _, reply := range []string{"+OK\r\n", "$1\r\nx\r\n", "_\r\n", "|1\r\n", "x", ">-1\r\n", ">99999999\r\n"} {
		_, err := c.Aside([]byte(reply))
		require.Error(t, err, "%q", reply)
	}
}

func TestParse3Refuses(t *testing.T) {
	tests := []struct {
		name string
		verb driver.Verb
		in   string
		want string
	}{
		{"null for a put", driver.Put, "_\r\n", `reply to a redis put: got "_\r\n"`},
		{"boolean", driver.Delete, "#t\r\n", `reply to a redis delete: got "#t\r\n"`},
		{"double", driver.Delete, ",1\r\n", `reply to a redis delete: got ",1\r\n"`},
		{"map", driver.Get, "%1\r\n+a\r\n+b\r\n", `reply to a redis get: got "%1\r\n"`},
		{"set", driver.Get, "~0\r\n", `reply to a redis get: got "~0\r\n"`},
		{"null goes on", driver.Get, "_x\r\n", `not what follows "_": got "_x\r\n"`},
		{"null ends in LF", driver.Get, "_\n", `not what follows "_": got "_\n"`},
		{"neither true nor false", driver.Get, "#x\r\n", `not what follows "#": got "#x\r\n"`},
		{"no double", driver.Get, ",1.x\r\n", `not a number: got ",1.x\r\n"`},
		{"double without digits", driver.Get, ",-.\r\n", `not a number: got ",-.\r\n"`},
		{"big number with a point", driver.Get, "(1.5\r\n", `not a number: got "(1.5\r\n"`},
		{"verbatim string without a format", driver.Get, "=3\r\ntxt\r\n", `verbatim string without a format: got "=3\r\ntxt\r\n"`},
		{"verbatim string of negative length", driver.Get, "=-1\r\n", `text of negative length: got "=-1\r\n"`},
		{"map of negative length", driver.Get, "%-1\r\n", `aggregate of -1 values, of 0 to 1048576: got "%-1\r\n"`},
		{"streamed string", driver.Get, "$?\r\n", `not a number: got "$?\r\n"`},
		{"streamed array", driver.Get, "*?\r\n", `not a number: got "*?\r\n"`},
		{"long push", driver.Get, ">1048577\r\n", `aggregate of 1048577 values, of 0 to 1048576: got ">1048577\r\n"`},
		{"push that holds too much", driver.Get, ">2\r\n*600000\r\n" + strings.Repeat("_\r\n", 600_000) + "*600000\r\n", `reply of more than 1048576 values: got ">2\r\n*600000\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n"…`},
		{"long array", driver.Get, "*999999999\r\n", "array of 999999999 values is beyond the limit of 1048576"},
		{"push in a push that is none", driver.Get, ">1\r\nx", `not RESP: got "x"`},
		{"another protocol", driver.Get, "HTTP/1.1 400 Bad Request\r\n", `not RESP: got "HTTP/1.1 400 Bad Request\r\n"`},
	}
	c := newCodec3(t, Config{})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var r driver.Reply
			n, err := c.Parse([]byte(test.in), test.verb, &r)
			require.EqualError(t, err, test.want)
			require.Zero(t, n)
		})
	}
}

func TestGreet3(t *testing.T) {
	secret := &driver.Secret{Name: "cache"}
	const ping = "*1\r\n$4\r\nPING\r\n"
	auth := "$4\r\nAUTH\r\n$7\r\ndefault\r\n$23\r\n" + testPassword + "\r\n"
	tests := []struct {
		name    string
		cfg     Config
		want    string
		replies int
	}{
		{"nothing", Config{}, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n" + ping, 2},
		{"password", Config{Password: secret}, "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n" + auth + ping, 2},
		{"user", Config{Username: "u", Password: secret}, "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n" + strings.Replace(auth, "$7\r\ndefault", "$1\r\nu", 1) + ping, 2},
		{
			"all",
			Config{Password: secret, ClientName: "load", Database: 1},
			"*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n" + auth + "$7\r\nSETNAME\r\n$4\r\nload\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n" + ping, 3,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b, n := newCodec3(t, test.cfg).Greet(nil)
			require.Equal(t, test.want, string(b))
			require.Equal(t, test.replies, n)
		})
	}
	b, n := newTestCodec(t, Config{Protocol: 2, ClientName: "load"}).Greet(nil)
	require.Equal(t, "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$4\r\nload\r\n"+ping, string(b))
	require.Equal(t, 2, n)
}

func TestParseHello(t *testing.T) {
	c := newCodec3(t, Config{Password: &driver.Secret{Name: "cache"}})
	const answer = "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nmodules\r\n*1\r\n%1\r\n+name\r\n+x\r\n"
	for _, before := range append(asides[:len(asides):len(asides)], "") {
		in := before + answer
		for cut := range in {
			n, err := c.ParseGreeting([]byte(in[:cut]), 0)
			require.NoError(t, err, "%q", in[:cut])
			require.Zero(t, n, "%q", in[:cut])
		}
		n, err := c.ParseGreeting([]byte(in+"+PONG\r\n"), 0)
		require.NoError(t, err)
		require.Equal(t, len(in), n)
	}
	const withheld = "(words withheld: they could hold the password)"
	const remedy = ": it does not speak RESP3, which Redis does from version 6 on; write protocol = 2 in the target"
	for in, want := range map[string]string{
		"-NOPROTO unsupported protocol version\r\n":                                         "server says NOPROTO unsupported protocol version" + remedy,
		"-ERR unknown command `HELLO`, with args beginning with: `3`\r\n":                   "server says ERR unknown command `HELLO`, with args beginning with: `3`" + remedy,
		"-ERR unknown command 'HELLO', with args: '3' 'AUTH' 'default' 'correct horse'\r\n": "server says ERR " + withheld + remedy,
		"-WRONGPASS invalid username-password pair\r\n":                                     "server says WRONGPASS invalid username-password pair",
		"*14\r\n":                    `want a map, got "*14\r\n"`,
		"+OK\r\n":                    `want a map, got "+OK\r\n"`,
		"%1\r\n+server\r\nredis\r\n": `not RESP: got "redis\r\n"`,
	} {
		_, err := c.ParseGreeting([]byte(in), 0)
		require.EqualError(t, err, "HELLO 3: "+want)
	}
}

func TestValidateProtocol(t *testing.T) {
	require.ErrorContains(t, (&Config{Protocol: 4}).Validate(), "protocol = 4: write 2, or 3 for RESP3")
	for _, name := range []string{"two words", "é", strings.Repeat("x", 257)} {
		require.ErrorContains(t, (&Config{Protocol: 3, ClientName: name}).Validate(), "client_name = ")
	}
	require.NoError(t, (&Config{Protocol: 3, ClientName: "load-1"}).Validate())
}

func FuzzParse3(f *testing.F) {
	for _, r := range replies {
		for _, before := range asides {
			if len(r.in) > 2000 {
				continue // a fuzzer is quick with short ones
			}
			f.Add([]byte(before+r.in), uint8(r.verb), uint16(len(r.in)/2))
		}
	}
	f.Add([]byte(strings.Join(asides, "")), uint8(0), uint16(3))
	c := newCodec3(f, Config{})
	f.Fuzz(func(t *testing.T, b []byte, verb uint8, at uint16) {
		v := driver.Verb(int(verb) % int(driver.Delete+1))
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
		if len(b) > 0 {
			m, err := c.Aside(b)
			require.True(t, m >= 0 && m <= len(b))
			require.True(t, err == nil || m == 0)
		}
	})
}

func TestConformance3WithServer(t *testing.T) {
	addr := servertest.Redis(t, "--requirepass", "open sesame")
	drivertest.Run(t, drivertest.Suite{
		Driver:  Driver{},
		Config:  &Config{Protocol: 3, Password: &driver.Secret{Name: "cache"}, ClientName: "conformance", Database: 1},
		Secrets: secrets,
		Dial:    dialer(addr),
	})
}

// TestGreeting3WithServer checks what a user reads, and what the server was told.
func TestGreeting3WithServer(t *testing.T) {
	addr := servertest.Redis(t, "--requirepass", "open sesame")
	conn, err := dialer(addr)()
	require.NoError(t, err)
	defer conn.Close()
	_, err = Driver{}.Identify(context.Background(), conn, driver.Link{Config: &Config{Protocol: 3}, Secrets: secrets})
	require.ErrorContains(t, err, "HELLO 3: server says NOAUTH HELLO must be called with the client already authenticated")

	old := servertest.Redis(t, "--rename-command", "HELLO", "")
	conn, err = dialer(old)()
	require.NoError(t, err)
	defer conn.Close()
	_, err = Driver{}.Identify(context.Background(), conn, driver.Link{Config: &Config{Protocol: 3}, Secrets: secrets})
	require.ErrorContains(t, err, "it does not speak RESP3, which Redis does from version 6 on; write protocol = 2 in the target")
}

// TestPushBetweenReplies makes a real server send push messages: it tells a connection which of the keys it has read have changed.
func TestPushBetweenReplies(t *testing.T) {
	addr := servertest.Redis(t)
	conn, err := dialer(addr)()
	require.NoError(t, err)
	c := newCodec3(t, Config{})
	x := drivertest.OverConn(t, trackingCodec{c}, conn)
	other := drivertest.OverConn(t, newTestCodec(t, Config{Protocol: 2}), dial(t, addr))
	key := []byte("k")
	get := driver.Request{Verb: driver.Get, Key: key}
	for i := range 50 {
		put := driver.Request{Verb: driver.Put, Key: key, Value: &driver.Value{Size: 10 + i, Seed: uint64(i)}}
		require.Equal(t, driver.OK, other.Do(t, put)[0].Outcome)
		for _, r := range x.Do(t, get, get) {
			require.Equal(t, driver.OK, r.Outcome)
			require.True(t, bytes.Equal(put.Value.AppendTo(nil), r.Value))
		}
	}
}

// trackingCodec greets with CLIENT TRACKING.
type trackingCodec struct{ *codec }

func (c trackingCodec) Greet(dst []byte) ([]byte, int) {
	dst, n := c.codec.Greet(dst)
	return AppendCommand(dst, "CLIENT", "TRACKING", "ON"), n + 1
}

func (c trackingCodec) ParseGreeting(b []byte, i int) (int, error) {
	if i < len(c.greeting.steps) {
		return c.codec.ParseGreeting(b, i)
	}
	_, n, err := readReply(b)
	return n, err
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	require.NoError(t, err)
	return conn
}

// A server that speaks RESP2 sends nothing unasked: the codec says no more about what it does send, so that it counts as bytes that nobody asked for.
func TestRESP2KnowsNoMessages(t *testing.T) {
	c, err := Driver{}.NewCodec(driver.Link{Config: &Config{Protocol: 2}})
	require.NoError(t, err)
	_, err = c.(driver.Aside).Aside([]byte(">2\r\n+a\r\n+b\r\n"))
	require.Equal(t, driver.ErrUnasked, err)
}
