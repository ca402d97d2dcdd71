package pmlog

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/loadgen/loadgen/pkg/pmem"
)

// The index is a word of 8 bytes; that of the next generation is in the line behind.
const (
	indexStart = dataStart
	indexBits  = 40 // of a length
	// SideSize is the size in bytes of the side file of a Channel.
	SideSize = indexStart + 2*line
)

// Channel is bare bytes in one region, and in another, at the side, how many of them there are: the file can be read by anything.
// Its methods may be called by several goroutines.
type Channel struct {
	data, side Region

	mu    sync.Mutex
	m     pmem.Medium // of data
	heads *headers
	end   int64
	lost  error // the first error of either region, after which neither is written
}

// CreateChannel makes an empty log in two regions of zeros, which belong to the log if there is no error.
func CreateChannel(data, side Region) (*Channel, error) {
	if data.Size() >= 1<<indexBits {
		return nil, fmt.Errorf("create a channel log: %d bytes of data: want less than 2^%d", data.Size(), indexBits)
	}
	if side.Size() < SideSize {
		return nil, fmt.Errorf("create a channel log: %d bytes at the side: want at least %d", side.Size(), SideSize)
	}
	heads, err := newHeaders(side, header{layout: channelLayout, padding: line, capacity: uint64(data.Size())})
	if err != nil {
		return nil, fmt.Errorf("create a channel log: %w", err)
	}
	l := &Channel{data: data, side: side, m: data.Writer(), heads: heads}
	if err = heads.m.Store8(indexAt(heads.generation), l.index(heads.generation, 0)); err == nil {
		err = heads.m.Flush(indexAt(heads.generation), 8)
	}
	if err == nil {
		err = heads.write(heads.header) // and fence both
	}
	if err != nil {
		return nil, fmt.Errorf("create a channel log: %w", err)
	}
	return l, nil
}

// OpenChannel opens the log in two regions, which belong to the log if there is no error.
func OpenChannel(data, side Region) (*Channel, error) {
	heads, err := openHeaders(side, channelLayout)
	if err != nil {
		return nil, fmt.Errorf("open a channel log: %w", err)
	}
	l := &Channel{data: data, side: side, m: data.Writer(), heads: heads}
	if err := l.recover(); err != nil {
		return nil, fmt.Errorf("open a channel log: %w", err)
	}
	return l, nil
}

// recover reads the index, and mends what a crash left of the header.
func (l *Channel) recover() error {
	var word [8]byte
	if n, err := l.side.ReadAt(word[:], indexAt(l.heads.generation)); n < len(word) {
		return fmt.Errorf("read the index: %w", err)
	}
	index := binary.LittleEndian.Uint64(word[:])
	l.end = int64(index & (1<<indexBits - 1))
	switch {
	case uint64(l.data.Size()) < l.heads.capacity:
		return fmt.Errorf("the data are %d bytes instead of %d: %w", l.data.Size(), l.heads.capacity, ErrCorrupt)
	case index != l.index(l.heads.generation, l.end) || l.end > l.data.Size():
		return fmt.Errorf("an index of %#x for %d bytes of data: %w", index, l.data.Size(), ErrCorrupt)
	}
	if l.heads.uneven {
		return l.heads.write(l.heads.header)
	}
	return nil
}

// indexAt returns the offset of a generation's index.
func indexAt(generation uint64) int64 { return indexStart + line*int64(generation%2) }

// index returns the word that says that there are n bytes in a generation.
func (l *Channel) index(generation uint64, n int64) uint64 {
	check := mix(mix(l.heads.salt+generation) + uint64(n))
	return check>>indexBits<<indexBits | uint64(n)
}

// publish makes n the number of bytes in a generation, durably.
func (l *Channel) publish(generation uint64, n int64) error {
	if err := persist8(l.heads.m, indexAt(generation), l.index(generation, n)); err != nil {
		return fmt.Errorf("publish the length %d: %w", n, err)
	}
	return nil
}

// Append adds p and returns its offset once it is durable. It returns ErrFull and ErrTooLarge as they are; after any other
// error of it nothing more can be appended. It allocates nothing.
func (l *Channel) Append(p []byte) (off int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(len(p))
	switch {
	case l.lost != nil:
		return 0, l.lost
	case n > l.data.Size():
		return 0, ErrTooLarge
	case n > l.data.Size()-l.end:
		return 0, ErrFull
	}
	if err = persist(l.m, l.end, p); err == nil {
		err = l.publish(l.heads.generation, l.end+n)
	}
	if err != nil {
		l.lost = fmt.Errorf("append %d bytes at %d: %w", n, l.end, err)
		return 0, l.lost
	}
	off, l.end = l.end, l.end+n
	return off, nil
}

// Len returns how many bytes the log holds.
func (l *Channel) Len() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// ReadAt implements io.ReaderAt for what the log holds.
func (l *Channel) ReadAt(p []byte, off int64) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if off < 0 {
		return 0, fmt.Errorf("read a channel log at %d", off)
	}
	left := max(0, l.end-off)
	if int64(len(p)) <= left {
		return l.data.ReadAt(p, off)
	}
	if left == 0 {
		return 0, io.EOF
	}
	n, err := l.data.ReadAt(p[:left], off)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// Clear empties the log, which takes as long whatever it holds. When it returns, no crash brings a byte back.
func (l *Channel) Clear() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	h := l.heads.header
	h.era++
	h.generation = h.era
	err := l.publish(h.generation, 0)
	if err == nil {
		err = l.heads.write(h)
	}
	if err != nil {
		l.lost = fmt.Errorf("clear a channel log: %w", err)
		return l.lost
	}
	l.end = 0
	return nil
}

// Close closes the regions. Its error says that what was acknowledged may be lost.
func (l *Channel) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return closeRegions(l.lost, l.data, l.side)
}
