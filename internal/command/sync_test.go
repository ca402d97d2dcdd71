package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// Where a log's files would be, disk says how long a sync takes and whether that meets the objective. It leaves nothing there.
func TestDiskOfADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, p := quick(t, "disk", dir, "--budget", "4s", "--size", "8MiB", "--slo", "p50=1ns", "--progress", "none")
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	meets := func(phase string) string { // no sync takes a nanosecond; a device that stalls leaves too few for a median
		if r.Phase[phase].Op["append"].Service.P50 == nil {
			return "unknown"
		}
		return "no[?!]?"
	}
	for name, prealloc := range map[string]string{"zeroed": "zero", "reserved": "fallocate", "extended": "none"} {
		l := r.Phase[name].Log
		require.Equal(t, prealloc, l.Prealloc)
		require.Equal(t, l.Proof.Acknowledged, l.Proof.Verified)
		require.GreaterOrEqual(t, l.Forces, r.Phase[name].Op["append"].OK, "each entry has its sync")
		require.Regexp(t, `(?m)^ *blocks `+name+` .*  `+meets(name)+`  .*$`, p.stdout.String())
	}
	grouped := r.Phase["grouped"].Log
	require.NotNil(t, grouped.EntriesPerSync, "writers share syncs")
	require.Equal(t, grouped.Proof.Acknowledged, grouped.Proof.Verified)
	require.Regexp(t, `(?m)^ *zeroed, 8 writers .*  `+meets("grouped")+`  .*$`, p.stdout.String())
	require.Contains(t, p.stdout.String(), dir+" is on "+r.Phase["zeroed"].Log.FileSystem)
	require.Regexp(t, `pieces of 1 MiB, each with its sync: .*/s`, p.stdout.String())
	if meets("reserved") != "unknown" {
		require.False(t, *r.Asserts[0].OK)
		require.Contains(t, p.stdout.String(), "It does not meet p50 <= 1ns, with reserved blocks, as etcd writes: ")
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// What keeps nothing meets no objective: memory says so, and where a disk is.
func TestDiskInMemory(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/dev/shm", "loadgen-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	p := start(t, command(t, "disk", dir, "--budget", "4s", "--size", "8MiB", "--slo", "p50=10s", "--progress", "none"))
	require.Equal(t, exit.Invalid, p.wait(time.Minute), "%s", &p.stderr)
	require.Regexp(t, `Whether it meets p50 <= 10s, with reserved blocks is not known: .*on tmpfs.* does not survive a power loss: name a directory on the disk`, p.stdout.String())
}

// On an overlay the upper directory's file system counts, and where that is not to be found, nothing is known.
func TestDiskOnAnOverlay(t *testing.T) {
	for says, hide := range map[string]bool{"overlay over tmpfs": false, "overlay": true} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			memory, over := mount(t, "128m"), t.TempDir()
			for _, name := range []string{"lower", "upper", "work"} {
				require.NoError(t, os.Mkdir(filepath.Join(memory, name), 0o700))
			}
			options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", memory)
			servertest.Require(t, "mount", syscall.Mount("overlay", over, "overlay", 0, options))
			t.Cleanup(func() { require.NoError(t, syscall.Unmount(over, syscall.MNT_DETACH)) })
			if hide {
				require.NoError(t, syscall.Mount("tmpfs", memory, "tmpfs", 0, "size=1m"))
				t.Cleanup(func() { require.NoError(t, syscall.Unmount(memory, syscall.MNT_DETACH)) })
			}
			p := start(t, command(t, "disk", over, "--budget", "4s", "--size", "8MiB", "--slo", "p50=10s", "--progress", "none"))
			require.Equal(t, exit.Invalid, p.wait(time.Minute), "%s", &p.stderr)
			require.Contains(t, p.stdout.String(), "is not known: as far as can be seen, what is synced on "+says+" does not survive a power loss")
		})
	}
}

// A disk that loses writes meets nothing either.
func TestDiskThatLosesWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, command(t, "disk", dir, "--budget", "4s", "--size", "8MiB", "--slo", "p50=10s", "--progress", "none"))
	ended := make(chan struct{})
	var losing sync.WaitGroup
	losing.Go(func() {
		for nothing := make([]byte, 64<<10); ; {
			logs, _ := filepath.Glob(filepath.Join(dir, "loadgen-disk", "reserved*.pmlog"))
			for _, path := range logs {
				if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil { // it comes and goes
					_, _ = f.WriteAt(nothing, 0)
					_ = f.Close()
				}
			}
			select {
			case <-ended:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	code := p.wait(time.Minute)
	close(ended)
	losing.Wait()
	require.Equal(t, exit.Invalid, code, "%s", &p.stderr)
	require.Regexp(t, `Whether it meets p50 <= 10s, with reserved blocks is not known: .*acknowledged`, p.stdout.String())
}

// Where it cannot begin, the reason is all it says.
func TestDiskThatCannotBegin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/loadgen-disk", nil, 0o600))
	p := start(t, command(t, "disk", dir, "--budget", "4s", "--size", "8MiB", "--progress", "none"))
	require.Equal(t, exit.Failed, p.wait(time.Minute), "%s", &p.stderr)
	require.Empty(t, p.stdout.String())
	require.Regexp(t, `(?m)^loadgen: .*: phase "\w+": .*loadgen-disk.*not a directory`, p.stderr.String())
}

// Ctrl-C ends it early; its files go, too.
func TestDiskIsInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, command(t, "disk", dir, "--budget", "10m", "--size", "8MiB", "--progress", "none"))
	require.Eventually(t, func() bool {
		_, err := os.Stat(dir + "/loadgen-disk/zeroed-w0.pmlog")
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	p.signal(syscall.SIGINT)
	require.Equal(t, 5, p.wait(time.Minute), "%s", &p.stderr)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
