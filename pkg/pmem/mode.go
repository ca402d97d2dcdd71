package pmem

import "errors"

// Mode says what makes a write durable. The package comment holds the table.
type Mode string

// The modes. Auto stands for the strongest that the place of the file has: MapSync, or else Msync.
const (
	Auto      Mode = "auto"
	MapSync   Mode = "map_sync"
	Msync     Mode = "msync"
	Fdatasync Mode = "fdatasync"
	CLWB      Mode = "clwb"
	None      Mode = "none"
)

// instructions reports whether the mode flushes from user space.
func (m Mode) instructions() bool { return m == MapSync || m == CLWB }

var (
	// ErrUnsupported is returned when the processor or the file system does not have the mode asked for.
	ErrUnsupported = errors.New("not supported here")
	// ErrLocked is returned when another process, or another File of this one, has the file open.
	ErrLocked = errors.New("in use by another process")
	// ErrPoisoned is returned by each call that writes, from the first that failed on. It comes with the first failure's cause.
	ErrPoisoned = errors.New("a write was lost, nothing more is written")
	// ErrTruncated is the cause when the file is no longer as long as its mapping.
	ErrTruncated = errors.New("the file was truncated")
)

// Medium is where bytes become durable: that of a File, or one that stands in for it in a test of what a crash leaves. Offsets
// and lengths are in bytes, from the beginning of the file. Use by one goroutine at a time. After an error of the file, rather
// than of the arguments, each further call returns it too.
type Medium interface {
	// Put stores head, and p behind it, at off and flushes both, each line once. What a crash leaves of them may be torn between any two
	// bytes. A head of 24 bytes, or none, costs least.
	Put(off int64, head, p []byte) error
	// Seal is Put for a head that begins with a checksum: its first 4 bytes are combined by XOR with the CRC32C of p, in little-endian order,
	// where they are stored; head itself may be left with either. It returns the CRC32C, which costs less than before a Put: the processor
	// computes while it waits for its stores. The room is how many bytes behind p belong to nobody: those up to the end of a line may become
	// zeros.
	Seal(off int64, head, p []byte, room int64) (uint32, error)
	// Store8 stores v at off, a multiple of 8, in little-endian order. A crash leaves all of it or nothing.
	Store8(off int64, v uint64) error
	// Flush names n stored bytes that are to be durable after the next Fence.
	Flush(off, n int64) error
	// Fence returns once all that this Medium has flushed is durable, or with an error when some of it may never be.
	Fence() error
}
