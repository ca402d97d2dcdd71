package command_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// crowd is connections that are kept open.
type crowd struct {
	addr  string
	mu    sync.Mutex
	conns []net.Conn
}

// add opens connections that send something and read nothing. Those that are refused or closed count as well.
func (c *crowd) add(n int, says string) error {
	for range n {
		conn, err := net.DialTimeout("tcp", c.addr, time.Minute)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.conns = append(c.conns, conn)
		c.mu.Unlock()
		if err := errors.Join(conn.(*net.TCPConn).SetReadBuffer(4096), conn.SetWriteDeadline(time.Now().Add(100*time.Millisecond))); err != nil {
			return err
		}
		_, _ = io.WriteString(conn, says) // the node may have ended it, or does not read any further
	}
	return nil
}

func (c *crowd) leave() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// request writes a request in RESP.
func request(args ...string) string {
	text := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	return text
}

// TestHostileClients lets clients beset a node of 16 MiB by the thousand: they announce much and send little, ask for much and read nothing, come and
// go, and stay. Meanwhile redis-benchmark runs. The node keeps within its limits, and the benchmark completes.
func TestHostileClients(t *testing.T) {
	path, err := exec.LookPath("redis-benchmark")
	servertest.Require(t, "redis", err)
	const memory, stay = 16, 4000
	node := beginTarget(t, "--memory", fmt.Sprint(memory, "MiB"))
	host, port, err := net.SplitHostPort(node.addr)
	require.NoError(t, err)
	large := request("SET", "large", strings.Repeat("v", 1<<20))
	attacks := map[string]func(c *crowd) error{
		"stay": func(c *crowd) error { return c.add(stay, request("PING")) },
		"half": func(c *crowd) error {
			return c.add(500, "*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$20000000\r\n"+strings.Repeat("v", 100_000))
		},
		"read nothing": func(c *crowd) error {
			for range 20 {
				if err := errors.Join(c.add(1, large), c.add(25, strings.Repeat(request("GET", "large"), 100))); err != nil {
					return err
				}
			}
			return c.add(100, strings.Repeat(request("INFO", "peers"), 100))
		},
		"announce": func(c *crowd) error {
			return errors.Join(c.add(100, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1073741824\r\n"), c.add(100, strings.Repeat("*1\r\n", 10_000)), c.add(100, "GET / HTTP/1.1\r\n\r\n"))
		},
		"storm": func(c *crowd) error {
			for range 100 {
				guests := &crowd{addr: c.addr}
				err := guests.add(20, request("GET", "k"))
				guests.leave()
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	var under sync.WaitGroup
	var all []*crowd
	failed := make(chan error, len(attacks))
	for _, attack := range attacks {
		c := &crowd{addr: node.addr}
		all = append(all, c)
		under.Go(func() { failed <- attack(c) })
	}
	bench := start(t, exec.Command(path, "-h", host, "-p", port, "-t", "set,get", "-n", "10000", "-c", "20", "-r", "1000", "-d", "100", "-q"))
	require.Zero(t, bench.wait(3*time.Minute), &bench.stderr)
	require.NotContains(t, bench.stdout.String()+bench.stderr.String(), "Error")
	under.Wait()
	for range attacks {
		require.NoError(t, <-failed)
	}
	again := start(t, exec.Command(path, "-h", host, "-p", port, "-t", "set,get", "-n", "10000", "-c", "20", "-P", "16", "-r", "1000", "-d", "100", "-q"))
	require.Zero(t, again.wait(3*time.Minute), &again.stderr)
	most := peakMemory(t, node.cmd.Process.Pid) >> 10
	for _, c := range all {
		c.leave()
	}
	said := node.summary()
	t.Logf("%d MiB resident at most; %v", most, said)
	require.GreaterOrEqual(t, said["set"], uint64(20_000))
	require.Less(t, most, 7*memory+(stay+2000)*48/1024+256, "MiB: what docs/target.md says")
}
