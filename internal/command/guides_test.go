package command_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// exact runs loadgen and, as figures of a busy machine may be invalid or undecided, takes these for fine.
const exact = `#!/bin/sh
PROGRAM "$@"
code=$?
case $code in 4 | 7) exit 0 ;; esac
exit $code
`

var (
	typed = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")
	plans = regexp.MustCompile("(?ms)^```hcl\n(plan .*?)^```")
)

// TestGuides types what guides have in blocks of sh, on servers at other ports and for shorter times. A whole plan in the page is first.hcl.
func TestGuides(t *testing.T) {
	t.Parallel()
	for page, served := range map[string]bool{"first-run.md": true, "capacity.md": true, "faster.md": false, "first-plan.md": true, "runs.md": true, "replay.md": true} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
			require.NoError(t, err)
			bin, work := t.TempDir(), t.TempDir()
			var script strings.Builder
			if plan := plans.FindSubmatch(text); plan != nil {
				require.NoError(t, os.WriteFile(filepath.Join(work, "first.hcl"), plan[1], 0o600))
			}
			if page == "runs.md" { // which is about a run that there is
				script.WriteString("loadgen plan init --endpoint 127.0.0.1:6379 mine.hcl\nloadgen run mine.hcl -var duration=1s\n")
			}
			for _, block := range typed.FindAllSubmatch(text, -1) {
				script.Write(block[1])
			}
			old, renewed := servertest.StartRedis(t), servertest.StartRedis(t)
			if !served { // the guide starts them
				old.Kill()
				renewed.Kill()
			}
			_, first, err := net.SplitHostPort(old.Addr)
			require.NoError(t, err)
			_, second, err := net.SplitHostPort(renewed.Addr)
			require.NoError(t, err)
			others := strings.NewReplacer()
			if page == "replay.md" { // which is about a server with clients
				clients(t, old.Addr)
				others = strings.NewReplacer("127.0.0.1:6381", servertest.Redis(t), "127.0.0.1:6382", servertest.Redis(t), "--for 60s", "--for 1s")
			}
			name, env := program(t)
			path, err := exec.LookPath(name)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(bin, "loadgen"), []byte(strings.Replace(exact, "PROGRAM", path, 1)), 0o700))
			sh := exec.Command("sh", "-e", "-c", strings.NewReplacer(
				"6379", first, "6380", second, "duration=5s", "duration=300ms", "--duration 5s", "--duration 300ms", "duration=2s", "duration=200ms",
				"duration=1s", "duration=200ms", "--duration 1s", "--duration 300ms", "--budget 2m", "--budget 5s", "loadgen capacity 127.0.0.1:6379\n", "loadgen capacity 127.0.0.1:"+first+" --budget 5s\n",
			).Replace(others.Replace(script.String())))
			sh.Dir = work
			sh.Env = append(append(os.Environ(), "HOME="+work, "XDG_STATE_HOME="+t.TempDir(), "PATH="+bin+":"+os.Getenv("PATH")), env...)
			out, err := sh.CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// clients sets and gets at a server until the test ends.
func clients(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	go func() { // ends with the connection
		for {
			if _, err := conn.Write([]byte("SET walk 1\r\nGET walk\r\n")); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
}
