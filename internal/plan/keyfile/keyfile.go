// Package keyfile holds the keys or values from the lines of a file, by number.
//
//	form    an entry is
//	lines   a line
//	csv     the field in a column, given by its name in the first line or, if no line names columns, by its number from 1
//	json    a field of the object on a line
//
// A key is text that all protocols accept as a key. A value is text in UTF-8, or bytes given in base64. A value from a JSON object may be any
// field; one that is neither text nor a number is taken as it is written.
//
// A set takes the bytes of its entries and four more for each. If its size is known, as it is once the file has been checked, it makes only two
// allocations.
package keyfile

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/loadgen/loadgen/internal/plan/rowfile"
)

// The forms.
const (
	Lines = "lines"
	CSV   = "csv"
	JSON  = "json"
)

// Base64 is the encoding of values that are not text.
const Base64 = "base64"

// maxBytes bounds the memory of a set.
const maxBytes = 256 << 20

const (
	each    = 4        // overhead of an entry, in bytes
	maxLine = 16 << 20 // bytes: a line may hold a large value beside a key
)

// Set holds the entries of a file in order. It is immutable, so any number of goroutines may use it.
type Set struct {
	text []byte
	ends []uint32 // end of entry i in text

	columns []string // of rows
}

// Len returns the number of entries.
func (s *Set) Len() int { return len(s.ends) }

// Bytes returns the memory of the set in bytes.
func (s *Set) Bytes() int64 { return int64(len(s.text) + each*len(s.ends)) }

// Append appends entry i.
func (s *Set) Append(dst []byte, i uint64) []byte { return append(dst, s.at(i)...) }

// Text returns entry i.
func (s *Set) Text(i uint64) string { return string(s.at(i)) }

// Size returns the size of entry i in bytes.
func (s *Set) Size(i uint64) int { return len(s.at(i)) }

func (s *Set) at(i uint64) []byte {
	from := uint32(0)
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.text[from:s.ends[i]]
}

// Source says where in a file the entries are, and what kind of entries.
type Source struct {
	Form     string
	Field    string // for csv and json
	Values   bool   // entries are values, not keys
	Encoding string // for values: Base64, or "" for text
}

// reader returns a reader whose field 0 is the entry.
func (s Source) reader(r io.Reader) (*rowfile.Reader, error) {
	kind, name, columns := rowfile.Lines, s.Field, []int(nil)
	switch s.Form {
	case Lines:
	case CSV:
		kind = rowfile.CSV
		if n, err := strconv.ParseUint(s.Field, 10, 16); err == nil && n > 0 {
			name, columns = s.what(), []int{int(n) - 1}
		}
	case JSON:
		kind = rowfile.JSON
	default:
		return nil, fmt.Errorf("%ss in the form %q: there are %s, %s and %s", s.what(), s.Form, Lines, CSV, JSON)
	}
	lines := rowfile.NewReader(r, kind, []string{name}, 1, columns)
	lines.Widen(maxLine)
	if s.Values {
		lines.TakeAny()
	}
	return lines, nil
}

// what returns the word for an entry.
func (s Source) what() string {
	if s.Values {
		return "value"
	}
	return "key"
}

// tooMuch says what to do if the entries take too much memory.
func (s Source) tooMuch() string {
	instead := "write fewer keys, or make them by a format"
	if s.Values {
		instead = "write fewer values, or let them be made by a size"
	}
	return fmt.Sprintf("more than the %d MiB that %ss may take, with %d bytes for each: %s", maxBytes>>20, s.what(), each, instead)
}

// take appends the entry of a line.
func (s Source) take(dst []byte, lines *rowfile.Reader) ([]byte, error) {
	if !s.Values {
		key, err := lines.Key(0)
		return append(dst, key...), err
	}
	text, _ := lines.Get(0)
	switch {
	case s.Form == Lines && len(text) == 0:
		return dst, lines.Fault(0, `an empty line: delete it, or write the values as CSV, where "" is an empty one`)
	case s.Encoding == Base64:
		all, err := base64.StdEncoding.AppendDecode(dst, text)
		if at, ok := errors.AsType[base64.CorruptInputError](err); ok {
			return dst, lines.Fault(0, fmt.Sprintf("no base64 at its byte %d: write A to Z, a to z, 0 to 9, + and /, with = at the end", int64(at)+1))
		}
		return all, err
	case !utf8.Valid(text):
		return dst, lines.Fault(0, `not UTF-8: write the values in base64, and encoding = "base64" in the plan`)
	}
	return append(dst, text...), nil
}

// Read reads a file and returns its entries and its SHA-256 in lower-case hex. It preallocates for count entries that take that many bytes in a set;
// 0 if unknown. A mistake in the file is a *rowfile.Error.
func Read(r io.Reader, from Source, count, bytes int64) (*Set, string, error) {
	s := &Set{}
	if bytes = min(bytes, maxBytes); count > 0 && count <= bytes/each {
		s.text, s.ends = make([]byte, 0, bytes-count*each), make([]uint32, 0, count)
	}
	digest, err := s.read(r, from, maxBytes, func(*rowfile.Reader) error { return nil })
	return s, digest, err
}

// read fills the set, up to most bytes, and calls look after adding each entry.
func (s *Set) read(r io.Reader, from Source, most int64, look func(*rowfile.Reader) error) (digest string, err error) {
	sum := sha256.New()
	if from.Form == RowForm {
		err = s.readRows(io.TeeReader(r, sum))
		return digestOf(sum), err
	}
	lines, err := from.reader(io.TeeReader(r, sum))
	if err != nil {
		return "", err
	}
	for {
		switch err := lines.Next(); {
		case err == io.EOF && len(s.ends) == 0:
			return "", &rowfile.Error{Line: max(lines.Line(), 1), Column: 1, What: "no line has a " + from.what()}
		case err == io.EOF:
			return digestOf(sum), nil
		case err != nil:
			return "", err
		}
		text, err := from.take(s.text, lines)
		if err != nil {
			return "", err
		}
		if int64(len(text)+each*(len(s.ends)+1)) > most {
			return "", lines.Fault(0, from.tooMuch())
		}
		s.text = text
		s.ends = append(s.ends, uint32(len(s.text)))
		if err := look(lines); err != nil {
			return "", err
		}
	}
}

// Facts holds the results of checking a file.
type Facts struct {
	SHA256  string   // hash of the file's bytes, in lower-case hex
	Count   int64    // of entries, or of rows
	Columns []string // of rows
	Bytes   int64    // memory of a set of the entries
	Least   int      // bytes of the smallest entry
	Largest int      // bytes of the largest entry
}

// Check reads a file as Read does, and refuses repeated keys.
func Check(r io.Reader, from Source) (Facts, error) {
	s, seen := &Set{}, &table{seed: maphash.MakeSeed(), slots: make([]uint32, 1024)}
	f := Facts{Least: maxLine}
	digest, err := s.read(r, from, maxBytes, func(lines *rowfile.Reader) error {
		i := uint64(len(s.ends) - 1)
		f.Least, f.Largest = min(f.Least, s.Size(i)), max(f.Largest, s.Size(i))
		if from.Values {
			return nil
		}
		if before, twice := seen.put(s, i); twice {
			return lines.Fault(0, fmt.Sprintf("%q is key %d of the file and again key %d: write each key once", s.at(i), before+1, i+1))
		}
		return nil
	})
	f.SHA256, f.Columns, f.Count, f.Bytes = digest, s.columns, int64(s.Len()/max(1, len(s.columns))), s.Bytes()
	return f, err
}

// table finds keys of a set by text: a hash table with open addressing, at most three quarters full.
type table struct {
	seed  maphash.Seed
	slots []uint32 // number of a key, from 1; 0 for a free slot
	n     int
}

// put adds key i, unless a key with the same text exists, whose number it then returns.
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

// find returns the slot that holds a key, or the free one where it belongs.
func (t *table) find(s *Set, key []byte) uint64 {
	mask := uint64(len(t.slots) - 1)
	slot := maphash.Bytes(t.seed, key) & mask
	for t.slots[slot] > 0 && string(s.at(uint64(t.slots[slot]-1))) != string(key) {
		slot = (slot + 1) & mask
	}
	return slot
}
