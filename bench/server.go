package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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
	switch s.kind {
	case "postgres":
		return postgresStats(s.port)
	case "web":
		figures, err := webStats(s.port, s.dir)
		if err == nil {
			s.asked++
		}
		return figures, err
	}
	conn, err := net.DialTimeout("tcp", "127.0.0.1:"+s.port, time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return nil, err
	}
	ask, separator := "stats\r\n", " "
	if s.kind != "memcached" {
		ask, separator = "*2\r\n$4\r\nINFO\r\n$5\r\nstats\r\n", ":"
	}
	if _, err := conn.Write([]byte(ask)); err != nil {
		return nil, err
	}
	in, size := bufio.NewReader(conn), int64(math.MaxInt64)
	if s.kind != "memcached" {
		head, err := in.ReadString('\n')
		if err == nil {
			size, err = strconv.ParseInt(strings.Trim(head, "$\r\n"), 10, 64)
		}
		if err != nil {
			return nil, err
		}
	}
	figures := map[string]float64{}
	lines := bufio.NewScanner(io.LimitReader(in, size))
	for lines.Scan() && lines.Text() != "END" {
		name, text, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "STAT "), separator)
		if figure, err := strconv.ParseFloat(text, 64); err == nil {
			figures[name] = figure
		}
	}
	return figures, lines.Err()
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
