package pmem

import (
	"errors"
	"fmt"
	"time"
)

// Mode says what makes a write durable. The package comment has the table.
type Mode string

// The modes. Auto stands for MapSync if the file's place supports it, or else for Fdatasync.
const (
	Auto      Mode = "auto"
	MapSync   Mode = "map_sync"
	Msync     Mode = "msync"
	Fdatasync Mode = "fdatasync"
	CLWB      Mode = "clwb"
	None      Mode = "none"
	ODsync    Mode = "o_dsync"
	ODirect   Mode = "o_direct"
)

// Modes are all modes, in the order of all lists.
var Modes = []Mode{Auto, MapSync, Msync, Fdatasync, CLWB, None, ODsync, ODirect}

// opened reports whether the file is opened in a way that makes each write durable when it returns.
func (m Mode) opened() bool { return m == ODsync || m == ODirect }

// Syncs reports whether the kernel writes to the device, and makes it keep the bytes, before a fence returns.
func (m Mode) Syncs() bool { return m == Msync || m == Fdatasync || m.opened() }

// Prealloc says how the blocks of a new file are allocated before the first write.
type Prealloc string

// The ways to make a new file. When a block is written for the first time, or makes the file longer, a journaling file system also writes its own
// records about the file.
const (
	Zeroed    Prealloc = "zero"      // written once, so that a later write changes only the data
	Reserved  Prealloc = "fallocate" // allocated, but never written
	Extending Prealloc = "none"      // not allocated: a write makes the file longer; in mode Fdatasync only
)

// instructions reports whether the mode flushes from user space.
func (m Mode) instructions() bool { return m == MapSync || m == CLWB }

var (
	// ErrUnsupported is returned if the processor or the file system does not support the mode.
	ErrUnsupported = errors.New("not supported here")
	// ErrLocked is returned if another process, or another File of this process, has the file open.
	ErrLocked = errors.New("in use by another process")
	// ErrPoisoned is returned by each call that writes, from the first failed one on. It comes with the first failure's cause.
	ErrPoisoned = errors.New("a write was lost, nothing more is written")
	// ErrTruncated is the cause if the file is shorter than its mapping.
	ErrTruncated = errors.New("the file was truncated")
)

// Medium makes bytes durable: a File's, or a stand-in for tests of crashes. Offsets and lengths are in bytes, offsets from the beginning of the file.
// One goroutine at a time may use it. After an error of the file, rather than of the arguments, each further call returns that error too.
type Medium interface {
	// Put stores head, and p after it, at off and flushes both, each line once. A crash may tear them between any two bytes. A head of 24 bytes, or
	// none, is fastest.
	Put(off int64, head, p []byte) error
	// Seal is Put for a head that begins with a checksum: what it stores as the first 4 bytes is head's, combined by XOR with the CRC32C of p in
	// little-endian order. head itself may or may not be changed. It returns the CRC32C. That costs less than computing it before a Put: the processor
	// computes while it waits for its stores. room is the number of unused bytes after p; those up to the end of a line may become zeros.
	Seal(off int64, head, p []byte, room int64) (uint32, error)
	// Store8 stores v at off, a multiple of 8, in little-endian order. A crash leaves all of it or nothing.
	Store8(off int64, v uint64) error
	// Flush names n stored bytes that become durable with the next Fence.
	Flush(off, n int64) error
	// Fence returns once everything flushed on this Medium is durable, or an error if some of it may never be.
	Fence() error
}

// Timed is a Medium that measures how long its fences take.
type Timed interface {
	Medium
	// Waited returns how long all fences on this Medium have taken so far.
	Waited() time.Duration
}

// Untimed says why the fences of files in a mode and place are not measured; "" if they are. Those that wait for a device are. For others, reading the
// clock twice would take a good part of the time measured.
func Untimed(mode Mode, place Place) string {
	switch {
	case mode == None:
		return `with sync = "none", nothing waits until it is durable`
	case mode.opened():
		return fmt.Sprintf("with sync = %q, one call writes an entry and waits until it is durable", mode)
	case !mode.Syncs():
		return fmt.Sprintf("with sync = %q, waiting takes hardly longer than reading the clock", mode)
	case place.Volatile():
		return fmt.Sprintf("on %s, which lives in memory, a sync takes hardly longer than reading the clock", place.FileSystem)
	}
	return ""
}
