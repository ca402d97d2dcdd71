package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stubborn starts processes that resist ending and that leave their parents, groups and sessions, and writes the PID of each to a file.
const stubborn = `#!/bin/sh
trap "" TERM
sleep 600 & echo $! > DIR/plain.pid
setsid sleep 600 >/dev/null 2>&1 & echo $! > DIR/session.pid
(setsid env -i sleep 600 >/dev/null 2>&1 & echo $! > DIR/daemon.pid)
(setsid sh -c '(trap "" TERM; setsid sleep 600 & echo $! > DIR/twice.pid) &' >/dev/null 2>&1 &)
echo $$ > DIR/itself.pid
for one in plain session daemon twice itself; do while ! test -s DIR/$one.pid; do sleep 0.01; done; done
echo > DIR/begun
`

// goneWithin is how soon after the coordinator's end all processes of its hooks are gone. They get SIGTERM, and SIGKILL a second later; on their own
// they would run for ten minutes.
const goneWithin = time.Minute

// TestNothingOfAHookOutlivesItsCoordinator ends the coordinator in every way, both while a hook runs and after one, which went well or not, has left
// something running.
func TestNothingOfAHookOutlivesItsCoordinator(t *testing.T) {
	t.Parallel()
	end := map[string]func(l *load){
		"killed":      func(l *load) { require.NoError(t, l.cmd.Process.Kill()) },
		"terminated":  func(l *load) { require.NoError(t, l.cmd.Process.Signal(syscall.SIGTERM)) },
		"interrupted": func(l *load) { require.NoError(t, l.cmd.Process.Signal(os.Interrupt)) },
		"at its end":  func(*load) {},
	}
	for hook, c := range map[string]struct {
		last string
		ends []string
	}{
		"runs":      {"while :; do sleep 600; done", []string{"killed", "terminated", "interrupted"}},
		"is late":   {"sleep 600", []string{"killed", "at its end"}},
		"failed":    {"exit 3", []string{"at its end"}},
		"went well": {"exit 0", []string{"killed", "interrupted", "at its end"}},
	} {
		for _, how := range c.ends {
			t.Run(hook+"/"+how, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				script := filepath.Join(dir, "restart")
				require.NoError(t, os.WriteFile(script, []byte(strings.ReplaceAll(stubborn, "DIR", dir)+c.last+"\n"), 0o755))
				timeout := `"60s"`
				if hook == "is late" {
					timeout = `"2s"`
				}
				l := begin(t, strings.Replace(twice, `"60s"`, timeout, 1), "--allow-exec", "restart="+script)
				require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(dir, "begun")); return err == nil }, time.Minute, 5*time.Millisecond)
				end[how](l)
				l.wait(2 * time.Minute)
				began := time.Now()
				require.Eventually(t, func() bool { return len(stillThere(t, dir)) == 0 }, goneWithin, 10*time.Millisecond)
				t.Logf("all gone %v later", time.Since(began))
			})
		}
	}
}

// stillThere lists the processes that files of a directory name.
func stillThere(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.pid"))
	require.NoError(t, err)
	require.Len(t, files, 5)
	var found []string
	for _, file := range files {
		var pid int
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		if _, err := fmt.Sscan(string(b), &pid); err != nil {
			continue // a later hook is about to write it
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			found = append(found, file)
		}
	}
	return found
}
