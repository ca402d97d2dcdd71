package pmemtest

import (
	"errors"
	"io"

	"github.com/loadgen/loadgen/pkg/pmem"
)

// Memory is a file in memory whose bytes are durable at once.
type Memory struct{ Bytes []byte }

// Size returns the size in bytes.
func (m *Memory) Size() int64 { return int64(len(m.Bytes)) }

// ReadAt implements io.ReaderAt.
func (m *Memory) ReadAt(p []byte, off int64) (int, error) { return readAt(m.Bytes, p, off) }

// Check returns nil.
func (m *Memory) Check() error { return nil }

// Close returns nil.
func (m *Memory) Close() error { return nil }

// Writer returns a medium of the file.
func (m *Memory) Writer() pmem.Medium { return m }

// Put implements pmem.Medium.
//
//go:norace
func (m *Memory) Put(off int64, head, p []byte) error {
	if off < 0 || off > m.Size()-int64(len(head)+len(p)) {
		return errors.New("outside the file")
	}
	copy(m.Bytes[off:], head)
	copy(m.Bytes[off+int64(len(head)):], p)
	return nil
}

// Seal implements pmem.Medium.
func (m *Memory) Seal(off int64, head, p []byte, _ int64) (uint32, error) {
	sum := combine(head, p)
	return sum, m.Put(off, head, p)
}

// Store8 implements pmem.Medium.
func (m *Memory) Store8(off int64, v uint64) error {
	var b [8]byte
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
	return m.Put(off, b[:], nil)
}

// Flush does nothing.
func (m *Memory) Flush(_, _ int64) error { return nil }

// Fence does nothing.
func (m *Memory) Fence() error { return nil }

// readAt is ReadAt for files in memory.
//
//go:norace
func readAt(b, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("outside the file")
	}
	if off >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
