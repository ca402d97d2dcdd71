package driver

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// HeaderSize is the length of a checked value's header in bytes, and so the smallest size of a checked value.
const HeaderSize = 24

// Value describes a generated value. Its bytes are generated as a codec appends them, so a put to N endpoints never holds N copies.
//
// A checked value begins with a header, all integers little-endian:
//
//	+-----------+------------+------------+-----------+----------
//	| writer 8B | version 8B | crc32c 4B  | size 4B   | filling
//	+-----------+------------+------------+-----------+----------
//
// The checksum is CRC-32C over writer, version, size and filling. It distinguishes a whole value that loadgen wrote from anything else.
type Value struct {
	Size    int    // bytes, header included: below 2³²; at least HeaderSize if checked
	Seed    uint64 // selects the filling; unused if Fill.Alike
	Fill    Fill   //
	Checked bool
	TTL     uint32 // milliseconds until a store expires it; 0 for never
	Maker   Maker  // generates the filling; if nil, Fill does
	Writer  uint64 // the stream that put it
	Version uint64 // larger for newer values, and unique per writer; roughly Unix nanoseconds. 0 is never written
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

// fillingSize is the length of the text that values are cut from: too large for a core's first-level cache, small enough for the second.
const fillingSize = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// filling is the alphanumeric text that all values are cut from. It is made at process start: event loops append values at times when they must not
// wait for each other.
var filling = makeFilling()

func makeFilling() []byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, fillingSize)
	x := uint64(0x9E3779B97F4A7C15)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = alphabet[(x>>32)*uint64(len(alphabet))>>32]
	}
	return b
}

// AppendTo appends the value's bytes.
func (v *Value) AppendTo(dst []byte) []byte {
	if !v.Checked {
		return v.appendFilling(dst, v.Size)
	}
	at := len(dst)
	dst = v.appendHeader(dst)
	dst = v.appendFilling(dst, v.Size-HeaderSize)
	binary.LittleEndian.PutUint32(dst[at+checksumAt:], checksum(dst[at:]))
	return dst
}

// appendHeader appends the header of a checked value, with 0 for its checksum.
func (v *Value) appendHeader(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, v.Writer)
	dst = binary.LittleEndian.AppendUint64(dst, v.Version)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	return binary.LittleEndian.AppendUint32(dst, uint32(v.Size))
}

// Text reports whether the value, after any header, is text.
func (v *Value) Text() bool { return v.Maker == nil && !v.Fill.Alike && !v.Fill.Mixed }

// Parts appends the slices of text that make up a value without a header. Call it only for an unchecked value of text; do not modify the slices.
func (v *Value) Parts(dst [][]byte) [][]byte {
	text := filling
	for from, n := int(v.Seed%fillingSize), v.Size; n > 0; from = 0 {
		part := text[from:min(from+n, len(text))]
		dst = append(dst, part)
		n -= len(part)
	}
	return dst
}

// Stamp writes len(seeds) values of text into b, one every stride bytes, and leaves the bytes between them alone. They equal v except for their seeds
// and for their versions, which count up from v's.
func (v *Value) Stamp(b []byte, stride int, seeds []uint64) {
	if len(seeds) == 0 {
		return
	}
	head := 0
	if v.Checked {
		head = HeaderSize
	}
	text, n := filling, v.Size-head
	for i, seed := range seeds {
		to := b[i*stride+head:][:n]
		if from := int(seed % fillingSize); from+n <= len(text) {
			copy(to, text[from:])
		} else {
			appendText(to[:0], seed, n)
		}
	}
	if v.Checked {
		v.stampHeaders(b, stride, len(seeds))
	}
}

// stampHeaders writes the headers of values whose fillings are already there. They differ only in versions and checksums.
func (v *Value) stampHeaders(b []byte, stride, count int) {
	head := v.appendHeader(b[:0])
	sum := checksum(head)
	for i := range count {
		version := v.Version + uint64(i)
		if i > 0 {
			sum ^= versionSteps[bits.Len64(version^(version-1))-1]
		}
		to := b[i*stride:][:v.Size]
		copy(to, head)
		binary.LittleEndian.PutUint64(to[versionAt:], version)
		binary.LittleEndian.PutUint32(to[checksumAt:], crc32.Update(sum, castagnoli, to[HeaderSize:]))
	}
}

// versionSteps holds how a header's checksum changes from one version to the next, by the highest bit that differs. All lower bits then differ too,
// and the change depends only on which bits differ, as CRC is linear.
var versionSteps = func() (steps [64]uint32) {
	b := make([]byte, 2*HeaderSize)
	zero, other := b[:HeaderSize], b[HeaderSize:]
	for bit := range steps {
		binary.LittleEndian.PutUint64(other[versionAt:], 2<<bit-1)
		steps[bit] = checksum(zero) ^ checksum(other)
	}
	return steps
}()

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
	return appendText(dst, v.Seed, n)
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

func appendText(dst []byte, seed uint64, n int) []byte {
	text := filling
	for from := int(seed % fillingSize); n > 0; from = 0 {
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
	versionAt  = 8
	checksumAt = 16
	sizeAt     = 20
)

// checksum covers a checked value except for the checksum's own four bytes.
func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, b[:checksumAt]), castagnoli, b[sizeAt:])
}

// Condense replaces a checked value in a reply by the smallest one with the same writer and version, and any other by none. The new one is in dst,
// which it returns.
func (r *Reply) Condense(dst []byte) []byte {
	writer, version, ok := r.Header()
	if r.Value = nil; !ok {
		return dst
	}
	v := Value{Size: HeaderSize, Checked: true, Writer: writer, Version: version}
	r.Value = v.AppendTo(dst[:0])
	return r.Value
}

// Header returns the writer and version of a checked value in a reply. It reports false for any other bytes: another program's value, or a torn or
// truncated one.
func (r *Reply) Header() (writer, version uint64, ok bool) {
	b := r.Value
	if len(b) < HeaderSize || uint64(binary.LittleEndian.Uint32(b[sizeAt:])) != uint64(len(b)) ||
		binary.LittleEndian.Uint32(b[checksumAt:]) != checksum(b) {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), true
}
