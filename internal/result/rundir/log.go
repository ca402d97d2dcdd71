package rundir

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

const (
	magic       = "LGSNAP1\n"
	prefixSize  = 8                               // size and checksum
	maxSnapshot = 16 << 20                        // bytes
	maxSize     = 1 + math.MaxUint8 + maxSnapshot // bytes of a record without its prefix
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// TornError says where a log stops being valid.
type TornError struct {
	Offset int64 // offset of the first byte that does not belong to a whole record
	Why    string
}

func (e *TornError) Error() string {
	return fmt.Sprintf("no whole record at byte %d of the snapshot log: %s", e.Offset, e.Why)
}

// appendRecord appends a snapshot's record. It refuses a worker name over 255 bytes and a snapshot over 16 MiB.
func appendRecord(dst []byte, worker string, snapshot []byte) ([]byte, error) {
	if len(worker) > math.MaxUint8 {
		return dst, fmt.Errorf("a worker's name of %d bytes, at most %d are kept", len(worker), math.MaxUint8)
	}
	if len(snapshot) > maxSnapshot {
		return dst, fmt.Errorf("a snapshot of %d bytes, at most %d are kept", len(snapshot), maxSnapshot)
	}
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(1+len(worker)+len(snapshot)))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = append(dst, byte(len(worker)))
	dst = append(dst, worker...)
	dst = append(dst, snapshot...)
	binary.LittleEndian.PutUint32(dst[at+4:], checksum(dst[at:at+4], dst[at+prefixSize:]))
	return dst, nil
}

func checksum(size, rest []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, size), castagnoli, rest)
}

// readRecords calls f with each record of a log, in order: snapshots and, without a worker's name, the coordinator's own records. f must not retain its
// arguments. It returns f's error if there is one, a *TornError if the log does not end with a whole record, and errors of r. It holds one record in
// memory.
func readRecords(r io.Reader, f func(worker, record []byte) error) error {
	in := bufio.NewReader(r)
	var head [len(magic)]byte
	if n, err := io.ReadFull(in, head[:]); err != nil {
		return torn(0, n, len(head), "the file's head", err)
	}
	if string(head[:]) != magic {
		return &TornError{Why: fmt.Sprintf("it begins with %q, not %q", head[:], magic)}
	}
	at := int64(len(head))
	var buf bytes.Buffer
	for {
		var prefix [prefixSize]byte
		switch n, err := io.ReadFull(in, prefix[:]); {
		case err == io.EOF:
			return nil
		case err != nil:
			return torn(at, n, len(prefix), "a record's head", err)
		}
		size := binary.LittleEndian.Uint32(prefix[:])
		if size == 0 || size > maxSize {
			return &TornError{at, fmt.Sprintf("a record of %d bytes", size)}
		}
		buf.Reset()
		if n, err := io.CopyN(&buf, in, int64(size)); err != nil { // takes memory as data arrives, so that a wrong size costs none
			return torn(at, int(n), int(size), "a record", err)
		}
		body := buf.Bytes()
		name := int(body[0])
		if checksum(prefix[:4], body) != binary.LittleEndian.Uint32(prefix[4:]) || 1+name > len(body) {
			return &TornError{at, "the checksum is wrong"}
		}
		if err := f(body[1:1+name], body[1+name:]); err != nil {
			return err
		}
		at += prefixSize + int64(size)
	}
}

// torn returns a *TornError for a file that ends too early, and other read errors as they are.
func torn(at int64, got, want int, what string, err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return &TornError{at, fmt.Sprintf("%d of the %d bytes of %s", got, want, what)}
	}
	return fmt.Errorf("read %s at byte %d of the snapshot log: %w", what, at, err)
}
