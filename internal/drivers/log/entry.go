package log

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// mark is a session and a number of its own; 0 is nobody's.
type mark uint64

const (
	numberBits = 40
	maxNumber  = 1<<numberBits - 1
)

func markOf(session int, number uint64) mark { return mark(session)<<numberBits | mark(number) }

func (m mark) session() int { return int(m >> numberBits) }

func (m mark) number() uint64 { return uint64(m) & maxNumber }

func (m mark) String() string { return fmt.Sprintf("entry %d of session %d", m.number(), m.session()) }

// Each file that a log is in begins with one of these: those of package pmlog, of any version, and those of entries only, as all epochs begin so.
const (
	logMagic   = "LGPMLOG"
	entryMagic = "LGE"
)

// beginning is how many bytes of a file tell whether a log was in it: a second copy of the header comes behind them.
const beginning = 4096 + 16

// ours reports whether a file that begins so is one that a log was in, or was to be in: nothing is there then.
func ours(first []byte) bool {
	has := func(at int, magic string) bool { return len(first) > at && bytes.HasPrefix(first[at:], []byte(magic)) }
	return len(bytes.Trim(first, "\x00")) == 0 || has(0, entryMagic) || has(0, logMagic) || has(4096, logMagic)
}

// epochOf makes an epoch of a number, of which it has the lowest 40 bits.
func epochOf(n uint64) uint64 {
	return n<<(8*len(entryMagic)) | uint64(entryMagic[0]) | uint64(entryMagic[1])<<8 | uint64(entryMagic[2])<<16
}

// places is how many places of the text an entry may begin at, and step what they are apart: a cache's line.
const (
	places = 1024
	step   = 64
)

// kind is what all entries of a phase have in common.
type kind struct {
	Epoch uint64
	Size  int
	Fill  driver.Fill
}

// text returns what entries are cut from.
func (k *kind) text() []byte {
	v := driver.Value{Size: places*step + k.Size, Fill: k.Fill}
	if k.Fill.Alike {
		v.Size = k.Size
	}
	return v.AppendTo(nil)
}

// place is where in the text an entry begins.
func (k *kind) place(m mark) int {
	if k.Fill.Alike {
		return 0
	}
	return int(mix(k.Epoch^mix(uint64(m)))%places) * step
}

// mix is the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection of well-mixed words.
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
	covered [localfile.StampSize]byte // what the stamp of the entry at hand stands over, from
	at      int                       // on
}

func newMaker(k kind) *maker {
	m := &maker{kind: k, text: k.text()}
	copy(m.covered[:], m.text)
	return m
}

// entry returns the bytes of an entry, which are valid until the next call.
func (m *maker) entry(of mark) []byte {
	copy(m.text[m.at:], m.covered[:])
	m.at = m.place(of)
	entry := m.text[m.at : m.at+m.Size]
	copy(m.covered[:], entry)
	m.stamp(entry, of)
	return entry
}

// checker tells entries of a phase from anything else. Its text is whole.
type checker struct {
	kind
	text []byte
}

func newChecker(k kind) *checker { return &checker{kind: k, text: k.text()} }

// read returns whose entry p is. It reports false when it is none of this phase's, or not whole.
func (c *checker) read(p []byte) (m mark, ok bool) {
	if len(p) != c.Size || binary.LittleEndian.Uint64(p) != c.Epoch {
		return 0, false
	}
	m = mark(binary.LittleEndian.Uint64(p[8:]))
	at := c.place(m)
	return m, bytes.Equal(p[localfile.StampSize:], c.text[at+localfile.StampSize:at+c.Size])
}

// foreign reports whether p says that another phase wrote it.
func (c *checker) foreign(p []byte) bool {
	return len(p) >= 8 && binary.LittleEndian.Uint64(p) != c.Epoch
}
