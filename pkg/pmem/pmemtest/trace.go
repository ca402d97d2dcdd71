// Package pmemtest shows what a power loss may leave of files written through package pmem. A Trace stands in for the files. For each 64-byte line of
// them it knows which stores are durable and which are not yet, and it makes the images that a crash may leave.
//
// The rules are the processor's (Intel SDM, volume 1, chapter on persistent memory; volume 3, memory ordering). 8 aligned bytes are stored whole or
// not at all. The stores to one line become durable in order, those to different lines in any order. A line may become durable before it is flushed,
// and is durable once a fence after the flush has returned. The words of one larger store have no promised order; it is drawn at random for each.
// Pages that wait for msync have no order at all either; their images are among these.
//
// Code that makes and reads images is hidden from the race detector: only one goroutine at a time has a trace, and there are a million images.
package pmemtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"math/rand/v2"
	"slices"

	"github.com/loadgen/loadgen/pkg/pmem"
)

// lineSize is how many bytes become durable together: a cache line.
const lineSize = 64

// ErrPower is the error of all calls after a Kill.
var ErrPower = errors.New("the power is gone")

// Trace is a number of files that lose their power together. It is not safe for concurrent use, but OnStep can make goroutines take turns.
type Trace struct {
	OnStep  func()                 // called at the start of each call of a medium, by its goroutine
	OnFence func()                 // called before a fence takes effect
	Drop    func(site string) bool // whether to ignore the flush or fence at a call site

	rng     *rand.Rand
	durable []byte  // what is certain to survive a crash
	now     []byte  // durable, with everything stored since
	lines   []*line // by number: lines with stores that are not durable; others nil
	dirty   []*line // the same lines, in the order in which they became dirty
	regions []*Region
	sites   *sites
	dead    bool
	err     error // for the next fence to return
}

// line is a line with stores that are not durable.
type line struct {
	at    int64
	done  int // stores that are already durable
	words []word
}

// word is a store to at most 8 bytes of a line.
type word struct {
	off, n int
	b      [8]byte
}

// New returns a trace of files of the given sizes in bytes, filled with zeros. The seed determines all random choices.
func New(seed uint64, sizes ...int64) *Trace {
	total := int64(0)
	for _, size := range sizes {
		total += whole(size)
	}
	return After(seed, make([]byte, total), sizes...)
}

// After is New for files that hold an image. The trace keeps image.
func After(seed uint64, image []byte, sizes ...int64) *Trace {
	t := &Trace{
		rng: rand.New(rand.NewPCG(seed, 1)), durable: image, now: append([]byte(nil), image...),
		lines: make([]*line, len(image)/lineSize), sites: newSites(),
	}
	begin := int64(0)
	for _, size := range sizes {
		t.regions = append(t.regions, &Region{trace: t, begin: begin, size: size})
		begin += whole(size)
	}
	return t
}

// whole rounds a size up to whole lines.
func whole(size int64) int64 { return (size + lineSize - 1) / lineSize * lineSize }

// Region returns the nth file.
func (t *Trace) Region(n int) *Region { return t.regions[n] }

// Kill makes all calls from now on return ErrPower.
func (t *Trace) Kill() { t.dead = true }

// Restart makes calls work again after a Kill, on new mediums, as if only the process had ended: stored bytes are there, and are no more durable than
// before.
func (t *Trace) Restart() { t.dead = false }

// Fail makes the next fence, or the one under way, return an error, as after a failed write-back, and all later calls return ErrPower.
func (t *Trace) Fail(err error) { t.err = err }

// Region is a file of a Trace.
type Region struct {
	trace       *Trace
	begin, size int64
}

// Size returns the size in bytes.
func (r *Region) Size() int64 { return r.size }

// ReadAt reads what was stored last.
func (r *Region) ReadAt(p []byte, off int64) (int, error) {
	if r.trace.dead {
		return 0, ErrPower
	}
	return readAt(r.trace.now[r.begin:][:r.size], p, off)
}

// Check returns ErrPower after a Kill.
func (r *Region) Check() error { return r.trace.power() }

// Close returns ErrPower after a Kill.
func (r *Region) Close() error { return r.trace.power() }

func (t *Trace) power() error {
	if t.dead {
		return ErrPower
	}
	return nil
}

// Writer returns a new medium of the file.
func (r *Region) Writer() pmem.Medium { return &medium{Region: r, stored: map[int64]bool{}} }

// medium records what a goroutine stores, flushes and fences.
type medium struct {
	*Region
	stored  map[int64]bool // lines stored to and not flushed since
	flushed []flush        // since the last fence
	asked   bool           // whether anything was flushed since the last fence, even if others have made it durable
}

// flush is a line's flush: that many of its stores are durable after the next fence.
type flush struct {
	line *line
	upto int
}

// enter comes first in each call.
func (m *medium) enter(off, n int64) error {
	t := m.trace
	if t.OnStep != nil {
		t.OnStep()
	}
	if off < 0 || n < 0 || off > m.size-n {
		return fmt.Errorf("%d bytes at %d do not lie in %d", n, off, m.size)
	}
	return t.power()
}

// Put implements pmem.Medium. Its store and its flush are two steps.
func (m *medium) Put(off int64, head, p []byte) error {
	p = slices.Concat(head, p)
	if err := m.storeAll(off, p); err != nil {
		return err
	}
	return m.flush(off, int64(len(p)))
}

// Seal implements pmem.Medium. Whether the room becomes zeros is random.
func (m *medium) Seal(off int64, head, p []byte, room int64) (uint32, error) {
	sum := combine(head, p)
	room = min(room, -(off+int64(len(head)+len(p)))&(lineSize-1))
	p = slices.Concat(head, p, make([]byte, room*m.trace.rng.Int64N(2)))
	if err := m.storeAll(off, p); err != nil {
		return 0, err
	}
	return sum, m.flush(off, int64(len(p)))
}

// combine combines a head that begins with a checksum as Seal promises.
func combine(head, p []byte) uint32 {
	sum := crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli))
	if len(head) > 0 {
		binary.LittleEndian.PutUint32(head, binary.LittleEndian.Uint32(head)^sum)
	}
	return sum
}

// storeAll stores p line by line.
func (m *medium) storeAll(off int64, p []byte) error {
	if err := m.enter(off, int64(len(p))); err != nil {
		return err
	}
	order := m.trace.rng.IntN(3)
	for at := off + m.begin; len(p) > 0; {
		n := min(int64(len(p)), lineSize-at%lineSize)
		m.store(at, p[:n], order)
		at, p = at+n, p[n:]
	}
	return nil
}

// Store8 implements pmem.Medium.
func (m *medium) Store8(off int64, v uint64) error {
	if err := m.enter(off, 8); err != nil {
		return err
	}
	if off%8 != 0 {
		return fmt.Errorf("store 8 bytes at %d: want a multiple of 8", off)
	}
	var b [8]byte
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
	m.store(off+m.begin, b[:], 0)
	return nil
}

// store records the words of a store within one line: forward, backward, or in random order.
func (m *medium) store(off int64, p []byte, order int) {
	t := m.trace
	copy(t.now[off:], p)
	m.stored[off/lineSize] = true
	l := t.lines[off/lineSize]
	if l == nil {
		l = &line{at: off / lineSize * lineSize}
		t.lines[off/lineSize] = l
		t.dirty = append(t.dirty, l)
	}
	first := len(l.words)
	for at := int(off - l.at); len(p) > 0; {
		w := word{off: at, n: min(len(p), 8-at%8)}
		copy(w.b[:], p[:w.n])
		l.words = append(l.words, w)
		at, p = at+w.n, p[w.n:]
	}
	added := l.words[first:]
	switch order {
	case 1:
		for i, j := 0, len(added)-1; i < j; i, j = i+1, j-1 {
			added[i], added[j] = added[j], added[i]
		}
	case 2:
		t.rng.Shuffle(len(added), func(i, j int) { added[i], added[j] = added[j], added[i] })
	}
}

// Flush implements pmem.Medium.
func (m *medium) Flush(off, n int64) error { return m.flush(off, n) }

// flush is called directly by exported methods: called counts on the stack's depth.
func (m *medium) flush(off, n int64) error {
	if err := m.enter(off, n); err != nil || n == 0 {
		return err
	}
	t := m.trace
	site := t.sites.called(2)
	redundant := false
	lo, hi := (m.begin+off)/lineSize, (m.begin+off+n-1)/lineSize
	for i := lo; i <= hi; i++ {
		redundant = redundant || !m.stored[i]
		delete(m.stored, i)
	}
	t.sites.count(site, redundant)
	if t.Drop != nil && t.Drop(site) {
		return nil
	}
	m.asked = true
	for _, l := range t.lines[lo : hi+1] {
		if l != nil {
			m.flushed = append(m.flushed, flush{l, l.done + len(l.words)})
		}
	}
	return nil
}

// Fence implements pmem.Medium.
func (m *medium) Fence() error {
	if err := m.enter(0, 0); err != nil {
		return err
	}
	t := m.trace
	site := t.sites.called(1)
	if t.OnFence != nil {
		t.OnFence()
	}
	if t.err != nil {
		err := t.err
		t.dead, t.err = true, nil
		return err
	}
	if t.dead {
		return ErrPower
	}
	t.sites.count(site, !m.asked)
	if t.Drop != nil && t.Drop(site) {
		return nil
	}
	for _, f := range m.flushed {
		t.persist(f.line, f.upto)
	}
	m.flushed, m.asked = m.flushed[:0], false
	return nil
}

// persist makes the first upto stores of a line durable.
func (t *Trace) persist(l *line, upto int) {
	if upto <= l.done {
		return
	}
	n := upto - l.done
	for _, w := range l.words[:n] {
		w.apply(t.durable[l.at:])
	}
	l.words, l.done = l.words[n:], upto
	if len(l.words) > 0 {
		return
	}
	t.lines[l.at/lineSize] = nil
	for i, other := range t.dirty {
		if other == l {
			t.dirty = append(t.dirty[:i], t.dirty[i+1:]...)
			return
		}
	}
}

// apply copies the store into its line.
//
//go:norace
func (w word) apply(line []byte) { copy(line[w.off:], w.b[:w.n]) }

// seed is for the hashes of lines.
var seed = maphash.MakeSeed()
