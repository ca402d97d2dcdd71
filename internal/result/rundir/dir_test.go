package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

const id = "20261120T173438Z-hydra-m4-4f2a"

var start = time.Date(2026, 11, 20, 17, 34, 38, 0, time.UTC)

func result() *run.Run {
	return run.New(run.Header{ID: id, Plan: "hydra-m4", StartedAt: start}, machine.Environment{})
}

func create(t *testing.T, root string) *Dir {
	t.Helper()
	d, err := Create(root, id, []byte(`{"name":"hydra-m4"}`))
	require.NoError(t, err)
	return d
}

// abandon ends the writing of a run that gets no result.
func abandon(t *testing.T, d *Dir) {
	t.Helper()
	require.NoError(t, errors.Join(d.closeLog(), d.taken.Close()))
}

// logOf reads a run's log.
func logOf(t *testing.T, d *Dir) (entries []entry, torn int64) {
	t.Helper()
	f, err := os.Open(filepath.Join(d.Path(), logFile))
	require.NoError(t, err)
	defer f.Close()
	return read(t, f)
}

func TestRun(t *testing.T) {
	root := filepath.Join(t.TempDir(), "deep", "runs")
	d := create(t, root)
	require.Equal(t, filepath.Join(root, id), d.Path())

	b, err := os.ReadFile(filepath.Join(d.Path(), planFile))
	require.NoError(t, err)
	require.Equal(t, `{"name":"hydra-m4"}`, string(b))

	require.NoError(t, d.Append("w1", []byte("a")))
	require.NoError(t, d.Append("w2", []byte("b")))
	require.NoError(t, d.Sync())
	entries, torn := logOf(t, d)
	require.Equal(t, []entry{{"w1", "a"}, {"w2", "b"}}, entries)
	require.Equal(t, int64(-1), torn)

	require.NoError(t, d.Append("w1", []byte("c")))
	r := result()
	r.SetAsserts([]run.AssertResult{{That: "a < 1 && b"}})
	require.NoError(t, d.Finish(r))
	entries, _ = logOf(t, d)
	require.Len(t, entries, 3)

	loaded, err := Load(root, id)
	require.NoError(t, err)
	require.Equal(t, r.Header, loaded.Header)
	b, err = os.ReadFile(filepath.Join(d.Path(), resultFile))
	require.NoError(t, err)
	require.Contains(t, string(b), `"that": "a < 1 && b"`, "the file is for people, too")
	names, err := os.ReadDir(d.Path())
	require.NoError(t, err)
	require.Len(t, names, 3)
}

func TestCreateRefuses(t *testing.T) {
	root := t.TempDir()
	create(t, root)
	_, err := Create(root, id, nil)
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, filepath.Join(root, id))

	file := filepath.Join(root, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err = Create(filepath.Join(file, "runs"), id, nil)
	require.ErrorIs(t, err, syscall.ENOTDIR)
	require.ErrorContains(t, err, file)

	for _, id := range []string{"", ".", "..", "../x", "a/b", ".hidden", "a\x00b", "ä", strings.Repeat("x", 129)} {
		for call, err := range map[string]error{
			"create": second(Create(root, id, nil)),
			"load":   second(Load(root, id)),
		} {
			require.ErrorContains(t, err, "a name has", "%s %q", call, id)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A crash while the result is being written leaves no result rather than part of one.
func TestCrashBeforeRename(t *testing.T) {
	root := t.TempDir()
	d := create(t, root)
	require.NoError(t, os.WriteFile(filepath.Join(d.Path(), resultFile+".tmp"), []byte(`{"id":`), 0o644))
	_, err := Load(root, id)
	require.EqualError(t, err, "run "+id+" is unfinished: it has no result.json")
	require.NoError(t, d.Finish(result()))
	_, err = Load(root, id)
	require.NoError(t, err)
}

// After the log's first error nothing more is accepted, and the result is still written.
func TestLogErrorIsFinal(t *testing.T) {
	root := t.TempDir()
	d := create(t, root)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	require.NoError(t, d.log.Close())
	d.log = full

	require.NoError(t, d.Append("w1", []byte("a")))
	first := d.Sync()
	require.ErrorIs(t, first, syscall.ENOSPC)
	require.ErrorContains(t, first, "keep snapshots")
	require.Equal(t, first, d.Append("w1", []byte("b")))
	require.Equal(t, first, d.Sync())
	require.ErrorIs(t, d.Finish(result()), syscall.ENOSPC)
	_, err = Load(root, id)
	require.NoError(t, err)
}

func TestAppendTooLarge(t *testing.T) {
	d := create(t, t.TempDir())
	require.EqualError(t, d.Append("w1", make([]byte, maxSnapshot+1)),
		`keep snapshot of worker "w1": a snapshot of 16777217 bytes, at most 16777216 are kept`)
	require.NoError(t, d.Append("w1", nil), "a refused snapshot spoils nothing")
	abandon(t, d)
	entries, _ := logOf(t, d)
	require.Equal(t, []entry{{"w1", ""}}, entries)
}

// mount makes a file system in memory of the given size.
func mount(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size)
	if err != nil {
		err = fmt.Errorf("mount a tmpfs: %w", err)
	}
	servertest.Require(t, "tmpfs", err)
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	return dir
}

func TestNoRoom(t *testing.T) {
	root := mount(t, "64k")
	_, err := Create(root, id, nil)
	require.EqualError(t, err, fmt.Sprintf("no room for a run in %s: 64 KiB are free, 1024 KiB are needed", root))
	runs, err := List(root)
	require.NoError(t, err)
	require.Empty(t, runs)
}

func TestReadOnly(t *testing.T) {
	root := mount(t, "4m")
	require.NoError(t, syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	_, err := Create(root, id, nil)
	require.ErrorIs(t, err, syscall.EROFS)
	require.ErrorContains(t, err, root)
}

// The disk fills up in mid-run: the error says so, what was synced before stays, and the result still fits once there is room.
func TestDiskFillsUp(t *testing.T) {
	root := mount(t, "2m")
	d := create(t, root)
	snapshot := make([]byte, 100<<10)
	synced := 0
	var err error
	for err == nil {
		require.NoError(t, d.Append("w1", snapshot))
		if err = d.Sync(); err == nil {
			synced++
		}
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Greater(t, synced, 10)
	entries, torn := logOf(t, d)
	require.Len(t, entries, synced)
	require.NotEqual(t, int64(-1), torn)
	require.ErrorIs(t, d.Finish(result()), syscall.ENOSPC)

	require.NoError(t, os.Truncate(filepath.Join(d.Path(), logFile), torn))
	require.NoError(t, d.write(result()))
	_, err = Load(root, id)
	require.NoError(t, err)
}

// A plan that does not fit leaves no directory behind.
func TestPlanDoesNotFit(t *testing.T) {
	root := mount(t, "2m")
	_, err := Create(root, id, make([]byte, 3<<20))
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "begin run "+id)
	names, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestList(t *testing.T) {
	root := t.TempDir()
	runs, err := List(filepath.Join(root, "none"))
	require.NoError(t, err)
	require.Empty(t, runs)

	d := create(t, root)
	r := result()
	r.Seconds = 12
	r.Conclude(run.Aborted, reason.User)
	require.NoError(t, d.Finish(r))

	const running, spoilt, empty = "20261121T000000Z-other-0001", "20261119T000000Z-bad-0001", "zz"
	_, err = Create(root, running, []byte(`{"name":"other"}`))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(root, spoilt), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, spoilt, resultFile), []byte(`{"id":`), 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(root, empty), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, ".git"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "notes.txt"), nil, 0o644))

	runs, err = List(root)
	require.NoError(t, err)
	require.Equal(t, []run.Summary{
		{Header: run.Header{ID: empty}, Unfinished: "no result yet"},
		{Header: run.Header{ID: running, Plan: "other", StartedAt: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}, Unfinished: "no result yet"},
		{Header: r.Header, Seconds: 12, Verdict: r.Verdict, ExitCode: exit.Aborted},
		{
			Header:     run.Header{ID: spoilt, StartedAt: time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC)},
			Unfinished: "result.json: unexpected end of JSON input",
		},
	}, runs)

	_, err = Load(root, spoilt)
	require.EqualError(t, err, "load run "+spoilt+": result.json: unexpected end of JSON input")
	_, err = Load(root, "nosuch")
	require.EqualError(t, err, "no run nosuch in "+root)
	_, err = List(filepath.Join(root, "notes.txt"))
	require.ErrorContains(t, err, "list runs")
}

func TestLoadOtherSchema(t *testing.T) {
	root := t.TempDir()
	d := create(t, root)
	r := result()
	r.Schema = 99
	require.NoError(t, d.Finish(r))
	_, err := Load(root, id)
	require.EqualError(t, err, "load run "+id+": result of schema 99, this loadgen reads 2")
}

func TestNewID(t *testing.T) {
	at := time.Date(2026, 11, 20, 18, 34, 38, 999, time.FixedZone("CET", 3600))
	for plan, want := range map[string]string{
		"hydra-m4":               "hydra-m4",
		"Hydra  M4 / (put)":      "hydra-m4-put",
		"../../etc":              "etc",
		"ключ":                   "plan",
		strings.Repeat("ab", 99): strings.Repeat("ab", 32),
	} {
		id := NewID(at, plan)
		require.Regexp(t, "^20261120T173438Z-"+want+"-[0-9a-f]{8}$", id)
		require.NoError(t, checkID(id))
		require.Equal(t, start, StartOf(id))
	}
	require.Zero(t, StartOf("other"))
}

func TestDefaultRoot(t *testing.T) {
	for name, tt := range map[string]struct {
		env  map[string]string
		want string
	}{
		"state":          {map[string]string{"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/loadgen/runs"},
		"relative state": {map[string]string{"XDG_STATE_HOME": "s", "HOME": "/h"}, "/h/.local/state/loadgen/runs"},
		"home":           {map[string]string{"HOME": "/h"}, "/h/.local/state/loadgen/runs"},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := DefaultRoot(func(k string) string { return tt.env[k] })
			require.NoError(t, err)
			require.Equal(t, tt.want, root)
		})
	}
	_, err := DefaultRoot(func(string) string { return "" })
	require.EqualError(t, err, "find the directory for runs: neither XDG_STATE_HOME nor HOME is set")
}

// crowded is a result whose loads have as many rows as allowed, with the longest possible figures.
func crowded(loads, quantiles, rows int) *run.Run {
	const most = 1 << 53 // no count of a result that is read is more
	r, long := result(), -math.MaxFloat64/3
	row := run.Row{T: 1e6 / 3.0, Due: most, Sent: most, OK: most, Miss: most, Bad: most, KeysOK: most, InFlight: math.MinInt64}
	row.Response.Mean = &long
	var names []string
	for i := range quantiles {
		names = append(names, fmt.Sprintf("p99%03d1", i))
	}
	row.Response.SetQuantiles(names, func(float64, string) *float64 { return &long })
	for i := range loads {
		r.Add(fmt.Sprint("phase-", i), &run.Phase{Validity: run.Valid, Nulls: map[string]string{}, Series: slices.Repeat([]run.Row{row}, rows)})
	}
	return r
}

// The result of the longest run with very many loads can be read again.
func TestResultAtItsBoundsIsReadAgain(t *testing.T) {
	bounds := []struct{ loads, quantiles int }{{6, 16}, {6, 0}, {1000, 0}}
	if !servertest.Whole() {
		bounds = bounds[:1]
	}
	for _, b := range bounds {
		loads, quantiles := b.loads, b.quantiles
		root := t.TempDir()
		require.NoError(t, create(t, root).Finish(crowded(loads, quantiles, judge.RowsEach(loads, quantiles))))
		info, err := os.Stat(filepath.Join(root, id, resultFile))
		require.NoError(t, err)
		require.Less(t, info.Size(), int64(maxText*3/4), "there is room for all else")
		again, err := Load(root, id)
		require.NoError(t, err)
		require.Len(t, again.PhaseOrder, loads)
		require.Len(t, again.Phase["phase-0"].Series, judge.RowsEach(loads, quantiles))
	}
}

// A result too large to be read again is still written in full, and its run ends with an error that says so.
func TestResultThatIsNotReadAgain(t *testing.T) {
	d := create(t, t.TempDir())
	require.ErrorContains(t, d.Observe(make([]byte, maxProbe)), "less than 1048576 are read again")
	abandon(t, d)
	if !servertest.Whole() {
		return
	}

	root := t.TempDir()
	err := create(t, root).Finish(crowded(20, 0, 4096))
	path := filepath.Join(root, id, resultFile)
	require.ErrorContains(t, err, "write result: "+path+" is written whole, but has ")
	require.ErrorContains(t, err, "loadgen does not read it again: at most 32 MiB are read: run fewer phases, levels or observations at a time")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var all struct {
		Phase map[string]struct{ Series []struct{} }
	}
	require.NoError(t, json.Unmarshal(b, &all))
	require.Len(t, all.Phase, 20)
	require.Len(t, all.Phase["phase-19"].Series, 4096)
	_, err = Load(root, id)
	require.ErrorContains(t, err, "has more than 33554432 bytes")
}
