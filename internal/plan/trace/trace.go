// Package trace reads recorded ops of cache clients, for replay.
//
// A line is an op:
//
//	form    fields
//	cache   timestamp, key, key size, value size, client, op, TTL; no header. Traces of production caches are published in this form
//	        (Yang, Yue and Rashmi, A large scale analysis of hundreds of in-memory cache clusters at Twitter, OSDI 2020).
//	csv     named by the first line: time, op and key, optionally size and ttl; others are ignored
//	json    an object with fields of these names, text or numbers
//
// The form requests holds whole requests, see [Requests], and mooncake chains of keys, see [Mooncake].
//
// Times and TTLs are seconds, with or without a fraction. Times never decrease. A TTL of 0 means none. If times do not matter, they are
// ignored, and csv and json may lack them.
//
//	op of the trace                                             here
//	get, gets                                                   get
//	set, add, replace, cas, append, prepend, incr, decr, put    put of a value of that size
//	delete                                                      delete
//	any other                                                   left out, and counted
//
// Ops are in any case.
//
// Only the current line is held in memory, whatever the length of the trace.
package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"

	"github.com/loadgen/loadgen/internal/plan/rowfile"
	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	maxValue = 512 << 20 // bytes, as for all values
	maxTTL   = 30 * 24 * 3600 * 1000
	maxTime  = int64(365*24*3600) * 1e9 // ns that a trace may span, as for all durations
	maxNames = 32                       // number of ops that are counted separately
)

// Record is a line that is an op.
type Record struct {
	Line int64 // from 1
	At   int64 // ns since the trace's first line
	Verb driver.Verb
	Key  []byte // valid until the next call of Next
	Size int    // size of a put's value, in bytes; for a get, see Filling
	TTL  uint32 // ms; 0 for none

	Client uint32 // who sent it, in the form Requests
	name   int    // index of its name there
}

// Reader reads a trace line by line. An error in a line is a *rowfile.Error.
type Reader struct {
	lines  *rowfile.Reader // unless packed
	packed *packed         // in the form Requests
	timed  bool
	began  bool
	first  int64
	last   int64
	op     []byte // op of the line read last
	size   int    // for a put whose line has none
	ttl    uint32 // for a put whose line has none
	fills  bool   // the sizes of gets matter
	ids    []byte // in the form Mooncake: those of the line read last
	chains bool   // the form is Mooncake
	spread spread
}

// The fields of a line. The first ones are required, see NewReader.
const (
	opField = iota
	keyField
	timeField // required if times matter
	sizeField
	ttlField
)

// NewReader returns a reader of one of the forms. Unless timed, times do not matter and all ops are at 0.
func NewReader(r io.Reader, form string, timed bool) (*Reader, error) {
	kind, columns := rowfile.CSV, []int(nil)
	switch form {
	case Requests:
		p := &packed{}
		return &Reader{timed: timed, packed: p}, p.reset(r)
	case "cache":
		columns = []int{timeField: 0, keyField: 1, sizeField: 3, opField: 5, ttlField: 6}
	case "csv":
	case "json", Mooncake:
		kind = rowfile.JSON
	default:
		return nil, fmt.Errorf("a trace of form %q: there are cache, csv, json, requests and mooncake", form)
	}
	needed := timeField
	if timed {
		needed++
	}
	names := []string{"op", "key", "time", "size", "ttl"}
	if form == Mooncake {
		names = chainFields
	}
	t := &Reader{timed: timed, chains: form == Mooncake, lines: rowfile.NewReader(r, kind, names, needed, columns)}
	if t.chains {
		t.lines.TakeAny()
		t.lines.Widen(mostLine)
	}
	return t, nil
}

// Lacking sets the size and TTL of puts whose lines have none. The defaults are 0.
func (t *Reader) Lacking(size int, ttl uint32) { t.size, t.ttl = size, ttl }

// Filling makes the reader use the sizes of gets, which are those of the values found. A get has size 0 if its line has none.
func (t *Reader) Filling() { t.fills = true }

// Named sets the verbs of the names that a trace of form Requests has.
func (t *Reader) Named(words driver.Words) error {
	if t.packed == nil {
		return nil
	}
	t.packed.verbs = make([]driver.Verb, len(t.packed.head.Names))
	for i, name := range t.packed.head.Names {
		verb, ok := words.Verb(name)
		if !ok {
			return fmt.Errorf("op %q, which the plan does not have", name)
		}
		t.packed.verbs[i] = verb
	}
	return nil
}

// Reset starts again at the beginning of the same trace.
func (t *Reader) Reset(r io.Reader) error {
	t.began, t.spread = false, spread{on: t.spread.on}
	if t.packed != nil {
		return t.packed.reset(r)
	}
	t.lines.Reset(r)
	return nil
}

// Next reads the next line that is an op; ok is false for one that is left out. It returns io.EOF at the end, and a *rowfile.Error for a line that
// cannot be read.
func (t *Reader) Next(rec *Record) (ok bool, err error) {
	if t.spread.on {
		return true, t.spreads(rec)
	}
	return t.read(rec)
}

func (t *Reader) read(rec *Record) (ok bool, err error) {
	if p := t.packed; p != nil {
		if err := p.next(rec); err != nil {
			return false, err
		}
		if !t.began {
			t.began, t.first = true, rec.At
		}
		t.op, t.last = append(t.op[:0], p.head.Names[rec.name]...), rec.At
		rec.At -= t.first
		if !t.timed {
			rec.At = 0
		}
		return true, nil
	}
	if err := t.lines.Next(); err != nil {
		return false, err
	}
	at := int64(0)
	if t.timed {
		if at, err = t.seconds(timeField); err != nil {
			return false, err
		}
		if t.chains {
			at /= 1000
		}
	}
	if !t.began {
		t.began, t.first, t.last = true, at, at
	}
	switch {
	case at < t.last:
		return false, t.lines.Fault(timeField, "the time goes back")
	case at-t.first > maxTime:
		return false, t.lines.Fault(timeField, "more than a year after the first line")
	}
	t.last = at
	if t.chains {
		*rec = Record{Line: t.lines.Line(), At: at - t.first}
		t.op = append(t.op[:0], "chain"...)
		return true, t.chain(rec)
	}
	t.op, _ = t.lines.Get(opField)
	verb, known := verbOf(t.op)
	if !known {
		return false, nil
	}
	*rec = Record{Line: t.lines.Line(), At: at - t.first, Verb: verb}
	return true, t.rest(rec)
}

// rest reads the fields that a left-out line does not need.
func (t *Reader) rest(rec *Record) (err error) {
	if rec.Key, err = t.lines.Key(keyField); err != nil {
		return err
	}
	switch {
	case rec.Verb == driver.Put:
		rec.Size, rec.TTL = t.size, t.ttl
	case rec.Verb != driver.Get || !t.fills:
		return nil
	}
	if size, there := t.lines.Get(sizeField); there && (rec.Verb == driver.Put || len(size) > 0) {
		size, err := t.seconds(sizeField)
		if err != nil {
			return err
		}
		if rec.Size = int(size / 1e9); size%1e9 != 0 || rec.Size > maxValue {
			return t.lines.Fault(sizeField, fmt.Sprintf("want a number of bytes up to %d", maxValue))
		}
	}
	if _, there := t.lines.Get(ttlField); there && rec.Verb == driver.Put {
		ttl, err := t.seconds(ttlField)
		if err != nil {
			return err
		}
		rec.TTL = uint32(min((ttl+1e6-1)/1e6, maxTTL))
	}
	return nil
}

// Op returns the trace's name for the op of the line read last.
func (t *Reader) Op() []byte { return t.op }

// seconds reads seconds as nanoseconds. For a size the result is bytes × 10⁹.
func (t *Reader) seconds(f int) (int64, error) {
	text, _ := t.lines.Get(f)
	whole, fraction, _ := bytes.Cut(text, []byte{'.'})
	n, digits := int64(0), 0
	for _, part := range [][]byte{whole, fraction} {
		for _, c := range part {
			if c < '0' || c > '9' || n > math.MaxInt64/10-9 {
				return 0, t.lines.Fault(f, fmt.Sprintf("%q is not a number with up to nine digits after the point", text[:min(len(text), 40)]))
			}
			n = n*10 + int64(c-'0')
			digits++
		}
	}
	if digits == 0 || len(fraction) > 9 {
		return 0, t.lines.Fault(f, fmt.Sprintf("%q is not a number with up to nine digits after the point", text[:min(len(text), 40)]))
	}
	for range 9 - len(fraction) {
		if n > math.MaxInt64/10 {
			return 0, t.lines.Fault(f, fmt.Sprintf("%q is too large", text[:min(len(text), 40)]))
		}
		n *= 10
	}
	return n, nil
}

// verbOf returns the verb for an op of a trace.
func verbOf(name []byte) (driver.Verb, bool) {
	var lower [len("prepend")]byte
	if len(name) > len(lower) {
		return 0, false
	}
	for i, c := range name {
		if lower[i] = c; 'A' <= c && c <= 'Z' {
			lower[i] += 'a' - 'A'
		}
	}
	switch string(lower[:len(name)]) {
	case "get", "gets":
		return driver.Get, true
	case "set", "add", "replace", "cas", "append", "prepend", "incr", "decr", "put":
		return driver.Put, true
	case "delete":
		return driver.Delete, true
	}
	return 0, false
}

// line returns the number of the line or request read last.
func (t *Reader) line() int64 {
	if t.packed != nil {
		return t.packed.n
	}
	return t.lines.Line()
}

// Facts holds the results of reading a trace.
type Facts struct {
	SHA256  string // hash of the trace's bytes, in lower-case hex
	Lines   int64  // number of lines that are ops
	Span    int64  // ns from the first line to the last
	Size    int    // bytes of the largest value
	Verbs   [driver.NumVerbs]int64
	Ops     map[string]int64 // lines by the trace's name for the op, for lines that are ops
	LeftOut map[string]int64 // the same for other lines
	// Commands counts what the requests of the form Requests ask for, as its header says; nil if it does not.
	Commands map[string]int64
	Chains            // of the form Mooncake
	Unused   []string // fields that mean nothing here
}

// Read reads all of a trace and returns facts about it; timed says whether times matter.
func Read(r io.Reader, form string, timed bool) (Facts, error) {
	sum := sha256.New()
	all := io.TeeReader(r, sum)
	t, err := NewReader(all, form, timed)
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
			switch {
			case t.chains:
				f.Chains.add(&rec)
			case t.packed == nil:
				f.Verbs[rec.Verb]++
			}
			f.Size = max(f.Size, rec.Size)
		}
		name := string(t.Op()[:min(len(t.Op()), 40)])
		if _, known := into[name]; !known && len(into) >= maxNames {
			name = "others"
		}
		into[name]++
	}
	if f.Lines == 0 {
		return Facts{}, &rowfile.Error{Line: max(t.line(), 1), Column: 1, What: "no line of the trace is an op"}
	}
	if _, err := io.Copy(io.Discard, all); err != nil { // what a decompressor left
		return Facts{}, err
	}
	if t.lines != nil {
		f.Unused = t.lines.Unused()
	} else {
		f.Commands = t.packed.head.Commands
	}
	f.Span = t.last - t.first
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return f, nil
}
