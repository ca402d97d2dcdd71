// Package trace reads records of what clients once asked of a cache, in order to ask it again.
//
// Two forms are read, both of lines of fields with commas between them and no quotes:
//
//	form    fields
//	cache   timestamp, key, key size, value size, client, op, TTL; no head. This is how the traces of production caches are published
//	        (Yang, Yue and Rashmi, A large scale analysis of hundreds of in-memory cache clusters at Twitter, OSDI 2020).
//	csv     named by the first line: time, op and key, and where they are there size and ttl; others are ignored
//
// Times and TTLs are seconds, with a fraction or without; times never go back. A TTL of 0 is none.
//
//	op of the trace                                             here
//	get, gets                                                   get
//	set, add, replace, cas, append, prepend, incr, decr, put    put of a value of the size
//	delete                                                      delete
//	any other                                                   left out, and counted
//
// Nothing is held but the line at hand, whatever the length of the trace.
package trace

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Forms are the names of the forms.
var forms = []string{"cache", "csv"}

const (
	maxLine  = 64 << 10  // bytes
	maxKey   = 250       // bytes, as of all keys
	maxValue = 512 << 20 // bytes, as of all values
	maxTTL   = 30 * 24 * 3600 * 1000
	maxTime  = int64(365*24*3600) * 1e9 // of a trace, as of all durations
	maxNames = 32                       // different ops that are told apart
)

// Record is a line that is an op.
type Record struct {
	Line int64 // from 1
	At   int64 // ns since the trace's first line
	Verb driver.Verb
	Key  []byte // valid until the next call of Next
	Size int    // of the value, bytes
	TTL  uint32 // ms; 0: none
}

// Error is a line that cannot be read.
type Error struct {
	Line, Column int64
	What         string
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.What) }

// Reader reads a trace line by line.
type Reader struct {
	lines   *bufio.Scanner
	columns [numFields]int // of each field; −1: not there
	head    bool           // the first line names the fields
	line    int64
	began   bool
	first   int64
	last    int64
	fields  [][]byte
	op      []byte // of the line read last
}

// field is what a column holds.
type field int

const (
	timeField field = iota
	opField
	keyField
	sizeField
	ttlField
	numFields
)

var fieldNames = [numFields]string{"time", "op", "key", "size", "ttl"}

// NewReader returns a reader of one of the forms.
func NewReader(r io.Reader, form string) (*Reader, error) {
	t := &Reader{lines: bufio.NewScanner(r)}
	t.lines.Buffer(make([]byte, 64<<10), maxLine)
	switch form {
	case "cache":
		t.columns = [numFields]int{timeField: 0, keyField: 1, sizeField: 3, opField: 5, ttlField: 6}
	case "csv":
		t.head = true
	default:
		return nil, fmt.Errorf("a trace of form %q: there are %s and %s", form, forms[0], forms[1])
	}
	return t, nil
}

// Next reads the next line that is an op; ok is false for one that is left out. It returns io.EOF at the end, and an *Error for a line that cannot
// be read.
func (t *Reader) Next(rec *Record) (ok bool, err error) {
	if t.head {
		if err := t.names(); err != nil {
			return false, err
		}
	}
	if !t.scan() {
		return false, t.ended()
	}
	at, err := t.seconds(timeField)
	if err != nil {
		return false, err
	}
	if !t.began {
		t.began, t.first, t.last = true, at, at
	}
	switch {
	case at < t.last:
		return false, t.fault(timeField, "the time goes back")
	case at-t.first > maxTime:
		return false, t.fault(timeField, "more than a year after the first line")
	}
	t.last = at
	if t.op, err = t.at(opField); err != nil {
		return false, err
	}
	verb, known := verbOf(t.op)
	if !known {
		return false, nil
	}
	*rec = Record{Line: t.line, At: at - t.first, Verb: verb}
	return true, t.rest(rec)
}

// rest reads what is not needed of a line that is left out.
func (t *Reader) rest(rec *Record) (err error) {
	if rec.Key, err = t.at(keyField); err != nil {
		return err
	}
	if len(rec.Key) == 0 || len(rec.Key) > maxKey {
		return t.fault(keyField, fmt.Sprintf("a key of %d bytes, want 1 to %d", len(rec.Key), maxKey))
	}
	for _, c := range rec.Key {
		if c <= ' ' || c >= 0x7f {
			return t.fault(keyField, fmt.Sprintf("a key with the byte %#02x, want printable ASCII without spaces", c))
		}
	}
	if rec.Verb != driver.Put {
		return nil
	}
	if t.columns[sizeField] >= 0 {
		size, err := t.seconds(sizeField)
		if err != nil {
			return err
		}
		if rec.Size = int(size / 1e9); size%1e9 != 0 || rec.Size > maxValue {
			return t.fault(sizeField, fmt.Sprintf("want a number of bytes up to %d", maxValue))
		}
	}
	if t.columns[ttlField] >= 0 {
		ttl, err := t.seconds(ttlField)
		if err != nil {
			return err
		}
		rec.TTL = uint32(min((ttl+1e6-1)/1e6, maxTTL))
	}
	return nil
}

// Op returns what the trace calls the op of the line read last.
func (t *Reader) Op() []byte { return t.op }

// scan splits the next line.
func (t *Reader) scan() bool {
	if !t.lines.Scan() {
		return false
	}
	t.line++
	t.fields = t.fields[:0]
	for rest, more := t.lines.Bytes(), true; more; {
		var f []byte
		f, rest, more = bytes.Cut(rest, []byte{','})
		t.fields = append(t.fields, bytes.TrimSpace(f))
	}
	return true
}

// ended says why there is no further line.
func (t *Reader) ended() error {
	switch err := t.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return &Error{t.line + 1, 1, fmt.Sprintf("a line of more than %d bytes", maxLine)}
	case err != nil:
		return err
	}
	return io.EOF
}

// names reads the first line of a csv.
func (t *Reader) names() error {
	if !t.scan() {
		return t.ended()
	}
	t.head = false
	for f, name := range fieldNames {
		t.columns[f] = slices.IndexFunc(t.fields, func(b []byte) bool { return string(bytes.ToLower(b)) == name })
		if t.columns[f] < 0 && field(f) <= keyField {
			return &Error{1, 1, fmt.Sprintf("no column %q: the first line names the columns time, op and key, and if there are any size and ttl", name)}
		}
	}
	return nil
}

// at returns a field of the line.
func (t *Reader) at(f field) ([]byte, error) {
	i := t.columns[f]
	if i >= len(t.fields) {
		return nil, &Error{t.line, 1, fmt.Sprintf("%d fields, and the %s would be number %d", len(t.fields), fieldNames[f], i+1)}
	}
	return t.fields[i], nil
}

// fault is an error at a field.
func (t *Reader) fault(f field, what string) error {
	column := int64(1)
	for _, before := range t.fields[:min(t.columns[f], len(t.fields))] {
		column += int64(len(before)) + 1
	}
	return &Error{t.line, column, fieldNames[f] + ": " + what}
}

// seconds reads a number of seconds as nanoseconds; of sizes it is a number of bytes times 10⁹.
func (t *Reader) seconds(f field) (int64, error) {
	text, err := t.at(f)
	if err != nil {
		return 0, err
	}
	whole, fraction, _ := bytes.Cut(text, []byte{'.'})
	n, digits := int64(0), 0
	for _, part := range [][]byte{whole, fraction} {
		for _, c := range part {
			if c < '0' || c > '9' || n > math.MaxInt64/10-9 {
				return 0, t.fault(f, fmt.Sprintf("%q is not a number of up to nine digits behind the point", text[:min(len(text), 40)]))
			}
			n = n*10 + int64(c-'0')
			digits++
		}
	}
	if digits == 0 || len(fraction) > 9 {
		return 0, t.fault(f, fmt.Sprintf("%q is not a number of up to nine digits behind the point", text[:min(len(text), 40)]))
	}
	for range 9 - len(fraction) {
		if n > math.MaxInt64/10 {
			return 0, t.fault(f, fmt.Sprintf("%q is too large", text[:min(len(text), 40)]))
		}
		n *= 10
	}
	return n, nil
}

// verbOf returns what an op of a trace is here.
func verbOf(name []byte) (driver.Verb, bool) {
	switch string(name) {
	case "get", "gets":
		return driver.Get, true
	case "set", "add", "replace", "cas", "append", "prepend", "incr", "decr", "put":
		return driver.Put, true
	case "delete":
		return driver.Delete, true
	}
	return 0, false
}

// Facts are what is known of a trace once it has been read.
type Facts struct {
	SHA256  string // of its bytes, in lower-case hex
	Lines   int64  // that are ops here
	Span    int64  // ns from the first line to the last
	Size    int    // of the largest value
	Verbs   [driver.NumVerbs]int64
	Ops     map[string]int64 // lines by the trace's own op, of those that are ops here
	LeftOut map[string]int64 // and of the others
}

// Read reads all of a trace and says what is in it.
func Read(r io.Reader, form string) (Facts, error) {
	sum := sha256.New()
	t, err := NewReader(io.TeeReader(r, sum), form)
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Ops: map[string]int64{}, LeftOut: map[string]int64{}}
	var rec Record
	for {
		ok, err := t.Next(&rec)
		if err == io.EOF {
			break
		}
		if err != nil {
			return Facts{}, err
		}
		into := f.Ops
		if !ok {
			into = f.LeftOut
		} else {
			f.Lines++
			f.Verbs[rec.Verb]++
			f.Size = max(f.Size, rec.Size)
		}
		name := string(t.Op()[:min(len(t.Op()), 40)])
		if _, known := into[name]; !known && len(into) >= maxNames {
			name = "others"
		}
		into[name]++
	}
	if f.Lines == 0 {
		return Facts{}, &Error{max(t.line, 1), 1, "no line of the trace is an op"}
	}
	f.Span = t.last - t.first
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return f, nil
}
