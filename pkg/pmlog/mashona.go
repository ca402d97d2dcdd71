package pmlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/loadgen/loadgen/pkg/pmem"
)

// The AppendOnlyLog of Mashona 1.1.0; the package comment shows it.
const (
	mashonaMagic  = "TRBAOL01"
	mashonaFirst  = 20 // offset of the first record
	mashonaHeader = 8  // of a record
	mashonaBlocks = 256
	mashonaWords  = 4
)

// MashonaOptions are fixed when a log is created.
type MashonaOptions struct {
	Blocks  bool // records begin at multiples of 256 bytes instead of 4
	Relaxed bool // whole records may follow a torn one, which readers skip: what the Java library writes in this mode
}

// Mashona is a log in the format of the Java library Mashona's AppendOnlyLog. The library can read and write its file while this process does not.
// Records are written whole and in order, even in a relaxed log, with one fence each. Its methods are safe for concurrent use.
type Mashona struct {
	region Region
	size   int64
	o      MashonaOptions
	found  Recovery

	mu         sync.Mutex
	m          pmem.Medium
	end        int64
	checkpoint bool // the header says where the file's records end
	clears     int
	head       [mashonaFirst]byte
}

// CreateMashona creates an empty log in a region of zeros. The log owns the region if there is no error.
func CreateMashona(r Region, o MashonaOptions) (*Mashona, error) {
	l := newMashona(r, o)
	if l.size > maxPayload || l.size < mashonaFirst+mashonaHeader {
		return nil, fmt.Errorf("create a Mashona log: a region of %d bytes: want %d to %d", l.size, mashonaFirst+mashonaHeader, maxPayload)
	}
	p := l.head[:]
	copy(p, mashonaMagic)
	binary.BigEndian.PutUint32(p[8:], uint32(l.padding()))
	if !o.Relaxed {
		p[19] = 1
	}
	if err := persist(l.m, 0, p); err != nil {
		return nil, fmt.Errorf("create a Mashona log: %w", err)
	}
	return l, nil
}

// OpenMashona recovers the log in a region, which the log owns if there is no error. It reads the whole region and writes zeros over whatever follows
// the last record, so that nothing there can pass for a record later.
func OpenMashona(r Region) (*Mashona, error) {
	l := newMashona(r, MashonaOptions{})
	err := l.readHeader()
	if err == nil {
		err = l.recover()
	}
	if err != nil {
		return nil, fmt.Errorf("open a Mashona log: %w", err)
	}
	return l, nil
}

func newMashona(r Region, o MashonaOptions) *Mashona {
	return &Mashona{region: r, size: r.Size(), o: o, m: r.Writer(), end: mashonaFirst}
}

// Options returns the options of the log.
func (l *Mashona) Options() MashonaOptions { return l.o }

// Recovered returns what was found when the log was opened; zero for a new log.
func (l *Mashona) Recovered() Recovery { return l.found }

func (l *Mashona) padding() int64 {
	if l.o.Blocks {
		return mashonaBlocks
	}
	return mashonaWords
}

// behind returns the offset of the record after the one at off.
func (l *Mashona) behind(off, payload int64) int64 {
	return l.aligned(off + mashonaHeader + payload)
}

// aligned returns the first offset from off on at which a record may begin; the first record of a log is not at such an offset.
func (l *Mashona) aligned(off int64) int64 {
	return (off + l.padding() - 1) / l.padding() * l.padding()
}

func (l *Mashona) readHeader() error {
	p := l.head[:]
	if n, err := l.region.ReadAt(p, 0); n < len(p) {
		return fmt.Errorf("read the header: %w", err)
	}
	if string(p[:8]) != mashonaMagic {
		return fmt.Errorf("it begins with %q instead of %q: %w", p[:8], mashonaMagic, ErrCorrupt)
	}
	switch padding := binary.BigEndian.Uint32(p[8:]); padding {
	case mashonaWords, mashonaBlocks:
		l.o.Blocks = padding == mashonaBlocks
	default:
		return fmt.Errorf("its padding is %d: %w", padding, ErrCorrupt)
	}
	l.checkpoint = binary.BigEndian.Uint32(p[12:]) != 0
	l.o.Relaxed = binary.BigEndian.Uint32(p[16:]) != 1
	return nil
}

// recover finds the end of the log.
func (l *Mashona) recover() error {
	w := window{region: l.region}
	whole, err := l.walk(&w)
	if err != nil {
		return err
	}
	if err := l.missed(&w, whole, l.size); err != nil {
		return err
	}
	if err := keep(l.m, 0, l.size); err != nil { // also the zeros after the log
		return err
	}
	if err := l.m.Fence(); err != nil {
		return err
	}
	return l.wipe(&w)
}

// walk moves the end of the log past the last record, and returns where the last whole record ends.
func (l *Mashona) walk(w *window) (whole int64, err error) {
	whole = l.end
	for {
		p, next, err := l.record(w, l.end)
		if err != nil || next == 0 {
			return whole, err
		}
		if p != nil {
			l.found.Records++
			l.found.Walked++
			l.end, whole = next, next
			continue
		}
		behind, _, err := l.record(w, next)
		switch {
		case err != nil:
			return whole, err
		case l.o.Relaxed:
			if err := l.missed(w, l.end, next); err != nil {
				return whole, err
			}
			l.found.Holes++
			l.end = next
		case behind != nil:
			return whole, fmt.Errorf("the record at %d is damaged, but one at %d is there: %w", l.end, next, ErrCorrupt)
		default:
			l.found.Torn++
			return whole, nil
		}
	}
}

// missed returns an error if a whole record begins between the last one found and until, since an earlier length must then be wrong. A log whose
// first length is zero is empty, whatever follows: a crash may have interrupted its Clear.
func (l *Mashona) missed(w *window, whole, until int64) error {
	if p, next, err := l.record(w, whole); err != nil || p == nil && next == 0 && whole == mashonaFirst {
		return err
	}
	for off := l.aligned(whole + 1); off < until && off+mashonaHeader <= l.size; off += l.padding() {
		head, err := w.view(off, mashonaHeader)
		if len(head) < mashonaHeader { // always so if there is an error
			return err
		}
		if n := int64(binary.BigEndian.Uint32(head)); n > l.size-off-mashonaHeader {
			continue
		}
		p, _, err := l.record(w, off)
		if err != nil {
			return err
		}
		if p != nil {
			return fmt.Errorf("the record at %d is damaged, but one at %d is there: %w", whole, off, ErrCorrupt)
		}
	}
	return nil
}

// record reads the record at off. If next is 0 there is none; if only the payload is nil, it is torn.
func (l *Mashona) record(w *window, off int64) (payload []byte, next int64, err error) {
	head, err := w.view(off, mashonaHeader)
	if len(head) < mashonaHeader { // always so if there is an error
		return nil, 0, err
	}
	n, sum := int64(binary.BigEndian.Uint32(head)), binary.BigEndian.Uint32(head[4:])
	if n == 0 {
		return nil, 0, nil
	}
	if n > l.size-off-mashonaHeader {
		if l.o.Relaxed {
			return nil, 0, fmt.Errorf("a record of %d bytes at %d of %d: %w", n, off, l.size, ErrCorrupt)
		}
		return nil, l.size, nil
	}
	p, err := w.view(off, mashonaHeader+n)
	if err != nil {
		return nil, 0, err
	}
	if crc32.Checksum(p[mashonaHeader:], castagnoli) != sum {
		return nil, l.behind(off, n), nil
	}
	return p[mashonaHeader:], l.behind(off, n), nil
}

// wipe writes zeros over everything after the end that is not zero.
func (l *Mashona) wipe(w *window) error {
	dirty := false
	for off := l.end; off < l.size; {
		p, err := w.view(off, line-off%line)
		if err != nil {
			return err
		}
		if !blank(p) {
			dirty = true
			if err := l.zero(off, int64(len(p))); err != nil {
				return fmt.Errorf("wipe what was torn: %w", err)
			}
		}
		off += int64(len(p))
	}
	if !dirty {
		return nil
	}
	return l.m.Fence()
}

func blank(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// zero stores zeros, which become durable with the next fence.
func (l *Mashona) zero(off, n int64) error {
	return l.m.Put(off, nil, make([]byte, n))
}

// Append adds a record, which must not be empty, and returns once it is durable. It returns ErrFull and ErrTooLarge unwrapped; after any other error
// nothing more can be appended. It allocates nothing.
func (l *Mashona) Append(p []byte) error {
	n := int64(len(p))
	if n == 0 {
		return errors.New("an empty record ends a Mashona log: want at least a byte")
	}
	sum := crc32.Checksum(p, castagnoli)
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.behind(l.end, n)
	if next > l.size {
		if l.behind(mashonaFirst, n) > l.size {
			return ErrTooLarge
		}
		return ErrFull
	}
	head := l.head[:mashonaHeader]
	binary.BigEndian.PutUint32(head, uint32(n))
	binary.BigEndian.PutUint32(head[4:], sum)
	if err := l.write(l.end, head, p, next); err != nil {
		return fmt.Errorf("append %d bytes at %d: %w", n, l.end, err)
	}
	l.end = next
	return nil
}

// write makes a record durable, and then the checkpoint, if the file has one.
func (l *Mashona) write(off int64, head, p []byte, next int64) error {
	if err := l.m.Put(off, head, p); err != nil {
		return err
	}
	if err := l.m.Fence(); err != nil || !l.checkpoint {
		return err
	}
	return l.setCheckpoint(next)
}

// setCheckpoint writes padding and checkpoint, which share an 8-byte word.
func (l *Mashona) setCheckpoint(off int64) error {
	var word [8]byte
	binary.BigEndian.PutUint32(word[:], uint32(l.padding()))
	binary.BigEndian.PutUint32(word[4:], uint32(off))
	if err := put8(l.m, 8, binary.LittleEndian.Uint64(word[:])); err != nil {
		return err
	}
	return l.m.Fence()
}

// Clear empties the log. First the log ends at its beginning; then its bytes are overwritten with zeros, which takes as long as writing them did.
func (l *Mashona) Clear() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == mashonaFirst {
		return nil
	}
	err := l.wipeAll()
	if err == nil && l.checkpoint {
		err = l.setCheckpoint(mashonaFirst)
	}
	if err != nil {
		return fmt.Errorf("clear a Mashona log: %w", err)
	}
	l.end = mashonaFirst
	l.clears++
	return nil
}

// wipeAll first ends the log before its first record, then writes zeros over all records.
func (l *Mashona) wipeAll() error {
	if err := persist(l.m, mashonaFirst, make([]byte, 4)); err != nil {
		return err
	}
	const step = 1 << 20
	for off := int64(mashonaFirst); off < l.end; off += step {
		if err := l.zero(off, min(step, l.end-off)); err != nil {
			return err
		}
	}
	return l.m.Fence()
}

// Close closes the region. An error means that acknowledged records may be lost.
func (l *Mashona) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return closeRegions(nil, l.region)
}

// MashonaReader reads the records of a log from the first on. One goroutine at a time may use it; others may append meanwhile.
type MashonaReader struct {
	log    *Mashona
	read   window
	clears int
	off    int64
	end    int64 // of the log, as of the last call: what was read from there on is stale
}

// Reader returns a new reader of the log's records, including those appended before it reaches the end.
func (l *Mashona) Reader() *MashonaReader {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &MashonaReader{log: l, read: window{region: l.region}, clears: l.clears, off: mashonaFirst}
}

// Next returns the next record, which is valid until the next call. It returns io.EOF after the last record, ErrCorrupt if a record was changed, and
// ErrCleared. In a relaxed log it skips torn records.
func (r *MashonaReader) Next() ([]byte, error) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.clears != l.clears {
		return nil, ErrCleared
	}
	if r.end != l.end {
		r.end = l.end
		r.read.forget()
	}
	for r.off < l.end {
		p, next, err := l.record(&r.read, r.off)
		if err != nil {
			return nil, err
		}
		if next == 0 || p == nil && !l.o.Relaxed {
			return nil, fmt.Errorf("record at %d: %w", r.off, ErrCorrupt)
		}
		if r.off = next; p != nil {
			return p, nil
		}
	}
	return nil, io.EOF
}
