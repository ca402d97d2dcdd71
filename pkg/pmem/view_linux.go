package pmem

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// View is a file made by Create that is only read. Writes to a Medium of it are dropped, so a log that recovers when it is opened does so in memory
// alone. The file is locked against processes that write it, not against other views. Its methods are safe for concurrent use.
type View struct {
	file *os.File
	size int64
}

// OpenView opens a file to look at it. It returns ErrLocked if the file is in use.
func OpenView(path string) (*View, error) {
	return openView(path, os.Stat, os.OpenFile)
}

// OpenViewIn is OpenView for a file in a directory. It refuses symbolic links, wherever they lead.
func OpenViewIn(root *os.Root, name string) (*View, error) {
	return openView(name, root.Lstat, root.OpenFile)
}

func openView(path string, stat func(string) (os.FileInfo, error), open func(string, int, os.FileMode) (*os.File, error)) (*View, error) {
	named, err := stat(path)
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() { // opening a device may have side effects
		return nil, fmt.Errorf("open %s: %w", path, errNotViewed)
	}
	file, err := open(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	v := &View{file: file}
	if err := v.lock(named); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), file.Close())
	}
	return v, nil
}

var errNotViewed = errors.New("only regular files are read, and none that is empty")

// lock locks the file against writers until it is closed, if it is still the regular file described by named.
func (v *View) lock(named os.FileInfo) error {
	err := unix.Flock(int(v.file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	info, err := v.file.Stat()
	if err != nil {
		return err
	}
	if v.size = info.Size(); v.size == 0 || !os.SameFile(named, info) {
		return errNotViewed
	}
	return nil
}

// ReadAt implements io.ReaderAt.
func (v *View) ReadAt(p []byte, off int64) (int, error) { return v.file.ReadAt(p, off) }

// Size returns the size in bytes that the file had when it was opened.
func (v *View) Size() int64 { return v.size }

// Writer returns a Medium that drops what is written to it.
func (v *View) Writer() Medium { return dropped{} }

// Check returns nil: nothing is written that could be lost.
func (v *View) Check() error { return nil }

// Close unlocks and closes the file.
func (v *View) Close() error { return v.file.Close() }

// dropped is a Medium that keeps nothing.
type dropped struct{}

func (dropped) Put(int64, []byte, []byte) error { return nil }
func (dropped) Store8(int64, uint64) error      { return nil }
func (dropped) Flush(int64, int64) error        { return nil }
func (dropped) Fence() error                    { return nil }

func (dropped) Seal(_ int64, _, p []byte, _ int64) (uint32, error) { return checksum(0, p), nil }
