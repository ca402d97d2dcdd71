package command_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/base/exit"
)

// terminal is a pseudo-terminal of 80 columns, from the user's side.
type terminal struct {
	*os.File
	shown text // all that was written to it
	done  chan struct{}
}

// at makes a new terminal a command's controlling terminal, input and output.
func at(t *testing.T, l *load, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer slave.Close()

	cmd := command(t, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	l.process = start(t, cmd)
	term := &terminal{File: master, done: make(chan struct{})}
	go func() { // ends when no process has the terminal open any more
		defer close(term.done)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			_, _ = term.shown.Write(buf[:n]) // never fails
			if err != nil {
				return
			}
		}
	}()
	return term
}

var (
	// erased removes the two lines of progress.
	erased = regexp.MustCompile(`\x1b\[2A\r\x1b\[J`)
	drawn  = regexp.MustCompile(`gets  \d+\.\ds of 10m0s  [█░]+ .*\r\nended \S+/s  p50 .*  p99 .*  bad 0`)
)

// TestProgressOnATerminal watches a terminal during a load: two lines are redrawn again and again, Ctrl-C typed there ends the run as a signal does,
// and the report replaces the progress, as wide as the terminal.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/plan.hcl"
	require.NoError(t, os.WriteFile(path, []byte(closedPlan), 0o600))
	l := &load{runs: t.TempDir(), out: t.TempDir() + "/run.json"}
	term := at(t, l, "coordinator", "run", path, "--runs", l.runs, "--out", l.out)
	require.Eventually(t, func() bool { return len(drawn.FindAllString(term.shown.String(), -1)) >= 3 },
		time.Minute, 10*time.Millisecond, "%q", &term.shown)
	nodes := children(t, l.cmd.Process.Pid)
	require.Len(t, nodes, 3)
	_, err := term.WriteString("\x03")
	require.NoError(t, err)
	r := l.result(60 * time.Second)
	<-term.done
	require.Equal(t, exit.Aborted, r.ExitCode)
	require.Positive(t, r.Phase["gets"].Op["get"].OK)
	requireGone(t, nodes)

	shown := term.shown.String()
	progress, report, found := cut(shown, erased)
	require.True(t, found)
	require.Equal(t, strings.Count(progress, "\r\n"), 2*len(erased.FindAllString(shown, -1)), "two lines at a time, all taken back: %q", progress)
	require.Contains(t, report, "\x1b[31mABORTED\x1b[0m")
	report = regexp.MustCompile(`\x1b\[\d*m`).ReplaceAllString(report, "") // colours
	require.NotContains(t, report, "\x1b")
	require.Contains(t, report, "Exit code 5")
	for line := range strings.Lines(report) {
		if !strings.Contains(line, l.runs) { // a path is not broken
			require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\r\n"))), 80, line)
		}
	}
	for line := range strings.Lines(progress) {
		require.LessOrEqual(t, len([]rune(strings.TrimRight(strings.TrimPrefix(line, "\x1b[2A\r\x1b[J"), "\r\n"))), 79, line)
	}
}

// cut splits a text behind the last match.
func cut(s string, at *regexp.Regexp) (before, after string, found bool) {
	all := at.FindAllStringIndex(s, -1)
	if len(all) == 0 {
		return s, "", false
	}
	last := all[len(all)-1]
	return s[:last[0]], s[last[1]:], true
}

// TestProgressInALog writes progress where nothing can be erased: a plain line each second and one at each step's end, with the report apart from them.
func TestProgressInALog(t *testing.T) {
	t.Parallel()
	l := begin(t, openPlan, "-var", "duration=3s")
	l.whole()
	waits := regexp.MustCompile(`  (getting ready|ending)$`) // at a step's ends, for whoever takes longer than a second
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(l.stderr.String()), "\n"), waits.MatchString)
	require.Regexp(t, `^fill \(populate\)  \d+\.\ds  ended \S+/s  .*  bad 0  done 1,000 of 1,000$`, lines[0])
	require.GreaterOrEqual(t, len(lines), 2)
	require.LessOrEqual(t, len(lines), int(l.ended.Sub(l.began).Seconds())+3, "one for each second, and one at each end")
	for _, line := range lines[1:] {
		// An interval that spans the schedule's end has less offered, and one after it nothing.
		require.Regexp(t, `^gets  \d+\.\ds of 3\.0s  (offered \S+/s  )?ended \S+/s  p50 .*  p99 .*  bad 0  done [\d,]+`, line)
	}
	require.NotContains(t, l.stderr.String(), "\x1b")
	require.NotContains(t, l.stdout.String(), "\x1b")
	require.NotContains(t, l.stdout.String(), "offered 1.00k/s  achieved")
}
