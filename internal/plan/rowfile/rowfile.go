// Package rowfile reads files of records, one per line, whose fields have names or numbers.
//
//	kind    a record
//	Lines   a line, which is the only field
//	CSV     fields between commas, quoted as in RFC 4180 and encoding/csv: "a,b", "say ""so""", and line breaks within quotes
//	JSON    an object on a line; its text and number fields can be read, others are skipped
//
// Space around an unquoted field and before a quoted one, a byte order mark at the beginning of the file and a carriage return at the end of a line
// are dropped. Empty lines of CSV and JSON are skipped. A Reader holds only the current record, of at most 64 KiB unless [Reader.Widen] says
// otherwise, and allocates nothing per record.
package rowfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// Kind is the format of records.
type Kind uint8

// The kinds.
const (
	Lines Kind = iota
	CSV
	JSON
)

const (
	maxRecord = 64 << 10 // bytes
	maxKey    = 250      // bytes, which all protocols accept
)

// mostUnused is how many columns are named that nobody reads.
const mostUnused = 10

// Error is a mistake at a place in a file.
type Error struct {
	Line, Column int64
	What         string
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.What) }

// Reader reads records one by one. Fields are identified by their index in the names that it was made with.
type Reader struct {
	lines   *bufio.Scanner
	kind    Kind
	names   []string
	need    int
	columns []int // column of each name, from 0; −1 if absent
	named   bool  // the first record names the columns
	head    bool  // the next record names the columns
	unused  []string
	room    []byte
	most    int  // most bytes of a record
	any     bool // JSON fields may be of any kind

	line   int64  // first line of the record
	taken  int64  // number of lines of the record
	raw    []byte // the record
	joined []byte // the record's bytes, if it has several lines
	plain  []byte // text of fields without their quotes and escapes
	all    []field
	got    []field // the record's fields, by the index of their names
}

// field is a part of a record.
type field struct {
	text  []byte
	at    int // position in the record
	there bool
}

// NewReader returns a reader of the named fields. The first need of them are required. CSV fields are in the given columns, counted from 0;
// without columns the first line names them, in any case.
func NewReader(r io.Reader, kind Kind, names []string, need int, columns []int) *Reader {
	f := &Reader{kind: kind, names: names, need: need, columns: columns, named: kind == CSV && columns == nil, most: maxRecord, got: make([]field, len(names))}
	f.room = make([]byte, maxRecord)
	f.Reset(r)
	return f
}

// Reset continues with the beginning of another file of the same form. It reuses the buffer.
func (r *Reader) Reset(file io.Reader) {
	r.lines = bufio.NewScanner(file)
	r.lines.Buffer(r.room, r.most)
	r.line, r.taken, r.head = 0, 1, r.named
	if r.named {
		r.columns = r.columns[:0]
	}
}

// Widen allows records of up to most bytes. Call it before reading the first.
func (r *Reader) Widen(most int) {
	r.most = most
	r.lines.Buffer(r.room, most)
}

// TakeAny allows JSON fields of any kind: one that is neither text nor a number is taken as it is written.
func (r *Reader) TakeAny() { r.any = true }

// Next reads the next record. It returns io.EOF after the last, and an *Error for one that cannot be read.
func (r *Reader) Next() error {
	if r.head {
		if err := r.name(); err != nil {
			return err
		}
	}
	if err := r.scan(); err != nil {
		return err
	}
	switch r.kind {
	case Lines:
		r.got[0] = field{r.raw, 0, true}
		return nil
	case JSON:
		return r.object()
	}
	if err := r.split(); err != nil {
		return err
	}
	for i, c := range r.columns {
		r.got[i] = field{}
		switch {
		case c >= 0 && c < len(r.all):
			r.got[i] = r.all[c]
		case c >= 0:
			return &Error{r.line, 1, fmt.Sprintf("%d fields, and the %s would be number %d", len(r.all), r.names[i], c+1)}
		}
	}
	return nil
}

// Line returns the record's first line, from 1; 0 before the first record.
func (r *Reader) Line() int64 { return r.line }

// Get returns a field of the record, and whether it is present. The text is valid until the next call of Next.
func (r *Reader) Get(i int) ([]byte, bool) { return r.got[i].text, r.got[i].there }

// Key returns a field that is a key: 1 to 250 bytes of printable ASCII without spaces, which all protocols accept.
func (r *Reader) Key(i int) ([]byte, error) {
	key := r.got[i].text
	if len(key) == 0 || len(key) > maxKey {
		return nil, r.Fault(i, fmt.Sprintf("a key of %d bytes, want 1 to %d", len(key), maxKey))
	}
	for _, c := range key {
		if c <= ' ' || c >= 0x7f {
			return nil, r.Fault(i, fmt.Sprintf("a key with the byte %#02x, want printable ASCII without spaces", c))
		}
	}
	return key, nil
}

// Fault returns an error about a field.
func (r *Reader) Fault(i int, what string) error {
	if name := r.names[i]; name != "" {
		what = name + ": " + what
	}
	return r.wrong(r.got[i].at, what)
}

// wrong returns an error at a byte of the record.
func (r *Reader) wrong(at int, what string) error {
	before := r.raw[:min(at, len(r.raw))]
	return &Error{r.line + int64(bytes.Count(before, []byte{'\n'})), int64(len(before) - bytes.LastIndexByte(before, '\n')), what}
}

// scan reads the next record.
func (r *Reader) scan() error {
	for more := true; more; more = len(r.raw) == 0 && r.kind != Lines {
		if !r.lines.Scan() {
			return r.ended()
		}
		r.line, r.taken = r.line+r.taken, 1
		r.raw = r.lines.Bytes()
		if r.line == 1 {
			r.raw = bytes.TrimPrefix(r.raw, []byte("\ufeff"))
		}
	}
	if r.kind == CSV && odd(r.raw) {
		return r.join()
	}
	return nil
}

// odd reports whether a part of a record ends within quotes, given that its quotes are correct.
func odd(b []byte) bool { return bytes.Count(b, []byte{'"'})%2 == 1 }

// join reads the further lines of a record whose first line ends within quotes.
func (r *Reader) join() error {
	r.joined = append(r.joined[:0], r.raw...)
	for open := true; open && r.lines.Scan(); {
		more := r.lines.Bytes()
		if len(r.joined)+len(more) >= r.most {
			return r.long(r.line)
		}
		r.joined = append(append(r.joined, '\n'), more...)
		r.taken++
		open = open != odd(more)
	}
	r.raw = r.joined
	if r.lines.Err() != nil {
		return r.ended()
	}
	return nil
}

// ended returns the reason why there is no further line.
func (r *Reader) ended() error {
	switch err := r.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return r.long(r.line + r.taken)
	case err != nil:
		return err
	}
	return io.EOF
}

func (r *Reader) long(line int64) error {
	return &Error{line, 1, fmt.Sprintf("more than the %d bytes that a line may have, or lines between quotes together", r.most)}
}

// name reads the first line of a CSV.
func (r *Reader) name() error {
	if err := r.scan(); err != nil {
		return err
	}
	if err := r.split(); err != nil {
		return err
	}
	r.head = false
	for i, name := range r.names {
		named := func(f field) bool { return strings.EqualFold(string(f.text), name) }
		c := slices.IndexFunc(r.all, named)
		if c >= 0 && slices.ContainsFunc(r.all[c+1:], named) {
			return &Error{r.line, 1, fmt.Sprintf("column %q is there twice", name)}
		}
		if c < 0 && i < r.need {
			return &Error{r.line, 1, fmt.Sprintf("no column %q: the first line names the columns, and there has to be %s", name, strings.Join(r.names[:r.need], ", "))}
		}
		r.columns = append(r.columns, c)
	}
	r.unused = nil
	for c, f := range r.all {
		if !slices.Contains(r.columns, c) {
			r.leave(f.text)
		}
	}
	return nil
}

// leave notes a name that is read into no field.
func (r *Reader) leave(name []byte) {
	if name = name[:min(len(name), 40)]; len(r.unused) < mostUnused && !slices.Contains(r.unused, string(name)) {
		r.unused = append(r.unused, string(name))
	}
}

// Unused names columns or JSON fields that are read into no field, up to 10 of them.
func (r *Reader) Unused() []string { return r.unused }

// split splits a record of CSV into fields.
func (r *Reader) split() error {
	r.all, r.plain = r.all[:0], r.plain[:0]
	for at := 0; at <= len(r.raw); at++ { // after a comma, or at the line's beginning
		end, err := r.cut(at)
		if err != nil {
			return err
		}
		at = end
	}
	return nil
}

// cut reads the field that begins at a byte and returns its end.
func (r *Reader) cut(at int) (end int, err error) {
	rest := r.raw[at:]
	if trimmed := bytes.TrimLeftFunc(rest, unicode.IsSpace); len(trimmed) > 0 && trimmed[0] == '"' {
		return r.unquote(at + len(rest) - len(trimmed))
	}
	n := bytes.IndexByte(rest, ',')
	if n < 0 {
		n = len(rest)
	}
	if q := bytes.IndexByte(rest[:n], '"'); q >= 0 {
		return 0, r.wrong(at+q, `a quote within a field that does not begin with one: write the field as "say ""so"""`)
	}
	r.all = append(r.all, field{bytes.TrimSpace(rest[:n]), at, true})
	return at + n, nil
}

// unquote is cut for a quoted field.
func (r *Reader) unquote(at int) (end int, err error) {
	begin, rest := len(r.plain), r.raw[at:]
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] != '"':
			r.plain = append(r.plain, rest[i])
		case i+1 < len(rest) && rest[i+1] == '"':
			r.plain = append(r.plain, '"')
			i++
		case i+1 < len(rest) && rest[i+1] != ',':
			return 0, r.wrong(at+i, `text after a closing quote: write a quote within the field twice`)
		default:
			r.all = append(r.all, field{r.plain[begin:], at, true})
			return at + i + 1, nil
		}
	}
	return 0, r.wrong(at, "a quote that is not closed")
}

// object reads the fields of a JSON object.
func (r *Reader) object() error {
	clear(r.got)
	r.plain = r.plain[:0]
	if !json.Valid(r.raw) {
		return r.invalid()
	}
	i := space(r.raw, 0)
	if r.raw[i] != '{' {
		return r.wrong(i, `no object: write one on each line, such as {"key": "a"}`)
	}
	for i = space(r.raw, i+1); r.raw[i] != '}'; i = space(r.raw, i) {
		if r.raw[i] == ',' {
			i++
			continue
		}
		end := stringEnd(r.raw, i)
		name := r.unescape(r.raw[i+1 : end-1])
		i = space(r.raw, space(r.raw, end)+1) // after the colon
		end = valueEnd(r.raw, i)
		k := slices.Index(r.names, string(name))
		if k < 0 {
			r.leave(name)
		} else if err := r.take(k, i, end); err != nil {
			return err
		}
		i = end
	}
	for k := range r.need {
		if !r.got[k].there {
			return r.wrong(0, fmt.Sprintf("no field %q", r.names[k]))
		}
	}
	return nil
}

// take sets a field to a value of the object.
func (r *Reader) take(k, from, to int) error {
	if r.got[k].at > 0 {
		return r.wrong(from, fmt.Sprintf("field %q is there twice", r.names[k]))
	}
	r.got[k] = field{at: from}
	switch c := r.raw[from]; {
	case c == 'n': // null
	case c == '"':
		r.got[k] = field{r.unescape(r.raw[from+1 : to-1]), from, true}
	case r.any || c == '-' || c >= '0' && c <= '9':
		r.got[k] = field{r.raw[from:to], from, true}
	default:
		return r.Fault(k, "neither text nor a number")
	}
	return nil
}

// invalid returns an error at the place where a line is not JSON.
func (r *Reader) invalid() error {
	var any json.RawMessage
	err := json.Unmarshal(r.raw, &any)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return r.wrong(max(int(syntax.Offset)-1, 0), "no JSON: "+syntax.Error())
	}
	return r.wrong(0, "no JSON")
}
