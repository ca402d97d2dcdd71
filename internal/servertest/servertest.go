// Package servertest starts the real servers that tests run against. It is for tests only.
//
// If a machine lacks a part (a server, a C compiler, the right to make a network namespace), the tests that need it are skipped, with the part named.
// With LOADGEN_TEST_REQUIRE set to "all", or to a comma-separated list of parts, they fail instead.
package servertest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// RequireVariable names the environment variable that turns skips into failures.
const RequireVariable = "LOADGEN_TEST_REQUIRE"

// startTimeout is how long a server may take to answer its first request, on a busy machine.
const startTimeout = time.Minute

// Require returns if err is nil. Otherwise this machine lacks the named part, and t is skipped, or fails if the part is required.
func Require(t testing.TB, part string, err error) {
	t.Helper()
	note(t, part, err)
	if err == nil {
		return
	}
	if Required(part) {
		t.Fatalf("%s is required by %s=%s: %v", part, RequireVariable, os.Getenv(RequireVariable), err)
	}
	t.Skipf("%v: %s tests skipped (make test-servers installs what they need)", err, part)
}

// Required reports whether the environment forbids skipping tests for lack of the part.
func Required(part string) bool {
	parts := strings.Split(os.Getenv(RequireVariable), ",")
	return slices.Contains(parts, "all") || slices.Contains(parts, part)
}

// Server is a running server process.
type Server struct {
	Addr string // host:port on the loopback

	t      testing.TB
	cmd    *exec.Cmd
	output bytes.Buffer // its standard output and error; read it only once the server has ended
	done   chan struct{}
}

// Redis starts a redis-server on a free loopback port with persistence off and the given further options, and returns its
// address once it answers. It is killed at the end of the test.
func Redis(t testing.TB, options ...string) (addr string) {
	t.Helper()
	return StartRedis(t, options...).Addr
}

// StartRedis is Redis for tests that stop their server themselves. It keeps a port among the options, so that a server can come back on the same
// port.
func StartRedis(t testing.TB, options ...string) *Server {
	t.Helper()
	return startKind(t, kind{
		part: "redis", exe: "redis-server", port: "--port",
		args: []string{"--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir()},
		ask:  "*1\r\n$4\r\nPING\r\n",
	}, options)
}

// Memcached starts a memcached on a free loopback port with 64 MiB and the given further options, and returns its address once
// it answers. It is killed at the end of the test.
func Memcached(t testing.TB, options ...string) (addr string) {
	t.Helper()
	return StartMemcached(t, options...).Addr
}

// StartMemcached is Memcached for tests that stop their server themselves. It keeps a port among the options.
func StartMemcached(t testing.TB, options ...string) *Server {
	t.Helper()
	return startKind(t, kind{part: "memcached", exe: "memcached", port: "-p", args: asNobody("-l", "127.0.0.1", "-U", "0", "-m", "64"), ask: "version\r\n"}, options)
}

// asNobody adds to the arguments of a memcached, which refuses to run as root.
func asNobody(args ...string) []string {
	if os.Geteuid() == 0 {
		args = append(args, "-u", "nobody")
	}
	return args
}

// MemcachedSocket starts a memcached on only a Unix socket, and returns its path.
func MemcachedSocket(t testing.TB) (path string) {
	t.Helper()
	path = SocketPath(t)
	s := &Server{t: t, Addr: path, done: make(chan struct{})}
	args := append(asNobody(), "-s", path, "-a", "0777")
	s.up(exec.Command(program(t, "memcached", "memcached"), args...), "version\r\n", nil)
	return path
}

// SocketPath returns a path for a Unix socket, short enough, in its own directory that everybody may write to.
func SocketPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(openDir(t, 0o777), "s")
}

// openDir makes a directory that other users can enter, unlike t.TempDir, with a short path. It is removed at the end of the test.
func openDir(t testing.TB, mode os.FileMode) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "loadgen-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a server may be removing files at the same time
	require.NoError(t, os.Chmod(dir, mode))
	return dir
}

// output runs a program to its end, and returns what it printed.
func output(t testing.TB, exe string, args ...string) string {
	t.Helper()
	return outputOf(t, exec.Command(exe, args...))
}

func outputOf(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", cmd, text)
	return string(text)
}

// kind says how to start servers of one kind.
type kind struct {
	part, exe string
	port      string      // the option that names the port
	args      []string    // further arguments
	ask       string      // a question that a server answers once it is ready
	tls       *tls.Config // settings of a client; nil for plain TCP
}

func startKind(t testing.TB, k kind, options []string) *Server {
	t.Helper()
	exe, s := program(t, k.part, k.exe), local(t)
	if i := slices.Index(options, k.port); i >= 0 {
		s.Addr = net.JoinHostPort("127.0.0.1", options[i+1])
	}
	s.up(exec.Command(exe, slices.Concat([]string{k.port, s.port()}, k.args, options)...), k.ask, k.tls)
	return s
}

// program returns the path of a program of a part. Some are not in everybody's path.
func program(t testing.TB, part, name string) string {
	t.Helper()
	exe, err := exec.LookPath(name)
	if err != nil {
		exe, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		err = errors.New(name + " not found")
	}
	Require(t, part, err)
	return exe
}

// local returns a server on a free loopback port, which is to be started.
func local(t testing.TB) *Server {
	t.Helper()
	return &Server{t: t, Addr: net.JoinHostPort("127.0.0.1", freePort(t)), done: make(chan struct{})}
}

// up starts the server, and returns once it answers a question, with anything: a server that requires a password is ready, too.
func (s *Server) up(cmd *exec.Cmd, ask string, secure *tls.Config) {
	s.t.Helper()
	s.start(cmd)
	s.within(startTimeout, func() bool { return answer(s.Addr, ask, secure) != "" })
}

// within waits until a condition holds, which it does in time unless the server has ended.
func (s *Server) within(limit time.Duration, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(10 * time.Millisecond) {
		select {
		case <-s.done:
			s.t.Fatalf("%s has ended:\n%s", s.cmd, &s.output)
		default:
		}
		if time.Now().After(deadline) {
			s.Kill()
			s.t.Fatalf("%s is not ready at %s after %v:\n%s", s.cmd, s.Addr, limit, &s.output)
		}
	}
}

// port returns the server's port.
func (s *Server) port() string { return s.Addr[strings.LastIndexByte(s.Addr, ':')+1:] }

// start runs cmd until it ends or the test does.
func (s *Server) start(cmd *exec.Cmd) {
	s.t.Helper()
	s.cmd = cmd
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	require.NoError(s.t, cmd.Start(), cmd.Path)
	go func() { // ends with the process; Kill waits for it
		defer close(s.done)
		_ = cmd.Wait() // usually it was killed
	}()
	s.t.Cleanup(s.Kill)
}

// answer returns the beginning of what a server answers; "" if that is nothing.
func answer(addr, ask string, secure *tls.Config) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	network := "tcp"
	if filepath.IsAbs(addr) {
		network = "unix"
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return ""
	}
	if secure != nil {
		conn = tls.Client(conn, secure)
	}
	if _, err := conn.Write([]byte(ask)); err != nil {
		return ""
	}
	text := make([]byte, 16<<10)
	n, _ := conn.Read(text) // a broken connection yields nothing
	return string(text[:n])
}

// Serve has handle serve each connection to a listener, if it is nil to one on a free loopback port, until the test ends, and returns the address. A
// connection is closed once handle returns, or at the end of the test.
func Serve(t testing.TB, listener net.Listener, handle func(net.Conn)) (addr string) {
	t.Helper()
	if listener == nil {
		var err error
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
	}
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
				handle(conn)
			})
		}
	})
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		end()
		all.Wait()
	})
	return listener.Addr().String()
}

// Pid returns the server's process id, for tests that stop and continue it.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Kill ends the server and returns when it is gone. It may be called again.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended already
	<-s.done
}

// Demanded reports whether the environment requires the part by its name. "all" does not include parts that take long.
func Demanded(part string) bool {
	return slices.Contains(strings.Split(os.Getenv(RequireVariable), ","), part)
}

// OnDemand returns if the part is demanded, and otherwise skips t: for tests that need nothing but time.
func OnDemand(t testing.TB, part, why string) {
	t.Helper()
	if Demanded(part) {
		note(t, part, nil)
		return
	}
	t.Skipf("%s: it runs with %s=%s", why, RequireVariable, part)
}
