package pmlog

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/pkg/pmem"
)

// Offsets in a region with a header; the package comment shows them.
const (
	family     = "LGPMLOG" // the magic of all versions; a digit follows
	magic      = family + "1"
	magic2     = family + "2" // of grouped logs, which programs that know only version 1 would misread
	headerSize = 128
	secondCopy = 4096
	dataStart  = 8192
)

// layout is the kind of log that a header describes.
type layout byte

const (
	appendLayout layout = iota + 1
	channelLayout
	arrayLayout
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is a log's description of itself, stored beside its records.
type header struct {
	layout  layout
	relaxed bool
	grouped bool
	length  bool // records are committed by their length
	clean   bool // closed, and not opened since
	padding uint32

	salt       uint64 // makes one log's marks meaningless in others
	serial     uint64 // counts the headers written
	generation uint64 // the era in which the log was last cleared
	era        uint64 // counts creation, recoveries and clears
	first      uint64 // sequence number of the generation's first record
	checkpoint uint64 // offset up to which everything is durable
	next       uint64 // sequence number of the record at the checkpoint
	holes      uint64 // number of sequence numbers before next that no record has
	slots      uint64
	capacity   uint64 // of a slot; of a channel's data
	size       uint64 // of the region
}

// words returns the 8-byte fields in the order in which they are stored, from byte 16 on.
func (h *header) words() []*uint64 {
	return []*uint64{&h.salt, &h.serial, &h.generation, &h.era, &h.first, &h.checkpoint, &h.next, &h.holes, &h.slots, &h.capacity, &h.size}
}

// encode fills p, which has headerSize bytes.
func (h *header) encode(p []byte) {
	clear(p)
	copy(p, magic)
	if h.grouped {
		copy(p, magic2)
	}
	p[8] = byte(h.layout)
	for i, flag := range []bool{h.relaxed, h.length, h.clean} {
		if flag {
			p[9+i] = 1
		}
	}
	binary.LittleEndian.PutUint32(p[12:], h.padding)
	for i, word := range h.words() {
		binary.LittleEndian.PutUint64(p[16+8*i:], *word)
	}
	binary.LittleEndian.PutUint32(p[headerSize-4:], crc32.Checksum(p[:headerSize-4], castagnoli))
}

// decodeHeader reads a copy of the header of a region of the given size.
func decodeHeader(p []byte, size int64) (header, error) {
	var h header
	switch {
	case string(p[:len(magic)]) != magic && string(p[:len(magic)]) != magic2:
		return h, stray(string(p[:len(magic)]))
	case crc32.Checksum(p[:headerSize-4], castagnoli) != binary.LittleEndian.Uint32(p[headerSize-4:]):
		return h, errors.New("its checksum is wrong")
	}
	h.layout, h.relaxed, h.length, h.clean = layout(p[8]), p[9] != 0, p[10] != 0, p[11] != 0
	h.grouped = string(p[:len(magic)]) == magic2
	h.padding = binary.LittleEndian.Uint32(p[12:])
	for i, word := range h.words() {
		*word = binary.LittleEndian.Uint64(p[16+8*i:])
	}
	return h, h.check(size)
}

// stray returns the error for a header that does not begin with the magic.
func stray(begins string) error {
	if version, ok := strings.CutPrefix(begins, family); ok && version >= "0" && version <= "9" {
		return fmt.Errorf("%w: %s, not %s or %s; open it with a loadgen that writes version %s",
			ErrVersion, version, magic[len(family):], magic2[len(family):], version)
	}
	return fmt.Errorf("it begins with %q instead of %q", begins, magic)
}

// check returns an error if a region of the given size cannot have this header.
func (h *header) check(size int64) error {
	switch {
	case !slices.Contains(paddings, int(h.padding)):
		return fmt.Errorf("its padding is %d", h.padding)
	case h.size > uint64(size):
		return fmt.Errorf("it is of a region of %d bytes, of which there are %d", h.size, size)
	case h.generation < 1 || h.generation > h.era:
		return fmt.Errorf("its generation is %d of %d", h.generation, h.era)
	case h.checkpoint < dataStart || h.size < dataStart || h.checkpoint > h.size+uint64(h.padding) || h.checkpoint%uint64(h.padding) != 0:
		return fmt.Errorf("its checkpoint is at %d of %d bytes", h.checkpoint, size)
	case h.grouped && (h.layout != appendLayout || h.relaxed || h.length || h.next > maxGroupedSeq+1):
		return errors.New("it is grouped, and what a grouped log is not")
	case h.next < h.first || h.holes > h.next-h.first:
		return fmt.Errorf("its records from %d to %d with %d missing are none", h.first, h.next, h.holes)
	}
	if h.layout == arrayLayout {
		return h.checkSlots()
	}
	return nil
}

// checkSlots returns an error if the region has no room for the slots.
func (h *header) checkSlots() error {
	room := h.size - dataStart
	if h.slots < 1 || h.capacity < 1 || h.capacity > maxPayload || h.padding < line ||
		h.slots > room/2/uint64(span(int64(h.capacity), int64(h.padding))) {
		return fmt.Errorf("its %d slots of %d bytes do not lie in %d bytes", h.slots, h.capacity, h.size)
	}
	return nil
}

// headers maintains the two copies of a header. Once write has returned, either is enough.
type headers struct {
	header
	m    pmem.Medium
	good int // number of a copy that is durable as it is; the other is written first
	buf  [headerSize]byte
}

// newHeaders returns the header of a new log, not yet written.
func newHeaders(r Region, h header) (*headers, error) {
	if r.Size() < dataStart+int64(h.padding) {
		return nil, fmt.Errorf("a region of %d bytes: want at least %d", r.Size(), dataStart+h.padding)
	}
	var salt [8]byte
	_, _ = rand.Read(salt[:]) // never fails
	h.salt, h.era, h.generation = binary.LittleEndian.Uint64(salt[:]), 1, 1
	h.checkpoint, h.first, h.next, h.size = dataStart, 1, 1, uint64(r.Size())
	return &headers{header: h, m: r.Writer()}, nil
}

// createHeaders writes the header of a new log.
func createHeaders(r Region, h header) (*headers, error) {
	hs, err := newHeaders(r, h)
	if err != nil {
		return nil, err
	}
	return hs, hs.write(hs.header)
}

// openHeaders reads the newer of the header's copies, which must be that of a log with the wanted layout. The header read is certain to be durable
// after the next fence of its medium; until then the other copy must not be written.
func openHeaders(r Region, want layout) (*headers, error) {
	hs, _, err := readHeaders(r)
	if err == nil && hs.layout != want {
		err = fmt.Errorf("the log has layout %s, not %s", hs.layout, want)
	}
	if err == nil {
		err = keep(hs.m, int64(hs.good)*secondCopy, headerSize)
	}
	if err != nil {
		return nil, err
	}
	return hs, nil
}

// readHeaders reads the newer of the header's copies, and says what is wrong with each.
func readHeaders(r Region) (hs *headers, wrong [2]error, err error) {
	hs = &headers{m: r.Writer()}
	for i := range wrong {
		n, err := r.ReadAt(hs.buf[:], int64(i)*secondCopy)
		if err != nil && (n == 0 || !errors.Is(err, io.EOF)) {
			return nil, wrong, fmt.Errorf("read the header: %w", err)
		}
		var h header
		h, wrong[i] = decodeHeader(hs.buf[:], r.Size())
		if wrong[i] == nil && h.serial > hs.serial {
			hs.header, hs.good = h, i
		}
	}
	if hs.serial == 0 && errors.Is(wrong[0], ErrVersion) {
		return nil, wrong, wrong[0]
	}
	if hs.serial == 0 {
		return nil, wrong, fmt.Errorf("no copy of the header is valid: the first: %w; the second: %w: %w", wrong[0], wrong[1], ErrCorrupt)
	}
	return hs, wrong, nil
}

// write makes h the header, durably.
func (hs *headers) write(h header) error {
	h.serial = hs.serial + 1
	h.encode(hs.buf[:])
	for _, i := range [2]int{1 - hs.good, hs.good} {
		if err := persist(hs.m, int64(i)*secondCopy, hs.buf[:]); err != nil {
			return fmt.Errorf("write the header: %w", err)
		}
	}
	hs.header = h
	return nil
}

// String returns the name of the layout.
func (l layout) String() string {
	switch l {
	case appendLayout:
		return "append"
	case channelLayout:
		return "channel"
	case arrayLayout:
		return "array"
	}
	return fmt.Sprintf("number %d", byte(l))
}
