package rundir

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrInUse says that somebody is writing in a directory.
var ErrInUse = errors.New("it is being written")

// lock takes a directory for this process until the file is closed, or the process has ended. It returns ErrInUse when it is taken.
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

// alone calls f while nobody else is in an alone for the same directory, which it waits for.
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

// release gives back what lock has taken, if anything.
func release(taken *os.File) error {
	if taken == nil {
		return nil
	}
	return taken.Close()
}
