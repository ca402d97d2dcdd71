package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/loadgen/loadgen/internal/base/safefile"
)

// Reopen takes the directory of a run whose coordinator ended before it could write a result. It also returns how many bytes at the end of the log do
// not belong to a whole record. Nothing can be appended to it; Finish cuts those bytes off and writes the result. The error is [ErrInUse] if the
// coordinator is alive.
func Reopen(root, id string) (d *Dir, torn int64, err error) {
	if err := checkID(id); err != nil {
		return nil, 0, err
	}
	d = &Dir{disk: system{}, path: filepath.Join(root, id), cut: -1}
	if d.taken, err = lock(d.path); errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("no run %s in %s", id, root)
	} else if err != nil {
		return nil, 0, fmt.Errorf("take run %s: %w", id, err)
	}
	if torn, err = d.reopen(); err != nil {
		return nil, 0, fmt.Errorf("take run %s: %w", id, errors.Join(err, d.taken.Close()))
	}
	return d, torn, nil
}

func (d *Dir) reopen() (torn int64, err error) {
	for _, done := range [...]struct{ file, why string }{
		{resultFile, "it has its result: there is nothing to recover"},
		{experimentFile, "it is an experiment: its runs are recovered one by one, or it goes on with loadgen run --resume"},
	} {
		switch _, err := os.Lstat(filepath.Join(d.path, done.file)); {
		case err == nil:
			return 0, errors.New(done.why)
		case !errors.Is(err, fs.ErrNotExist):
			return 0, err
		}
	}
	log, err := safefile.Open(filepath.Join(d.path, logFile))
	if err != nil {
		return 0, err
	}
	defer log.Close()
	var end *TornError
	err = readRecords(log, func(_, _ []byte) error { return nil })
	if !errors.As(err, &end) {
		return 0, err
	}
	info, err := os.Lstat(filepath.Join(d.path, logFile))
	if err != nil {
		return 0, err
	}
	d.cut = end.Offset
	return info.Size() - end.Offset, nil
}

// Discard releases a reopened directory unchanged.
func (d *Dir) Discard() error { return d.taken.Close() }

// cutLog cuts off the bytes after the last whole record.
func (d *Dir) cutLog() error {
	if d.cut < 0 {
		return nil
	}
	log, err := os.OpenFile(filepath.Join(d.path, logFile), os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("leave out the torn end of the snapshots: %w", err)
	}
	if err := errors.Join(log.Truncate(d.cut), log.Sync(), log.Close()); err != nil {
		return fmt.Errorf("leave out the torn end of the snapshots: %w", err)
	}
	return nil
}

// Records calls f with each whole record in a reopened log: snapshots and, without a worker's name, the coordinator's own records.
func (d *Dir) Records(f func(worker, record []byte) error) error {
	err := Records(filepath.Dir(d.path), filepath.Base(d.path), f)
	if end, ok := errors.AsType[*TornError](err); ok && end.Offset == d.cut {
		return nil
	}
	return err
}
