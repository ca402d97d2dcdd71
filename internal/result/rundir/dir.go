package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/loadgen/loadgen/internal/result/run"
)

const (
	planFile    = "plan.json"
	logFile     = "snapshots.log"
	probesFile  = "observations.jsonl"
	samplesFile = "samples.csv"
	resultFile  = "result.json"

	importedFile   = "imported"   // marks what came in a pack; itself in none
	unverifiedFile = "unverified" // why an imported result could not be verified; it is not packed, since each import verifies again

	experimentFile = "experiment.json"
	settingsFile   = "settings.json"
	tablesFile     = "tables.json" // of an older loadgen, which kept only the tables among the settings
)

// minFree is the free space that a run requires: less would not hold the result of a short run.
const minFree = 1 << 20

// Dir is the directory of a run in progress, which nobody else can open or delete. One goroutine may use it at a time.
//
// The first failed write or sync of the log is final: the kernel may have dropped the pages, so a later successful sync would prove nothing. Every
// call after it returns the same error. Finish still writes the result.
type Dir struct {
	disk  disk
	path  string
	taken *os.File // the directory, locked
	log   file
	buf   []byte // records not yet written
	err   error  // the first error of the log or of the observations

	cut    int64  // end of the whole records of a torn log; -1 if not torn
	probes file   // nil if nothing has been observed
	lines  []byte // observations not yet written
}

// Create creates the directory of a run in root, which it also creates if needed, and writes the run's plan. It fails, leaving nothing behind, if the
// directory exists, if it cannot be written, or if the file system has less than 1 MiB free.
func Create(root, id string, planJSON []byte) (*Dir, error) {
	return makeDir(system{}, root, id, planJSON)
}

func makeDir(on disk, root, id string, planJSON []byte) (*Dir, error) {
	d := &Dir{disk: on, path: filepath.Join(root, id), cut: -1}
	var err error
	d.taken, err = begin(on, root, id, "run", func() error { return d.begin(planJSON) })
	if err != nil {
		return nil, err
	}
	return d, nil
}

// begin makes the directory of a run or an experiment, locks it, and has write write its first files. If that fails, it leaves nothing behind.
func begin(on disk, root, id, what string, write func() error) (taken *os.File, err error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(root, dirMode); err != nil {
		return nil, fmt.Errorf("make directory for runs: %w", err)
	}
	if err := checkFree(root); err != nil {
		return nil, err
	}
	path := filepath.Join(root, id)
	if err := on.Mkdir(path); err != nil {
		return nil, fmt.Errorf("make directory for %s: %w", what, err)
	}
	if taken, err = lock(path); err != nil {
		return nil, fmt.Errorf("begin %s %s: %w", what, id, errors.Join(err, on.RemoveAll(path)))
	}
	if err := write(); err != nil {
		return nil, fmt.Errorf("begin %s %s: %w", what, id, errors.Join(err, on.RemoveAll(path), taken.Close()))
	}
	return taken, nil
}

// begin writes and syncs the first files of a new directory.
func (d *Dir) begin(planJSON []byte) error {
	if err := writeFile(d.disk, filepath.Join(d.path, planFile), planJSON); err != nil {
		return err
	}
	log, err := d.disk.OpenFile(filepath.Join(d.path, logFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND)
	if err != nil {
		return err
	}
	d.log, d.buf = log, []byte(magic)
	if err := errors.Join(d.Sync(), d.disk.SyncDir(d.path), d.disk.SyncDir(filepath.Dir(d.path))); err != nil {
		return errors.Join(err, log.Close())
	}
	return nil
}

// Path returns the directory.
func (d *Dir) Path() string { return d.path }

// Append adds a worker's snapshot to the log: first in memory, and to disk with the next Sync. It does not retain snapshot.
func (d *Dir) Append(worker string, snapshot []byte) error {
	if d.err != nil {
		return d.err
	}
	var err error
	if d.buf, err = appendRecord(d.buf, worker, snapshot); err != nil {
		return fmt.Errorf("keep snapshot of worker %q: %w", worker, err)
	}
	return nil
}

// Sync makes everything appended so far durable, in one commit.
func (d *Dir) Sync() error {
	if d.err != nil {
		return d.err
	}
	_, err := d.log.Write(d.buf)
	if err == nil {
		err = d.log.Sync()
	}
	if err == nil && len(d.lines) > 0 {
		err = d.syncProbes()
	}
	if err != nil {
		d.err = fmt.Errorf("keep snapshots: %w", err)
	}
	d.buf = d.buf[:0]
	return d.err
}

// Observe adds the JSON of a [run.Probe], without line breaks, to the observations: first in memory, and to disk with the next Sync.
func (d *Dir) Observe(probe []byte) error {
	if d.err != nil {
		return d.err
	}
	if len(probe) >= maxProbe {
		return fmt.Errorf("keep a probe of %d bytes: less than %d are read again: observe fewer fields at a time", len(probe), maxProbe)
	}
	d.lines = append(append(d.lines, probe...), '\n')
	return nil
}

// syncProbes makes the observations durable.
func (d *Dir) syncProbes() error {
	if d.probes == nil {
		file, err := d.disk.OpenFile(filepath.Join(d.path, probesFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND)
		if err != nil {
			return err
		}
		d.probes = file
		if err := d.disk.SyncDir(d.path); err != nil {
			return err
		}
	}
	_, err := d.probes.Write(d.lines)
	d.lines = d.lines[:0]
	return errors.Join(err, d.probes.Sync())
}

// KeepSamples writes the file of samples atomically.
func (d *Dir) KeepSamples(text []byte) error { return d.Keep(samplesFile, text) }

// Keep writes another file beside the run's own, atomically. The name must not be one that the run uses.
func (d *Dir) Keep(name string, text []byte) error {
	if err := replaceFile(d.disk, filepath.Join(d.path, name), text); err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return nil
}

// Finish syncs and closes the log, and writes the result atomically. The Dir cannot be used afterwards. Finish writes the result even if the log could
// not be written, or if the result is larger than [Load] accepts; the error covers all of it.
func (d *Dir) Finish(r *run.Run) error {
	closed := d.closeLog()
	written := d.write(r)
	return errors.Join(closed, written, d.taken.Close())
}

func (d *Dir) write(r *run.Run) error {
	if err := replaceJSON(d.disk, filepath.Join(d.path, resultFile), r); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

func (d *Dir) closeLog() error {
	if d.log == nil {
		return d.cutLog()
	}
	synced := d.Sync()
	err := d.log.Close()
	if d.probes != nil {
		err = errors.Join(err, d.probes.Close())
	}
	if err != nil && synced == nil {
		return fmt.Errorf("close snapshots: %w", err)
	}
	return synced
}

// replaceJSON is replaceFile for the indented JSON of a result, with characters escaped that a terminal or a page would obey. A result that is too
// large to be read again is written all the same, and is an error.
func replaceJSON(on disk, path string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	text := plainJSON(b.Bytes())
	return errors.Join(replaceFile(on, path, text), readable(path, text, v))
}

// replaceFile replaces a file's content atomically and durably.
func replaceFile(on disk, path string, b []byte) error {
	temp := path + ".tmp"
	if err := writeFile(on, temp, b); err != nil {
		return err
	}
	if err := on.Rename(temp, path); err != nil {
		return errors.Join(err, on.Remove(temp))
	}
	return on.SyncDir(filepath.Dir(path))
}

// writeFile writes and syncs a file. If that fails, it removes what it wrote, so as not to keep a full disk full.
func writeFile(on disk, path string, b []byte) error {
	f, err := on.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, on.Remove(path))
	}
	return nil
}

// checkFree fails if the file system of path has no room for a run.
func checkFree(path string) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return fmt.Errorf("look for room in %s: %w", path, err)
	}
	if free := st.Bavail * uint64(st.Bsize); free < minFree {
		return fmt.Errorf("no room for a run in %s: %d KiB are free, %d KiB are needed", path, free>>10, minFree>>10)
	}
	return nil
}
