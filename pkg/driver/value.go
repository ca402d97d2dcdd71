package driver

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"sync"
)

// HeaderSize is the length of a checked value's header in bytes.
const HeaderSize = 28

// ShortHeader is its length in values of fewer than HeaderSize bytes, and of older builds: it holds neither key nor run. It is the smallest size of a
// checked value.
const ShortHeader = 24

// Value describes a generated value. Its bytes are generated as a codec appends them, so a put to N endpoints never holds N copies.
//
// A checked value begins with a header, all integers little-endian:
//
//	+-----------+--------+------------+-----------+---------+--------+---------
//	| writer 4B | key 4B | version 8B | crc32c 4B | size 4B | run 4B | filling
//	+-----------+--------+------------+-----------+---------+--------+---------
//
// The checksum is CRC-32C over everything else. It distinguishes a whole value that loadgen wrote from anything else. The key is the low half of its
// [KeyHash], or 1 if that is 0. A key of 0 marks a [ShortHeader], which has no run, either.
//
// Text without a header begins with a mark ([MarkSize]) if the value has a key.
type Value struct {
	Size    int    // bytes, header included: below 2³²; at least ShortHeader if checked
	Seed    uint64 // selects the filling; unused if Fill.Alike
	Fill    Fill   //
	Checked bool
	TTL     uint32 // milliseconds until a store expires it; 0 for never
	Maker   Maker  // generates the filling; if nil, Fill does
	Key     uint64 // KeyHash of its key; 0 if the value does not hold it
	Run     uint32 // random bits of the run that put it; 0 if unknown
	Writer  uint32 // the stream that put it
	Version uint64 // larger for newer values, and unique per writer; roughly Unix nanoseconds. 0 is never written

	long *[LongText]byte // see CutLong
}

// Maker generates the filling of values: a pure function of the seed, safe for concurrent use.
type Maker interface {
	// Append appends the filling for a seed. The value's size is the length of the filling plus that of its header.
	Append(dst []byte, seed uint64) []byte
}

// Fill says what a value is filled with. The zero value is text: letters and digits, different for each Seed.
type Fill struct {
	Alike bool   // every byte is Byte
	Mixed bool   // compressible: in each mixedBlock, random bytes that differ by Seed, then zeros
	Byte  byte   // if Alike
	Zeros uint16 // if Mixed: thousandths of the value, up to 1000
}

// mixedBlock is the block length of a mixed fill, smaller than the smallest window or page that a compressor works on.
const mixedBlock = 1024

// The lengths in bytes of the texts that values are cut from. The short one is too large for a core's first-level cache, small enough for the second.
// The long one begins with it; what compressors see at once of values that follow each other there repeats nothing.
const (
	ShortText = 64 << 10
	LongText  = 16 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// filling is made at process start: event loops append values at times when they must not wait for each other.
var filling = makeText(make([]byte, ShortText))

var longText = sync.OnceValue(func() *[LongText]byte { return (*[LongText]byte)(makeText(make([]byte, LongText))) })

// makeText fills b, a multiple of eight bytes, with letters and digits. Of 64 characters two are there twice, which saves divisions.
func makeText(b []byte) []byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789Ab"
	var two [1 << 12]uint64
	for i := range two {
		two[i] = uint64(alphabet[i>>6]) | uint64(alphabet[i&63])<<8
	}
	x := uint64(0x9E3779B97F4A7C15)
	for at := 0; at < len(b); at += 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(b[at:], two[x>>52]|two[x>>40&4095]<<16|two[x>>28&4095]<<32|two[x>>16&4095]<<48)
	}
	return b
}

// CutLong has text cut from the long text, at the offset that the low bits of the seed give. The first call in a process makes the text; for that, it
// may wait.
func (v *Value) CutLong() { v.long = longText() }

// TextOf returns how much text there is for values of a size once there is the long text, a power of two: more would cost
// puts of 1 KiB, and of 4 KiB, a tenth more, as it does not stay in the processor's cache.
func TextOf(size int) uint64 {
	switch {
	case size <= 512:
		return LongText
	case size <= 1<<10:
		return 1 << 20
	}
	return ShortText
}

// text returns the text to cut the value from.
func (v *Value) text() []byte {
	if v.long != nil {
		return v.long[:TextOf(v.Size)]
	}
	return filling
}

// AppendTo appends the value's bytes.
func (v *Value) AppendTo(dst []byte) []byte {
	at := len(dst)
	if !v.Checked {
		dst = v.AppendMark(dst)
		return v.appendFilling(dst, v.Size-(len(dst)-at))
	}
	dst = v.appendHeader(dst)
	dst = v.appendFilling(dst, v.Size-(len(dst)-at))
	binary.LittleEndian.PutUint32(dst[at+checksumAt:], checksum(dst[at:]))
	return dst
}

// appendHeader appends the header of a checked value, with 0 for its checksum.
func (v *Value) appendHeader(dst []byte) []byte {
	key := keyField(v.Key)
	if v.Size < HeaderSize {
		key = 0
	}
	dst = binary.LittleEndian.AppendUint32(dst, v.Writer)
	dst = binary.LittleEndian.AppendUint32(dst, key)
	dst = binary.LittleEndian.AppendUint64(dst, v.Version)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(v.Size))
	if v.Size < HeaderSize {
		return dst
	}
	return binary.LittleEndian.AppendUint32(dst, v.Run)
}

// keyField returns a header's key.
func keyField(key uint64) uint32 {
	if key == 0 {
		return 0
	}
	return max(1, uint32(key))
}

// Text reports whether the value, after any header, is text.
func (v *Value) Text() bool { return v.Maker == nil && !v.Fill.Alike && !v.Fill.Mixed }

// Parts appends the slices of text that make up a value without a header, after its mark. Call it only for an unchecked value of text; do not modify
// the slices.
func (v *Value) Parts(dst [][]byte) [][]byte {
	text := v.text()
	for from, n := int(v.Seed)&(len(text)-1), v.Size-v.mark(); n > 0; from = 0 {
		part := text[from:]
		part = part[:min(n, len(part))]
		dst = append(dst, part)
		n -= len(part)
	}
	return dst
}

// Stamp writes len(seeds) values of text into b, one every stride bytes, and leaves the bytes between them alone. They equal v except for their seeds
// and keys, and for their versions, which count up from v's. Checked ones have at least HeaderSize bytes.
func (v *Value) Stamp(b []byte, stride int, seeds, keys []uint64) {
	head := min(v.Size, MarkSize)
	if v.Checked {
		head = HeaderSize
	}
	text, n := v.text(), v.Size-head
	for i, seed := range seeds {
		to := b[i*stride:][:v.Size]
		if !v.Checked {
			putMark(to[:head], keys[i], seed)
		}
		if from := int(seed) & (len(text) - 1); from+n <= len(text) {
			copy(to[head:], text[from:])
		} else {
			appendText(to[:head], text, seed, n)
		}
	}
	if v.Checked && len(seeds) > 0 {
		v.stampHeaders(b, stride, keys)
	}
}

// stampHeaders writes the headers of values whose fillings are already there. They differ only in keys, versions and checksums.
func (v *Value) stampHeaders(b []byte, stride int, keys []uint64) {
	head := v.appendHeader(b[:0])
	binary.LittleEndian.PutUint32(head[keyAt:], 0)
	sum := checksum(head)
	for i, hash := range keys {
		version, key := v.Version+uint64(i), keyField(hash)
		if i > 0 {
			sum ^= versionSteps[bits.Len64(version^(version-1))-1]
		}
		of := sum ^ keySteps[0][byte(key)] ^ keySteps[1][byte(key>>8)] ^ keySteps[2][byte(key>>16)] ^ keySteps[3][byte(key>>24)]
		to := b[i*stride:][:v.Size]
		copy(to, head)
		binary.LittleEndian.PutUint32(to[keyAt:], key)
		binary.LittleEndian.PutUint64(to[versionAt:], version)
		binary.LittleEndian.PutUint32(to[checksumAt:], crc32.Update(of, castagnoli, to[HeaderSize:]))
	}
}

// versionSteps holds how a header's checksum changes from one version to the next, by the highest bit that differs. All lower bits then differ too,
// and the change depends only on which bits differ, as CRC is linear.
var versionSteps = func() (steps [64]uint32) {
	for bit := range steps {
		steps[bit] = headerStep(versionAt, 2<<bit-1)
	}
	return steps
}()

// keySteps holds how it changes with each byte of the key.
var keySteps = func() (steps [4][256]uint32) {
	for i := range steps {
		for b := range steps[i] {
			steps[i][b] = headerStep(keyAt+i, uint64(b))
		}
	}
	return steps
}()

// headerStep returns how a header's checksum changes if the bits of x do, in the field at an offset.
func headerStep(at int, x uint64) uint32 {
	var zero, other [HeaderSize]byte
	binary.LittleEndian.PutUint64(other[at:], x)
	return checksum(zero[:]) ^ checksum(other[:])
}

func (v *Value) appendFilling(dst []byte, n int) []byte {
	if v.Maker != nil {
		return v.Maker.Append(dst, v.Seed)
	}
	switch {
	case v.Fill.Alike:
		for range n {
			dst = append(dst, v.Fill.Byte)
		}
		return dst
	case v.Fill.Mixed:
		return appendMixed(dst, v.Seed, n, int(v.Fill.Zeros))
	}
	return appendText(dst, v.text(), v.Seed, n)
}

// appendMixed appends n bytes, of which zeros thousandths are zeros. The random bytes are SplitMix64's, starting from the seed (Steele, Lea and
// Flood, OOPSLA 2014, figure 16).
func appendMixed(dst []byte, seed uint64, n, zeros int) []byte {
	for ; n > 0; n -= mixedBlock {
		block := min(n, mixedBlock)
		random := block - block*zeros/1000
		end := len(dst) + random
		for len(dst) < end {
			seed += 0x9E3779B97F4A7C15
			z := (seed ^ seed>>30) * 0xBF58476D1CE4E5B9
			z = (z ^ z>>27) * 0x94D049BB133111EB
			dst = binary.LittleEndian.AppendUint64(dst, z^z>>31)
		}
		dst = dst[:end]
		for range block - random {
			dst = append(dst, 0)
		}
	}
	return dst
}

// appendText appends n bytes of a text, from where the seed says.
func appendText(dst, text []byte, seed uint64, n int) []byte {
	for from := int(seed) & (len(text) - 1); n > 0; from = 0 {
		part := text[from:]
		if len(part) > n {
			part = part[:n]
		}
		dst = append(dst, part...)
		n -= len(part)
	}
	return dst
}

// Offsets of a header's fields.
const (
	keyAt      = 4
	versionAt  = 8
	checksumAt = 16
	sizeAt     = 20
	runAt      = 24
)

// checksum covers a checked value except for the checksum's own four bytes.
func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, b[:checksumAt]), castagnoli, b[sizeAt:])
}

// Condense replaces a checked value in a reply by the smallest one with the same header, and any other by the mark that it may begin with. The new
// one is in dst, which it returns.
func (r *Reply) Condense(dst []byte) []byte {
	h, ok := r.Header()
	if !ok {
		r.Value = append(dst[:0], r.Value[:min(len(r.Value), MarkSize)]...)
		return r.Value
	}
	v := Value{Size: HeaderSize, Checked: true, Writer: h.Writer, Key: uint64(h.Key), Version: h.Version, Run: h.Run}
	r.Value = v.AppendTo(dst[:0])
	return r.Value
}

// Header is what the header of a checked value says.
type Header struct {
	Writer  uint32
	Key     uint32 // 0 if it does not say
	Version uint64
	Run     uint32 // 0 if it does not say
}

// Of reports whether the value may be that of a key, given its KeyHash.
func (h *Header) Of(key uint64) bool { return h.Key == 0 || h.Key == keyField(key) }

// Header returns the header of a checked value in a reply. It reports false for any other bytes: another program's value, or a torn or truncated one.
func (r *Reply) Header() (h Header, ok bool) {
	b := r.Value
	if len(b) < ShortHeader || uint64(binary.LittleEndian.Uint32(b[sizeAt:])) != uint64(len(b)) ||
		binary.LittleEndian.Uint32(b[checksumAt:]) != checksum(b) {
		return h, false
	}
	h = Header{Writer: binary.LittleEndian.Uint32(b), Key: binary.LittleEndian.Uint32(b[keyAt:]), Version: binary.LittleEndian.Uint64(b[versionAt:])}
	if h.Key == 0 {
		return h, true
	}
	if len(b) < HeaderSize {
		return Header{}, false
	}
	h.Run = binary.LittleEndian.Uint32(b[runAt:])
	return h, true
}
