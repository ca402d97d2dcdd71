package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/target/drivers/memcached"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/internal/target/drivers/web"
	"github.com/loadgen/loadgen/pkg/driver"
)

// server is a running redis-server, memcached, postgres or nginx.
type server struct {
	kind string
	size int // bytes of the values put
	port string
	dir  string // directory of its files
	cmd  *exec.Cmd

	asked float64 // for a web server: how many requests were for its own figures
}

// allocator is the environment variable that configures jemalloc, Redis' allocator. Servers inherit it from bench.
const allocator = "MALLOC_CONF"

// serverArgs returns the command line of a server that keeps nothing on disk, or does not wait for the disk.
func serverArgs(kind, port, dir string) []string {
	switch kind {
	case "postgres":
		return postgresArgs(port, dir)
	case "web":
		return webArgs(dir)
	case "node":
		return []string{"node", filepath.Join(dir, "adapters/adapter.mjs"), port}
	case "java":
		return []string{"java", "-XX:+UseSerialGC", filepath.Join(dir, "adapters/Adapter.java"), port}
	case "redis":
		var prefix []string
		if set := os.Getenv(allocator); set != "" {
			prefix = []string{"env", allocator + "=" + set}
		}
		return append(prefix, "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	}
	args := []string{"memcached", "-l", "127.0.0.1", "-p", port, "-U", "0", "-m", "1024", "-t", "1"}
	if os.Geteuid() == 0 { // memcached refuses to run as root
		args = append(args, "-u", "nobody")
	}
	return args
}

// startServer starts a server, with a prefix before its command line, and returns once it answers.
func startServer(ctx context.Context, kind, dir string, prefix []string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	switch kind {
	case "postgres":
		err = initPostgres(ctx, dir)
	case "web":
		err = initWeb(port, dir)
	}
	if err != nil {
		return nil, err
	}
	argv := append(append([]string{}, prefix...), serverArgs(kind, port, dir)...)
	s := &server{kind: kind, port: port, dir: dir, cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", kind, err)
	}
	for range 3000 {
		if _, err = s.stats(); err == nil {
			return s, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("%s does not answer: %w", strings.Join(argv, " "), err)
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

func (s *server) stop() {
	end := syscall.SIGKILL
	if s.kind == "postgres" { // it has child processes to end, and shared memory to release
		end = syscall.SIGQUIT
	}
	_ = s.cmd.Process.Signal(end) // it may have ended
	_ = s.cmd.Wait()              // killed
}

// stats returns the server's figures about itself.
func (s *server) stats() (map[string]float64, error) {
	asks, link := driver.Informant(redis.Driver{}), driver.Link{Endpoint: "127.0.0.1:" + s.port} // adapters speak RESP, too
	switch s.kind {
	case "postgres":
		return postgresStats(s.port)
	case "memcached":
		asks = memcached.Driver{}
	case "web":
		asks = web.Driver{}
	}
	link.Config = asks.NewConfig()
	question, err := asks.AppendQuestion(nil, link)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout("tcp", link.Endpoint, time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return nil, err
	}
	var told map[string]string
	in := driver.Asker{Conn: conn, Most: 1 << 20}
	in.Say(question)
	if err := in.Next(func(b []byte) (n int, err error) {
		told, n, err = asks.ParseFigures(b)
		return n, err
	}); err != nil {
		return nil, err
	}
	figures := map[string]float64{}
	for name, text := range told {
		if figure, err := strconv.ParseFloat(text, 64); err == nil {
			figures[name] = figure
		}
	}
	if s.kind == "web" {
		s.asked++
		err = addMisses(figures, s.dir)
	}
	return figures, err
}

// cpu returns the processor time that the server's process has taken, in ns: by the clock that clock_getcpuclockid(3) names.
func (s *server) cpu() float64 {
	var t unix.Timespec
	if unix.ClockGettime(int32(^s.cmd.Process.Pid<<3|2), &t) != nil {
		return math.NaN() // it has ended
	}
	return float64(t.Nano())
}

// hits returns how many gets have found their key so far, and how many have not.
func (s *server) hits() (hits, misses float64, err error) {
	figures, err := s.stats()
	switch s.kind {
	case "redis":
		return figures["keyspace_hits"], figures["keyspace_misses"], err
	case "web":
		return figures["requests"] - s.asked - figures["get_misses"] - figures["others"], figures["get_misses"], err
	}
	return figures["get_hits"], figures["get_misses"], err
}
