package pmlog

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/loadgen/loadgen/pkg/pmem"
)

var (
	// ErrFull is returned if the rest of the log has no room for the record. A Clear makes room.
	ErrFull = errors.New("the log is full")
	// ErrTooLarge is returned if even an empty log has no room for the record.
	ErrTooLarge = errors.New("larger than the log has room for")
	// ErrCorrupt is returned if bytes are not what was acknowledged, and no crash explains it.
	ErrCorrupt = errors.New("corrupt")
	// ErrVersion is returned if a log was written in another version of the format. Nothing is wrong with it.
	ErrVersion = errors.New("the log is of another version of the format")
	// ErrCleared is returned by a Reader whose log has been cleared since the Reader began.
	ErrCleared = errors.New("the log was cleared meanwhile")
)

// Region holds a log: a *pmem.File, or a stand-in for tests. Its methods are safe for concurrent use.
type Region interface {
	io.ReaderAt
	io.Closer
	Size() int64         // in bytes; never changes
	Writer() pmem.Medium // a new one, for one goroutine
	Check() error        // an error if bytes that were fenced may be lost
}

// persist stores p at off and waits until it is durable.
func persist(m pmem.Medium, off int64, p []byte) error {
	if err := m.Put(off, nil, p); err != nil {
		return err
	}
	return m.Fence()
}

// waited returns how long the fences on a medium have taken so far; 0 if the medium does not measure that.
func waited(m pmem.Medium) time.Duration {
	if t, ok := m.(pmem.Timed); ok {
		return t.Waited()
	}
	return 0
}

// keep flushes the bytes that a recovery has found, so that a fence makes them durable before anything is built on them. A process that was killed
// may have stored them without flushing: then a power loss would take them.
func keep(m pmem.Medium, off, n int64) error { return m.Flush(off, n) }

// closeRegions closes the regions of a log after its last write, which returned err. It returns the errors that mean that data may be lost.
func closeRegions(err error, regions ...Region) error {
	for _, r := range regions {
		if err == nil {
			err = r.Check()
		}
	}
	for _, r := range regions {
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		return fmt.Errorf("close a log: %w", err)
	}
	return nil
}
