package driver

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
)

// HeaderSize is the length of a checked value's header in bytes, and so the least size of a checked value.
const HeaderSize = 24

// Value names a generated value. Its bytes are made when a codec appends them, so that a put to N endpoints holds them nowhere
// N times.
//
// A checked value begins with a header, all integers little-endian:
//
//	+-----------+------------+------------+-----------+----------
//	| writer 8B | version 8B | crc32c 4B  | size 4B   | filling
//	+-----------+------------+------------+-----------+----------
//
// The checksum is CRC-32C over writer, version, size and filling. It tells a value that loadgen wrote, whole, from any other.
type Value struct {
	Size    int    // bytes, header included: below 2³², of a checked value at least HeaderSize
	Seed    uint64 // chooses the filling, where that is text
	Fill    Fill   //
	Checked bool
	TTL     uint32 // milliseconds after which a store is to forget it; 0: never
	Writer  uint64 // the stream that put it
	Version uint64 // newer is larger; Unix nanoseconds. 0 is never written
}

// Fill is what a value is filled with. The zero value is text: letters and digits, different for each Seed.
type Fill uint16

// FillByte fills a value with one byte.
func FillByte(b byte) Fill { return 1<<8 | Fill(b) }

// Byte returns the byte that a value is filled with; false when it is text.
func (f Fill) Byte() (b byte, ok bool) { return byte(f), f>>8 != 0 }

// fillingSize is the length of the text that values are cut from: larger than a core's first-level cache would favour, small
// enough to stay in the second.
const fillingSize = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// filling returns the alphanumeric text that all values are cut from.
var filling = sync.OnceValue(func() []byte {
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
})

// AppendTo appends the value's bytes.
func (v *Value) AppendTo(dst []byte) []byte {
	if !v.Checked {
		return v.appendFilling(dst, v.Size)
	}
	at := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, v.Writer)
	dst = binary.LittleEndian.AppendUint64(dst, v.Version)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(v.Size))
	dst = v.appendFilling(dst, v.Size-HeaderSize)
	binary.LittleEndian.PutUint32(dst[at+16:], checksum(dst[at:]))
	return dst
}

func (v *Value) appendFilling(dst []byte, n int) []byte {
	if b, ok := v.Fill.Byte(); ok {
		for range n {
			dst = append(dst, b)
		}
		return dst
	}
	return appendText(dst, v.Seed, n)
}

func appendText(dst []byte, seed uint64, n int) []byte {
	text := filling()
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

// checksum covers a checked value but for the checksum's own four bytes.
func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, b[:16]), castagnoli, b[20:])
}

// ReadHeader returns who wrote a checked value and its version. It reports false for any other bytes: another program's value,
// a torn one, one cut short.
func ReadHeader(b []byte) (writer, version uint64, ok bool) {
	if len(b) < HeaderSize || uint64(binary.LittleEndian.Uint32(b[20:])) != uint64(len(b)) ||
		binary.LittleEndian.Uint32(b[16:]) != checksum(b) {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), true
}
