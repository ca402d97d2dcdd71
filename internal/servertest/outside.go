package servertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Program starts a server that a driver or an adapter outside of loadgen's own is tested with, on a free loopback port, and returns once it answers ask.
// args are its arguments.
func Program(t testing.TB, exe, ask string, args func(port string) []string) *Server {
	t.Helper()
	path, s := program(t, exe, exe), local(t)
	s.up(exec.Command(path, args(s.port())...), ask, nil)
	return s
}

// Etcd starts an etcd of one node.
func Etcd(t testing.TB) *Server {
	t.Helper()
	dir := t.TempDir()
	return Program(t, "etcd", "GET /health HTTP/1.0\r\n\r\n", func(port string) []string {
		at, peer := "http://127.0.0.1:"+port, "http://127.0.0.1:"+freePort(t)
		return []string{
			"--data-dir", dir, "--listen-client-urls", at, "--advertise-client-urls", at, "--listen-peer-urls", peer,
			"--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer, "--unsafe-no-fsync",
		}
	})
}

// MariaDB starts a MariaDB without data, in which root needs no password.
func MariaDB(t testing.TB) *Server {
	t.Helper()
	dir := openDir(t, 0o755) // the path of a socket is short
	return Program(t, "mariadbd", "", func(port string) []string {
		args := []string{
			"--no-defaults", "--datadir=" + dir, "--socket=" + filepath.Join(dir, "s"), "--pid-file=" + filepath.Join(dir, "pid"), "--port=" + port,
			"--bind-address=127.0.0.1", "--skip-grant-tables", "--innodb-flush-log-at-trx-commit=0", "--max-allowed-packet=16M",
		}
		if os.Geteuid() == 0 {
			args = append(args, "--user=root")
		}
		return args
	})
}
