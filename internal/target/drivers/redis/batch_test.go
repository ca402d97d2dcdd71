package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

func items() []driver.Item {
	return []driver.Item{
		{Key: []byte("a"), Value: driver.Value{Size: 3}},
		{Key: []byte("key:000000000002"), Value: driver.Value{Size: 0}},
	}
}

func TestAppendBatch(t *testing.T) {
	c := newTestCodec(t, Config{Protocol: 2})
	value := string((&driver.Value{Size: 3}).AppendTo(nil))
	require.Equal(t, "*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$16\r\nkey:000000000002\r\n", string(c.AppendBatch(nil, &driver.Request{Verb: driver.Get, Batch: items()})))
	require.Equal(t, "*5\r\n$4\r\nMSET\r\n$1\r\na\r\n$3\r\n"+value+"\r\n$16\r\nkey:000000000002\r\n$0\r\n\r\n", string(c.AppendBatch(nil, &driver.Request{Verb: driver.Put, Batch: items()})))
}

func TestParseBatchAtEverySplit(t *testing.T) {
	ok, miss := driver.Reply{Outcome: driver.OK, Value: []byte("x")}, driver.Reply{Outcome: driver.Miss}
	bad := driver.Reply{Outcome: driver.Error}
	tests := []struct {
		verb     driver.Verb
		protocol int
		in       string
		want     []driver.Reply
	}{
		{driver.Get, 2, "*2\r\n$1\r\nx\r\n$-1\r\n", []driver.Reply{ok, miss}},
		{driver.Get, 3, "*2\r\n_\r\n$1\r\nx\r\n", []driver.Reply{miss, ok}},
		{driver.Get, 3, ">1\r\n+a\r\n*2\r\n_\r\n$1\r\nx\r\n", []driver.Reply{miss, ok}},
		{driver.Put, 2, "+OK\r\n", []driver.Reply{{}, {}}},
		{driver.Get, 2, "-ERR x\r\n", []driver.Reply{{Outcome: driver.Error, Message: []byte("ERR x")}, bad}},
		{driver.Put, 3, "-OOM x\r\n", []driver.Reply{{Outcome: driver.Error, Message: []byte("OOM x")}, bad}},
		{driver.Get, 2, "*2\r\n-ERR x\r\n$1\r\nx\r\n", []driver.Reply{{Outcome: driver.Error, Message: []byte("ERR x")}, ok}},
	}
	for _, test := range tests {
		var c driver.BatchCodec = newTestCodec(t, Config{Protocol: 2})
		if test.protocol == 3 {
			c = newCodec3(t, Config{})
		}
		replies := make([]driver.Reply, 2)
		for cut := range test.in {
			n, err := c.ParseBatch([]byte(test.in[:cut]), test.verb, replies)
			require.NoError(t, err, "%q", test.in[:cut])
			require.Zero(t, n, "%q", test.in[:cut])
		}
		for _, behind := range []string{"", "$1\r\ny\r\n"} {
			n, err := c.ParseBatch([]byte(test.in+behind), test.verb, replies)
			require.NoError(t, err)
			require.Equal(t, len(test.in), n)
			require.Equal(t, test.want, replies)
		}
		in := []byte(test.in)
		require.Zero(t, testing.AllocsPerRun(50, func() {
			if _, err := c.ParseBatch(in, test.verb, replies); err != nil {
				t.Error(err)
			}
		}))
	}
}

func TestParseBatchRefuses(t *testing.T) {
	c := newTestCodec(t, Config{Protocol: 2})
	for in, want := range map[string]string{
		"*3\r\n":        `reply to a redis get of 2 keys: got "*3\r\n"`,
		"*1\r\n":        leavesOut(2, 1).Error(),
		"*-1\r\n":       `reply to a redis get of 2 keys: got "*-1\r\n"`,
		"$1\r\nx\r\n":   `reply to a redis get of 2 keys: got "$1\r\nx\r\n"`,
		"+OK\r\n":       `reply to a redis get of 2 keys: got "+OK\r\n"`,
		"*2\r\n:1\r\n":  `reply to a redis get: got ":1\r\n"`,
		"*2\r\n*0\r\n":  `reply to a redis get: got "*0\r\n"`,
		"*2\r\n$5\rx\r": `not a number: got "$5\rx\r"`,
		"VALUE a 0 1":   `not RESP2: got "VALUE a 0 1"`,
	} {
		_, err := c.ParseBatch([]byte(in), driver.Get, make([]driver.Reply, 2))
		require.EqualError(t, err, want)
	}
}

func TestCheckBatch(t *testing.T) {
	require.NoError(t, Driver{}.CheckBatch(nil, driver.Get, driver.Batch{Keys: 16, TTL: time.Second}))
	require.ErrorContains(t, Driver{}.CheckBatch(&Config{Cluster: true}, driver.Get, driver.Batch{Keys: 16}), "of one hash slot")
	require.NoError(t, Driver{}.CheckBatch(nil, driver.Put, driver.Batch{Keys: 16}))
	require.ErrorContains(t, Driver{}.CheckBatch(nil, driver.Put, driver.Batch{Keys: 16, TTL: time.Second}), "MSET, which puts several keys, takes no TTL")
}

func FuzzParseBatch(f *testing.F) {
	f.Add([]byte("*2\r\n$1\r\nx\r\n$-1\r\n"), uint8(0), uint16(5))
	f.Add([]byte("+OK\r\n"), uint8(1), uint16(2))
	f.Add([]byte(strings.Join(asides, "")+"*2\r\n_\r\n_\r\n"), uint8(0), uint16(50))
	codecs := []driver.BatchCodec{newTestCodec(f, Config{Protocol: 2}), newCodec3(f, Config{})}
	f.Fuzz(func(t *testing.T, b []byte, verb uint8, at uint16) {
		v := driver.Verb(verb % 2)
		for _, c := range codecs {
			whole, part := make([]driver.Reply, 2), make([]driver.Reply, 2)
			n, err := c.ParseBatch(b, v, whole)
			require.True(t, n >= 0 && n <= len(b))
			if err != nil {
				require.Zero(t, n)
				continue
			}
			cut := b[:min(int(at), len(b))]
			taken, err := c.ParseBatch(cut, v, part)
			require.NoError(t, err, "a beginning of what is no error")
			if n > 0 && len(cut) >= n {
				require.Equal(t, n, taken)
				require.Equal(t, whole, part)
			} else {
				require.Zero(t, taken)
			}
		}
	})
}
