package command_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// drips opens clients that send, byte by byte, something that takes minutes, and returns how many of them have not been disconnected.
func drips(t *testing.T, clients int, dial func() (net.Conn, error), words string) *atomic.Int64 {
	t.Helper()
	var left atomic.Int64
	var all sync.WaitGroup
	done := make(chan struct{})
	for range clients {
		conn, err := dial()
		require.NoError(t, err)
		left.Add(1)
		all.Go(func() {
			defer left.Add(-1)
			defer conn.Close()
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				case <-time.After(200 * time.Millisecond):
				}
				b := byte('x')
				if i < len(words) {
					b = words[i]
				}
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
			}
		})
	}
	t.Cleanup(func() {
		close(done)
		all.Wait()
	})
	return &left
}

// TestSlowClients has hundreds of clients send something slowly wherever loadgen listens, in cleartext and after a handshake. Others are served
// meanwhile, and each of the slow ones is disconnected.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	plan := filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(plan, []byte(closedPlan), 0o600))
	waits := func(args ...string) []string {
		return append([]string{"coordinator", "run", plan, "--runs", t.TempDir(), "--workers", "1", "--wait", "20m"}, args...)
	}
	type check struct {
		name  string
		ended func(t *testing.T)
	}
	var checks []check
	const request = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
	for name, c := range map[string]struct {
		args   []string
		secure []string // protocols of TLS; nil: cleartext
		words  string
		serves func(t *testing.T, port uint16)
	}{
		"fleet, hello":     {waits("--listen", "0.0.0.0:0"), nil, "\x16\x03\x01\x3f\xff\x01\x00\x3f\xfb\x03\x03", asksForCertificate},
		"fleet, cleartext": {waits("--listen", "0.0.0.0:0"), nil, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", asksForCertificate},
		"fleet, enrolment": {waits("--listen", "0.0.0.0:0"), []string{"loadgen-enrol/1"}, "\x0f\xff{\"", asksForCertificate},
		"page, header":     {waits("--http", "127.0.0.1:0"), nil, "GET /metrics HTTP/1.1\r\nX: ", serves},
		"page, body":       {waits("--http", "127.0.0.1:0"), nil, request, serves},
		"open page, hello": {waits("--http", "0.0.0.0:0"), nil, "\x16\x03\x01\x3f\xff\x01\x00\x3f\xfb\x03\x03", asksForToken},
		"open page, body":  {waits("--http", "0.0.0.0:0"), []string{"http/1.1"}, request, asksForToken},
		"worker's page":    {[]string{"worker", "--join", "127.0.0.1:1", "--http", "127.0.0.1:0"}, nil, "GET /metrics HTTP/1.1\r\nX: ", serves},
	} {
		p := start(t, command(t, c.args...))
		var port uint16
		require.Eventually(t, func() bool {
			for _, at := range listeners(t, p.cmd.Process.Pid) {
				port = at.Port()
			}
			return port > 0
		}, time.Minute, 5*time.Millisecond, "%s", &p.stderr)
		address := fmt.Sprintf("localhost:%d", port)
		left := drips(t, 270, func() (net.Conn, error) {
			if c.secure == nil {
				return net.Dial("tcp", address)
			}
			return tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: c.secure})
		}, c.words)
		c.serves(t, port)
		checks = append(checks, check{name, func(t *testing.T) {
			require.Eventually(t, func() bool { return left.Load() == 0 }, 3*time.Minute, 50*time.Millisecond, "of 270")
			c.serves(t, port)
		}})
	}
	for _, c := range checks { // they have been slow side by side
		t.Run(c.name, c.ended)
	}
}

// TestSlowClientsOfASocket does the same on the socket where a user's coordinators and workers meet.
func TestSlowClientsOfASocket(t *testing.T) {
	t.Parallel()
	l := begin(t, closedPlan, "--workers", "1", "--wait", "20m", "-var", "duration=1s")
	tm := &team{load: l}
	var path string
	require.Eventually(t, func() bool {
		for _, v := range l.cmd.Env {
			if dir, ok := strings.CutPrefix(v, "XDG_STATE_HOME="); ok {
				found, err := filepath.Glob(filepath.Join(dir, "loadgen", "*", "*.sock"))
				require.NoError(t, err)
				path = strings.Join(found, " ")
			}
		}
		conn, err := net.Dial("unix", path) // it is there before somebody listens
		return err == nil && conn.Close() == nil
	}, time.Minute, 5*time.Millisecond)
	left := drips(t, 300, func() (net.Conn, error) { return net.Dial("unix", path) }, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x3f\xff\x04\x00\x00\x00\x00\x00")
	w := start(t, tm.command("worker", "--name", "w1", "--once", "--loops", "1"))
	require.Eventually(t, func() bool { return left.Load() == 0 }, 3*time.Minute, 50*time.Millisecond, "of 300")
	l.whole()
	require.Zero(t, w.wait(60*time.Second), "%s", &w.stderr)
}

// serves looks whether a page on the loopback answers.
func serves(t *testing.T, port uint16) {
	reply := said(t, func() (net.Conn, error) { return net.Dial("tcp", fmt.Sprintf("localhost:%d", port)) }, "/metrics")
	require.True(t, strings.HasPrefix(reply, "HTTP/1.1 200 "), "%.200s", reply)
}
