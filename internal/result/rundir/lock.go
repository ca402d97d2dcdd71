package rundir

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrInUse says that another process is writing in a directory.
var ErrInUse = errors.New("it is being written")

// lock locks a directory for this process until the file is closed or the process ends. It returns ErrInUse if another process has the lock.
func lock(path string) (*os.File, error) {
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrInUse
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, dir.Close()))
	}
	return dir, nil
}

// alone waits until no other process is in alone for the same directory, then calls f.
func alone(path string, f func() error) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX)
	}
	if err == nil {
		err = f()
	}
	return errors.Join(err, dir.Close())
}
