package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/run"
)

// logPlan is plans/log.hcl.
var logPlan = filepath.Join("..", "..", "plans", "log.hcl")

// verified says that a phase's proof is there, and whole.
func verified(t *testing.T, ph *run.Phase) {
	t.Helper()
	require.NotNil(t, ph.Log)
	require.NotNil(t, ph.Log.Proof, ph.Log.Unproven)
	require.Empty(t, ph.Log.Proof.Wrong)
	require.Positive(t, ph.Log.Proof.Verified)
	require.Equal(t, ph.Log.Proof.Acknowledged, ph.Log.Proof.Verified)
}

// TestLogsAreVerifiedByAnotherProcess runs every layout, in this process and in a worker's, and by two workers.
func TestLogsAreVerifiedByAnotherProcess(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"append", "channel", "array", "raw"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			args := []string{"--log-root", root, "-var", "layout=" + layout, "-var", "duration=1s", "-var", "sync=clwb", "-var", "threads=2"}
			if layout == "channel" {
				args = append(args, "--worker-process")
			}
			l := beginFile(t, logPlan, args...)
			r := l.clean(30 * time.Second)
			ph := r.Phase["append"]
			verified(t, ph)
			require.Equal(t, []string{"clwb", "clwb"}, []string{ph.Log.SyncAsked, ph.Log.SyncUsed})
			require.False(t, ph.Log.Durable)
			require.Equal(t, "thread", ph.Generator.Executor)
			require.Equal(t, 2, ph.Generator.Loops)
			require.Positive(t, *ph.Log.BytesPerSecond)
			require.Contains(t, l.stdout.String(), "sync clwb asked, clwb used by ")
			require.Len(t, ph.Log.Threads, 2)
			require.Regexp(t, `threads     session 0 on CPU [0-9]+`, l.stdout.String())
			require.Regexp(t, `verified    [0-9,]+/[0-9,]+ entries`, l.stdout.String())
			left, err := os.ReadDir(root)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
	t.Run("two workers", func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		tm := invite(t, 2, func(args ...string) *load { return beginFile(t, logPlan, args...) }, "-var", "threads=3", "-var", "duration=1s")
		tm.join(tm.addr, "--log-root", root)
		tm.join(tm.addr, "--log-root", root)
		r := tm.clean(30 * time.Second)
		verified(t, r.Phase["append"])
		require.Equal(t, 2, r.Phase["append"].Log.Files)
		for i, thread := range r.Phase["append"].Log.Threads {
			require.Equal(t, i, thread.Session)
		}
		require.Len(t, r.Phase["append"].Log.Threads, 3)
	})
}

// TestLogsStayBelowTheRoot has plans that want their files elsewhere.
func TestLogsStayBelowTheRoot(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for dir, says := range map[string]string{outside: "is not below", "../x": "is not below"} {
		src := strings.Replace(briefLog, `driver = "log" }`, "\n driver = \"log\"\n dir = \""+dir+"\"\n}", 1)
		l := begin(t, src, "--log-root", t.TempDir())
		require.Equal(t, run.ExitFailed, l.wait(10*time.Second))
		require.Contains(t, l.stdout.String(), says)
	}
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
	l := begin(t, briefLog, "--log-root", filepath.Join(outside, "none"))
	require.Equal(t, run.ExitFailed, l.wait(10*time.Second))
	require.Contains(t, l.stdout.String(), "no such file")
}

// TestCorruptedLogIsInvalid has somebody write to the log while it is in use.
func TestCorruptedLogIsInvalid(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	l := begin(t, strings.Replace(briefLog, "iterations = 2000", `duration = "1500ms"`, 1), "--log-root", root)
	path := filepath.Join(root, "wal-w0.pmlog")
	require.Eventually(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}, 10*time.Second, time.Millisecond)
	time.Sleep(700 * time.Millisecond) // there are some entries, and more to come
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("not what was appended"), 8192)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	r := l.result(30 * time.Second)
	require.Equal(t, run.ExitInvalid, r.ExitCode)
	require.NotEmpty(t, r.Phase["write"].Log.Proof.Wrong)
	require.Contains(t, l.stdout.String(), "acknowledged entries that had to be there")
}

// TestLogBesideItsBound loads a log and, before it, what bounds it; and a third that promises something else.
func TestLogBesideItsBound(t *testing.T) {
	t.Parallel()
	target := func(name, layout, sync string) string {
		return "\ntarget \"" + name + "\" {\n driver = \"log\"\n layout = \"" + layout + "\"\n sync = \"" + sync + "\"\n}"
	}
	phase := func(name, bound string) string {
		return "\nphase \"" + name + "\" {\n target = target." + name + "\n dataset = dataset.d\n ops = { append = 1 }\n " + bound + "\n closed { duration = \"300ms\" }\n}"
	}
	src := "plan \"bound\" {}" + target("raw", "raw", "clwb") + target("log", "append", "clwb") + target("other", "append", "none") +
		"\ndataset \"d\" {\n keys { count = 1 }\n values { size = 4096 }\n}" +
		phase("raw", "") + phase("log", "bound = phase.raw") + phase("other", "bound = phase.raw")
	l := begin(t, src, "--log-root", t.TempDir(), "--report", filepath.Join(t.TempDir(), "page.html"))
	r := l.clean(30 * time.Second)
	log, raw := r.Phase["log"].Log, r.Phase["raw"].Log
	require.InDelta(t, *log.BytesPerSecond / *raw.BytesPerSecond, *log.BoundShare, 1e-9)
	require.Nil(t, raw.BoundShare)
	require.Nil(t, r.Phase["other"].Log.BoundShare)
	require.Equal(t, "sync is none, and clwb in phase raw", r.Why("phase", "other", "log", "bound_share"))
	require.Regexp(t, `[0-9.]+ % of raw`, l.stdout.String())
	require.Contains(t, strings.Join(strings.Fields(l.stdout.String()), " "), "no share of raw: sync is none, and clwb in phase raw")
}

// TestTruncatedLogIsInvalid has somebody cut the log off while it is mapped: the process lives, and says what happened.
func TestTruncatedLogIsInvalid(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	l := begin(t, strings.Replace(briefLog, "iterations = 2000", `duration = "1500ms"`, 1), "--log-root", root)
	path := filepath.Join(root, "wal-w0.pmlog")
	require.Eventually(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}, 10*time.Second, time.Millisecond)
	time.Sleep(700 * time.Millisecond) // there are some entries, and more to come
	require.NoError(t, os.Truncate(path, 0))
	r := l.result(30 * time.Second)
	require.Equal(t, run.ExitInvalid, r.ExitCode)
	require.Contains(t, r.Phase["write"].Log.Failure, "the file was truncated")
	require.Nil(t, r.Phase["write"].Log.Proof)
	require.Contains(t, l.stdout.String(), "the log failed, and nothing was written after that")
}
