package hook

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestServersAreStartedAnew: the one before ends, also one that ignores SIGTERM, a command that ends or never listens says what to do, and nothing is
// left running.
func TestServersAreStartedAnew(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := l.Addr().String()
	dir := t.TempDir()
	// A shell cannot listen, so a variant's pid file stands for its server, and the test listens.
	server := func(name, more string) string {
		return "sh -c 'echo $$ >" + filepath.Join(dir, name) + "; " + more + "; while :; do sleep 0.1; done'"
	}
	h, end, err := Servers("server", at, map[string]string{
		"A": server("A", "trap : TERM"), "B": server("B", "echo {port} >"+filepath.Join(dir, "port")), "broken": "sh -c 'echo no such option; exit 3'",
	})
	require.NoError(t, err)
	pid := func(name string) int {
		var text []byte
		require.Eventually(t, func() bool { text, err = os.ReadFile(filepath.Join(dir, name)); return err == nil && len(text) > 1 }, 20*time.Second, poll)
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		require.NoError(t, err)
		return n
	}
	run := func(variant string, within time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		_, err := h.Run(ctx, []string{"LOADGEN_VARIANT=" + variant})
		return err
	}
	require.ErrorContains(t, run("A", time.Minute), "something else listens at "+at+": end it")
	require.NoError(t, l.Close())

	ready := make(chan error, 1)
	go func() { ready <- run("A", time.Minute) }()
	first := pid("A")
	l, err = net.Listen("tcp", at)
	require.NoError(t, err)
	require.NoError(t, <-ready)
	require.NoError(t, syscall.Kill(first, 0), "it serves")
	require.NoError(t, l.Close())

	require.ErrorContains(t, run("B", time.Second), "hook server: the server does not listen at "+at+": its command must take that port, as {port}")
	require.ErrorIs(t, syscall.Kill(first, 0), syscall.ESRCH)
	require.ErrorIs(t, syscall.Kill(pid("B"), 0), syscall.ESRCH)
	text, err := os.ReadFile(filepath.Join(dir, "port"))
	require.NoError(t, err)
	require.Equal(t, at, "127.0.0.1:"+strings.TrimSpace(string(text)))
	require.ErrorContains(t, run("broken", time.Minute), "the server ended before it listened at "+at+": exit status 3; the last that it printed: no such option")
	require.ErrorContains(t, run("C", time.Minute), "the variant has no server")
	end()
	_, _, err = Servers("server", at, map[string]string{"A": "no-such-command"})
	require.ErrorContains(t, err, "server A: exec: ")
}
