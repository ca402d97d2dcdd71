package pmlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"time"

	"github.com/loadgen/loadgen/pkg/pmem"
)

// entriesStart is the offset of the two entries in a channel's side file, after its header; the package comment shows them.
const (
	entriesStart = dataStart
	entrySize    = 24
	// SideSize is the size in bytes of the side file of a Channel.
	SideSize = entriesStart + 2*line
)

// oneForce is the value for all channels outside tests. The checksum of a larger piece takes longer than a second wait.
const oneForce = 4 << 10

// Channel is a log of bare bytes in one region, with their number in a second, the side file. Any program can read the data. Its methods are safe for
// concurrent use.
type Channel struct {
	data, side Region
	oneForce   int64 // the largest piece, in bytes, that is forced together with its entry
	found      Recovery
	group      *group // nil unless appends wait together

	mu    sync.Mutex
	m     pmem.Medium   // of data
	timed [2]pmem.Timed // m, and that of the side file; nil unless both are
	heads *headers
	end   int64
	turn  int64      // number of the entry to write next, 0 or 1
	buf   [line]byte // an entry and the zeros after it: a whole line
	lost  error      // the first error of either region; after it, neither is written

	stored uint64 // end of the group that was cut last
}

// CreateChannel creates an empty log in two regions of zeros. The log owns them if there is no error.
func CreateChannel(data, side Region) (*Channel, error) {
	if side.Size() < SideSize {
		return nil, fmt.Errorf("create a channel log: %d bytes at the side: want at least %d", side.Size(), SideSize)
	}
	heads, err := createHeaders(side, header{layout: channelLayout, padding: line, capacity: uint64(data.Size())})
	if err != nil {
		return nil, fmt.Errorf("create a channel log: %w", err)
	}
	return newChannel(data, side, heads), nil
}

// OpenChannel recovers the log in two regions, which the log owns if there is no error. It reads the last piece that was appended.
func OpenChannel(data, side Region) (*Channel, error) {
	heads, err := openHeaders(side, channelLayout)
	if err != nil {
		return nil, fmt.Errorf("open a channel log: %w", err)
	}
	l := newChannel(data, side, heads)
	if err := l.recover(); err != nil {
		return nil, fmt.Errorf("open a channel log: %w", err)
	}
	return l, nil
}

func newChannel(data, side Region, heads *headers) *Channel {
	l := &Channel{data: data, side: side, oneForce: oneForce, m: data.Writer(), heads: heads}
	m, ok := l.m.(pmem.Timed)
	if beside, both := heads.m.(pmem.Timed); ok && both {
		l.timed = [2]pmem.Timed{m, beside}
	}
	return l
}

// entry records that a piece was appended.
type entry struct {
	end  uint64 // end of the piece, and of the log
	size uint32 // of the piece; 0, like sum, if the piece was durable before the entry was written
	sum  uint32 // CRC32C of the piece
}

// check returns the word that only this entry has, in this era, in the log with this salt.
func (e entry) check(salt, era uint64) uint64 {
	return mix(mix(mix(salt+era)+e.end) ^ (uint64(e.sum)<<32 | uint64(e.size)))
}

// The kinds of entry.
const (
	blankEntry   = iota // never written
	damagedEntry        // torn or changed
	oldEntry            // of an earlier era
	validEntry
)

// mostEras is how many eras back an entry can be from. Each opening and each clear begins an era.
const mostEras = 1 << 16

// entryAt reads an entry.
func (l *Channel) entryAt(turn int64) (e entry, kind int, err error) {
	p := l.buf[:entrySize]
	if n, err := l.side.ReadAt(p, entriesStart+line*turn); n < len(p) {
		return e, 0, fmt.Errorf("read the index: %w", err)
	}
	if blank(p) {
		return e, blankEntry, nil
	}
	e = entry{binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint32(p[8:]), binary.LittleEndian.Uint32(p[12:])}
	is, era := binary.LittleEndian.Uint64(p[16:]), l.heads.era
	if is == e.check(l.heads.salt, era) {
		return e, validEntry, nil
	}
	for age := uint64(1); age <= min(era, mostEras); age++ {
		if is == e.check(l.heads.salt, era-age) {
			return e, oldEntry, nil
		}
	}
	return e, damagedEntry, nil
}

// blankOthers blanks the entries that are not of this era, so that a crash can spoil only the one being written. The damaged one comes first:
// otherwise a crash while blanking the other would leave both damaged.
func (l *Channel) blankOthers(kinds [2]int) error {
	for _, kind := range []int{damagedEntry, oldEntry} {
		for turn := range kinds {
			if kinds[turn] != kind {
				continue
			}
			l.buf = [line]byte{}
			if err := persist(l.heads.m, entriesStart+line*int64(turn), l.buf[:]); err != nil {
				return fmt.Errorf("blank an entry: %w", err)
			}
		}
	}
	return nil
}

// held returns how many bytes the log holds according to the header.
func (l *Channel) held() uint64 { return l.heads.next - l.heads.first }

// recover finds the end of the log after a crash or a Close, and begins a new era there.
func (l *Channel) recover() error {
	l.found.Clean = l.heads.clean
	if size := uint64(l.data.Size()); size < l.heads.capacity || size < l.held() {
		return fmt.Errorf("the data are %d bytes, of %d with %d in use: %w", size, l.heads.capacity, l.held(), ErrCorrupt)
	}
	end, err := l.last()
	if err != nil {
		return err
	}
	h := l.heads.header
	h.era++ // no entry is valid from now on
	h.clean, h.next = false, h.first+end
	l.end = int64(end)
	return l.heads.write(h)
}

// last returns where the last whole piece ends.
func (l *Channel) last() (uint64, error) {
	base := l.held()
	var newer, older entry
	var kinds [2]int
	for turn := range kinds {
		e, kind, err := l.entryAt(int64(turn))
		if err != nil {
			return 0, err
		}
		kinds[turn] = kind
		switch {
		case kind != validEntry:
		case e.end > uint64(l.data.Size()) || uint64(e.size) > e.end || l.heads.clean != (e.end <= base):
			return 0, fmt.Errorf("an entry of %d bytes where the header says %d: %w", e.end, base, ErrCorrupt)
		case e.end > newer.end:
			newer, older = e, newer
		default:
			older = e
		}
	}
	if kinds == [2]int{damagedEntry, damagedEntry} && !l.heads.clean {
		return 0, fmt.Errorf("both entries are damaged: %w", ErrCorrupt) // a crash spoils only one
	}
	if err := keep(l.heads.m, entriesStart, 2*line); err != nil {
		return 0, err
	}
	if err := l.heads.m.Fence(); err != nil {
		return 0, err
	}
	if err := l.blankOthers(kinds); err != nil {
		return 0, err
	}
	if newer.end == 0 || l.heads.clean && newer.end < base {
		return base, nil
	}
	whole, err := l.whole(newer)
	if err == nil && whole && newer.size > 0 {
		if err = keep(l.m, int64(newer.end)-int64(newer.size), int64(newer.size)); err == nil {
			err = l.m.Fence()
		}
	}
	if err != nil || whole {
		return newer.end, err
	}
	if before := max(older.end, base); before == newer.end-uint64(newer.size) && !l.heads.clean {
		l.found.Torn++
		return before, nil
	}
	return 0, fmt.Errorf("the %d bytes before %d are damaged: %w", newer.size, newer.end, ErrCorrupt)
}

// whole reports whether an entry's piece is there.
func (l *Channel) whole(e entry) (bool, error) {
	p := make([]byte, e.size)
	if n, err := l.data.ReadAt(p, int64(e.end)-int64(e.size)); n < len(p) {
		return false, fmt.Errorf("read the last piece: %w", err)
	}
	return crc32.Checksum(p, castagnoli) == e.sum, nil
}

// waited returns how long fences on both regions have taken so far; 0 if they do not measure that.
func (l *Channel) waited() time.Duration {
	if l.timed[0] == nil {
		return 0
	}
	return l.timed[0].Waited() + l.timed[1].Waited()
}

// ChannelWriter appends to a channel. One goroutine at a time may use it; it allocates nothing.
type ChannelWriter struct {
	log    *Channel
	waited time.Duration
}

// Writer returns a new writer.
func (l *Channel) Writer() *ChannelWriter { return &ChannelWriter{log: l} }

// Append adds p and returns its offset once it is durable. It returns ErrFull and ErrTooLarge unwrapped; after any other error nothing more can be
// appended.
func (w *ChannelWriter) Append(p []byte) (off uint64, err error) {
	l, n := w.log, int64(len(p))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.group != nil {
		if off, err = l.store(p); err == nil {
			began := time.Now()
			err = l.sync()
			w.waited += time.Since(began)
		}
		return off, err
	}
	before := l.waited()
	switch err = l.place(n); {
	case err != nil:
		return 0, err
	case n == 0: // nothing to write
	case n <= l.oneForce:
		err = l.small(p)
	default:
		err = l.large(p)
	}
	if err != nil {
		l.lost = fmt.Errorf("append %d bytes at %d: %w", n, l.end, err)
		return 0, l.lost
	}
	w.waited += l.waited() - before
	off, l.end = uint64(l.end), l.end+n
	return off, nil
}

// Store is Append after a call of Group, but does not wait until p is durable: a Sync will make it so, or a later Append.
func (w *ChannelWriter) Store(p []byte) (off uint64, err error) {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return w.log.store(p)
}

// Waited returns how long all calls of Append so far have waited for durability. Without a group, it is 0 unless mediums are [pmem.Timed].
func (w *ChannelWriter) Waited() time.Duration { return w.waited }

// place returns an error if there is no room for n bytes.
func (l *Channel) place(n int64) error {
	switch {
	case l.lost != nil:
		return l.lost
	case n > l.data.Size():
		return ErrTooLarge
	case n > l.data.Size()-l.end:
		return ErrFull
	}
	return nil
}

// Group makes all later appends wait together, for one sync of what they have stored. After a crash, only groups whose sync had ended count. Their
// pieces have no checksum.
func (l *Channel) Group(limit Group) {
	l.group = newGroup(&l.mu, l.data)
	l.group.log, l.group.limit = l, limit
}

// Groups returns how many pieces the syncs have made durable since the call of Group.
func (l *Channel) Groups() GroupSizes {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.group.sizes
}

func (l *Channel) store(p []byte) (off uint64, err error) {
	n := int64(len(p))
	if l.group.stored-l.group.durable > maxLag { // more than GroupSizes can count
		if err := l.sync(); err != nil {
			return 0, err
		}
	}
	if err := l.place(n); err != nil || n == 0 {
		return uint64(l.end), err
	}
	if err := l.group.store(n, l.group.medium().Put(l.end, nil, p)); err != nil {
		l.lost = fmt.Errorf("append %d bytes at %d: %w", n, l.end, err)
		return 0, l.lost
	}
	off, l.end = uint64(l.end), l.end+n
	return off, nil
}

// Sync returns once everything that was stored before is durable.
func (l *Channel) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sync()
}

// sync is Sync with the log locked.
func (l *Channel) sync() error {
	if l.group == nil || l.lost != nil {
		return l.lost
	}
	if err := l.group.wait(l.group.stored); err != nil {
		l.lost = fmt.Errorf("sync a channel log: %w", err)
	}
	return l.lost
}

// cut implements the log that a group needs.
func (l *Channel) cut() { l.stored, l.group.turn = uint64(l.end), 1-l.group.turn }

// force implements the log that a group needs.
func (l *Channel) force() error {
	if err := l.group.mediums[1-l.group.turn].Fence(); err != nil {
		return err
	}
	if err := l.note(entry{end: l.stored}); err != nil {
		return err
	}
	return l.heads.m.Fence()
}

// small writes a piece and its entry, then waits for both.
func (l *Channel) small(p []byte) error {
	sum, err := l.m.Seal(l.end, nil, p, 0)
	if err != nil {
		return err
	}
	if err := l.note(entry{uint64(l.end) + uint64(len(p)), uint32(len(p)), sum}); err != nil {
		return err
	}
	if err := l.m.Fence(); err != nil {
		return err
	}
	return l.heads.m.Fence()
}

// large writes a piece and waits for it, then writes its entry and waits for that.
func (l *Channel) large(p []byte) error {
	if err := persist(l.m, l.end, p); err != nil {
		return err
	}
	if err := l.note(entry{end: uint64(l.end) + uint64(len(p))}); err != nil {
		return err
	}
	return l.heads.m.Fence()
}

// note writes an entry over the older of the two.
func (l *Channel) note(e entry) error {
	p := l.buf[:]
	binary.LittleEndian.PutUint64(p, e.end)
	binary.LittleEndian.PutUint32(p[8:], e.size)
	binary.LittleEndian.PutUint32(p[12:], e.sum)
	binary.LittleEndian.PutUint64(p[16:], e.check(l.heads.salt, l.heads.era))
	off := entriesStart + line*l.turn
	l.turn = 1 - l.turn
	return l.heads.m.Put(off, nil, p)
}

// Fits reports whether n more bytes have room.
func (l *Channel) Fits(n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.place(n) == nil
}

// Len returns how many bytes the log holds.
func (l *Channel) Len() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// ReadAt implements io.ReaderAt for the bytes of the log.
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
	n, err := l.data.ReadAt(p[:left], off)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// Clear empties the log. The time does not depend on its contents. Once it returns, no crash brings a byte back.
func (l *Channel) Clear() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.group != nil {
		if err := l.group.still(); err != nil {
			l.lost = err
		}
	}
	if l.lost != nil {
		return l.lost
	}
	if l.end == 0 {
		return nil
	}
	h := l.heads.header
	h.era++
	h.generation, h.next = h.era, h.first
	if err := l.heads.write(h); err != nil {
		l.lost = fmt.Errorf("clear a channel log: %w", err)
		return l.lost
	}
	l.end = 0
	if l.group != nil {
		l.group.forget()
	}
	return nil
}

// Recovered returns what was found when the log was opened, without records; zero for a new log.
func (l *Channel) Recovered() Recovery { return l.found }

// Close notes how many bytes there are and closes the regions. An error means that acknowledged bytes may be lost.
func (l *Channel) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.lost
	if g := l.group; err == nil && g != nil {
		if err = g.still(); err == nil && g.durable < g.stored { // the header will record the end, not an entry
			err = g.medium().Fence()
		}
	}
	if err == nil {
		h := l.heads.header
		h.clean, h.next = true, h.first+uint64(l.end)
		err = l.heads.write(h)
	}
	return closeRegions(err, l.data, l.side)
}
