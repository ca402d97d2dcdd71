package redis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// told holds the two replies to the question.
func told(info, commands string) []byte {
	return fmt.Appendf(nil, "$%d\r\n%s\r\n$%d\r\n%s\r\n", len(info), info, len(commands), commands)
}

func TestFigures(t *testing.T) {
	b := told("# Server\r\nredis_version:7.0.15\r\nused_memory:1024\r\ndb0:keys=3,expires=0,avg_ttl=0\r\nslave0:ip=1,port=2\r\n",
		"# Commandstats\r\ncmdstat_config|get:calls=2,usec=34,usec_per_call=17.00\r\n")
	got, n, err := Driver{}.ParseFigures(append(b, "+PONG\r\n"...))
	require.NoError(t, err)
	require.Equal(t, len(b), n)
	require.Equal(t, map[string]string{
		"redis_version": "7.0.15", "used_memory": "1024", "db0_keys": "3", "db0_expires": "0", "db0_avg_ttl": "0", "slave0_ip": "1", "slave0_port": "2",
		"cmdstat_config_get_calls": "2", "cmdstat_config_get_usec": "34", "cmdstat_config_get_usec_per_call": "17.00",
	}, got)
	for cut := range b {
		_, n, err := Driver{}.ParseFigures(b[:cut])
		require.NoError(t, err, cut)
		require.Zero(t, n, cut)
	}
	question, err := Driver{}.AppendQuestion(nil, driver.Link{})
	require.NoError(t, err)
	require.Equal(t, "*1\r\n$4\r\nINFO\r\n*2\r\n$4\r\nINFO\r\n$12\r\ncommandstats\r\n", string(question))
}

func TestFiguresAreRefused(t *testing.T) {
	for reply, why := range map[string]string{
		"-NOPERM this user has no permissions\r\n": "INFO: server says NOPERM",
		"+OK\r\n":          "INFO: want a text",
		"HTTP/1.1 400\r\n": "not RESP",
	} {
		_, _, err := Driver{}.ParseFigures([]byte(reply))
		require.ErrorContains(t, err, why, reply)
	}
}

func TestDescribe(t *testing.T) {
	for _, f := range []driver.Figure{
		{Name: "used_memory", Unit: "bytes"},
		{Name: "used_memory_peak", Unit: "bytes"},
		{Name: "used_cpu_sys_children", Unit: "s", Counter: true},
		{Name: "cmdstat_get_calls", Counter: true, Sparse: true},
		{Name: "cmdstat_get_usec", Unit: "us", Counter: true, Sparse: true},
		{Name: "cmdstat_get_usec_per_call", Unit: "us"},
		{Name: "errorstat_ERR_count", Counter: true, Sparse: true},
		{Name: "db12_keys", Sparse: true},
		{Name: "total_connections_received", Counter: true},
		{Name: "total_system_memory", Unit: "bytes"},
		{Name: "mem_fragmentation_ratio"},
	} {
		require.Equal(t, f, Driver{}.Describe(f.Name))
	}
	for _, f := range (Driver{}).Figures() {
		require.Equal(t, f, Driver{}.Describe(f.Name))
	}
}

func FuzzParseFigures(f *testing.F) {
	f.Add(told("used_memory:1\r\n", "cmdstat_get:calls=1,usec=2\r\n"))
	f.Add([]byte("$-1\r\n*3\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		figures, n, err := Driver{}.ParseFigures(b)
		require.LessOrEqual(t, n, len(b))
		require.False(t, err != nil && n > 0)
		for name := range figures {
			require.Empty(t, strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"))
		}
	})
}
