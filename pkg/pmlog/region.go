package pmlog

import (
	"errors"
	"fmt"
	"io"

	"github.com/loadgen/loadgen/pkg/pmem"
)

var (
	// ErrFull is returned when what is left of the log does not hold the record. A Clear makes room.
	ErrFull = errors.New("the log is full")
	// ErrTooLarge is returned when the log would not hold the record if it were empty.
	ErrTooLarge = errors.New("larger than the log has room for")
	// ErrCorrupt is returned when bytes are not those that were acknowledged, and no crash explains it.
	ErrCorrupt = errors.New("corrupt")
	// ErrVersion is returned when a log to be opened was written in another version of its format. Nothing is wrong with it.
	ErrVersion = errors.New("the log is of another version of the format")
	// ErrCleared is returned by a Reader whose log was cleared after it began.
	ErrCleared = errors.New("the log was cleared meanwhile")
)

// Region is where a log lives: a *pmem.File, or one that stands in for it in a test. Its methods may be called by several goroutines.
type Region interface {
	io.ReaderAt
	io.Closer
	Size() int64         // in bytes; it does not change
	Writer() pmem.Medium // a new one, for one goroutine
	Check() error        // whether all that was fenced may be counted
}

// persist stores p at off and waits until it is durable.
func persist(m pmem.Medium, off int64, p []byte) error {
	if err := m.Put(off, nil, p); err != nil {
		return err
	}
	return m.Fence()
}

// put8 stores v at off and flushes it.
func put8(m pmem.Medium, off int64, v uint64) error {
	if err := m.Store8(off, v); err != nil {
		return err
	}
	return m.Flush(off, 8)
}

// closeRegions closes the regions of a log that has written its last, with the error err, and returns whatever means that something
// may be lost.
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
