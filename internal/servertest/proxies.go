package servertest

import (
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Nutcracker starts a nutcracker (twemproxy) in front of a server on a free loopback port, for Redis' protocol or memcached's, and returns its
// address once it answers. It is killed at the end of the test.
func Nutcracker(t testing.TB, server string, redis bool) (addr string) {
	t.Helper()
	exe, s := program(t, "nutcracker", "nutcracker"), local(t)
	ask := "get nothing\r\n"
	if redis {
		ask = "*2\r\n$3\r\nGET\r\n$7\r\nnothing\r\n"
	}
	config := fmt.Sprintf("pool:\n  listen: %s\n  hash: fnv1a_64\n  distribution: ketama\n  redis: %t\n  servers:\n   - %s:1\n", s.Addr, redis, server)
	s.up(exec.Command(exe, "-c", written(t, "nutcracker.yml", config), "-a", "127.0.0.1", "-s", freePort(t)), ask, nil)
	return s.Addr
}

// Sentinel starts a Redis Sentinel that watches a server, with further lines in its configuration, and returns its address once it answers. It is killed
// at the end of the test.
func Sentinel(t testing.TB, server string, lines ...string) (addr string) {
	t.Helper()
	return sentinel(t, "port", nil, server, lines)
}

// SentinelTLS starts a Sentinel that speaks only TLS, with clients and the server, and requires a certificate signed by the authority from its
// clients.
func SentinelTLS(t testing.TB, a *Authority, shows Certificate, server string) (addr string) {
	t.Helper()
	return sentinel(t, "tls-port", a.Client(), server, []string{
		"port 0", "tls-replication yes", "tls-cert-file " + shows.Cert, "tls-key-file " + shows.Key, "tls-ca-cert-file " + a.CA,
	})
}

// sentinel starts a Sentinel. option is the name of the setting for its port.
func sentinel(t testing.TB, option string, secure *tls.Config, server string, lines []string) (addr string) {
	t.Helper()
	exe, s := program(t, "redis", "redis-server"), local(t)
	path := written(t, "sentinel.conf", fmt.Sprintf("%s %s\nbind 127.0.0.1\nsentinel monitor main %s 1\n%s\n", option,
		s.port(), strings.Replace(server, ":", " ", 1), strings.Join(lines, "\n")))
	s.up(exec.Command(exe, path, "--sentinel"), "*1\r\n$4\r\nPING\r\n", secure)
	return s.Addr
}

// written writes a temporary file for the test and returns its path.
func written(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
