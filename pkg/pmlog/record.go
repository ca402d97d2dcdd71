package pmlog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

const (
	line         = 64 // of a cache: the unit of a flush
	recordHeader = 24
	markAt       = 16      // of a record
	published    = 1 << 31 // in a record's length: a header of zeros is no record
	maxPayload   = published - 1

	// lagAt is the bit at which the lag of a grouped log's record begins, above its number.
	lagAt         = 64 - maxUnsyncedBits
	maxLag        = 1<<maxUnsyncedBits - 1
	maxGroupedSeq = 1<<lagAt - 1
)

// paddings lists the multiples at which records may begin.
var paddings = []int{8, 64, 256}

// mark returns the word that only a record of this era, at this offset, in the log with this salt has.
func mark(salt uint64, off int64, era uint64) uint64 { return mix(salt+uint64(off)) ^ era }

// mix is the finalizer of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func blank(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// record is the header of a record.
type record struct {
	sum  uint32 // CRC32C of the payload, combined by XOR with fold of the other fields
	size uint32 // of the payload, plus published
	seq  uint64
	mark uint64
	lag  uint64 // in a grouped log: how many records before this one were not known to be durable when it was stored
}

// seal fills head for a payload of n bytes with the CRC32C sum, or with 0 if a medium's Seal will add it.
func seal(head *[recordHeader]byte, n int, sum uint32, seq, mark uint64) {
	size := uint32(n) | published
	binary.LittleEndian.PutUint64(head[:], uint64(size)<<32|uint64(sum^fold(size, seq, mark)))
	binary.LittleEndian.PutUint64(head[8:], seq)
	binary.LittleEndian.PutUint64(head[16:], mark)
}

// fold returns what a record's other fields contribute to its checksum. It takes a third of the time of their CRC32C.
func fold(size uint32, seq, mark uint64) uint32 {
	return uint32(mix(mark ^ mix(seq^uint64(size)<<32)))
}

func decodeRecord(p []byte) record {
	return record{
		sum: binary.LittleEndian.Uint32(p), size: binary.LittleEndian.Uint32(p[4:]),
		seq: binary.LittleEndian.Uint64(p[8:]), mark: binary.LittleEndian.Uint64(p[16:]),
	}
}

// span returns how many bytes a record takes if another follows it.
func span(payload, padding int64) int64 {
	return (recordHeader + payload + padding - 1) / padding * padding
}

// window reads a region piece by piece.
type window struct {
	region Region
	lo     int64
	buf    []byte // the bytes from lo on
}

const windowSize = 64 << 10

// view returns n bytes at off, or fewer at the end of the region. They are valid until the next call.
func (w *window) view(off, n int64) ([]byte, error) {
	if n = min(n, w.region.Size()-off); n <= 0 {
		return nil, nil
	}
	if off < w.lo || off+n > w.lo+int64(len(w.buf)) {
		if err := w.fill(off, max(n, windowSize)); err != nil {
			return nil, err
		}
	}
	return w.buf[off-w.lo:][:n], nil
}

func (w *window) fill(off, n int64) error {
	n = min(n, w.region.Size()-off)
	if int64(cap(w.buf)) < n {
		w.buf = make([]byte, n)
	}
	w.lo, w.buf = off, w.buf[:n]
	if got, err := w.region.ReadAt(w.buf, off); int64(got) < n {
		w.buf = w.buf[:0]
		return errors.Join(err, io.ErrUnexpectedEOF)
	}
	return nil
}

// forget drops what was read before, which may have changed.
func (w *window) forget() { w.buf = w.buf[:0] }

// head returns the header of the record at off, if there is one. Bytes that are no record have no valid mark, nor does the zero record returned at
// the end of the region.
func (w *window) head(off int64) (record, error) {
	head, err := w.view(off, recordHeader)
	if len(head) < recordHeader { // always so if there is an error
		return record{}, err
	}
	return decodeRecord(head), nil
}

// payload returns the payload of the record at off with the header r, or false if they do not match.
func (w *window) payload(off int64, r record) ([]byte, bool, error) {
	n := int64(r.size &^ published)
	if r.size < published || n > w.region.Size()-off-recordHeader {
		return nil, false, nil
	}
	whole, err := w.view(off, recordHeader+n)
	if err != nil {
		return nil, false, err
	}
	return whole[recordHeader:], r.fits(whole[recordHeader:]), nil
}

// fits reports whether the checksum matches the payload and the other fields.
func (r record) fits(payload []byte) bool {
	return crc32.Checksum(payload, castagnoli)^fold(r.size, r.seq, r.mark) == r.sum
}

// word returns the first 8 bytes, which commit a record in logs that commit by length.
func (r record) word() uint64 { return uint64(r.size)<<32 | uint64(r.sum) }
