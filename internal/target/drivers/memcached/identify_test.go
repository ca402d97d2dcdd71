package memcached

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

const greeted = "MN\r\nVERSION 1.6.18\r\n"

func TestIdentify(t *testing.T) {
	tests := []struct {
		name string
		says string
		want map[string]string
	}{
		{
			"memcached", greeted + "STAT pid 7\r\nSTAT version 1.6.18\r\nSTAT limit_maxbytes 67108864\r\nSTAT threads 4\r\nSTAT cmd_get 5\r\nEND\r\n" +
				"STAT evictions on\r\nSTAT item_size_max 1048576\r\nSTAT inter NULL\r\nSTAT empty \r\nSTAT\r\nEND\r\n",
			map[string]string{
				"server": "memcached", "version": "1.6.18", "pid": "7", "limit_maxbytes": "67108864", "threads": "4",
				"evictions": "on", "item_size_max": "1048576",
			},
		},
		{
			"nothing is told", greeted + "END\r\nEND\r\n",
			map[string]string{"server": "memcached", "version": "1.6.18", "note": "the server says nothing of itself: stats: server tells nothing"},
		},
		{
			"version is refused", "MN\r\nERROR\r\nSTAT pid 7\r\nEND\r\nEND\r\n",
			map[string]string{"server": "memcached", "pid": "7"},
		},
		{
			"settings are refused", greeted + "STAT pid 7\r\nEND\r\nCLIENT_ERROR no\r\n",
			map[string]string{"server": "memcached", "version": "1.6.18", "pid": "7"},
		},
		{
			"built-in node", "MN\r\nVERSION 0-loadgen\r\nSTAT server_name loadgen\r\nSTAT loadgen_version 1.2.3\r\nEND\r\nEND\r\n",
			map[string]string{"server": "loadgen", "version": "1.2.3"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			id, err := Driver{}.Identify(context.Background(), script(t, test.says), driver.Link{Config: new(Config)})
			require.NoError(t, err)
			require.Equal(t, test.want, id)
		})
	}
}

func TestIdentifyErrors(t *testing.T) {
	tests := []struct {
		name, says, want string
	}{
		{"memcached 1.4", "ERROR\r\nVERSION 1.4.39\r\nSTAT pid 7\r\nEND\r\n", `mn: the server does not know the meta commands: it must be memcached 1.6.10 or newer, or write protocol = "text"`},
		{"memcached 1.6.9", "MN\r\nVERSION 1.6.9\r\n", "version: the meta commands of memcached 1.6.9 have an earlier form"},
		{"another protocol", "HTTP/1.1 400\r\n", `mn: want MN, got "HTTP/1.1 400\r\n"`},
		{"closes at once", "", "mn: server closed the connection: it may be a proxy that does not know the meta commands"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Driver{}.Identify(context.Background(), script(t, test.says), driver.Link{Config: new(Config)})
			require.ErrorContains(t, err, "ask memcached what it is: "+test.want)
		})
	}
}

// A server that accepts the greeting can be loaded, whatever it answers to questions about itself.
func TestServersThatSayNothingOfThemselves(t *testing.T) {
	tests := []struct {
		name, says, want string
	}{
		{"closes for stats", greeted, "the server says nothing of itself: stats: server closed the connection"},
		{"knows no stats", greeted + "ERROR\r\n", "the server says nothing of itself: stats: server says ERROR"},
		{"closes in stats", greeted + "STAT pid", "stats: server closed the connection"},
		{"stats is odd", greeted + "STAT pid 7\r\nHD\r\n", `stats: want STAT or END, got "HD"`},
		{"stats break off", greeted + "STAT pid 7\r\nSERVER_ERROR out of memory\r\n", "stats: server says SERVER_ERROR out of memory"},
		{"settings are odd", greeted + "STAT pid 7\r\nEND\r\n+OK\r\n", `stats settings: not the memcached protocol: got "+OK\r\n"`},
		{"line without end", greeted + "STAT " + strings.Repeat("x", 3000), "stats: line does not end within 2048 bytes"},
		{"stats without end", greeted + strings.Repeat("STAT pid 7\r\n", 100_000), "stats: reply goes on beyond 1048576 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			id, err := Driver{}.Identify(context.Background(), script(t, test.says), driver.Link{Config: new(Config)})
			require.NoError(t, err)
			require.Contains(t, id[driver.Note], test.want)
			require.Equal(t, "1.6.18", id["version"])
		})
	}
	for says, want := range map[string]string{
		"":                   "the server says nothing of itself: version: server closed the connection",
		"ERROR\r\n":          "the server says nothing of itself: stats: server closed the connection",
		"VERSION 1.6.18\r\n": "the server says nothing of itself: stats: server closed the connection",
	} {
		id, err := Driver{}.Identify(context.Background(), script(t, says), driver.Link{Config: &Config{Protocol: textProtocol}})
		require.NoError(t, err)
		require.Contains(t, id[driver.Note], want)
	}
}

func TestIdentifyEndsWithContext(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := Driver{}.Identify(ctx, client, driver.Link{Config: new(Config)})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestIdentifyRefusesAnotherConfig(t *testing.T) {
	_, err := Driver{}.Identify(context.Background(), nil, driver.Link{})
	require.EqualError(t, err, "memcached: config is a <nil>, want a *memcached.Config")
}
