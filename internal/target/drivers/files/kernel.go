package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// kernel is what a session needs from the operating system. Directories are open, and names have one part. Tests make it fail.
type kernel interface {
	open(dir int, name string, flags int) (fd int, err error)
	// regular returns a file's size, or an error if it is not a regular file.
	regular(fd int) (size int64, err error)
	read(fd int, b []byte) (n int, err error)
	write(fd int, b []byte) (n int, err error)
	fdatasync(fd int) error
	fsync(fd int) error
	close(fd int) error
	rename(dir int, from, to string) error
	unlink(dir int, name string) error
}

// linux is the real kernel. It repeats calls that a signal interrupted.
type linux struct{}

var errNoFile = errors.New("no regular file is there")

func (linux) open(dir int, name string, flags int) (fd int, err error) {
	err = again(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
		return err
	})
	return fd, os.NewSyscallError("open", err)
}

func (linux) regular(fd int) (int64, error) {
	var stat unix.Stat_t
	if err := again(func() error { return unix.Fstat(fd, &stat) }); err != nil {
		return 0, os.NewSyscallError("fstat", err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, errNoFile
	}
	return stat.Size, nil
}

func (linux) read(fd int, b []byte) (n int, err error) {
	err = again(func() error {
		n, err = unix.Read(fd, b)
		return err
	})
	return n, os.NewSyscallError("read", err)
}

func (linux) write(fd int, b []byte) (n int, err error) {
	err = again(func() error {
		n, err = unix.Write(fd, b)
		return err
	})
	return n, os.NewSyscallError("write", err)
}

func (linux) fdatasync(fd int) error {
	return os.NewSyscallError("fdatasync", again(func() error { return unix.Fdatasync(fd) }))
}

func (linux) fsync(fd int) error {
	return os.NewSyscallError("fsync", again(func() error { return unix.Fsync(fd) }))
}

// close is not repeated: the descriptor is gone, whatever close returns.
func (linux) close(fd int) error { return os.NewSyscallError("close", unix.Close(fd)) }

func (linux) rename(dir int, from, to string) error {
	return os.NewSyscallError("rename", again(func() error { return unix.Renameat(dir, from, dir, to) }))
}

func (linux) unlink(dir int, name string) error {
	return os.NewSyscallError("unlink", again(func() error { return unix.Unlinkat(dir, name, 0) }))
}

func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
