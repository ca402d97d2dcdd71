package pmlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// MashonaChannelLen returns how many bytes a MappedFileChannel of Mashona holds, according to its side file NAME.pmem. They are the first bytes of
// the file itself.
func MashonaChannelLen(side io.ReaderAt, data int64) (int64, error) {
	var head [12]byte
	if n, err := side.ReadAt(head[:], 0); n < len(head) {
		return 0, fmt.Errorf("read the side file of a Mashona channel: %w", err)
	}
	if string(head[:8]) != "TRBMFCM1" {
		return 0, fmt.Errorf("the side file of a Mashona channel begins with %q: %w", head[:8], ErrCorrupt)
	}
	n := int64(int32(binary.BigEndian.Uint32(head[8:])))
	if n < 0 || n > data {
		return 0, fmt.Errorf("the side file of a Mashona channel says %d of %d bytes: %w", n, data, ErrCorrupt)
	}
	return n, nil
}

// MashonaSlot appends to dst the value of a slot of a Mashona ArrayStore, or nothing if the slot is empty. The caller gives the capacity that the
// store was created with, as its file does not. A value whose checksum is wrong is ErrCorrupt; the library takes it for empty.
func MashonaSlot(file io.ReaderAt, capacity, slot int, dst []byte) ([]byte, error) {
	stride := (int64(capacity) + mashonaHeader + mashonaBlocks - 1) / mashonaBlocks * mashonaBlocks
	off := stride * int64(slot)
	var head [mashonaHeader]byte
	if n, err := file.ReadAt(head[:], off); n < len(head) {
		return dst, fmt.Errorf("read slot %d of a Mashona array: %w", slot, err)
	}
	n, old := int64(binary.BigEndian.Uint32(head[:])), len(dst)
	if n > int64(capacity) {
		return dst, fmt.Errorf("slot %d of a Mashona array has %d bytes of %d: %w", slot, n, capacity, ErrCorrupt)
	}
	dst = append(dst, make([]byte, n)...)
	if got, err := file.ReadAt(dst[old:], off+mashonaHeader); int64(got) < n {
		return dst[:old], fmt.Errorf("read slot %d of a Mashona array: %w", slot, err)
	}
	if n > 0 && crc32.Checksum(dst[old:], castagnoli) != binary.BigEndian.Uint32(head[4:]) {
		return dst[:old], fmt.Errorf("slot %d of a Mashona array: %w", slot, ErrCorrupt)
	}
	return dst, nil
}
