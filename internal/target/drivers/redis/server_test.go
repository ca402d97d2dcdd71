package redis

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
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

func secrets(string) (string, error) { return "open sesame", nil }

func TestConformanceWithServer(t *testing.T) {
	secret := &driver.Secret{Name: "cache"}
	tests := []struct {
		name   string
		server []string
		cfg    Config
	}{
		{"plain", nil, Config{Protocol: 2}},
		{"password and database", []string{"--requirepass", "open sesame"}, Config{Protocol: 2, Password: secret, Database: 15}},
		{"user", []string{"--user", "worker", "on", ">opensesame", "~*", "&*", "+@all", "--requirepass", "x"}, Config{Protocol: 2, Username: "worker", Password: secret}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			addr := servertest.Redis(t, test.server...)
			drivertest.Run(t, drivertest.Suite{
				Driver: Driver{},
				Config: &test.cfg,
				Secrets: func(name string) (string, error) {
					if test.cfg.Username != "" {
						return "opensesame", nil
					}
					return secrets(name)
				},
				Dial: dialer(addr),
			})
		})
	}
}

// TestGreetingWithServer shows what a user reads if a server refuses the greeting.
func TestGreetingWithServer(t *testing.T) {
	secret := &driver.Secret{Name: "cache"}
	tests := []struct {
		name   string
		server []string
		cfg    Config
		want   string
	}{
		{"password is missing", []string{"--requirepass", "x"}, Config{Protocol: 2}, "PING: server says NOAUTH Authentication required."},
		{"password is wrong", []string{"--requirepass", "x"}, Config{Protocol: 2, Password: secret}, "AUTH: server says WRONGPASS invalid username-password pair or user is disabled."},
		{"password is not wanted", nil, Config{Protocol: 2, Password: secret}, "AUTH: server says ERR AUTH <password> called without any password configured"},
		{"database is out of range", nil, Config{Protocol: 2, Database: 99}, "SELECT 99: server says ERR DB index is out of range"},
		{"replica without master", []string{"--replicaof", "127.0.0.1 1", "--replica-serve-stale-data", "no"}, Config{Protocol: 2}, "PING: server says MASTERDOWN"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			conn, err := dialer(servertest.Redis(t, test.server...))()
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
			_, err = Driver{}.Identify(context.Background(), conn, driver.Link{Config: &test.cfg, Secrets: secrets})
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "sesame")
		})
	}
}

func TestIdentifyServer(t *testing.T) {
	conn, err := dialer(servertest.Redis(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"))()
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	id, err := Driver{}.Identify(context.Background(), conn, driver.Link{Config: &Config{Protocol: 2}})
	require.NoError(t, err)
	require.Equal(t, "redis", id["server"])
	require.Regexp(t, `^\d+\.\d+\.\d+$`, id["version"])
	require.NotEmpty(t, id["process_id"])
	require.Subset(t, id, map[string]string{
		"redis_mode": "standalone", "role": "master", "maxmemory": "104857600", "maxmemory_policy": "allkeys-lru",
		"io_threads_active": "0", "aof_enabled": "0", "save": "", "appendfsync": "everysec", "io-threads": "1",
	})
}

// TestServerErrors pins that a server's refusal of a request is an outcome and not the end of the connection.
func TestServerErrors(t *testing.T) {
	conn, err := dialer(servertest.Redis(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction"))()
	require.NoError(t, err)
	codec, err := Driver{}.NewCodec(driver.Link{Config: &Config{Protocol: 2}})
	require.NoError(t, err)
	x := drivertest.OverConn(t, codec, conn)
	put := driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{Size: 200}}
	get := driver.Request{Verb: driver.Get, Key: []byte("k")}
	replies := x.Do(t, put, get)
	require.Equal(t, driver.Error, replies[0].Outcome)
	require.Equal(t, "OOM command not allowed when used memory > 'maxmemory': give the server more, or put fewer or smaller values", string(replies[0].Message))
	require.Equal(t, driver.Miss, replies[1].Outcome)
}

// TestServerErrorsSayWhatToDo has a server refuse a value beyond its limit, and a get of a list.
func TestServerErrorsSayWhatToDo(t *testing.T) {
	dial, codec := dialer(servertest.Redis(t, "--proto-max-bulk-len", "1mb")), newTestCodec(t, Config{Protocol: 2})
	for requests, want := range map[string]string{
		"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048577\r\n": "ERR Protocol error: invalid bulk length: raise the server's proto-max-bulk-len, or put smaller values",
		"RPUSH k x\r\nGET k\r\n": "WRONGTYPE Operation against a key holding the wrong kind of value, which others have put: " +
			"write keys { format } for keys of your own, or another database",
	} {
		conn, err := dial()
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		_, err = io.WriteString(conn, requests)
		require.NoError(t, err)
		line := ""
		for in := bufio.NewReader(conn); !strings.HasPrefix(line, "-"); {
			line, err = in.ReadString('\n')
			require.NoError(t, err)
		}
		var got driver.Reply
		_, err = codec.Parse([]byte(line), driver.Get, &got)
		require.NoError(t, err)
		require.Equal(t, driver.Reply{Outcome: driver.Error, Message: []byte(want)}, got)
	}
}

// A user who may only read, write and connect is enough for a load.
func TestConformanceWithALeastPrivilegedUser(t *testing.T) {
	addr := servertest.Redis(t, "--user", "worker", "on", ">opensesame", "~*", "+@read", "+@write", "+@connection")
	drivertest.Run(t, drivertest.Suite{
		Driver:  Driver{},
		Config:  &Config{Protocol: 2, Username: "worker", Password: &driver.Secret{Name: "cache"}},
		Secrets: func(string) (string, error) { return "opensesame", nil },
		Dial:    dialer(addr),
		Note:    "the server says nothing of itself: INFO: server says NOPERM",
	})
}
