package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/servertest"
)

// mount makes a file system in memory of the given size.
func mount(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size)
	if err != nil {
		err = fmt.Errorf("mount a tmpfs: %w", err)
	}
	servertest.Require(t, "tmpfs", err)
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// onDisk runs the closed plan with its run directory, and its result too, where they are told to be.
func onDisk(t *testing.T, runs, out string, args ...string) *load {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(path, []byte(closedPlan), 0o600))
	l := &load{runs: runs, out: out}
	l.process = start(t, command(t, append([]string{"coordinator", "run", path, "--runs", runs, "--out", out}, args...)...))
	return l
}

// TestNoRoomForARun: a full or unwritable disk is found before any load.
func TestNoRoomForARun(t *testing.T) {
	full := mount(t, "64k")
	l := onDisk(t, full, filepath.Join(t.TempDir(), "run.json"))
	require.Equal(t, exit.Failed, l.wait(60*time.Second))
	require.Contains(t, l.stderr.String(), "no room for a run in "+full+": 64 KiB are free")

	locked := mount(t, "4m")
	require.NoError(t, syscall.Mount("", locked, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	l = onDisk(t, locked, filepath.Join(t.TempDir(), "run.json"))
	require.Equal(t, exit.Failed, l.wait(60*time.Second))
	require.Contains(t, l.stderr.String(), locked)
	require.Contains(t, l.stderr.String(), "read-only file system")
}

// TestDiskFillsUpInMidRun: the run ends there, since what cannot be kept is not worth measuring. A result written elsewhere says so. What can then not
// be written either is said after that.
func TestDiskFillsUpInMidRun(t *testing.T) {
	t.Parallel()
	disk := mount(t, "2m")
	l := onDisk(t, disk, filepath.Join(t.TempDir(), "run.json"), "--report", filepath.Join(disk, "page.html"))
	l.underWay()
	nodes := children(t, l.cmd.Process.Pid)
	fill(t, disk)
	r := l.result(60 * time.Second)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Equal(t, []reason.Code{reason.NotCarriedOut, reason.NotKept}, r.Verdict.Codes[:2])
	require.Contains(t, r.Verdict.Reasons[0], "no space left on device")
	require.Regexp(t, `(?s)snapshots\.log.*result\.json.*page\.html`, l.stdout.String())
	require.Positive(t, r.Phase["gets"].Op["get"].OK)
	require.Contains(t, l.stdout.String(), "Exit code 6")
	requireGone(t, nodes)
}

// fill writes until there is no room.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	require.NoError(t, err)
	defer f.Close()
	for _, size := range []int{4096, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
	}
}

// TestNoRoomForTheResult fills only the disk of --out: what was measured is kept in the run directory, and the exit code says that not everything was
// written.
func TestNoRoomForTheResult(t *testing.T) {
	t.Parallel()
	disk := mount(t, "64k")
	out := filepath.Join(disk, "run.json")
	l := onDisk(t, t.TempDir(), out)
	l.underWay()
	fill(t, disk)
	l.signal(syscall.SIGINT)
	require.Equal(t, exit.Failed, l.wait(60*time.Second), "%s", &l.stdout)
	require.Contains(t, l.stdout.String(), "no space left on device")
	results, err := filepath.Glob(filepath.Join(l.runs, "*", "result.json"))
	require.NoError(t, err)
	require.Len(t, results, 1)
}
