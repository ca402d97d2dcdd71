package command_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/servertest"
)

// twice is an empty load with an experiment that restarts its target.
const twice = nothing + `
experiment {
	repeat          = 2
	restart         = hook.restart
	restart_timeout = "60s"
	variant "one" { sessions = 1 }
	variant "two" { sessions = 2 }
}`

// printed returns what the restart hook of a run printed.
func printed(t *testing.T, l *load, id string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(l.runs, id, "hook-restart.txt"))
	require.NoError(t, err)
	return string(b)
}

// A real server is another process in each run.
func TestServersAreStartedAnew(t *testing.T) {
	t.Parallel()
	s := servertest.StartRedis(t)
	_, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	dir := t.TempDir()
	script := filepath.Join(dir, "restart")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pid"), fmt.Append(nil, s.Pid()), 0o644))
	require.NoError(t, os.WriteFile(script, []byte(strings.ReplaceAll(strings.ReplaceAll(`#!/bin/sh
kill -9 $(cat DIR/pid)
# The port may be taken a moment longer, which a server finds out once it is in the background and its start has gone well.
while ! redis-cli -p PORT ping 2>/dev/null | grep -q PONG; do
	redis-server --port PORT --bind 127.0.0.1 --save "" --dir DIR --daemonize yes --pidfile DIR/pid >/dev/null
	sleep 0.1
done
cat DIR/pid
echo "$LOADGEN_VARIANT $LOADGEN_REPETITION $LOADGEN_VAR_sessions $LOADGEN_PLAN"
`, "DIR", dir), "PORT", port)), 0o755))
	plan := strings.Replace(twice, "driver  = \"null\"\n\tlatency = var.latency", fmt.Sprintf("driver = \"redis\"\n\tendpoints = [%q]", s.Addr), 1)
	l := begin(t, plan, "--allow-exec", "restart="+script)
	x := l.experiment(60 * time.Second)
	require.Equal(t, run.Complete, x.Verdict.Completeness, x.Verdict.Reasons)
	seen := map[string]bool{}
	for _, one := range x.Runs {
		r, err := rundir.Load(l.runs, one.ID)
		require.NoError(t, err)
		pid := r.Environment.Servers["t"][s.Addr]["process_id"]
		seen[pid] = true
		require.Equal(t, fmt.Sprintf("%s\n%s %d %s brief\n", pid, one.Variant, one.Repetition, map[string]string{"one": "1", "two": "2"}[one.Variant]), printed(t, l, one.ID))
	}
	require.Len(t, seen, 4)
	require.Eventually(t, func() bool { // the last one ends with the coordinator
		conn, err := net.Dial("tcp", s.Addr)
		return err != nil || conn.Close() != nil
	}, time.Minute, 10*time.Millisecond)
}

// A failed restart fails its run, and the others go on.
func TestRestartFails(t *testing.T) {
	t.Parallel()
	l := begin(t, twice, "--allow-exec", `restart=sh -c 'echo trying; test "$LOADGEN_VARIANT" = one && exit 0; echo no such unit; exit 3'`)
	x := l.experiment(60 * time.Second)
	require.Equal(t, exit.Failed, x.ExitCode)
	require.Equal(t, map[string]run.Stop{"one": run.StopFinished, "two": run.StopFailed}, stops(x))
	require.Contains(t, x.Verdict.Reasons, "two, repetition 1: restart the targets: hook restart: exit status 3; the last that it printed: no such unit")
	for _, one := range x.Runs {
		require.Contains(t, printed(t, l, one.ID), "trying\n")
	}
}

// A hanging one is ended with its children, and so is its run.
func TestRestartHangs(t *testing.T) {
	t.Parallel()
	child := filepath.Join(t.TempDir(), "pid")
	l := begin(t, strings.Replace(twice, `"60s"`, `"3s"`, 1), "--allow-exec", fmt.Sprintf("restart=sh -c 'echo $$ > %s; sleep 600 & wait'", child))
	x := l.experiment(60 * time.Second)
	require.Equal(t, exit.Failed, x.ExitCode)
	require.Contains(t, strings.Join(x.Verdict.Reasons, "\n"), "hook restart: it did not end in time, and was ended")
	b, err := os.ReadFile(child)
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscan(string(b), &pid)
	require.NoError(t, err)
	require.ErrorIs(t, syscall.Kill(-pid, 0), syscall.ESRCH, "nobody of its group is left")
}

func TestRestartPrintsMuch(t *testing.T) {
	t.Parallel()
	l := begin(t, twice, "--allow-exec", `restart=sh -c 'head -c 1048576 /dev/zero | tr "\\0" x'`)
	x := l.experiment(60 * time.Second)
	require.Equal(t, run.Complete, x.Verdict.Completeness, x.Verdict.Reasons)
	text := printed(t, l, x.Runs[0].ID)
	require.Equal(t, strings.Repeat("x", 64<<10)+"\n(cut: it printed more than 64 KiB)\n", text)
}

// What is not allowed, or impossible, is refused before anything runs.
func TestHooksAreRefused(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o644))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"the plan runs hook.restart, which the command line does not allow: write --allow-exec 'restart=COMMAND ARGUMENT…'", nil},
		{"hook.restart, which the command line does not allow", []string{"--allow-exec", "other=true"}},
		{`--allow-exec restart: exec: "no-such-command-anywhere": executable file not found in $PATH`, []string{"--allow-exec", "restart=no-such-command-anywhere"}},
		{"permission denied", []string{"--allow-exec", "restart=" + plain}},
		{"a ' that is not closed", []string{"--allow-exec", "restart=sh -c 'true"}},
		{"--allow-exec names restart twice", []string{"--allow-exec", "restart=true", "--allow-exec", "restart=false"}},
	} {
		l := begin(t, twice, c.args...)
		require.Equal(t, 2, l.wait(60*time.Second), "%s%s", &l.stdout, &l.stderr)
		require.Contains(t, l.stderr.String(), c.want)
		entries, err := os.ReadDir(l.runs)
		require.True(t, err != nil || len(entries) == 0, "nothing is left behind")
	}
}

// A variant by itself is restarted if that is allowed, the variables' own values never.
func TestRestartOfASingleRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rc   int
		says string
		args []string
	}{
		{exit.Failed, "restart the targets: hook restart: exit status 1", []string{"--variant", "one", "--allow-exec", "restart=false"}},
		{0, "the targets are not restarted: that takes --allow-exec 'restart=COMMAND", []string{"--variant", "one"}},
		{0, "the plan does not name hook.restart", []string{"--once", "--allow-exec", "restart=false"}},
	} {
		l := begin(t, twice, c.args...)
		require.Equal(t, c.rc, l.wait(60*time.Second), "%s", &l.stderr)
		require.Contains(t, l.stdout.String()+l.stderr.String(), c.says)
	}
}

// heapObserved has a hook observe the target.
const heapObserved = `
observe "heap" {
	hook {
		run    = hook.jmap
		fields = ["live_bytes", "objects"]
	}
}`

// A hook that observes appears in the result, along with what it could not report.
func TestHookObserves(t *testing.T) {
	t.Parallel()
	l := begin(t, nothing+heapObserved, "--allow-exec", `jmap=sh -c 'echo live_bytes 4096; echo "$LOADGEN_RUN" >&2'`)
	r := l.result(60 * time.Second)
	heap := r.Phase["load"].Observe["heap"]
	require.InDelta(t, 4096, *heap["live_bytes"].Before, 0)
	require.InDelta(t, 4096, *heap["live_bytes"].After, 0)
	require.Equal(t, "bytes", heap["live_bytes"].Unit)
	require.Equal(t, "the command did not print it", r.Why("phase", "load", "observe", "heap", "objects").Text)
	require.Equal(t, 2, r.Phase["load"].Probes["heap"].Taken, "before and after only")
	require.Contains(t, l.stdout.String(), "observed    heap: hook hook.jmap")

	bad := begin(t, nothing+"\nobserve \"heap\" {\n hook {\n run = hook.jmap\n fields = [\"live_bytes\"]\n }\n}", "--allow-exec", `jmap=sh -c 'echo no JVM; exit 3'`)
	r = bad.whole()
	require.Equal(t, "hook jmap: exit status 3; the last that it printed: no JVM", r.Why("phase", "load", "observe", "heap", "live_bytes").Text)
}
