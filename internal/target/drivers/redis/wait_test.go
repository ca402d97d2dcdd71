package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// TestWait reads replies to a put and its WAIT, whole and in pieces.
func TestWait(t *testing.T) {
	const wait = "*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$3\r\n100\r\n"
	for _, protocol := range []int{2, 3} {
		cfg := &Config{Protocol: protocol, Wait: &Wait{Replicas: 2, Timeout: 100 * time.Millisecond}}
		c, err := Driver{}.NewCodec(driver.Link{Config: cfg})
		require.NoError(t, err)
		put := driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{}}
		require.Equal(t, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"+wait, string(c.AppendRequest(nil, &put)))
		get := driver.Request{Verb: driver.Get, Key: []byte("k")}
		require.Equal(t, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", string(c.AppendRequest(nil, &get)), "nothing waits for a get")
		for in, want := range map[string]driver.Reply{
			"+OK\r\n:2\r\n":            {Acks: 3},
			"+OK\r\n:7\r\n":            {Acks: 3}, // more replicas than the plan asks for
			"+OK\r\n:1\r\n":            {Acks: 2, Outcome: driver.QuorumFailed, Message: []byte("WAIT: 1 of 2 replicas had the put within 100ms")},
			"+OK\r\n:0\r\n":            {Acks: 1, Outcome: driver.QuorumFailed, Message: []byte("WAIT: 0 of 2 replicas had the put within 100ms")},
			"+OK\r\n-ERR no\r\n":       {Outcome: driver.Error, Message: []byte("ERR no")},
			"-READONLY x\r\n:0\r\n":    {Outcome: driver.Error, Message: []byte("READONLY x")},
			"-OOM x\r\n-ERR no\r\n":    {Outcome: driver.Error, Message: []byte("OOM x")},
			"-MOVED 1 h:1\r\n:2\r\n":   {Outcome: driver.Error, Message: strayed},
			"-LOADING x\r\n-ERR y\r\n": {Outcome: driver.Error, Message: []byte("LOADING x")},
		} {
			var got driver.Reply
			for i := range in {
				n, err := c.Parse([]byte(in[:i]), driver.Put, &got)
				require.NoError(t, err)
				require.Zero(t, n, "%d bytes of %q", i, in)
			}
			n, err := c.Parse([]byte(in+"+OK\r\n:2\r\n"), driver.Put, &got)
			require.NoError(t, err)
			require.Equal(t, len(in), n)
			require.Equal(t, want, got, in)
			skimmer := c.(driver.Skimmer)
			skimmed, _ := skimmer.Skim([]byte(in), driver.Put, 1)
			require.Zero(t, skimmed+skimmer.Outline([]byte(in), driver.Put), "a put is not ok before its WAIT is answered")
		}
		_, err = c.Parse([]byte("+OK\r\n+OK\r\n"), driver.Put, &driver.Reply{})
		require.ErrorContains(t, err, "reply to a redis WAIT")
	}
}
