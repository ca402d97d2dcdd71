package pmem

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// kernel lists the system calls for creating, opening and writing a file. Tests substitute one that fails.
type kernel interface {
	open(root *os.Root, name string, flags int) (*os.File, error)
	flock(fd int) error
	fstat(fd int, stat *unix.Stat_t) error
	fstatfs(fd int, stat *unix.Statfs_t) error
	readFile(path string) ([]byte, error)
	truncate(file *os.File, size int64) error
	allocate(fd int, off, n int64) error
	writeAt(file *os.File, p []byte, off int64) (int, error)
	sync(file *os.File) error
	fdatasync(fd int) error
	msync(p []byte) error // of whole pages, but for the last
	mapped(fd int, size int64, flags int) ([]byte, error)
	unmap(p []byte) error
	advise(p []byte, advice int) error
	reopen(fd, flags int) (*os.File, error)         // as another open file
	alignment(fd int) (int64, error)                // alignment that direct writes need; 0 if the file takes none; 1 if unknown
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
func (linux) fdatasync(fd int) error                    { return unix.Fdatasync(fd) }
func (linux) msync(p []byte) error                      { return unix.Msync(p, unix.MS_SYNC) }
func (linux) advise(p []byte, advice int) error         { return unix.Madvise(p, advice) }
func (linux) unmap(p []byte) error                      { return unmap(p) }

func (linux) writeAt(f *os.File, p []byte, off int64) (int, error) { return f.WriteAt(p, off) }
func (linux) mapped(fd int, size int64, flags int) ([]byte, error) { return mapped(fd, size, flags) }

func (linux) open(root *os.Root, name string, flags int) (*os.File, error) {
	return root.OpenFile(name, flags, 0)
}

func (linux) reopen(fd, flags int) (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), flags, 0)
}

func (linux) alignment(fd int) (int64, error) {
	var stat unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &stat)
	if err != nil || stat.Mask&unix.STATX_DIOALIGN == 0 { // kernels before 6.1, and file systems that do not say
		return 1, err
	}
	return int64(stat.Dio_offset_align), nil
}

func (linux) syncDirectory(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
