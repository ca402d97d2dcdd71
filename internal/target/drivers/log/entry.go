package log

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// mark identifies an entry: its session, and its number there. No entry has 0.
type mark uint64

const (
	numberBits = 40
	maxNumber  = 1<<numberBits - 1
)

func markOf(session int, number uint64) mark { return mark(session)<<numberBits | mark(number) }

func (m mark) session() int { return int(m >> numberBits) }

func (m mark) number() uint64 { return uint64(m) & maxNumber }

func (m mark) String() string { return fmt.Sprintf("entry %d of session %d", m.number(), m.session()) }

// Each file of a log begins with one of these: logMagic for the formats of package pmlog, of any version; entryMagic for files that hold only
// entries, each of which begins so.
const (
	logMagic   = "LGPMLOG"
	entryMagic = "LGE"
)

// beginning is the number of bytes of a file that show whether it held a log. They reach into the header's second copy.
const beginning = 4096 + 16

// ours reports whether a file that begins with these bytes held a log, or was created for one and is still empty.
func ours(first []byte) bool {
	has := func(at int, magic string) bool { return len(first) > at && bytes.HasPrefix(first[at:], []byte(magic)) }
	return len(bytes.Trim(first, "\x00")) == 0 || has(0, entryMagic) || has(0, logMagic) || has(4096, logMagic)
}

// epochOf makes an epoch from the lowest 40 bits of n.
func epochOf(n uint64) uint64 {
	return n<<(8*len(entryMagic)) | uint64(entryMagic[0]) | uint64(entryMagic[1])<<8 | uint64(entryMagic[2])<<16
}

// places is the number of offsets in the text at which an entry may begin. They are step apart: a cache line.
const (
	places = 1024
	step   = 64
)

// kind is what all entries of a phase have in common.
type kind struct {
	Epoch uint64
	Size  int // bytes of the largest entry
	Sizes *driver.Sizes
	Fill  driver.Fill
}

// least returns the size of the smallest entry.
func (k *kind) least() int {
	if k.Sizes == nil {
		return k.Size
	}
	return max(k.Sizes.Least, localfile.StampSize)
}

// size returns the size of an entry, which is the same in all phases.
func (k *kind) size(m mark) int {
	if k.Sizes == nil {
		return k.Size
	}
	return min(max(k.Sizes.Of(mix(uint64(m))), localfile.StampSize), k.Size)
}

// usual returns the approximate mean size of entries.
func (k *kind) usual() int {
	if k.Sizes == nil {
		return k.Size
	}
	const some = 1000
	all := 0
	for i := range some {
		all += k.size(mark(i))
	}
	return all / some
}

// text returns the text of which entries are pieces.
func (k *kind) text() []byte {
	v := driver.Value{Size: places*step + k.Size, Fill: k.Fill}
	if k.Fill.Alike {
		v.Size = k.Size
	}
	return v.AppendTo(nil)
}

// place returns the offset in the text at which an entry begins.
func (k *kind) place(m mark) int {
	if k.Fill.Alike {
		return 0
	}
	return int(mix(k.Epoch^mix(uint64(m)))%places) * step
}

// mix is the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), a well-mixed bijection.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

func (k *kind) stamp(to []byte, m mark) {
	binary.LittleEndian.PutUint64(to, k.Epoch)
	binary.LittleEndian.PutUint64(to[8:], uint64(m))
}

// maker makes a session's entries, one at a time.
type maker struct {
	kind
	text    []byte
	covered [localfile.StampSize]byte // the text that the current entry's stamp replaces
	at      int                       // offset in the text at which the current entry begins
}

func newMaker(k kind) *maker {
	m := &maker{kind: k, text: k.text()}
	copy(m.covered[:], m.text)
	return m
}

// entry returns the bytes of an entry, valid until the next call.
func (m *maker) entry(of mark) []byte {
	copy(m.text[m.at:], m.covered[:])
	m.at = m.place(of)
	entry := m.text[m.at : m.at+m.size(of)]
	copy(m.covered[:], entry)
	m.stamp(entry, of)
	return entry
}

// checker tells entries of a phase from anything else. Its text has no stamp on it.
type checker struct {
	kind
	text []byte
}

func newChecker(k kind) *checker { return &checker{kind: k, text: k.text()} }

// read returns the mark of entry p. It reports false if p is not of this phase, or not whole.
func (c *checker) read(p []byte) (m mark, ok bool) {
	if len(p) < localfile.StampSize || binary.LittleEndian.Uint64(p) != c.Epoch {
		return 0, false
	}
	m = markIn(p)
	at := c.place(m)
	return m, len(p) == c.size(m) && bytes.Equal(p[localfile.StampSize:], c.text[at+localfile.StampSize:at+c.size(m)])
}

// foreign reports whether p is stamped by another phase.
func (c *checker) foreign(p []byte) bool {
	return len(p) >= 8 && binary.LittleEndian.Uint64(p) != c.Epoch
}
