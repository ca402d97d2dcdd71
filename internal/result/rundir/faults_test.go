package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var errFault = errors.New("the disk fails")

// faulty is a disk whose call number at fails, from 1.
type faulty struct {
	system
	calls, at int
	failed    string // the call that did
}

func (d *faulty) fail(call, path string) error {
	if d.calls++; d.calls != d.at {
		return nil
	}
	d.failed = call + " " + filepath.Base(path)
	return fmt.Errorf("%s %s: %w", call, path, errFault)
}

func (d *faulty) OpenFile(path string, flag int) (file, error) {
	if err := d.fail("open", path); err != nil {
		return nil, err
	}
	f, err := d.system.OpenFile(path, flag)
	return &faultyFile{f, d, path}, err
}

func (d *faulty) Mkdir(path string) error {
	return orElse(d.fail("mkdir", path), func() error { return d.system.Mkdir(path) })
}

func (d *faulty) Rename(from, to string) error {
	return orElse(d.fail("rename", to), func() error { return d.system.Rename(from, to) })
}

func (d *faulty) Remove(path string) error {
	return orElse(d.fail("remove", path), func() error { return d.system.Remove(path) })
}

func (d *faulty) RemoveAll(path string) error {
	return orElse(d.fail("remove all", path), func() error { return d.system.RemoveAll(path) })
}

func (d *faulty) SyncDir(path string) error {
	return orElse(d.fail("sync directory", path), func() error { return d.system.SyncDir(path) })
}

func orElse(err error, call func() error) error {
	if err != nil {
		return err
	}
	return call()
}

type faultyFile struct {
	file
	disk *faulty
	path string
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.disk.fail("write", f.path); err != nil {
		n, _ := f.file.Write(p[:len(p)/2])
		return n, err
	}
	return f.file.Write(p)
}

func (f *faultyFile) Sync() error {
	return orElse(f.disk.fail("sync", f.path), f.file.Sync)
}

func (f *faultyFile) Close() error {
	return errors.Join(f.disk.fail("close", f.path), f.file.Close())
}

// everyFault calls f with disks that fail at their first, second, … call, until one has no fault. It returns the calls that failed.
func everyFault(t *testing.T, f func(t *testing.T, on *faulty, root string)) (failed []string) {
	t.Helper()
	for at := 1; ; at++ {
		on := &faulty{at: at}
		f(t, on, t.TempDir())
		if on.failed == "" {
			require.Greater(t, at, 1)
			return failed
		}
		failed = append(failed, on.failed)
	}
}

// told checks that one of the errors reports a fault, and that there is none without a fault.
func told(t *testing.T, on *faulty, errs ...error) {
	t.Helper()
	err := errors.Join(errs...)
	if on.failed == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, errFault, on.failed)
}

// Any failed write, sync, rename or close in the life of a run is reported, and what was finished is complete or absent.
func TestFaultsOfARun(t *testing.T) {
	failed := everyFault(t, func(t *testing.T, on *faulty, root string) {
		d, err := makeDir(on, root, id, []byte(`{"name":"hydra-m4"}`))
		if err != nil {
			told(t, on, err)
			require.Empty(t, treeOf(t, root), on.failed)
			return
		}
		errs := []error{d.Append("w", []byte("first")), d.Sync(), d.Observe([]byte(`{"at":1}`)), d.Sync()}
		if errors.Join(errs...) != nil {
			require.ErrorIs(t, d.Append("w", []byte("second")), errFault, "the first fault is final: %s", on.failed)
			require.ErrorIs(t, d.Observe(nil), errFault)
			require.ErrorIs(t, d.Sync(), errFault)
		}
		errs = append(errs, d.Keep("hook-x.txt", []byte("said")), d.Finish(result()))
		told(t, on, errs...)
		if _, err := Load(root, id); err != nil {
			require.ErrorContains(t, err, "is unfinished", on.failed)
			require.Contains(t, on.failed, resultFile)
		}
		for name := range treeOf(t, root) {
			require.False(t, strings.HasSuffix(name, ".tmp"), "%s left %s", on.failed, name)
		}
	})
	for _, call := range []string{
		"mkdir " + id, "sync plan.json", "close plan.json", "open snapshots.log", "sync directory " + id, "sync snapshots.log", "close snapshots.log",
		"write observations.jsonl", "sync observations.jsonl", "close observations.jsonl", "rename result.json", "write result.json.tmp", "sync result.json.tmp",
	} {
		require.Contains(t, failed, call)
	}
}

// The same for an experiment: its earlier state stays if it cannot be replaced.
func TestFaultsOfAnExperiment(t *testing.T) {
	failed := everyFault(t, func(t *testing.T, on *faulty, root string) {
		_, x := study(t)
		x.ID = "one"
		e, err := createExperiment(on, root, x)
		if err != nil {
			told(t, on, err)
			require.Empty(t, treeOf(t, root), on.failed)
			return
		}
		changed := *x
		changed.Labels = map[string]string{"changed": "yes"}
		told(t, on, e.KeepSettings([]byte("{}")), e.Save(&changed), e.Close())
		is, err := LoadExperiment(root, "one")
		require.NoError(t, err, on.failed)
		if on.failed == "rename "+experimentFile {
			require.Empty(t, is.Labels)
		}
	})
	require.Contains(t, failed, "rename "+experimentFile)
	require.Contains(t, failed, "rename "+settingsFile)
}

// An import that meets a fault says so, and leaves complete runs or none.
func TestFaultsOfAnImport(t *testing.T) {
	from := t.TempDir()
	finished(t, from, "a", "")
	finished(t, from, "b", "")
	packed := pack(t, from, "a", "b")
	want := treeOf(t, from)
	failed := everyFault(t, func(t *testing.T, on *faulty, root string) {
		added, _, err := unpack(on, root, bytes.NewReader(packed), plenty, trusting)
		told(t, on, err)
		for _, name := range added {
			_, err := Load(root, name)
			require.NoError(t, err, on.failed)
		}
		_, _, err = Import(root, bytes.NewReader(packed), plenty, trusting)
		require.NoError(t, err, on.failed)
		require.Equal(t, want, treeOf(t, root), on.failed)
	})
	for _, call := range []string{"sync result.json", "close snapshots.log", "sync directory a", "rename b"} {
		require.Contains(t, failed, call)
	}
}

// A deletion that meets a fault says so, and the run is complete or gone.
func TestFaultsOfADeletion(t *testing.T) {
	failed := everyFault(t, func(t *testing.T, on *faulty, root string) {
		finished(t, root, "a", "")
		told(t, on, remove(on, root, "a"))
		if on.failed == "rename "+deleted+"a" {
			_, err := Load(root, "a")
			require.NoError(t, err)
			return
		}
		_, err := os.Lstat(filepath.Join(root, "a"))
		require.ErrorIs(t, err, os.ErrNotExist, on.failed)
	})
	require.Len(t, failed, 3, failed)
}

// A run's files are private to its user: they name hosts, and hold what servers and commands have said.
func TestOthersCannotReadARun(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state", "runs")
	d := create(t, root)
	require.NoError(t, errors.Join(d.Observe([]byte(`{"at":1}`)), d.Sync(), d.Keep("hook-x.txt", nil), d.Finish(result())))
	_, x := study(t)
	e, err := CreateExperiment(root, x)
	require.NoError(t, err)
	require.NoError(t, errors.Join(e.KeepSettings([]byte("{}")), e.Close()))
	from := t.TempDir()
	finished(t, from, "imported", "")
	_, _, err = Import(root, bytes.NewReader(pack(t, from, "imported")), plenty, trusting)
	require.NoError(t, err)
	seen := 0
	require.NoError(t, filepath.WalkDir(filepath.Dir(root), func(path string, e os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, path)
		seen++
		return nil
	}))
	require.Greater(t, seen, 10)
}
