package hook

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		os.Exit(Supervise(os.Args[2:]))
	}
	os.Exit(m.Run())
}

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

// Of this process's environment, a command gets only where programs and the user's files are.
func TestEnvironmentIsScrubbed(t *testing.T) {
	t.Setenv("LOADGEN_SECRET_PW", "hunter2")
	out, err := run(t, "x=env", 5*time.Second, "LOADGEN_RUN=r", "LOADGEN_VARIANT=w=1")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LOADGEN_HOOK=x", "LOADGEN_RUN=r", "LOADGEN_VARIANT=w=1"},
		strings.Split(strings.TrimSpace(out.Text), "\n"))
}

func TestRunFails(t *testing.T) {
	_, err := run(t, `x=sh -c 'echo one; echo; echo "  what was wrong  "; echo; exit 3'`, 5*time.Second)
	require.EqualError(t, err, "hook x: exit status 3; the last that it printed: what was wrong")
	_, err = run(t, `x=sh -c 'kill -9 $$'`, 5*time.Second)
	require.EqualError(t, err, "hook x: signal: killed")
}

// Colours and bells in a command's output are kept as they came, but are removed from its error, which goes into results.
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

// startsSomething are shell scripts that start a process, write its number to $CHILD, and go on.
var startsSomething = map[string]string{
	"listens":   `sleep 600 & echo $! > "$CHILD"`,
	"traps":     `trap "" TERM; sleep 600 & echo $! > "$CHILD"`,
	"loops":     `(trap "" TERM; while :; do sleep 600; done) >/dev/null 2>&1 & echo $! > "$CHILD"`,
	"session":   `trap "" TERM; setsid sleep 600 >/dev/null 2>&1 & echo $! > "$CHILD"`,
	"daemon":    `trap "" TERM; (setsid sleep 600 >/dev/null 2>&1 & echo $! > "$CHILD")`,
	"no mark":   `trap "" TERM; (setsid env -i sleep 600 >/dev/null 2>&1 & echo $! > "$CHILD")`,
	"two forks": `trap "" TERM; (setsid sh -c "(setsid sleep 600 & echo \$! > $CHILD) &" >/dev/null 2>&1 &)`,
}

// written waits until $CHILD holds a number, in a script.
const written = `; while ! test -s "$CHILD"; do sleep 0.01; done; `

// A command that hangs takes its children with it, including those that ignore SIGTERM and those that hold none of its output. So does one that fails.
func TestEndsWithAllItHasStarted(t *testing.T) {
	for name, script := range startsSomething {
		t.Run("hangs/"+name, func(t *testing.T) {
			t.Parallel()
			child := filepath.Join(t.TempDir(), "pid")
			h, err := Parse(`x=sh -c '` + script + written + `while :; do sleep 600; done'`)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { // ends with the command's child, or with the test
				for ctx.Err() == nil && !started(child) {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
			_, err = h.Run(ctx, []string{"CHILD=" + child})
			require.EqualError(t, err, "hook x: it did not end in time, and was ended")
			require.False(t, alive(t, child))
		})
		t.Run("fails/"+name, func(t *testing.T) {
			t.Parallel()
			child := filepath.Join(t.TempDir(), "pid")
			_, err := run(t, `x=sh -c '`+script+written+`exit 3'`, time.Minute, "CHILD="+child)
			require.EqualError(t, err, "hook x: exit status 3")
			require.False(t, alive(t, child))
		})
	}
}

// started says whether a script has written the number of its child.
func started(pidFile string) bool {
	b, err := os.ReadFile(pidFile)
	return err == nil && strings.HasSuffix(string(b), "\n")
}

// What a successful hook leaves in the background stays, even if it holds the hook's output or has left its session.
func TestLeavesSomethingRunning(t *testing.T) {
	for name, script := range startsSomething {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := filepath.Join(t.TempDir(), "pid")
			out, err := run(t, `x=sh -c '`+script+written+`echo started'`, time.Minute, "CHILD="+child)
			require.NoError(t, err)
			require.Equal(t, "started\n", out.Text)
			require.True(t, alive(t, child))
			b, err := os.ReadFile(child)
			require.NoError(t, err)
			pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		})
	}
}
