package hook

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		`systemctl restart redis`:           {"systemctl", "restart", "redis"},
		"  a \t b\n":                        {"a", "b"},
		`sh -c 'echo "$HOME" | wc; exit 3'`: {"sh", "-c", `echo "$HOME" | wc; exit 3`},
		`a "b \"c\" \\ d" e\ f \'`:          {"a", `b "c" \ d`, "e f", "'"},
		`a '' "" x''y`:                      {"a", "", "", "xy"},
		`echo *.go $HOME ~ | > &`:           {"echo", "*.go", "$HOME", "~", "|", ">", "&"},
		``:                                  nil,
	} {
		got, err := split(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, why := range map[string]string{`a 'b`: "a ' that is not closed", `a "b`: `a " that is not closed`, `a \`: `a \ at the end`} {
		_, err := split(text)
		require.ErrorContains(t, err, why, text)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(`sh -c 'a b' "c\"d" e\ f`)
	f.Fuzz(func(t *testing.T, text string) {
		words, err := split(text)
		if err != nil {
			return
		}
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		again, err := split(strings.Join(quoted, " "))
		require.NoError(t, err)
		require.Equal(t, words, again)
	})
}

func TestParseRefuses(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o644))
	for text, why := range map[string]string{
		"restart":                          `--allow-exec "restart": write --allow-exec 'NAME=COMMAND ARGUMENT…'`,
		"=true":                            "NAME is a letter",
		"re start=true":                    "NAME is a letter",
		"restart=":                         "no command",
		"restart='":                        "not closed",
		"restart=no-such-command-anywhere": "executable file not found in $PATH",
		"restart=/no/such/file":            "no such file or directory",
		"restart=" + plain:                 "permission denied",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, why, text)
		require.ErrorContains(t, err, "--allow-exec", text)
	}
}

// run parses and runs, for so long at most.
func run(t *testing.T, text string, within time.Duration, told ...string) (Output, error) {
	t.Helper()
	h, err := Parse(text)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return h.Run(ctx, told)
}

func TestRun(t *testing.T) {
	out, err := run(t, `x=sh -c 'echo out; echo err >&2; cat; pwd >/dev/null'`, 5*time.Second)
	require.NoError(t, err)
	require.Equal(t, Output{Text: "out\nerr\n"}, out)
}

// Nothing of this process' environment comes through but where programs and the user's files are.
func TestEnvironmentIsScrubbed(t *testing.T) {
	t.Setenv("LOADGEN_SECRET_PW", "hunter2")
	out, err := run(t, "x=env", 5*time.Second, "LOADGEN_RUN=r", "LOADGEN_VARIANT=w=1")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LOADGEN_HOOK=x", "LOADGEN_RUN=r", "LOADGEN_VARIANT=w=1"},
		strings.Split(regexp.MustCompile(`LOADGEN_HOOK_ID=\w{26}\n`).ReplaceAllString(out.Text, ""), "\n")[:5])
}

func TestRunFails(t *testing.T) {
	_, err := run(t, `x=sh -c 'echo one; echo; echo "  what was wrong  "; echo; exit 3'`, 5*time.Second)
	require.EqualError(t, err, "hook x: exit status 3; the last that it printed: what was wrong")
	_, err = run(t, `x=sh -c 'kill -9 $$'`, 5*time.Second)
	require.EqualError(t, err, "hook x: signal: killed")
}

// What a command prints in colours, or with a bell, is kept as it came, and is plain in its error: that stands in results.
func TestErrorIsPlain(t *testing.T) {
	out, err := run(t, `x=sh -c 'printf "\\033[1;31mError:\\033[0m no\\tdisk\\007\\n"; exit 1'`, 5*time.Second)
	require.EqualError(t, err, "hook x: exit status 1; the last that it printed: Error: no disk")
	require.Equal(t, "\x1b[1;31mError:\x1b[0m no\tdisk\a\n", out.Text)
}

func TestOutputIsBounded(t *testing.T) {
	out, err := run(t, `x=sh -c 'head -c 1048576 /dev/zero | tr "\\0" "\\377"; echo end'`, 10*time.Second)
	require.NoError(t, err)
	require.True(t, out.Cut)
	require.True(t, strings.HasPrefix(out.Text, "�"))
	require.LessOrEqual(t, len(out.Text), MaxOutput)
	out, err = run(t, `x=sh -c 'head -c 65536 /dev/zero | tr "\\0" x'`, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, Output{Text: strings.Repeat("x", MaxOutput)}, out)
}

// alive says whether a process is there and no zombie.
func alive(t *testing.T, pidFile string) bool {
	t.Helper()
	b, err := os.ReadFile(pidFile)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	require.NoError(t, err)
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// A command that hangs takes its children with it, those that do not listen to SIGTERM and those that hold none of its output.
func TestHangs(t *testing.T) {
	for name, script := range map[string]string{
		"listens":      `sleep 60 & echo $! > "$CHILD"; sleep 60`,
		"does not":     `trap "" TERM; sleep 60 & echo $! > "$CHILD"; while :; do sleep 60; done`,
		"holds none":   `(trap "" TERM; echo $(exec sh -c "echo \$PPID") > "$CHILD"; while :; do sleep 60; done) >/dev/null 2>&1 & sleep 60`,
		"session":      `trap "" TERM; setsid sleep 60 >/dev/null 2>&1 & echo $! > "$CHILD"; sleep 60`,
		"daemon":       `trap "" TERM; (setsid sleep 60 >/dev/null 2>&1 & echo $! > "$CHILD"); sleep 60`,
		"leader is up": `(trap "" TERM; while :; do sleep 60; done) & echo $! > "$CHILD"; sleep 60`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := filepath.Join(t.TempDir(), "pid")
			began := time.Now()
			_, err := run(t, `x=sh -c '`+script+`'`, 500*time.Millisecond, "CHILD="+child)
			require.EqualError(t, err, "hook x: it did not end in time, and was ended")
			require.Less(t, time.Since(began), 500*time.Millisecond+2*grace+time.Second)
			require.Eventually(t, func() bool { return !alive(t, child) }, time.Second, 10*time.Millisecond)
		})
	}
}

// A command that fails takes with it what it has started, too, in whatever session that is.
func TestFailsAndLeavesNothing(t *testing.T) {
	for name, how := range map[string]string{"group": "", "session": "setsid "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := filepath.Join(t.TempDir(), "pid")
			script := how + `sleep 60 >/dev/null 2>&1 & echo $! > "$CHILD"; sleep 0.2; exit 3`
			_, err := run(t, `x=sh -c '`+script+`'`, 10*time.Second, "CHILD="+child)
			require.EqualError(t, err, "hook x: exit status 3")
			require.False(t, alive(t, child))
		})
	}
}

// What a hook that went well leaves in the background stays, also when it holds the hook's output.
func TestLeavesSomethingRunning(t *testing.T) {
	child := filepath.Join(t.TempDir(), "pid")
	began := time.Now()
	out, err := run(t, `x=sh -c 'sleep 60 & echo $! > "$CHILD"; echo started'`, 10*time.Second, "CHILD="+child)
	require.NoError(t, err)
	require.Less(t, time.Since(began), 5*time.Second)
	require.Equal(t, "started\n", out.Text)
	require.True(t, alive(t, child))
	b, err := os.ReadFile(child)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}
