package cachenode

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain lets this test binary also be the child process, or the parent, of a test: its first argument says which.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role, found := strings.CutPrefix(os.Args[1], "role="); found {
			os.Exit(play(role))
		}
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil { // else a child that the race detector watches ends a second late
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func play(role string) (exitCode int) {
	switch role {
	case "node", "hydra":
		cfg := Config{Listen: "127.0.0.1:0", Memory: 64 << 20}
		if role == "hydra" {
			cfg.Protocol, cfg.Space = role, Space{N: 2, W: 1, R: 1, Wait: time.Second}
		}
		if len(os.Args) == 4 { // role=node --listen HOST:PORT
			cfg.Listen = os.Args[3]
		}
		if err := RunChild(context.Background(), cfg, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 6
		}
	case "parent": // of two nodes; says where they are and does nothing more
		fleet, err := Start(context.Background(), os.Args[0], []string{"role=node"}, 2)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(strings.Join(fleet.Endpoints(), " "))
		time.Sleep(time.Minute)
	}
	return 0
}

// Scripts are children that are no nodes. They start sooner than this binary does.
const (
	ready  = "echo ready 127.0.0.1:1; "
	dies   = "head -c 10000 /dev/zero | tr '\\0' x >&2; echo ' port in use' >&2; exit 6"
	mute   = "cat >/dev/null"
	shouts = ready + "head -c 1048576 /dev/zero | tr '\\0' x; " + mute
	mad    = ready + "while read line; do echo 'what?'; done"
	stays  = ready + "exec sleep 60"
)

func startScript(ctx context.Context, script string, n int) (*Fleet, error) {
	return Start(ctx, "/bin/sh", []string{"-c", script}, n)
}

// startFleet starts nodes of a role of this binary, or children that carry out a script.
func startFleet(t *testing.T, role string, n int) *Fleet {
	t.Helper()
	var fleet *Fleet
	var err error
	if strings.HasPrefix(role, ready) {
		fleet, err = startScript(t.Context(), role, n)
	} else {
		fleet, err = Start(t.Context(), os.Args[0], []string{"role=" + role}, n)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = fleet.Close() }) // tests that care look at it themselves
	return fleet
}

// gone waits until nothing listens at addr.
func gone(t *testing.T, addr string, within time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, within, 5*time.Millisecond, "%s still listens", addr)
}

func ask(t *testing.T, addr string, args ...string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	s := &session{t, conn, bufio.NewReader(conn)}
	return s.do(args...)
}

func TestFleet(t *testing.T) {
	ctx := context.Background()
	fleet := startFleet(t, "node", 3)
	endpoints := fleet.Endpoints()
	require.Len(t, endpoints, 3)
	group, err := syscall.Getpgid(fleet.nodes[0].cmd.Process.Pid)
	require.NoError(t, err)
	require.NotEqual(t, syscall.Getpgrp(), group, "an interrupt from the terminal, which goes to the foreground process group, does not reach the nodes")
	for i, addr := range endpoints {
		require.Equal(t, "+OK\r\n", ask(t, addr, "SET", "k", fmt.Sprint(i)))
	}
	for i, addr := range endpoints {
		require.Equal(t, fmt.Sprintf("$1\r\n%d\r\n", i), ask(t, addr, "GET", "k"), "nodes share nothing")
	}
	require.NoError(t, fleet.Flush(ctx))
	for _, addr := range endpoints {
		require.Equal(t, ":0\r\n", ask(t, addr, "DBSIZE"))
	}

	start := time.Now()
	require.NoError(t, fleet.Command(ctx, 1, "stall 200ms"))
	require.Equal(t, "+PONG\r\n", ask(t, endpoints[1], "PING"))
	require.GreaterOrEqual(t, time.Since(start), 200*time.Millisecond)

	require.EqualError(t, fleet.Command(ctx, 2, "dance"),
		`order "dance" to cache node 2: unknown order "dance": want stall, delay, drop, flush, peers or quit`)
	require.EqualError(t, fleet.Command(ctx, 3, "flush"), `order "flush" to cache node 3: there are 3`)
	require.ErrorContains(t, fleet.Command(ctx, 0, "flush\nquit"), "is not a line")
	require.ErrorContains(t, fleet.Command(ctx, 0, strings.Repeat("x", maxLine)), "is not a line")
	require.NoError(t, fleet.Command(ctx, 0, "flush"), "after refusals")

	require.NoError(t, fleet.Close(), "a node that had to be killed")
	require.NoError(t, fleet.Close(), "again")
	for _, addr := range endpoints {
		gone(t, addr, time.Second)
	}
	require.Error(t, fleet.Flush(ctx))
	require.Empty(t, fleet.Exited(), "nodes that were let go")
}

func TestFleetReportsExits(t *testing.T) {
	fleet := startFleet(t, "node", 3)
	require.NoError(t, syscall.Kill(fleet.nodes[1].cmd.Process.Pid, syscall.SIGKILL))
	select {
	case err := <-fleet.Exited():
		require.EqualError(t, err, fmt.Sprintf("cache node 1 (%s) ended: signal: killed", fleet.Endpoints()[1]))
	case <-time.After(5 * time.Second):
		t.Fatal("the end of a node is not noticed")
	}
	require.Error(t, fleet.Command(context.Background(), 1, "flush"))
	require.NoError(t, fleet.Command(context.Background(), 2, "flush"))
	require.NoError(t, fleet.Command(context.Background(), 0, "quit"))
	select {
	case err := <-fleet.Exited():
		require.EqualError(t, err, fmt.Sprintf("cache node 0 (%s) ended by itself", fleet.Endpoints()[0]))
	case <-time.After(5 * time.Second):
		t.Fatal("the end of a node is not noticed")
	}
	require.NoError(t, fleet.Close())
}

func TestStartErrors(t *testing.T) {
	start := func(script string, timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		_, err := startScript(ctx, script, 2)
		return err
	}
	err := start(dies, time.Minute)
	require.ErrorContains(t, err, "ended: exit status 6; it said ")
	require.ErrorContains(t, err, " port in use")
	require.Less(t, len(err.Error()), 3000, "what a node said is bounded")
	require.ErrorContains(t, start("echo hello; "+mute, time.Minute), `cache node 0: first line is "hello", want "ready " and its address`)
	require.ErrorContains(t, start(mute, 200*time.Millisecond), "cache node 0 is not ready: context deadline exceeded")
	_, err = Start(context.Background(), "/nonexistent/loadgen", nil, 1)
	require.ErrorContains(t, err, "start cache node 0: fork/exec /nonexistent/loadgen: no such file")
}

func TestFleetKillsWhatStays(t *testing.T) {
	fleet := startFleet(t, stays, 2)
	start := time.Now()
	err := fleet.Close()
	require.ErrorContains(t, err, "cache node 0 (127.0.0.1:1) had to be killed")
	require.ErrorContains(t, err, "cache node 1 (127.0.0.1:1) had to be killed")
	require.Less(t, time.Since(start), 2*leaveTimeout, "one wait for all")
	require.Equal(t, err, fleet.Close())
}

func TestFleetWithMadNodes(t *testing.T) {
	ctx := context.Background()
	mad := startFleet(t, mad, 1)
	require.ErrorContains(t, mad.Command(ctx, 0, "flush"), `it answered "what?"`)
	require.ErrorContains(t, mad.Command(ctx, 0, "flush"), `it answered "what?"`, "no later answer is trusted")

	slow := startFleet(t, ready+mute, 1)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, slow.Command(short, 0, "flush"), "no answer: context deadline exceeded")
	require.ErrorContains(t, slow.Command(ctx, 0, "flush"), "an earlier answer is missing")

	shouts := startFleet(t, shouts, 1)
	select {
	case err := <-shouts.Exited():
		require.ErrorContains(t, err, "signal: killed")
	case <-time.After(5 * time.Second):
		t.Fatal("a line without end is not noticed")
	}
}

// TestNodesEndWithTheirParent kills a parent that has no chance to end its nodes.
func TestNodesEndWithTheirParent(t *testing.T) {
	parent := exec.Command(os.Args[0], "role=parent")
	parent.Stderr = os.Stderr
	stdout, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	endpoints := strings.Fields(line)
	require.Len(t, endpoints, 2)
	for _, addr := range endpoints {
		require.Equal(t, "+PONG\r\n", ask(t, addr, "PING"))
	}
	require.NoError(t, parent.Process.Kill())
	for _, addr := range endpoints {
		gone(t, addr, time.Second)
	}
	require.Error(t, parent.Wait())
}

// A node that was killed, or stopped, is not reported as one that ended by itself. It starts again at its address, empty.
func TestNodesEndAndStartAgain(t *testing.T) {
	for role, c := range map[string]struct {
		put  func(addr string)
		keys func(addr string) string
		none string
	}{
		"node": {
			put:  func(addr string) { require.Equal(t, "+OK\r\n", ask(t, addr, "SET", "k", "v")) },
			keys: func(addr string) string { return ask(t, addr, "DBSIZE") },
			none: ":0\r\n",
		},
		"hydra": {
			put: func(addr string) {
				require.Contains(t, browse(t, addr, "PUT /k HTTP/1.0\r\nContent-Length: 21\r\n\r\n"+frameStart+strings.Repeat("\x00", versionSize)+"v"), "201 Created")
			},
			keys: func(addr string) string { return browse(t, addr, "GET /dump HTTP/1.0\r\n\r\n") },
			none: "\r\n\r\n[]",
		},
	} {
		t.Run(role, func(t *testing.T) {
			ctx := context.Background()
			fleet := startFleet(t, role, 2)
			addr := fleet.Endpoints()[1]
			c.put(addr)
			require.NotContains(t, c.keys(addr), c.none)
			require.NoError(t, fleet.End(ctx, 1))
			gone(t, addr, time.Second)
			require.NoError(t, fleet.Restart(ctx, 1))
			require.Contains(t, c.keys(addr), c.none)
			require.NoError(t, fleet.Restart(ctx, 1))
			require.Equal(t, addr, fleet.Endpoints()[1])
			require.NoError(t, fleet.Command(ctx, 1, "drop 1"))
			require.NoError(t, fleet.Command(ctx, 1, "drop 0"))
			require.ErrorContains(t, fleet.Command(ctx, 1, "drop 2"), "write a share from 0 to 1")
			c.put(addr)
			require.EqualError(t, fleet.End(ctx, 2), "cache node 2: there are 2")

			require.NoError(t, fleet.Signal(0, syscall.SIGSTOP))
			require.NoError(t, fleet.Close(), "one that stands still ends, too")
			require.Empty(t, fleet.Exited())
		})
	}
}

// browse sends a request and returns all that a Hydra node answers.
func browse(t *testing.T, addr, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	page, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(page)
}

// Hydra nodes know each other, and so does one that was started again.
func TestHydraNodesAreIntroduced(t *testing.T) {
	ctx := context.Background()
	fleet := startFleet(t, "hydra", 3)
	require.NoError(t, fleet.Introduce(ctx))
	all := func() bool {
		for _, addr := range fleet.Endpoints() {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				return false
			}
			_, _ = io.WriteString(conn, "GET /registry HTTP/1.0\r\n\r\n") // if this fails, so does reading
			page, _ := io.ReadAll(conn)
			_ = conn.Close()
			if strings.Count(string(page), `"port"`) != 3 {
				return false
			}
		}
		return true
	}
	require.Eventually(t, all, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, fleet.Restart(ctx, 2))
	require.Eventually(t, all, 10*time.Second, 10*time.Millisecond)
}
