package memcached

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

func dialer(addr string) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.DialTimeout("tcp", addr, 5*time.Second) }
}

func TestConformanceWithServer(t *testing.T) {
	text, cas := &Config{Protocol: "text"}, &Config{Protocol: "text", CAS: true}
	tests := []struct {
		name     string
		config   *Config
		server   []string
		maxValue int
		tokens   bool
	}{
		{"plain", new(Config), nil, 1<<20 - 1024, false}, // an item of 1 MiB holds the key and a header, too
		{"large items, one thread", new(Config), []string{"-I", "8m", "-t", "1"}, 0, false},
		{"no versions of items", new(Config), []string{"-C"}, 1<<20 - 1024, false},
		{"text", text, nil, 1<<20 - 1024, false},
		{"text, with gets", cas, []string{"-I", "8m", "-t", "1"}, 0, true},
		{"text, with gets, no versions of items", cas, []string{"-C"}, 1<<20 - 1024, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			drivertest.Run(t, drivertest.Suite{
				Driver:   Driver{},
				Config:   test.config,
				Dial:     dialer(servertest.Memcached(t, test.server...)),
				MaxKey:   250,
				TextKeys: true,
				MaxValue: test.maxValue,
				Tokens:   test.tokens,
			})
		})
	}
}

func TestIdentifyServer(t *testing.T) {
	conn, err := dialer(servertest.Memcached(t, "-m", "100", "-t", "2", "-M", "-c", "64"))()
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	id, err := Driver{}.Identify(context.Background(), conn, driver.Link{Config: new(Config)})
	require.NoError(t, err)
	require.Regexp(t, `^\d+\.\d+\.\d+$`, id["version"])
	require.NotEmpty(t, id["pid"])
	require.NotEmpty(t, id["reqs_per_event"])
	require.NotEmpty(t, id["lru_segmented"])
	require.Subset(t, id, map[string]string{
		"server": "memcached", "limit_maxbytes": "104857600", "threads": "2", "evictions": "off", "maxconns": "64",
		"item_size_max": "1048576", "cas_enabled": "yes",
	})
}

// TestIdentifyOtherServer shows what a user reads after giving the address of a Redis.
func TestIdentifyOtherServer(t *testing.T) {
	conn, err := dialer(servertest.Redis(t))()
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = Driver{}.Identify(context.Background(), conn, driver.Link{Config: new(Config)})
	require.ErrorContains(t, err, "ask memcached what it is: mn: not the memcached protocol: got \"-ERR unknown command")
}

// TestServerErrors pins that a server's refusal of a request is an outcome and not the end of the connection: the data of a value
// that is too large is passed over.
func TestServerErrors(t *testing.T) {
	conn, err := dialer(servertest.Memcached(t))()
	require.NoError(t, err)
	x := drivertest.OverConn(t, codec{}, conn)
	key := []byte("k")
	large := driver.Request{Verb: driver.Put, Key: key, Value: &driver.Value{Size: 2 << 20}}
	small := driver.Request{Verb: driver.Put, Key: key, Value: &driver.Value{Size: 200}}
	get := driver.Request{Verb: driver.Get, Key: key}
	replies := x.Do(t, large, get, small, get)
	require.Equal(t, driver.Reply{Outcome: driver.Error, Message: []byte("SERVER_ERROR object too large for cache: start the server with a larger -I, or put smaller values")}, replies[0])
	require.Equal(t, driver.Miss, replies[1].Outcome)
	require.Equal(t, driver.OK, replies[2].Outcome)
	require.Len(t, replies[3].Value, 200)
}

// TestConformanceThroughProxy loads memcached through a twemproxy.
func TestConformanceThroughProxy(t *testing.T) {
	drivertest.Run(t, drivertest.Suite{
		Driver: Driver{}, Config: &Config{Protocol: "text"}, Dial: dialer(servertest.Nutcracker(t, servertest.Memcached(t), false)),
		Note: "stats: server closed the connection", MaxKey: 250, TextKeys: true, MaxValue: 1<<20 - 1024,
	})
}
