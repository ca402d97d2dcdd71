// Package keyset holds the keys of a file, by number.
//
//	form    a key is
//	lines   a line
//	csv     the field of a column, which has a name that the first line gives it, or a number from 1 where no line names columns
//	json    a field of the object on a line
//
// A set takes the bytes of its keys and four for each, in two allocations when its size is known beforehand, as it is once the file was checked.
package keyset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"io"
	"strconv"

	"github.com/loadgen/loadgen/internal/fields"
)

// The forms.
const (
	Lines = "lines"
	CSV   = "csv"
	JSON  = "json"
)

// MaxBytes bounds what a set takes.
const MaxBytes = 256 << 20

// each is what a key takes beside its text.
const each = 4

// Set is the keys of a file in its order. It does not change, so any number of goroutines may use it.
type Set struct {
	text []byte
	ends []uint32 // of key i, in text
}

// Len returns how many keys there are.
func (s *Set) Len() int { return len(s.ends) }

// Bytes returns what the set takes.
func (s *Set) Bytes() int64 { return int64(len(s.text) + each*len(s.ends)) }

// Append appends key i.
func (s *Set) Append(dst []byte, i uint64) []byte { return append(dst, s.at(i)...) }

func (s *Set) at(i uint64) []byte {
	from := uint32(0)
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.text[from:s.ends[i]]
}

// Source is where in a file keys are.
type Source struct {
	Form  string
	Field string // of csv and json
}

// reader returns a reader whose field 0 is the key.
func (s Source) reader(r io.Reader) (*fields.Reader, error) {
	kind, name, columns := fields.Lines, s.Field, []int(nil)
	switch s.Form {
	case Lines:
	case CSV:
		kind = fields.CSV
		if n, err := strconv.ParseUint(s.Field, 10, 16); err == nil && n > 0 {
			name, columns = "key", []int{int(n) - 1}
		}
	case JSON:
		kind = fields.JSON
	default:
		return nil, fmt.Errorf("keys in the form %q: there are %s, %s and %s", s.Form, Lines, CSV, JSON)
	}
	return fields.NewReader(r, kind, []string{name}, 1, columns), nil
}

// Read reads a file and returns its keys and its SHA-256 in lower-case hex. Room is made for so many keys in so many bytes; 0: as they come. A mistake in the
// file is a *fields.Error.
func Read(r io.Reader, from Source, keys, bytes int64) (*Set, string, error) {
	s := &Set{}
	if bytes = min(bytes, MaxBytes); keys > 0 && bytes >= keys*each {
		s.text, s.ends = make([]byte, 0, bytes-keys*each), make([]uint32, 0, keys)
	}
	digest, err := s.read(r, from, MaxBytes, func(*fields.Reader) error { return nil })
	return s, digest, err
}

// read fills the set, up to most bytes, and has each key looked at when it is in.
func (s *Set) read(r io.Reader, from Source, most int64, look func(*fields.Reader) error) (digest string, err error) {
	sum := sha256.New()
	lines, err := from.reader(io.TeeReader(r, sum))
	if err != nil {
		return "", err
	}
	for {
		switch err := lines.Next(); {
		case err == io.EOF && len(s.ends) == 0:
			return "", &fields.Error{Line: max(lines.Line(), 1), Column: 1, What: "no line has a key"}
		case err == io.EOF:
			return hex.EncodeToString(sum.Sum(nil)), nil
		case err != nil:
			return "", err
		}
		key, err := lines.Key(0)
		if err != nil {
			return "", err
		}
		if s.Bytes()+int64(len(key))+each > most {
			return "", lines.Fault(0, fmt.Sprintf("more than the %d MiB that keys may take, with %d bytes for each: write fewer keys, or make them by a format", MaxBytes>>20, each))
		}
		s.text = append(s.text, key...)
		s.ends = append(s.ends, uint32(len(s.text)))
		if err := look(lines); err != nil {
			return "", err
		}
	}
}

// Facts are what is known of a file once it was checked.
type Facts struct {
	SHA256 string // of its bytes, in lower-case hex
	Keys   int64
	Bytes  int64 // that a set of them takes
}

// Check reads a file as Read does, and refuses a key that is there twice.
func Check(r io.Reader, from Source) (Facts, error) {
	s, seen := &Set{}, newTable()
	digest, err := s.read(r, from, MaxBytes, func(lines *fields.Reader) error {
		i := uint64(len(s.ends) - 1)
		if before, twice := seen.put(s, i); twice {
			return lines.Fault(0, fmt.Sprintf("%q is key %d of the file and again key %d: write each key once", s.at(i), before+1, i+1))
		}
		return nil
	})
	return Facts{SHA256: digest, Keys: int64(s.Len()), Bytes: s.Bytes()}, err
}

// table finds keys of a set by their text: open addressing, at most three quarters full.
type table struct {
	seed  maphash.Seed
	slots []uint32 // number of a key from 1; 0: free
	n     int
}

func newTable() *table { return &table{seed: maphash.MakeSeed(), slots: make([]uint32, 1024)} }

// put enters key i, and returns the number of one with the same text where there is one.
func (t *table) put(s *Set, i uint64) (before uint64, twice bool) {
	if t.n >= len(t.slots)/4*3 {
		old := t.slots
		t.slots = make([]uint32, 2*len(old))
		for _, number := range old {
			if number > 0 {
				t.slots[t.find(s, s.at(uint64(number-1)))] = number
			}
		}
	}
	slot := t.find(s, s.at(i))
	if number := t.slots[slot]; number > 0 {
		return uint64(number - 1), true
	}
	t.slots[slot] = uint32(i + 1)
	t.n++
	return 0, false
}

// find returns the slot that has a key, or the free one where it belongs.
func (t *table) find(s *Set, key []byte) uint64 {
	mask := uint64(len(t.slots) - 1)
	slot := maphash.Bytes(t.seed, key) & mask
	for t.slots[slot] > 0 && string(s.at(uint64(t.slots[slot]-1))) != string(key) {
		slot = (slot + 1) & mask
	}
	return slot
}
