package redis

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
)

// script is a server that sends its lines, whatever it is asked, and closes.
func script(t *testing.T, says string) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	var ended sync.WaitGroup
	ended.Go(func() { _, _ = io.Copy(io.Discard, server) })
	ended.Go(func() {
		_, _ = io.WriteString(server, says) // the client may have heard enough
		_ = server.Close()
	})
	t.Cleanup(func() { _ = client.Close(); ended.Wait() })
	require.NoError(t, client.SetDeadline(time.Now().Add(10*time.Second)))
	return client
}

// greeted are the answers to PING, and to PING with a word.
const greeted = "+PONG\r\n$7\r\nloadgen\r\n"

func bulkString(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func TestIdentify(t *testing.T) {
	const noSettings = "-NOPERM no\r\n-NOPERM no\r\n-NOPERM no\r\n"
	info := bulkString("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n" +
		"used_memory:1\r\nio_threads_active:0\r\naof_enabled:1\r\nrole:master\r\n")
	setting := func(name, value string) string { return "*2\r\n" + bulkString(name) + bulkString(value) }
	tests := []struct {
		name string
		says string
		want map[string]string
	}{
		{
			"redis", greeted + info + setting("save", "3600 1 300 100") + setting("appendfsync", "everysec") + setting("io-threads", "1"),
			map[string]string{
				"server": "redis", "version": "7.0.15", "redis_mode": "standalone", "role": "master", "maxmemory": "0",
				"maxmemory_policy": "noeviction", "io_threads_active": "0", "aof_enabled": "1", "save": "3600 1 300 100",
				"appendfsync": "everysec", "io-threads": "1",
			},
		},
		{
			"settings are refused, unknown, null", greeted + bulkString("redis_version:6\r\n") + "-ERR unknown command 'CONFIG'\r\n*0\r\n*-1\r\n",
			map[string]string{"server": "redis", "version": "6"},
		},
		{
			"another name", greeted + bulkString("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n") + noSettings,
			map[string]string{"server": "valkey", "version": "8.1.0"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			id, err := Driver{}.Identify(context.Background(), script(t, test.says), driver.Link{Config: &Config{Protocol: 2}})
			require.NoError(t, err)
			require.Equal(t, test.want, id)
		})
	}
}

func TestIdentifyErrors(t *testing.T) {
	sentinel := bulkString("redis_version:7.0.15\r\nredis_mode:sentinel\r\n")
	tests := []struct {
		name, says, want string
	}{
		{"loading", "-LOADING soon\r\n", "PING: server says LOADING soon"},
		{"another protocol", "HTTP/1.1 400\r\n", "PING: not RESP2"},
		{"closes at once", "", "server closed the connection"},
		{"Ignite", "+PONG\r\n+PONG\r\n*0\r\n+PONG\r\n", `this is Ignite: use driver = "ignite" with the node's client connector, endpoints = ["cache:10800"] unless`},
		{"a Sentinel", greeted + sentinel, "it is a Sentinel, which holds no keys"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Driver{}.Identify(context.Background(), script(t, test.says), driver.Link{Endpoint: "cache:11211", Config: &Config{Protocol: 2}})
			require.ErrorContains(t, err, "ask redis what it is: "+test.want)
		})
	}
}

// A server that accepts the greeting can be loaded, whatever it answers to questions about itself.
func TestServersThatSayNothingOfThemselves(t *testing.T) {
	info := bulkString("redis_version:7\r\n")
	tests := []struct {
		name, says, want string
	}{
		{"closes in INFO", greeted + "$100\r\nredis", "INFO: server closed the connection"},
		{"closes for INFO", greeted, "INFO: server closed the connection"},
		{"INFO is refused", greeted + "-NOPERM no permission\r\n", "the server says nothing of itself: INFO: server says NOPERM no permission"},
		{"INFO is a number", greeted + ":1\r\n", "INFO: want a text"},
		{"INFO is a status", greeted + "+OK\r\n", "INFO: want a text"},
		{"closes for CONFIG", greeted + info, "the server says nothing of its settings: CONFIG GET save: server closed the connection"},
		{"INFO has no end", greeted + "$9999999\r\n" + strings.Repeat("x", 2<<20), "INFO: reply goes on beyond 1048576 bytes"},
		{"setting is a number", greeted + info + ":1\r\n", "the server says nothing of its settings: CONFIG GET save: reply is not an array"},
		{"setting is odd", greeted + info + "*1\r\n", "CONFIG GET save: reply is not an array"},
		{"setting breaks off", greeted + info + "*2\r\n$4\r\nsave\r\n", "CONFIG GET save: server closed the connection"},
		{"setting has no name", greeted + info + "*2\r\n", "CONFIG GET save: server closed the connection"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			id, err := Driver{}.Identify(context.Background(), script(t, test.says), driver.Link{Config: &Config{Protocol: 2}})
			require.NoError(t, err)
			require.Contains(t, id[driver.Note], test.want)
		})
	}
}

// A proxy may ignore what it does not know.
func TestIdentifyDoesNotWaitForInfo(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		client, server := net.Pipe()
		var ended sync.WaitGroup
		ended.Go(func() { _, _ = io.Copy(io.Discard, server) })
		ended.Go(func() { _, _ = io.WriteString(server, "+PONG\r\n") })
		defer ended.Wait()
		defer client.Close()
		defer server.Close()
		require.NoError(t, client.SetDeadline(time.Now().Add(100*time.Millisecond)))
		id, err := Driver{}.Identify(context.Background(), client, driver.Link{Config: &Config{Protocol: 2}})
		require.NoError(t, err)
		require.Equal(t, "the server says nothing of itself: INFO: no answer in time", id[driver.Note])
	})
}

func TestIdentifyEndsWithContext(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := Driver{}.Identify(ctx, client, driver.Link{Config: &Config{Protocol: 2}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestIdentifyWithoutSecret(t *testing.T) {
	_, err := Driver{}.Identify(context.Background(), nil, driver.Link{Config: &Config{Protocol: 2, Password: &driver.Secret{Name: "cache"}}, Secrets: func(string) (string, error) { return "", io.ErrUnexpectedEOF }})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
