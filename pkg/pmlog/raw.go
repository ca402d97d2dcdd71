package pmlog

import (
	"fmt"
	"time"

	"github.com/loadgen/loadgen/pkg/pmem"
)

// Raw writes bytes without a format: its speed is that of the medium, a bound for the logs. The whole region is data, and nothing is known about it
// when it is reopened. Its methods are safe for concurrent use.
type Raw struct {
	region Region
	crc    bool
}

// NewRaw takes over a region for raw writes. With crc, each write computes the CRC32C of its bytes, as the logs do, but stores it nowhere.
func NewRaw(r Region, crc bool) *Raw { return &Raw{region: r, crc: crc} }

// Writer returns a new writer for the bytes in [lo, hi) of the region.
func (l *Raw) Writer(lo, hi int64) (*RawWriter, error) {
	if lo < 0 || hi > l.region.Size() || lo >= hi {
		return nil, fmt.Errorf("bytes %d to %d do not lie in the region's %d", lo, hi, l.region.Size())
	}
	return &RawWriter{log: l, m: l.region.Writer(), lo: lo, hi: hi, at: lo}, nil
}

// ReadAt implements io.ReaderAt.
func (l *Raw) ReadAt(p []byte, off int64) (int, error) { return l.region.ReadAt(p, off) }

// Close closes the region, and returns an error if writes to it may be lost.
func (l *Raw) Close() error { return closeRegions(nil, l.region) }

// RawWriter writes one piece after another, and starts again at lo if the next does not fit. One goroutine at a time may use it; it allocates
// nothing.
type RawWriter struct {
	Wrap func() error // called before the writer starts again at lo, within that write; may be nil

	log        *Raw
	m          pmem.Medium
	lo, hi, at int64
	sum        uint32
}

// Write stores p and returns its offset once it is durable, or ErrTooLarge.
func (w *RawWriter) Write(p []byte) (off int64, err error) {
	n := int64(len(p))
	if n > w.hi-w.lo {
		return 0, ErrTooLarge
	}
	if n > w.hi-w.at {
		w.at = w.lo
		if w.Wrap != nil {
			if err := w.Wrap(); err != nil {
				return 0, fmt.Errorf("start again: %w", err)
			}
		}
	}
	off = w.at
	if w.log.crc {
		w.sum, err = w.m.Seal(off, nil, p, 0)
	} else {
		err = w.m.Put(off, nil, p)
	}
	if err == nil {
		err = w.m.Fence()
	}
	if err != nil {
		return 0, fmt.Errorf("write %d bytes at %d: %w", n, off, err)
	}
	w.at += n
	return off, nil
}

// Waited returns how long all calls of Write so far have waited for durability; 0 unless mediums are [pmem.Timed].
func (w *RawWriter) Waited() time.Duration { return waited(w.m) }
