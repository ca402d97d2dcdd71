package driver

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// KeyHash hashes a key, eight bytes at a time (Wang Yi, wyhash: multiply to 128 bits and fold). Values in stores hold it, so it never changes.
func KeyHash(key []byte) uint64 {
	const k = 0x9E3779B97F4A7C15
	h := uint64(len(key)) * k
	for ; len(key) >= 8; key = key[8:] {
		hi, lo := bits.Mul64(h^binary.LittleEndian.Uint64(key), k)
		h = hi ^ lo
	}
	rest := uint64(0)
	for i, b := range key {
		rest |= uint64(b) << (8 * i)
	}
	hi, lo := bits.Mul64(h^rest, k)
	return hi ^ lo
}

// MarkSize is the length in bytes of the mark that text begins with if the value's Key is set:
//
//	+------------------------+------------------------------+----------------------------------+
//	| key 8B: KeyHash's bits | number 6B: 30 bits of the    | check 2B: the low 10 bits of the |
//	| 0 to 39                | seed, which tell values apart | CRC-32C of the other 14          |
//	+------------------------+------------------------------+----------------------------------+
//
// Each byte is a digit of five bits, the lowest first: A to Z, then 2 to 7. Text of fewer than MarkSize bytes is key for the first half and number
// for the rest, without a check.
const MarkSize = 16

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

// pairs holds for ten bits, as the i-th pair of a mark, the two digits, and above them what these add to the ten bits that check it: CRC is linear, so
// those are the sum of what all pairs add, by exclusive or.
var pairs = func() (p [MarkSize/2 - 1][1024]uint32) {
	var none [MarkSize - 2]byte
	zero := crc32.Checksum(none[:], castagnoli)
	for i := range p {
		for x := range p[i] {
			mark, two := none, uint16(digits[x&31])|uint16(digits[x>>5])<<8
			binary.LittleEndian.PutUint16(mark[2*i:], two)
			sum := crc32.Checksum(mark[:], castagnoli)
			if i > 0 {
				sum ^= zero
			}
			p[i][x] = uint32(two) | sum&1023<<16
		}
	}
	return p
}()

// mark returns the length of the value's mark, 0 if it has none.
func (v *Value) mark() int {
	if v.Checked || v.Key == 0 || !v.Text() {
		return 0
	}
	return min(v.Size, MarkSize)
}

// AppendMark appends the mark of a value that has one.
func (v *Value) AppendMark(dst []byte) []byte {
	n := v.mark()
	dst = append(dst, "................"[:n]...)
	putMark(dst[len(dst)-n:], v.Key, v.Seed)
	return dst
}

// putMark fills b, of at most MarkSize bytes, with the mark of a key's value.
func putMark(b []byte, key, seed uint64) {
	number := seed >> 24
	if len(b) == MarkSize {
		p, q := tag(key)
		c, d, e := pairs[4][number&1023], pairs[5][number>>10&1023], pairs[6][number>>20&1023]
		binary.LittleEndian.PutUint64(b, p)
		binary.LittleEndian.PutUint32(b[8:], c&0xffff|d<<16)
		binary.LittleEndian.PutUint32(b[12:], e&0xffff|pairs[0][(q^c^d^e)>>16]<<16)
		return
	}
	half := (len(b) + 1) / 2
	for i := range b {
		from, at := key, i
		if i >= half {
			from, at = number, i-half
		}
		b[i] = digits[from>>(5*at)&31]
	}
}

// tag returns the eight digits of a key, the first in the lowest byte, and above bit 15 of sum what they add to the check.
func tag(key uint64) (eight uint64, sum uint32) {
	a, b, c, d := pairs[0][key&1023], pairs[1][key>>10&1023], pairs[2][key>>20&1023], pairs[3][key>>30&1023]
	return uint64(a&0xffff) | uint64(b&0xffff)<<16 | uint64(c&0xffff)<<32 | uint64(d)<<48, a ^ b ^ c ^ d
}

// Misnamed reports whether text is marked as the value of another key than the one with that KeyHash. It is wrong for one alphanumeric text in 5·10⁷.
func Misnamed(text []byte, key uint64) bool {
	if len(text) < MarkSize || binary.LittleEndian.Uint16(text[14:]) != uint16(pairs[0][crc32.Checksum(text[:MarkSize-2], castagnoli)&1023]) {
		return false
	}
	eight, _ := tag(key)
	return binary.LittleEndian.Uint64(text) != eight
}
