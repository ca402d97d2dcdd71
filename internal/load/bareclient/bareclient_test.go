package bareclient_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/bareclient"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/cachenode"
	"github.com/loadgen/loadgen/internal/target/drivers/memcached"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
)

// startNode serves a built-in node until the end of the test.
func startNode(t *testing.T, protocol string) string {
	t.Helper()
	n, err := cachenode.New(cachenode.Config{Listen: "127.0.0.1:0", Protocol: protocol, Memory: 64 << 20})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- n.Serve(context.Background()) }()
	t.Cleanup(func() {
		n.Close()
		require.NoError(t, <-done)
	})
	return n.Addr().String()
}

func config(t *testing.T, d driver.Wire, endpoint string, verb driver.Verb) bareclient.Config {
	t.Helper()
	codec, err := d.NewCodec(driver.Link{Config: d.NewConfig(), Secrets: func(string) (string, error) { return "", nil }})
	require.NoError(t, err)
	return bareclient.Config{Endpoint: endpoint, Codec: codec, Verb: verb, Key: "key:000000000000", Size: 100, Sessions: 3, Pipeline: 4, Ops: 1001}
}

// TestEveryOpIsExchanged puts and gets, and compares the client's counts with the server's. 1,001 ops do not divide into pipelines of four. Each
// session has tried the request once.
func TestEveryOpIsExchanged(t *testing.T) {
	for _, tt := range []struct {
		driver   driver.Wire
		put, get string // in the server's counts
		ask      string
	}{
		{redis.Driver{}, "cmdstat_set:calls=1004\r\n", "cmdstat_get:calls=1004\r\n", "*2\r\n$4\r\nINFO\r\n$12\r\ncommandstats\r\n"},
		{memcached.Driver{}, "STAT cmd_set 1004\r\n", "STAT cmd_get 1004\r\n", "stats\r\n"},
	} {
		t.Run(tt.driver.Name(), func(t *testing.T) {
			endpoint := startNode(t, tt.driver.Builtin())
			for _, verb := range []driver.Verb{driver.Put, driver.Get} {
				r, err := bareclient.Run(t.Context(), config(t, tt.driver, endpoint, verb))
				require.NoError(t, err)
				require.EqualValues(t, 1001, r.Ops)
				require.GreaterOrEqual(t, r.Writes, int64(1001/4+1))
				require.LessOrEqual(t, r.Writes, int64(1001/4+3), "a write for each batch")
				require.GreaterOrEqual(t, r.Reads, r.Writes)
				require.Positive(t, r.Waits)
				require.Positive(t, r.Seconds)
			}
			counts := say(t, endpoint, tt.ask)
			require.Contains(t, counts, tt.put)
			require.Contains(t, counts, tt.get)
		})
	}
}

// say sends a server something and returns all it says to that.
func say(t *testing.T, endpoint, words string) string {
	t.Helper()
	conn, err := net.Dial("tcp", endpoint)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = conn.Write([]byte(words))
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	said, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(said)
}

// TestLargeBatches exchanges more than a socket takes at a time, in either direction.
func TestLargeBatches(t *testing.T) {
	endpoint := startNode(t, "resp")
	for _, verb := range []driver.Verb{driver.Put, driver.Get} {
		cfg := config(t, redis.Driver{}, endpoint, verb)
		cfg.Size, cfg.Pipeline, cfg.Ops = 1<<20, 16, 60
		r, err := bareclient.Run(t.Context(), cfg)
		require.NoError(t, err)
		require.EqualValues(t, 60, r.Ops)
	}
}

func TestRefusals(t *testing.T) {
	endpoint := startNode(t, "resp")
	_, err := bareclient.Run(t.Context(), config(t, redis.Driver{}, endpoint, driver.Get))
	require.ErrorContains(t, err, "get key:000000000000: it is not there: put it first")
	_, err = bareclient.Run(t.Context(), config(t, redis.Driver{}, endpoint, driver.Delete))
	require.EqualError(t, err, "op delete: write get or put")
	cfg := config(t, redis.Driver{}, endpoint, driver.Put)
	cfg.Pipeline = 0
	_, err = bareclient.Run(t.Context(), cfg)
	require.EqualError(t, err, "3 sessions, a pipeline of 0 and 1001 ops: write numbers above 0")
	_, err = bareclient.Run(t.Context(), config(t, memcached.Driver{}, endpoint, driver.Put))
	require.ErrorContains(t, err, "connect to "+endpoint+": ")
}

// TestServerThatSaysOtherThings answers the first request on a connection normally and everything after it at greater length, or hangs up.
func TestServerThatSaysOtherThings(t *testing.T) {
	for _, tt := range []struct{ then, err string }{
		{strings.Repeat("+OK\r\n", 5), "a reply is longer than the first one, of 5 bytes"},
		{"", "the server has closed the connection"},
	} {
		addr := servertest.Serve(t, nil, func(conn net.Conn) {
			b := make([]byte, 4096)
			for _, reply := range []string{"+PONG\r\n", "+OK\r\n", tt.then} {
				if _, err := conn.Read(b); err != nil {
					return
				}
				if _, err := conn.Write([]byte(reply)); err != nil {
					return
				}
			}
		})
		cfg := config(t, redis.Driver{}, addr, driver.Put)
		cfg.Sessions = 1
		_, err := bareclient.Run(t.Context(), cfg)
		require.ErrorContains(t, err, tt.err)
	}
}

// TestCancelled stops an exchange that would go on for hours.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	cfg := config(t, redis.Driver{}, startNode(t, "resp"), driver.Put)
	cfg.Ops = 1 << 40
	r, err := bareclient.Run(ctx, cfg)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Positive(t, r.Ops)
	require.Less(t, r.Seconds, 5.0)
}
