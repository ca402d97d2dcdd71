package command_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// logPlan is plans/log.hcl.
var logPlan = filepath.Join("..", "..", "plans", "log.hcl")

// verified checks that a phase has a proof, and a complete one.
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
			r := l.clean(60 * time.Second)
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
		r := tm.whole()
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
		src := strings.Replace(briefLog, unsynced, unsynced+"\n dir = \""+dir+"\"", 1)
		l := begin(t, src, "--log-root", t.TempDir())
		require.Equal(t, exit.Failed, l.wait(60*time.Second))
		require.Contains(t, strings.Join(strings.Fields(l.stdout.String()), " "), says)
	}
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
	l := begin(t, briefLog, "--log-root", filepath.Join(outside, "none"))
	require.Equal(t, exit.Failed, l.wait(60*time.Second))
	require.Contains(t, strings.Join(strings.Fields(l.stdout.String()), " "), "no such file")
}

// TestLogFilesThatCannotBeMade says why, and what to do, with a local and a remote worker, and leaves existing files alone.
func TestLogFilesThatCannotBeMade(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "wal-w0.pmlog"), []byte("notes"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "file"), []byte("notes"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "link")))
	require.NoError(t, os.Mkdir(filepath.Join(root, "used"), 0o700))
	used, err := os.Create(filepath.Join(root, "used", "wal-w0.pmlog"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = used.Close() }) // it was not written to
	require.NoError(t, errors.Join(used.Truncate(4096), syscall.Flock(int(used.Fd()), syscall.LOCK_EX)))
	refused(t, []refusal{
		{"somebody's file", root, "", root + "/wal-w0.pmlog has the name of a log file and is not one: move it away, or write another --log-root, or another dir in the target"},
		{"in use", root, "used", "in use by another process: let the other run end, or write another --log-root, or another dir in the target"},
		{"a file", root, "file", `dir "file": open ` + root + "/file: not a directory: write a dir that can be made below " + root},
		{"a link", root, "link", `dir "link": open ` + root + `/link: it is a symbolic link: write a dir that can be made below ` + root + ", and that no symbolic link is part of"},
		{"below a link", root, "link/a", "it is a symbolic link"},
		{"outside", root, "..", "is not below " + root},
		{"no root", root + "/none", "", "--log-root: stat " + root + "/none: no such file or directory: make the directory, or write another"},
		{"root is a file", root + "/file", "", "--log-root: " + root + "/file is not a directory: write one"},
	})
	t.Cleanup(func() {
		for _, name := range []string{"wal-w0.pmlog", "file"} {
			is, err := os.ReadFile(filepath.Join(root, name))
			require.NoError(t, err)
			require.Equal(t, "notes", string(is))
		}
		require.FileExists(t, used.Name())
	})
}

// TestLogFilesOnAReadOnlyFileSystem: the error says who may fix it.
func TestLogFilesOnAReadOnlyFileSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_RDONLY, "size=256m"); err != nil {
		servertest.Require(t, "mount", fmt.Errorf("mount tmpfs: %w", err))
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	const says = "read-only file system: let this user make files in "
	refused(t, []refusal{
		{"its root", dir, "", "create " + dir + "/wal-w0.pmlog: " + says + dir + ", or write another --log-root"},
		{"a dir", dir, "a", `dir "a": mkdirat a: ` + says + dir + ", or write another --log-root"},
	})
}

// refusal is a place where log files cannot be, and what the error says.
type refusal struct{ name, root, dir, says string }

// refused runs a plan for each, with a worker in this process and with one elsewhere.
func refused(t *testing.T, all []refusal) {
	for _, c := range all {
		src := strings.Replace(briefLog, unsynced, unsynced+"\n dir = \""+c.dir+"\"", 1)
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, src, "--log-root", c.root)
			r := l.result(60 * time.Second)
			require.Equal(t, exit.Failed, r.ExitCode)
			require.Contains(t, strings.Join(r.Verdict.Reasons, "\n"), `phase "write": target "wal": `)
			require.Contains(t, strings.Join(r.Verdict.Reasons, "\n"), c.says)
		})
		t.Run(c.name+", remote", func(t *testing.T) { // not beside the other, which looks at the same file
			tm := invite(t, 1, func(args ...string) *load { return begin(t, src, args...) })
			tm.join(tm.addr, "--log-root", c.root)
			r := tm.result(60 * time.Second)
			require.Equal(t, exit.Failed, r.ExitCode)
			require.Contains(t, strings.Join(r.Verdict.Reasons, "\n"), c.says)
		})
	}
}

// firstEntries is how far into its file a log goes with some entries.
const firstEntries = 16 << 10

// slowLog is briefLog for 10 s at a rate that any processor can sustain: long enough that a latecomer still finds it at work.
var slowLog = strings.NewReplacer("closed { iterations = 2000 }", "open {\n sessions = 1\n rate = \"500/s\"\n duration = \"10s\"\n }", "growth { to = 3000 }", "").Replace(briefLog)

// appends waits until there are some entries in a log in a file. There are more to come.
func (l *load) appends(path string) {
	l.t.Helper()
	l.writes(path, firstEntries, 1024)
}

// writes waits until not all of n bytes of a file are zero.
func (l *load) writes(path string, off int64, n int) {
	l.t.Helper()
	l.until(func() bool {
		f, err := os.Open(path)
		if err != nil {
			return false
		}
		defer f.Close()
		b := make([]byte, n)
		_, err = f.ReadAt(b, off)
		return err == nil && !bytes.Equal(b, make([]byte, n))
	})
}

// TestCorruptedLogIsInvalid: another process writes to the log while it is in use.
func TestCorruptedLogIsInvalid(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	l := begin(t, slowLog, "--log-root", root)
	path := filepath.Join(root, "wal-w0.pmlog")
	l.appends(path)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("not what was appended"), firstEntries/2)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	r := l.result(60 * time.Second)
	require.Equal(t, exit.Invalid, r.ExitCode)
	require.NotEmpty(t, r.Phase["write"].Log.Proof.Wrong)
	require.Contains(t, l.stdout.String(), "acknowledged entries that must be there")
}

// TestLogsOfAKilledRun are looked at: none is changed by that, none is read while it is in use, and a flipped bit is found where it is.
func TestLogsOfAKilledRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		layout string
		late   int64   // offset of what is written after those bytes
		flips  []int64 // in entry 11; in an array, in both copies of slot 10
		damage string
		gaps   string
	}{
		{"append", firstEntries, []int64{8192 + 10*128 + 60}, "record 11 at 9472: corrupt", "entry 11 of session 0 is not there; the next is entry 12"},
		{"channel", firstEntries, []int64{10 * 100}, "entry 11 of session 0 has lost its stamp", "entry 11 of session 0 is not there; the next is entry 12"},
		{"array", 8192 + 20*256, []int64{8192 + 10*256 + 60, 8192 + 10*256 + 128 + 60}, "the value of slot 10 is lost: corrupt", "none"},
	} {
		t.Run(c.layout, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			of := strings.NewReplacer(unsynced, unsynced+"\n layout = \""+c.layout+"\"\n file_size = \"1MiB\"", "count = 1 ", "count = 100 ")
			l := begin(t, of.Replace(slowLog), "--log-root", root)
			path := filepath.Join(root, "wal-w0.pmlog")
			l.writes(path, c.late, 8)
			l.until(func() bool { return len(l.snapshots()) > 0 })
			look := func(what string, args ...string) (code int, says string) {
				p := start(t, command(t, append([]string{"log", what, path}, args...)...))
				return p.wait(60 * time.Second), p.stdout.String() + p.stderr.String()
			}
			code, says := look("verify")
			require.Equal(t, exit.Failed, code, says)
			require.Contains(t, says, path+": in use by another process")
			l.signal(syscall.SIGKILL)
			require.Equal(t, -1, l.wait(60*time.Second))

			before := stateOf(t, root)
			code, says = look("inspect")
			require.Equal(t, exit.OK, code, says)
			require.Contains(t, says, path+": "+c.layout+" log of ")
			require.Contains(t, says, "not closed")
			require.Regexp(t, `epoch [0-9a-f]+: [0-9,]+ of 100 bytes by 1 session\n +session 0: [0-9,]+, from entry [0-9,]+ to [0-9,]+\n`, says)
			require.Regexp(t, `gaps +none\n +damage +none\n`, says)
			code, says = look("verify")
			require.Equal(t, exit.OK, code, says)
			require.Regexp(t, `: whole as far as it reaches, [0-9,]+ entries\n$`, says)
			n, err := strconv.Atoi(strings.ReplaceAll(strings.Fields(says)[7], ",", ""))
			require.NoError(t, err, says)
			code, says = look("verify", "--expect", strconv.Itoa(n))
			require.Equal(t, exit.OK, code, says)
			require.Contains(t, says, ": whole, ")
			code, says = look("verify", "--expect", strconv.Itoa(n+1))
			require.Equal(t, exit.Assert, code, says)
			require.Regexp(t, `1 of \d+ acknowledged entries are not there; the log ends at byte \d+`, says)
			require.Equal(t, before, stateOf(t, root))
			byRun := []string{"--run", "last", "--runs", l.runs} // what its snapshots acknowledge
			code, says = look("verify", byRun...)
			require.Equal(t, c.layout == "array", code == exit.Failed, says)
			require.Contains(t, says, map[bool]string{true: "never cleared: for others write --expect", false: ": whole, "}[c.layout == "array"])
			for off := int64(3); off < 8 && c.layout == "channel"; off++ { // the epoch in the first stamp
				flipBit(t, path, off)
				for _, flags := range [][]string{byRun, {"--expect", strconv.Itoa(n)}} {
					code, says = look("verify", flags...)
					require.Equal(t, exit.Assert, code, says)
					require.Contains(t, says, "are not there; the log ends at byte")
				}
				flipBit(t, path, off)
			}
			for range 2 { // there and back
				for slot := int64(3); slot < 9 && c.layout == "array"; slot++ {
					flipBit(t, path, 8192+slot*256+60)
				}
				code, says = look("verify")
				require.Equal(t, c.layout == "array" && code == exit.Assert, strings.Contains(says, "slots are torn, and a crash can have torn 1"), says)
			}
			require.Equal(t, exit.OK, code, says)

			for _, off := range c.flips {
				flipBit(t, path, off)
			}
			before = stateOf(t, root)
			for _, what := range []string{"inspect", "verify"} {
				code, says = look(what)
				require.Equal(t, exit.Assert, code, says)
				require.Regexp(t, `damage +1\n +`+c.damage+`[^\n]*\n$`, says)
				require.Regexp(t, `gaps +(1\n +)?`+c.gaps+`\n`, says)
			}
			require.Equal(t, before, stateOf(t, root))
		})
	}
}

// fileState is what looking at a file must not change.
type fileState struct {
	sum  [sha256.Size]byte
	time time.Time
}

// stateOf returns the states of the files in a directory.
func stateOf(t *testing.T, dir string) map[string]fileState {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	states := map[string]fileState{}
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		states[e.Name()] = fileState{sha256.Sum256(b), info.ModTime()}
	}
	return states
}

// flipBit changes a bit of a file.
func flipBit(t *testing.T, path string, off int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], off)
	require.NoError(t, err)
	b[0] ^= 1
	_, err = f.WriteAt(b[:], off)
	require.NoError(t, err)
}

// TestFilesThatAreNoLogs are refused, with what is the matter.
func TestFilesThatAreNoLogs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, content := range map[string]string{"notes": "notes", "empty": "", "raw": "LGE" + strings.Repeat("x", 100)} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
	}
	for name, says := range map[string]string{
		"notes": "/notes is not a log file",
		"empty": "only regular files are read, and none that is empty",
		"raw":   "of layout raw, or a channel without its file",
		"none":  "no such file",
		".":     "only regular files are read",
	} {
		p := start(t, command(t, "log", "inspect", filepath.Join(root, name)))
		require.Equal(t, exit.Failed, p.wait(60*time.Second), name)
		require.Contains(t, p.stderr.String(), says)
	}
}

// TestLogBesideItsBound loads a log after the phase that bounds it; a third log promises something else.
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
	r := l.clean(60 * time.Second)
	log, raw := r.Phase["log"].Log, r.Phase["raw"].Log
	require.InDelta(t, *log.BytesPerSecond / *raw.BytesPerSecond, *log.BoundShare, 1e-9)
	require.Nil(t, raw.BoundShare)
	require.Nil(t, r.Phase["other"].Log.BoundShare)
	require.Equal(t, "sync is none, and clwb in phase raw", r.Why("phase", "other", "log", "bound_share").Text)
	require.Regexp(t, `[0-9.]+ % of raw`, l.stdout.String())
	require.Contains(t, strings.Join(strings.Fields(l.stdout.String()), " "), "no share of raw: sync is none, and clwb in phase raw")
}

// TestTruncatedLogIsInvalid: another process truncates the log while it is mapped; the worker survives, and says what happened.
func TestTruncatedLogIsInvalid(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	l := begin(t, slowLog, "--log-root", root)
	path := filepath.Join(root, "wal-w0.pmlog")
	l.appends(path)
	require.NoError(t, os.Truncate(path, 0))
	r := l.result(60 * time.Second)
	require.Equal(t, exit.Invalid, r.ExitCode)
	require.Contains(t, r.Phase["write"].Log.Failure, "the file was truncated")
	require.Zero(t, r.Phase["write"].Log.Proof.Verified, "there is nothing left to read")
	said := strings.Join(strings.Fields(l.stdout.String()), " ")
	require.Contains(t, said, "a log failed, and nothing was written to it after that")
	require.Equal(t, 1, strings.Count(said, "nothing more is written: "), said)
	require.Contains(t, said, "caused by 1 failed log")
	require.NotContains(t, said, "connection")
}

// TestBrokenDiskEndsALog: a worker appends to a disk that breaks, and then looks at what it has left, which the kernel would show whether written or
// not. The worker survives, and carries out another run.
func TestBrokenDiskEndsALog(t *testing.T) {
	t.Parallel()
	disk := servertest.NewDisk(t)
	src := strings.Replace(briefLog, "iterations = 2000", `duration = "10s"`, 1)
	src = strings.Replace(src, unsynced, "sync = \"msync\"\n file_size = \"4MiB\"", 1)
	src += "\nphase \"read\" {\n target = target.wal\n dataset = dataset.d\n ops = { read = 1 }\n closed { iterations = 10 }\n}"
	tm := invite(t, 1, func(args ...string) *load { return begin(t, src, args...) })
	worker := start(t, tm.command("worker", "--join", tm.addr, "--name", "w1", "--log-root", disk.Dir))
	tm.appends(filepath.Join(disk.Dir, "wal-w0.pmlog"))
	disk.Break()
	r := tm.result(60 * time.Second)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, strings.Join(r.Verdict.Reasons, "\n"), `target "wal": its files must not be used any more: they failed in phase "write"`)
	ph := r.Phase["write"]
	require.Equal(t, run.Invalid, ph.Validity)
	require.Regexp(t, `^wal-w0.pmlog: .*: a write was lost, nothing more is written: msync of bytes [0-9]+ to [0-9]+ on ext4 on /dev/loop[0-9]+: `+
		`input/output error; see what the kernel says of the device \(dmesg\), or write another --log-root$`, ph.Log.Failure)
	require.Empty(t, ph.Log.Proof.Wrong)
	require.Equal(t, ph.Log.Proof.Acknowledged, ph.Log.Proof.Verified, "what was acknowledged can be read, whatever failed later")
	op := ph.Op["append"]
	require.Positive(t, op.OK)
	require.Equal(t, op.Due, op.OK+op.Error)
	require.EqualValues(t, 1, op.Causes.Lost)
	require.Equal(t, op.Error-1, op.Causes.Refused, "nothing was written after the first failure")

	again := tm.again(briefLog)
	r = again.result(60 * time.Second)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, strings.Join(r.Verdict.Reasons, "\n"), `target "wal": `, "the disk is still broken")
	select {
	case <-worker.done:
		t.Fatalf("the worker has ended: %s", &worker.stderr)
	default:
	}
}

// TestStalledLogTimesOut even though what it wrote meanwhile becomes durable in the end: a call that has begun cannot be cancelled.
func TestStalledLogTimesOut(t *testing.T) {
	t.Parallel()
	disk := servertest.NewDisk(t)
	src := strings.Replace(briefLog, "iterations = 2000", `duration = "10m"`, 1)
	src = strings.Replace(src, unsynced, "sync = \"fdatasync\"\n timeout = \"100ms\"\n file_size = \"16MiB\"", 1)
	l := begin(t, src, "--log-root", disk.Dir)
	l.appends(filepath.Join(disk.Dir, "wal-w0.pmlog"))
	disk.Stall(300 * time.Millisecond)
	l.signal(syscall.SIGINT)
	ph := l.result(60 * time.Second).Phase["write"]
	op := ph.Op["append"]
	require.Positive(t, op.Timeout)
	require.Equal(t, op.Due, op.OK+op.Timeout)
	verified(t, ph)
}

// TestLogsOfAStoppedRunAreDeleted even though a later phase would have used them.
func TestLogsOfAStoppedRunAreDeleted(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--worker-process"}} {
		root := t.TempDir()
		l := beginFile(t, logPlan, append(args, "--log-root", root, "-var", "duration=10m")...)
		l.appends(filepath.Join(root, "wal-w0.pmlog"))
		l.signal(syscall.SIGINT)
		require.Equal(t, exit.Aborted, l.result(60*time.Second).ExitCode)
		left, err := os.ReadDir(root)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// TestSessionsComeToLogsAndGo has a file for each session, and phases with more and with fewer of them.
func TestSessionsComeToLogsAndGo(t *testing.T) {
	t.Parallel()
	src := strings.Replace(briefLog, unsynced, unsynced+"\n share = \"session\"", 1)
	src, _, _ = strings.Cut(src, "phase")
	for i, sessions := range []int{2, 3, 1} {
		src += fmt.Sprintf("phase \"p%d\" {\n target = target.wal\n dataset = dataset.d\n ops = { append = 1 }\n closed {\n sessions = %d\n iterations = 50\n }\n}\n", i, sessions)
	}
	root := t.TempDir()
	l := begin(t, src, "--log-root", root)
	r := l.result(60 * time.Second)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	for i, sessions := range []int{2, 3, 1} {
		ph := r.Phase[fmt.Sprintf("p%d", i)]
		verified(t, ph)
		require.Equal(t, sessions, ph.Log.Files)
		require.EqualValues(t, 50*sessions, ph.Log.Proof.Verified)
	}
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, left)
}
