package pmlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"time"

	"github.com/loadgen/loadgen/pkg/pmem"
)

// Order says what the order of records promises if several writers append at the same time.
type Order string

// The orders. With Strict, the default, a record is durable before the next begins. With Relaxed, each writer waits only for its own record. A crash
// may then leave holes: unacknowledged records that are lost before acknowledged ones. With Grouped, writers store their records one after another
// and wait together, for one sync of them all. After a crash, the log ends before the first missing record; all acknowledged records come before it.
const (
	Strict  Order = "strict"
	Relaxed Order = "relaxed"
	Grouped Order = "grouped"
)

// Commit says what makes a record valid.
type Commit string

// The forms of commit. By checksum, the default, a record is valid if its checksum is right; this takes one fence. By length, a record is valid if
// its length is set, which is written after the rest is durable. This takes two fences, or one if the record fits in a line, and avoids the
// probability of 2^-32 that torn bytes have the right checksum. It requires Strict order and a padding of 64 or 256.
const (
	ByChecksum Commit = "checksum"
	ByLength   Commit = "length"
)

// AppendOptions are fixed when a log is created. The zero value stands for 64, Strict and ByChecksum.
type AppendOptions struct {
	Padding int // records begin at multiples of 8, 64 (a cache line) or 256 (a block of an Optane module) bytes
	Order   Order
	Commit  Commit
}

// check returns the options with defaults filled in, and an error that lists the invalid ones.
func (o AppendOptions) check() (AppendOptions, error) {
	if o.Padding == 0 {
		o.Padding = 64
	}
	if o.Order == "" {
		o.Order = Strict
	}
	if o.Commit == "" {
		o.Commit = ByChecksum
	}
	var err error
	if !slices.Contains(paddings, o.Padding) {
		err = fmt.Errorf("padding %d: want one of %v", o.Padding, paddings)
	}
	if orders := []Order{Strict, Relaxed, Grouped}; !slices.Contains(orders, o.Order) {
		err = errors.Join(err, fmt.Errorf("order %q: want one of %q", o.Order, orders))
	}
	if o.Commit != ByChecksum && o.Commit != ByLength {
		err = errors.Join(err, fmt.Errorf("commit by %q: want %q or %q", o.Commit, ByChecksum, ByLength))
	}
	if o.Commit == ByLength && o.Order != Strict {
		err = errors.Join(err, fmt.Errorf("commit by %s with order %s: want order %s", ByLength, o.Order, Strict))
	}
	if o.Commit == ByLength && o.Padding < line {
		err = errors.Join(err, fmt.Errorf("commit by %s with padding %d: a record's header has to be in one line; want 64 or 256", ByLength, o.Padding))
	}
	return o, err
}

// AppendSize returns how many bytes a region needs for that many records with payloads of the given size in bytes.
func AppendSize(o AppendOptions, payload, records int64) int64 {
	o, _ = o.check()
	return dataStart + records*span(payload, int64(o.Padding))
}

// Recovery says what was found when a log was opened.
type Recovery struct {
	Clean   bool   // it was closed properly
	Records uint64 // records, or slots that have a value
	Holes   uint64 // records lost between others before they were acknowledged; Relaxed only
	Torn    int    // records or slot values that were begun but not completed
	Corrupt int    // slots whose value is lost
	Walked  uint64 // records read: those since the last checkpoint
}

// Append is a log of records, one after another. Its methods are safe for concurrent use.
type Append struct {
	region  Region
	size    int64 // of the region, rounded down to whole words, since records' first lines are stored word by word
	relaxed bool
	length  bool
	padding int64
	found   Recovery
	group   *group // of a grouped log; else nil

	gate  sync.RWMutex // relaxed logs only: read-locked by records that are written side by side, otherwise write-locked
	mu    sync.Mutex   // guards the fields below: in strict logs for a whole write, in relaxed logs while a record gets its place
	heads *headers
	read  window
	end   int64  // offset of the next record
	next  uint64 // its sequence number
}

// CreateAppend creates an empty log in a region of zeros. The log owns the region if there is no error.
func CreateAppend(r Region, o AppendOptions) (*Append, error) {
	o, err := o.check()
	if err != nil {
		return nil, fmt.Errorf("create an append log: %w", err)
	}
	heads, err := createHeaders(r, header{
		layout: appendLayout, relaxed: o.Order == Relaxed, grouped: o.Order == Grouped, length: o.Commit == ByLength, padding: uint32(o.Padding),
	})
	if err != nil {
		return nil, fmt.Errorf("create an append log: %w", err)
	}
	return newAppend(r, heads), nil
}

// OpenAppend recovers the log in a region, which the log owns if there is no error. It reads the records after the last checkpoint, and searches the
// rest of the region for others; records before the checkpoint are checked as they are read. If a later record proves that one was lost, the error is
// ErrCorrupt.
func OpenAppend(r Region) (*Append, error) {
	heads, err := openHeaders(r, appendLayout)
	if err != nil {
		return nil, fmt.Errorf("open an append log: %w", err)
	}
	l := newAppend(r, heads)
	if err := l.recover(); err != nil {
		return nil, fmt.Errorf("open an append log: %w", err)
	}
	return l, nil
}

func newAppend(r Region, heads *headers) *Append {
	l := &Append{
		region: r, size: r.Size() / 8 * 8, relaxed: heads.relaxed, length: heads.length, padding: int64(heads.padding),
		heads: heads, read: window{region: r}, end: int64(heads.checkpoint), next: heads.next,
	}
	if heads.grouped {
		l.group = newGroup(&l.mu, r)
		l.group.log = l
	}
	return l
}

// Options returns the options of the log.
func (l *Append) Options() AppendOptions {
	o := AppendOptions{Padding: int(l.padding), Order: Strict, Commit: ByChecksum}
	if l.relaxed {
		o.Order = Relaxed
	}
	if l.group != nil {
		o.Order = Grouped
	}
	if l.length {
		o.Commit = ByLength
	}
	return o
}

// Group sets the limits of a grouped log; call it before anything is written.
func (l *Append) Group(limit Group) { l.group.limit = limit }

// Groups returns how many records the syncs of a grouped log have made durable.
func (l *Append) Groups() GroupSizes {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.group.sizes
}

// Recovered returns what was found when the log was opened; zero for a new log.
func (l *Append) Recovered() Recovery { return l.found }

// End returns the offset after the last record, in bytes.
func (l *Append) End() int64 {
	l.lock()
	defer l.unlock()
	return l.end
}

// Fits reports whether another record, with a payload of n bytes, has room.
func (l *Append) Fits(n int64) bool {
	l.lock()
	defer l.unlock()
	_, _, err := l.place(n)
	return err == nil
}

// AppendWriter appends to a log. One goroutine at a time may use it; it allocates nothing.
type AppendWriter struct {
	log    *Append
	m      pmem.Medium
	head   [recordHeader]byte
	waited time.Duration // for groups
}

// Writer returns a new writer.
func (l *Append) Writer() *AppendWriter { return &AppendWriter{log: l, m: l.region.Writer()} }

// Waited returns how long all calls of Append so far have waited for durability. Without a group, it is 0 unless mediums are [pmem.Timed].
func (w *AppendWriter) Waited() time.Duration { return w.waited + waited(w.m) }

// Append adds a record and returns its sequence number once it is durable. Numbers rise by one, even across a Clear. It returns ErrFull and
// ErrTooLarge unwrapped; after any other error nothing more can be appended.
func (w *AppendWriter) Append(p []byte) (seq uint64, err error) {
	l := w.log
	switch {
	case l.relaxed:
		return w.relaxed(p)
	case l.group != nil:
		return w.grouped(p)
	}
	l.mu.Lock() // a record is durable before the next one begins
	defer l.mu.Unlock()
	off, seq, err := l.place(int64(len(p)))
	if err != nil {
		return 0, err
	}
	if err = w.put(off, seq, p); err == nil {
		err = w.m.Fence()
	}
	if err != nil {
		return 0, failedAppend(err, off, seq, p)
	}
	l.end, l.next = off+span(int64(len(p)), l.padding), seq+1
	return seq, nil
}

// relaxed reserves the record's place, and then writes the record while other writers write theirs.
func (w *AppendWriter) relaxed(p []byte) (uint64, error) {
	l := w.log
	l.gate.RLock()
	defer l.gate.RUnlock()
	l.mu.Lock()
	off, seq, err := l.place(int64(len(p)))
	if err == nil {
		l.end, l.next = off+span(int64(len(p)), l.padding), seq+1
	}
	l.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if err = w.put(off, seq, p); err == nil {
		err = w.m.Fence()
	}
	if err != nil {
		return 0, failedAppend(err, off, seq, p)
	}
	return seq, nil
}

// grouped stores the record, and waits together with other writers.
func (w *AppendWriter) grouped(p []byte) (uint64, error) {
	l := w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	seq, err := w.store(p)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = l.group.wait(l.group.stored)
	w.waited += time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("append record %d, %d bytes: %w", seq, len(p), err)
	}
	return seq, nil
}

// Store is Append for a grouped log, but does not wait until the record is durable: a Sync will make it so, or the Append of a later record.
func (w *AppendWriter) Store(p []byte) (seq uint64, err error) {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return w.store(p)
}

// store writes the record while the log is locked.
func (w *AppendWriter) store(p []byte) (uint64, error) {
	l, g := w.log, w.log.group
	if g.stored-g.durable > maxLag { // more than a record's lag can express
		if err := g.wait(g.stored); err != nil {
			return 0, err
		}
	}
	n := int64(len(p))
	off, seq, err := l.place(n)
	if err != nil {
		return 0, err
	}
	if g.err != nil {
		return 0, g.err
	}
	seal(&w.head, len(p), 0, seq|(g.stored-g.durable)<<lagAt, mark(l.heads.salt, off, l.heads.era))
	_, err = g.medium().Seal(off, w.head[:], p, l.room(off, n))
	if err := g.store(span(n, l.padding), err); err != nil {
		return 0, failedAppend(err, off, seq, p)
	}
	l.end, l.next = off+span(n, l.padding), seq+1
	return seq, nil
}

// Sync returns once all records of a grouped log that were stored before are durable.
func (l *Append) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.group.wait(l.group.stored); err != nil {
		return fmt.Errorf("sync an append log: %w", err)
	}
	return nil
}

// cut implements the log that a group needs.
func (l *Append) cut() { l.group.turn = 1 - l.group.turn }

// force implements the log that a group needs.
func (l *Append) force() error { return l.group.mediums[1-l.group.turn].Fence() }

func failedAppend(err error, off int64, seq uint64, p []byte) error {
	return fmt.Errorf("append record %d, %d bytes at %d: %w", seq, len(p), off, err)
}

// put writes a record in its place. The next fence makes it durable.
func (w *AppendWriter) put(off int64, seq uint64, p []byte) error {
	l, mark := w.log, mark(w.log.heads.salt, off, w.log.heads.era)
	if l.length {
		seal(&w.head, len(p), crc32.Checksum(p, castagnoli), seq, mark)
		return w.byLength(off, p)
	}
	seal(&w.head, len(p), 0, seq, mark)
	_, err := w.m.Seal(off, w.head[:], p, l.room(off, int64(len(p))))
	return err
}

// place returns the offset and number for a record with a payload of n bytes, or an error if there is no room.
func (l *Append) place(n int64) (off int64, seq uint64, err error) {
	switch {
	case n > maxPayload || n > l.size-recordHeader-dataStart:
		return 0, 0, ErrTooLarge
	case n > l.size-recordHeader-l.end || l.group != nil && l.next > maxGroupedSeq:
		return 0, 0, ErrFull
	}
	return l.end, l.next, nil
}

// room returns the length in bytes of a record's padding.
func (l *Append) room(off, n int64) int64 {
	return min(span(n, l.padding), l.size-off) - recordHeader - n
}

// lock excludes all others until unlock.
func (l *Append) lock() {
	if l.relaxed {
		l.gate.Lock()
	}
	l.mu.Lock()
}

// settle makes all records durable, with the log locked.
func (l *Append) settle() error {
	if l.group == nil {
		return nil
	}
	return l.group.wait(l.group.stored)
}

func (l *Append) unlock() {
	l.mu.Unlock()
	if l.relaxed {
		l.gate.Unlock()
	}
}

// byLength writes the record with a first word of zero, and then that word. The zero precedes the rest of the header in the same line, so no crash
// combines this record's mark with an older first word. Nor can the first word survive without the bytes stored to its line before it: that line is
// flushed once. A record that fits in a line needs one fence.
func (w *AppendWriter) byLength(off int64, p []byte) error {
	var front [line]byte
	n := copy(front[recordHeader:], p)
	copy(front[8:], w.head[8:])
	for i := 0; i < recordHeader+n; i += 8 {
		if err := w.m.Store8(off+int64(i), binary.LittleEndian.Uint64(front[i:])); err != nil {
			return err
		}
	}
	if n < len(p) {
		if err := persist(w.m, off+line, p[n:]); err != nil {
			return err
		}
	}
	if err := w.m.Store8(off, binary.LittleEndian.Uint64(w.head[:])); err != nil {
		return err
	}
	return w.m.Flush(off, 8)
}

// Clear empties the log. The time does not depend on its contents. Once it returns, no crash brings a record back.
func (l *Append) Clear() error {
	l.lock()
	defer l.unlock()
	if l.group != nil {
		if err := l.group.still(); err != nil {
			return fmt.Errorf("clear an append log: %w", err)
		}
	}
	h := l.heads.header
	h.era++
	h.generation, h.first, h.next, h.checkpoint, h.holes = h.era, l.next, l.next, dataStart, 0
	if err := l.heads.write(h); err != nil {
		return fmt.Errorf("clear an append log: %w", err)
	}
	l.end = dataStart
	if l.group != nil {
		l.group.forget()
	}
	return nil
}

// Checkpoint notes the end of the log in the header. OpenAppend need not read the records before it, and knows that all of them must be there.
func (l *Append) Checkpoint() error {
	l.lock()
	defer l.unlock()
	err := l.settle()
	if err == nil && l.heads.checkpoint != uint64(l.end) {
		err = l.note(false)
	}
	if err != nil {
		return fmt.Errorf("checkpoint an append log: %w", err)
	}
	return nil
}

// note writes a header that covers the whole log.
func (l *Append) note(clean bool) error {
	h := l.heads.header
	h.checkpoint, h.next, h.clean = uint64(l.end), l.next, clean
	return l.heads.write(h)
}

// Close makes a checkpoint and closes the region. An error means that acknowledged records may be lost.
func (l *Append) Close() error {
	l.lock()
	defer l.unlock()
	err := l.settle()
	if err == nil {
		err = l.note(true)
	}
	return closeRegions(err, l.region)
}
