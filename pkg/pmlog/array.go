package pmlog

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadgen/loadgen/pkg/pmem"
)

// ArrayOptions are fixed when a log is created.
type ArrayOptions struct {
	Slots    int // numbered from 0
	Capacity int // of a slot, in bytes
	Padding  int // values begin at multiples of 64 (0 means 64) or 256 bytes
}

// check returns the options with defaults filled in, and an error that lists the invalid ones.
func (o ArrayOptions) check() (ArrayOptions, error) {
	if o.Padding == 0 {
		o.Padding = line
	}
	switch {
	case o.Padding < line || !slices.Contains(paddings, o.Padding):
		return o, fmt.Errorf("padding %d: want 64 or 256", o.Padding)
	case o.Slots < 1:
		return o, fmt.Errorf("%d slots: want at least 1", o.Slots)
	case o.Capacity < 1 || o.Capacity > maxPayload:
		return o, fmt.Errorf("slots of %d bytes: want 1 to %d", o.Capacity, maxPayload)
	}
	return o, nil
}

// ArraySize returns how many bytes a region needs for a log with these options.
func ArraySize(o ArrayOptions) int64 {
	o, _ = o.check()
	return dataStart + 2*int64(o.Slots)*span(int64(o.Capacity), int64(o.Padding))
}

// Array is a log of slots, each of which holds one value or none. Slots are independent: writers wait for each other only on the same slot. Its
// methods are safe for concurrent use.
type Array struct {
	region   Region
	capacity int64
	stride   int64 // from one copy of a value to the next
	salt     uint64
	found    Recovery
	slots    []slot

	era, generation atomic.Uint64
	clearing        sync.Mutex // guards heads
	heads           *headers
}

// slot is the state of a slot in memory.
type slot struct {
	sync.Mutex // guards the fields below, and the slot's bytes
	state
	_ [line - 8 - 48]byte // puts the next slot in another cache line
}

// state is the value of a slot. There is none if its era is of an older generation, or its number is 0.
type state struct {
	era, seq uint64
	size     int64
	copy     int // which of the two copies holds it
	err      error
}

// CreateArray creates a log of empty slots in a region of zeros. The log owns the region if there is no error.
func CreateArray(r Region, o ArrayOptions) (*Array, error) {
	o, err := o.check()
	if err != nil {
		return nil, fmt.Errorf("create an array log: %w", err)
	}
	if want := ArraySize(o); r.Size() < want {
		return nil, fmt.Errorf("create an array log: %d slots of %d bytes in %d bytes: want at least %d", o.Slots, o.Capacity, r.Size(), want)
	}
	heads, err := createHeaders(r, header{
		layout: arrayLayout, padding: uint32(o.Padding), slots: uint64(o.Slots), capacity: uint64(o.Capacity),
	})
	if err != nil {
		return nil, fmt.Errorf("create an array log: %w", err)
	}
	return newArray(r, heads), nil
}

// OpenArray recovers the log in a region, which the log owns if there is no error. It reads all values. A slot whose value is lost does not affect
// the others: reading or writing it returns ErrCorrupt until a Clear.
func OpenArray(r Region) (*Array, error) {
	heads, err := openHeaders(r, arrayLayout)
	if err != nil {
		return nil, fmt.Errorf("open an array log: %w", err)
	}
	l := newArray(r, heads)
	if err := l.recover(); err != nil {
		return nil, fmt.Errorf("open an array log: %w", err)
	}
	return l, nil
}

func newArray(r Region, heads *headers) *Array {
	l := &Array{
		region: r, capacity: int64(heads.capacity), stride: span(int64(heads.capacity), int64(heads.padding)),
		salt: heads.salt, slots: make([]slot, heads.slots), heads: heads,
	}
	l.adopt()
	return l
}

// adopt makes the header's era that of later writes. A reader that loads era before generation, the reverse order, never sees an era with an older
// generation.
func (l *Array) adopt() {
	l.generation.Store(l.heads.generation)
	l.era.Store(l.heads.era)
}

// at returns the offset of a copy of a slot's value.
func (l *Array) at(slot, copy int) int64 { return dataStart + l.stride*int64(2*slot+copy) }

// Options returns the options of the log.
func (l *Array) Options() ArrayOptions {
	return ArrayOptions{Slots: len(l.slots), Capacity: int(l.capacity), Padding: int(l.heads.padding)}
}

// Recovered returns what was found when the log was opened; zero for a new log.
func (l *Array) Recovered() Recovery { return l.found }

// ArrayWriter writes to the slots of a log. One goroutine at a time may use it; it allocates nothing.
type ArrayWriter struct {
	log  *Array
	m    pmem.Medium
	head [recordHeader]byte
}

// Writer returns a new writer.
func (l *Array) Writer() *ArrayWriter { return &ArrayWriter{log: l, m: l.region.Writer()} }

// Waited returns how long all calls of Write so far have waited for durability; 0 unless mediums are [pmem.Timed].
func (w *ArrayWriter) Waited() time.Duration { return waited(w.m) }

// Write sets the value of a slot to p; an empty p empties the slot. Until it returns, a crash leaves the old value or p. It returns ErrTooLarge
// unwrapped.
func (w *ArrayWriter) Write(slot int, p []byte) error {
	l, n := w.log, int64(len(p))
	if n > l.capacity {
		return ErrTooLarge
	}
	if slot < 0 || slot >= len(l.slots) {
		return fmt.Errorf("slot %d: the log has %d", slot, len(l.slots))
	}
	s := &l.slots[slot]
	s.Lock()
	defer s.Unlock()
	era := l.era.Load()
	s.refresh(l.generation.Load())
	if s.err != nil {
		return s.err
	}
	next := state{era: era, seq: s.seq + 1, size: n, copy: 1 - s.copy}
	off := l.at(slot, next.copy)
	seal(&w.head, len(p), 0, next.seq, mark(l.salt, off, next.era))
	_, err := w.m.Seal(off, w.head[:], p, l.stride-recordHeader-n)
	if err == nil {
		err = w.m.Fence()
	}
	if err != nil {
		return fmt.Errorf("write %d bytes to slot %d: %w", n, slot, err)
	}
	s.state = next
	return nil
}

// refresh empties the slot if its value is older than the generation.
func (s *slot) refresh(generation uint64) {
	if s.era < generation {
		s.state = state{era: generation, copy: s.copy}
	}
}

// Read appends the value of a slot to dst, or nothing if the slot is empty. It returns ErrCorrupt if the value is not what was acknowledged.
func (l *Array) Read(slot int, dst []byte) ([]byte, error) {
	if slot < 0 || slot >= len(l.slots) {
		return dst, fmt.Errorf("slot %d: the log has %d", slot, len(l.slots))
	}
	s := &l.slots[slot]
	s.Lock()
	defer s.Unlock()
	s.refresh(l.generation.Load())
	if s.err != nil || s.size == 0 {
		return dst, s.err
	}
	old, n := len(dst), recordHeader+int(s.size)
	dst = slices.Grow(dst, n)
	whole := dst[old : old+n]
	off := l.at(slot, s.copy)
	if _, err := l.region.ReadAt(whole, off); err != nil {
		return dst, fmt.Errorf("read slot %d: %w", slot, err)
	}
	r := decodeRecord(whole)
	if r.seq != s.seq || r.mark != mark(l.salt, off, s.era) || r.size != uint32(s.size)|published || !r.fits(whole[recordHeader:]) {
		return dst, fmt.Errorf("value %d of slot %d: %w", s.seq, slot, ErrCorrupt)
	}
	copy(whole, whole[recordHeader:])
	return dst[:old+int(s.size)], nil
}

// Clear empties all slots. The time does not depend on their contents. Once it returns, no crash brings a value back. A concurrent Write may come
// before or after it.
func (l *Array) Clear() error {
	l.clearing.Lock()
	defer l.clearing.Unlock()
	h := l.heads.header
	h.era++
	h.generation = h.era
	if err := l.heads.write(h); err != nil {
		return fmt.Errorf("clear an array log: %w", err)
	}
	l.adopt()
	return nil
}

// Close notes that no write is under way and closes the region. An error means that acknowledged values may be lost.
func (l *Array) Close() error {
	l.clearing.Lock()
	defer l.clearing.Unlock()
	h := l.heads.header
	h.clean = true
	return closeRegions(l.heads.write(h), l.region)
}
