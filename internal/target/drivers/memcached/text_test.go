package memcached

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

func TestAppendTextRequest(t *testing.T) {
	v := driver.Value{Size: 200, Seed: 9}
	short := driver.Value{Size: 3, Seed: 1, TTL: 90_000}
	for _, test := range []struct {
		cas  bool
		req  driver.Request
		want string
	}{
		{false, driver.Request{Verb: driver.Get, Key: []byte("k")}, "get k\r\n"},
		{true, driver.Request{Verb: driver.Get, Key: []byte("k")}, "gets k\r\n"},
		{false, driver.Request{Verb: driver.Delete, Key: []byte("key:000000000001")}, "delete key:000000000001\r\n"},
		{false, driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{}}, "set k 0 0 0\r\n\r\n"},
		{false, driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &v}, "set k 0 0 200\r\n" + string(v.AppendTo(nil)) + "\r\n"},
		{true, driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &short, Token: math.MaxUint64}, "cas k 0 90 3 18446744073709551615\r\n" + string(short.AppendTo(nil)) + "\r\n"},
		{true, driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &short}, "set k 0 90 3\r\n" + string(short.AppendTo(nil)) + "\r\n"},
	} {
		require.Equal(t, test.want, string(newTextCodec(test.cas).AppendRequest(nil, &test.req)))
	}
}

func TestTextSaysNothingFirst(t *testing.T) {
	b, replies := newTextCodec(false).Greet([]byte("before"))
	require.Equal(t, "before", string(b))
	require.Zero(t, replies)
}

// textReplies are all replies that a server may give to each verb.
var textReplies = []struct {
	verb driver.Verb
	in   string
	want driver.Reply
}{
	{driver.Get, "VALUE k 0 5\r\nvalue\r\nEND\r\n", driver.Reply{Outcome: driver.OK, Value: []byte("value")}},
	{driver.Get, "VALUE k 0 0\r\n\r\nEND\r\n", driver.Reply{Outcome: driver.OK, Value: []byte{}}},
	{driver.Get, "VALUE k 4294967295 7 18446744073709551615\r\n\r\nEND\r\n\r\nEND\r\n", driver.Reply{Outcome: driver.OK, Value: []byte("\r\nEND\r\n"), Token: math.MaxUint64}},
	{driver.Get, "END\r\n", driver.Reply{Outcome: driver.Miss}},
	{driver.Get, "ERROR\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("ERROR")}},
	{driver.Get, "SERVER_ERROR Connection refused\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("SERVER_ERROR Connection refused")}},
	{driver.Put, "STORED\r\n", driver.Reply{Outcome: driver.OK}},
	{driver.Put, "NOT_STORED\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("NOT_STORED")}},
	{driver.Put, "EXISTS\r\n", driver.Reply{Outcome: driver.Conflict}},
	{driver.Put, "NOT_FOUND\r\n", driver.Reply{Outcome: driver.Conflict}},
	{driver.Put, "SERVER_ERROR out of memory storing object\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("SERVER_ERROR out of memory storing object: start the server with more memory (-m), or put fewer or smaller values")}},
	{driver.Delete, "DELETED\r\n", driver.Reply{Outcome: driver.OK}},
	{driver.Delete, "NOT_FOUND\r\n", driver.Reply{Outcome: driver.Miss}},
	{driver.Delete, "CLIENT_ERROR bad command line format\r\n", driver.Reply{Outcome: driver.Error, Message: []byte("CLIENT_ERROR bad command line format")}},
}

func TestParseTextAtEverySplit(t *testing.T) {
	c := newTextCodec(false)
	for _, test := range textReplies {
		for cut := range test.in {
			got := driver.Reply{Value: []byte("left over")}
			n, err := c.Parse([]byte(test.in[:cut]), test.verb, &got)
			require.NoError(t, err, "%q", test.in[:cut])
			require.Zero(t, n, "%q", test.in[:cut])
		}
		for _, behind := range []string{"", "\r", "VALUE k 0 1\r\nx\r\nEND\r\n"} {
			got := driver.Reply{Outcome: driver.Shed, Value: []byte("left over"), Message: []byte("left over")}
			n, err := c.Parse([]byte(test.in+behind), test.verb, &got)
			require.NoError(t, err, "%q", test.in)
			require.Equal(t, len(test.in), n)
			require.Equal(t, test.want, got)
		}
	}
}

func TestParseTextRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		verb driver.Verb
		in   string
		want string
	}{
		"meta value":              {driver.Get, "VA 1\r\nx\r\n", `reply to a memcached get: got "VA 1\r\n"`},
		"meta put":                {driver.Put, "HD\r\n", `reply to a memcached put: got "HD\r\n"`},
		"end of values for a put": {driver.Put, "END\r\n", `reply to a memcached put: got "END\r\n"`},
		"put for a delete":        {driver.Delete, "STORED\r\n", `reply to a memcached delete: got "STORED\r\n"`},
		"put for a get":           {driver.Get, "STORED\r\n", `reply to a memcached get: got "STORED\r\n"`},
		"END goes on":             {driver.Get, "ENDING\r\n", `reply to a memcached get: got "ENDING\r\n"`},
		"END with words":          {driver.Get, "END of it\r\n", `reply to a memcached get: got "END of it\r\n"`},
		"two values for a get":    {driver.Get, "VALUE k 0 1\r\nx\r\nVALUE k 0 1\r\nx\r\nEND\r\n", `a value of a memcached get is not followed by END: got "VALUE k 0 1\r\nx\r\nEND\r\n"`},
		"almost an end":           {driver.Get, "VALUE k 0 1\r\nx\r\nEN\r", `a value of a memcached get is not followed by END: got "EN\r"`},
		"no size":                 {driver.Get, "VALUE k 0\r\n", `not a size: got "VALUE k 0\r\n"`},
		"no key":                  {driver.Get, "VALUE  0 1\r\n", `not a size: got "VALUE  0 1\r\n"`},
		"size is empty":           {driver.Get, "VALUE k 0 \r\n", `not a size: got "VALUE k 0 \r\n"`},
		"size is negative":        {driver.Get, "VALUE k 0 -1\r\n", `not a size: got "VALUE k 0 -1\r\n"`},
		"size overflows":          {driver.Get, "VALUE k 0 18446744073709551621\r\n", `not a size: got "VALUE k 0 18446744073709551621\r\n"`},
		"CAS unique is empty":     {driver.Get, "VALUE k 0 1 \r\n", `not a size: got "VALUE k 0 1 \r\n"`},
		"CAS unique is no number": {driver.Get, "VALUE k 0 1 x\r\n", `not a size: got "VALUE k 0 1 x\r\n"`},
		"CAS unique overflows":    {driver.Get, "VALUE k 0 1 18446744073709551616\r\n", `not a size: got "VALUE k 0 1 18446744073709551616\r\n"`},
		"six words":               {driver.Get, "VALUE k 0 1 2 3\r\n", `not a size: got "VALUE k 0 1 2 3\r\n"`},
		"size beyond the limit":   {driver.Get, "VALUE k 0 1073741825\r\n", "value of 1073741825 bytes is beyond the limit of 1073741824"},
		"value is longer":         {driver.Get, "VALUE k 0 4\r\nvalue\r\nEND\r\n", `value of 4 bytes goes on after its end: got "e\r\nEND\r\n"`},
		"RESP":                    {driver.Get, "-ERR unknown command\r\n", `not the memcached protocol: got "-ERR unknown command\r\n"`},
		"error goes on":           {driver.Delete, "ERRORS\r\n", `reply to a memcached delete: got "ERRORS\r\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			var r driver.Reply
			n, err := newTextCodec(false).Parse([]byte(test.in), test.verb, &r)
			require.EqualError(t, err, test.want)
			require.Zero(t, n)
		})
	}
}

// TestTextBatch requests several keys at once: the reply to a get holds the existing ones, in any order.
func TestTextBatch(t *testing.T) {
	items := []driver.Item{{Key: []byte("a"), Value: driver.Value{Size: 1}}, {Key: []byte("b"), Value: driver.Value{TTL: 2000}}, {Key: []byte("c")}}
	c := newTextCodec(false)
	require.Equal(t, "get a b c\r\n", string(c.AppendBatch(nil, &driver.Request{Verb: driver.Get, Batch: items})))
	require.Equal(t, "gets a b c\r\n", string(newTextCodec(true).AppendBatch(nil, &driver.Request{Verb: driver.Get, Batch: items})))
	one := string(items[0].Value.AppendTo(nil))
	require.Equal(t, "set a 0 0 1\r\n"+one+"\r\nset b 0 2 0\r\n\r\nset c 0 0 0\r\n\r\n", string(c.AppendBatch(nil, &driver.Request{Verb: driver.Put, Batch: items})))

	found := func(value string) driver.Reply { return driver.Reply{Outcome: driver.OK, Value: []byte(value)} }
	missed, failed := driver.Reply{Outcome: driver.Miss}, driver.Reply{Outcome: driver.Error}
	first := driver.Reply{Outcome: driver.Error, Message: []byte("SERVER_ERROR x")}
	for _, test := range []struct {
		verb driver.Verb
		in   string
		want []driver.Reply
	}{
		{driver.Get, "END\r\n", []driver.Reply{missed, missed, missed}},
		{driver.Get, "VALUE b 0 1\r\nx\r\nEND\r\n", []driver.Reply{found("x"), missed, missed}},
		{driver.Get, "VALUE c 0 1\r\nx\r\nVALUE a 0 0\r\n\r\nVALUE b 0 1\r\nz\r\nEND\r\n", []driver.Reply{found("x"), found(""), found("z")}},
		{driver.Get, "SERVER_ERROR x\r\n", []driver.Reply{first, failed, failed}},
		{driver.Get, "VALUE a 0 1\r\nx\r\nSERVER_ERROR x\r\n", []driver.Reply{first, failed, failed}},
		{driver.Put, "STORED\r\nSERVER_ERROR x\r\nSTORED\r\n", []driver.Reply{{Outcome: driver.OK}, first, {Outcome: driver.OK}}},
	} {
		got := make([]driver.Reply, 3)
		for cut := range test.in {
			n, err := c.ParseBatch([]byte(test.in[:cut]), test.verb, got)
			require.NoError(t, err, "%q", test.in[:cut])
			require.Zero(t, n, "%q", test.in[:cut])
		}
		n, err := c.ParseBatch([]byte(test.in+"END\r\n"), test.verb, got)
		require.NoError(t, err, "%q", test.in)
		require.Equal(t, len(test.in), n)
		require.Equal(t, test.want, got, "%q", test.in)
	}
	four := strings.Repeat("VALUE a 0 1\r\nx\r\n", 4) + "END\r\n"
	_, err := c.ParseBatch([]byte(four), driver.Get, make([]driver.Reply, 3))
	require.ErrorContains(t, err, "is not followed by END")
}

func FuzzParseText(f *testing.F) {
	for _, r := range textReplies {
		f.Add([]byte(r.in), uint8(r.verb), uint16(len(r.in)/2))
	}
	f.Add([]byte("VALUE k 0 18446744073709551621\r\n"), uint8(0), uint16(3))
	f.Fuzz(func(t *testing.T, b []byte, verb uint8, at uint16) {
		c, v := newTextCodec(false), driver.Verb(int(verb)%driver.NumVerbs)
		var whole, part driver.Reply
		n, err := c.Parse(b, v, &whole)
		require.LessOrEqual(t, n, len(b))
		require.GreaterOrEqual(t, n, 0)
		if err != nil {
			require.Zero(t, n)
			return
		}
		cut := b[:min(int(at), len(b))]
		taken, err := c.Parse(cut, v, &part)
		require.NoError(t, err, "a beginning of what is no error")
		if n > 0 && len(cut) >= n {
			require.Equal(t, n, taken)
			require.Equal(t, whole, part)
		} else {
			require.Zero(t, taken)
		}
		replies := make([]driver.Reply, 2)
		n, err = c.ParseBatch(b, v, replies)
		require.LessOrEqual(t, n, len(b))
		require.False(t, err != nil && n != 0)
	})
}

func TestConfigIsChecked(t *testing.T) {
	require.NoError(t, (&Config{}).Validate())
	require.NoError(t, (&Config{Protocol: "meta"}).Validate())
	require.NoError(t, (&Config{Protocol: "text", CAS: true}).Validate())
	require.EqualError(t, (&Config{Protocol: "binary"}).Validate(), `protocol = "binary": write "meta" for the meta commands, or "text" for get, set and delete`)
	require.EqualError(t, (&Config{CAS: true}).Validate(), `cas = true reads with gets, a classic command: write protocol = "text" beside it, or leave it out`)
	_, err := Driver{}.NewCodec(driver.Link{Config: &Config{Protocol: "binary"}})
	require.ErrorContains(t, err, "memcached: protocol")
}
