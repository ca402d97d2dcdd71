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

// release gives back what lock has taken, if anything.
func release(taken *os.File) error {
	if taken == nil {
		return nil
	}
	return taken.Close()
}
