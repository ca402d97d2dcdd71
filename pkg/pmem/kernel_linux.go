package pmem

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// kernel is what creating, opening and writing a file need from the operating system. Tests substitute one that fails.
type kernel interface {
	flock(fd int) error
	fstat(fd int, stat *unix.Stat_t) error
	fstatfs(fd int, stat *unix.Statfs_t) error
	readFile(path string) ([]byte, error)
	truncate(file *os.File, size int64) error
	allocate(fd int, off, n int64) error
	writeAt(file *os.File, p []byte, off int64) (int, error)
	sync(file *os.File) error
	mapped(fd int, size int64, flags int) ([]byte, error)
	unmap(p []byte) error
	advise(p []byte, advice int) error
	syncDirectory(root *os.Root, name string) error // makes its names durable
}

// linux is the real kernel.
type linux struct{}

func (linux) flock(fd int) error                        { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) }
func (linux) fstat(fd int, stat *unix.Stat_t) error     { return unix.Fstat(fd, stat) }
func (linux) fstatfs(fd int, stat *unix.Statfs_t) error { return unix.Fstatfs(fd, stat) }
func (linux) readFile(path string) ([]byte, error)      { return os.ReadFile(path) }
func (linux) truncate(f *os.File, size int64) error     { return f.Truncate(size) }
func (linux) allocate(fd int, off, n int64) error       { return unix.Fallocate(fd, 0, off, n) }
func (linux) sync(f *os.File) error                     { return f.Sync() }
func (linux) advise(p []byte, advice int) error         { return unix.Madvise(p, advice) }
func (linux) unmap(p []byte) error                      { return unmap(p) }

func (linux) writeAt(f *os.File, p []byte, off int64) (int, error) { return f.WriteAt(p, off) }
func (linux) mapped(fd int, size int64, flags int) ([]byte, error) { return mapped(fd, size, flags) }

func (linux) syncDirectory(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
