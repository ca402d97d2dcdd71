// Package values makes typed records, whose fields are drawn at random from a seed.
//
//	{"born":"2014-05-17","id":"0b6f…","state":"live","visits":-1873645}
//
// A record is a function of its fields and the seed. As JSON, its fields are sorted by name, without white space between them, in UTF-8.
//
//	type              value
//	int, int(a, b)    a 32-bit integer, or one from a to b
//	long, long(a, b)  a 64-bit integer, or one from a to b
//	float, double     a number in [0, 1), a multiple of 2⁻²⁴ or 2⁻⁵³, with the fewest digits that identify it
//	date              "2014-05-17", from 2010-01-01 to 2025-12-31
//	datetime          "2014-05-17T08:15:30.123Z", from the same range
//	list(n)           one of n words derived from the field's name
//	list(a, b, c)     one of these texts
//	list(2 of n)      a list of two different ones of n words; also list(2 of a, b, c): each such choice is equally likely, in the order given
//	uuid              "0b6f8a52-…", random, version 4
//	uuid(node/%s)     "node/0b6f8a52-…"
//	qname             "{http://loadgen.example/model/content/1.0}dolorAmet", one of 16 namespaces with a name of two words
//	lorem, lorem(n)   n words of running text, 8 by default
//	grow(T)           a list of values of type T, whose length is in the seed; [Grown] makes such seeds
//
// The other encodings hold the same values, one after the other in the same order, without names. A reader has to know the types.
//
//	type              packed, little-endian                              dictionary, where it differs
//	int, long         4 or 8 bytes
//	float, double     4 or 8 bytes of IEEE 754
//	date, datetime    days in 4 bytes, milliseconds in 8, since 1970
//	uuid              16 bytes
//	uuid(node/%s)     the text before it, 16 bytes, the text after it     16 bytes
//	list              text; of several, one after the other               its number from 0, as a varint
//	qname             text                                                the number of its namespace in a byte, the name's text
//	lorem             text
//	grow(T)           the number of elements as a varint, the elements    the same, with elements that may differ
//
// A text is its length in bytes as a varint (encoding/binary), and its bytes.
package values

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadgen/loadgen/internal/plan/compress"
)

// The bounds of a record.
const (
	maxFields  = 256
	maxText    = 256       // bytes of a name, and of a text in a list
	maxList    = 1_000_000 // generated texts of a list
	maxWords   = 200_000   // words of running text: more than 1 MB
	maxSeveral = 1000      // texts of a list from which several are chosen
)

// The encodings of a record.
const (
	JSON       = "json"
	Packed     = "packed"
	Dictionary = "dictionary"
)

// Record makes records of one kind. It does not change, so any number of goroutines may use it.
type Record struct {
	fields   []field
	json     bool
	bound    int
	grows    int                  // the most bytes that each further element takes; 0 if no field grows
	compress *compress.Compressor // nil for none
}

// writer appends a value.
type writer func(dst []byte, r random) []byte

// form says how values of a type are written in an encoding.
type form struct {
	bound int // bytes of the longest value
	write writer
}

// kind makes the values of a type. All of its writers make the same value of the same random source.
type kind struct {
	json, packed form
	dictionary   form   // if it has no write, packed is used
	plain        writer // without JSON's syntax; nil if json has none
}

// field makes one field's name and value.
type field struct {
	kind
	as    form // the form used in records
	name  string
	grows bool   // the value is a list of values that kind makes
	lead  string // text before the value: brace or comma, and name
}

// New returns the record with the given fields: types by name. The encoding and the compression may be "", for JSON and none. The error names the field
// and says what to write.
func New(types map[string]string, encoding, compression string) (*Record, error) {
	if len(types) < 1 || len(types) > maxFields {
		return nil, fmt.Errorf("%d fields; write from 1 to %d", len(types), maxFields)
	}
	names := make([]string, 0, len(types))
	for name := range types {
		names = append(names, name)
	}
	slices.Sort(names)
	r := &Record{json: encoding == "" || encoding == JSON}
	var err error
	if r.compress, err = compress.New(compression); err != nil {
		return nil, err
	}
	for _, name := range names {
		if name == "" || len(name) > maxText || !utf8.ValidString(name) {
			return nil, fmt.Errorf("a field named %.40q; write a name of 1 to %d bytes of UTF-8", name, maxText)
		}
		f, err := newField(name, types[name])
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		f.name = name
		switch {
		case r.json:
			f.as = f.json
		case encoding == Packed || encoding == Dictionary && f.dictionary.write == nil:
			f.as = f.packed
		case encoding == Dictionary:
			f.as = f.dictionary
		default:
			return nil, fmt.Errorf("encoding %.40q; write %q, %q or %q", encoding, JSON, Packed, Dictionary)
		}
		r.add(f)
	}
	return r, nil
}

// add appends a field.
func (r *Record) add(f field) {
	switch {
	case !r.json:
	case len(r.fields) == 0:
		f.lead = "{" + quoted(f.name) + ":"
		r.bound += len("}")
	default:
		f.lead = "," + quoted(f.name) + ":"
	}
	r.fields = append(r.fields, f)
	r.bound += len(f.lead)
	switch {
	case !f.grows:
		r.bound += f.as.bound
	case r.json:
		r.bound += len("[]")
		r.grows += len(",") + f.as.bound
	default:
		r.bound += binary.MaxVarintLen32
		r.grows += f.as.bound
	}
}

// Grows reports whether any field grows.
func (r *Record) Grows() bool { return r.grows > 0 }

// Bound returns an upper bound in bytes on records whose growing fields have at most that many elements.
func (r *Record) Bound(elements int64) int64 {
	if r.grows > 0 && elements > (math.MaxInt64/2-int64(r.bound))/int64(r.grows) {
		return math.MaxInt64
	}
	bound := int64(r.bound)
	if r.grows > 0 {
		bound += elements * int64(r.grows)
	}
	if r.compress != nil {
		bound = compress.Bound(bound)
	}
	return bound
}

// Grown returns the seed of a record whose growing fields have n elements, at most 2³² − 1. Records of one seed differ only in that: the
// elements of a longer one begin with those of a shorter one.
func Grown(seed uint64, n uint32) uint64 { return seed&^math.MaxUint32 | uint64(n) }

// drawn returns the random source of a record's fields, and the number of elements of growing ones.
func (r *Record) drawn(seed uint64) (random, uint64) {
	if r.grows == 0 {
		return random(seed), 0
	}
	return random(seed &^ math.MaxUint32), seed & math.MaxUint32
}

// grown appends a list of n values as JSON.
func (f *field) grown(dst []byte, r random, n uint64) []byte {
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = f.json.write(dst, random(r.word()))
	}
	return append(dst, ']')
}

// Append appends the record of a seed. It allocates only to grow dst, and as package compress says.
func (r *Record) Append(dst []byte, seed uint64) []byte {
	at := len(dst)
	dst = r.encode(dst, seed)
	if r.compress == nil {
		return dst
	}
	end := len(dst)
	dst = r.compress.Append(dst, dst[at:])
	return append(dst[:at], dst[end:]...)
}

// encode appends the record of a seed, not compressed.
func (r *Record) encode(dst []byte, seed uint64) []byte {
	all, elements := r.drawn(seed)
	for i := range r.fields {
		f := &r.fields[i]
		dst = append(dst, f.lead...)
		own := random(all.word())
		switch {
		case !f.grows:
			dst = f.as.write(dst, own)
		case r.json:
			dst = f.grown(dst, own, elements)
		default:
			dst = binary.AppendUvarint(dst, elements)
			for range elements {
				dst = f.as.write(dst, random(own.word()))
			}
		}
	}
	if r.json {
		dst = append(dst, '}')
	}
	return dst
}

// AppendField implements form.Fielder.
func (r *Record) AppendField(dst []byte, seed uint64, name string) []byte {
	i, ok := slices.BinarySearchFunc(r.fields, name, func(f field, name string) int { return strings.Compare(f.name, name) })
	if !ok {
		return dst
	}
	all, elements := r.drawn(seed)
	for range i {
		all.word()
	}
	f, own := &r.fields[i], random(all.word())
	if f.grows {
		return f.grown(dst, own, elements)
	}
	if f.plain != nil {
		return f.plain(dst, own)
	}
	return f.json.write(dst, own)
}

// random is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, figure 16).
type random uint64

func (r *random) word() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below returns a number in [0, n), n ≥ 1, uniform to within n/2⁶⁴.
func (r *random) below(n uint64) uint64 { return scaled(r.word(), n) }

// quoted returns text as JSON, which cannot fail.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

const writeType = `write "int", "long", "int(1, 6)", "float", "double", "date", "datetime", "list(9)", "list(draft, live)", "list(2 of 9)", "uuid", "uuid(node/%s)", "qname", "lorem(20)" or "grow(uuid)"`

// newField parses a type.
func newField(name, text string) (field, error) {
	if inner, is := strings.CutPrefix(text, "grow("); is && strings.HasSuffix(inner, ")") {
		f, err := newField(name, strings.TrimSpace(inner[:len(inner)-1]))
		if err == nil && f.grows {
			return field{}, fmt.Errorf("a list that grows in one that does; write what its elements are, as in grow(uuid)")
		}
		f.grows = true
		return f, err
	}
	k, err := newKind(name, text)
	return field{kind: k}, err
}

// newKind parses the type of a single value.
func newKind(name, text string) (kind, error) {
	word, rest, called := strings.Cut(text, "(")
	inner, closed := strings.CutSuffix(rest, ")")
	if called != closed {
		return kind{}, fmt.Errorf("type %.60q; %s", text, writeType)
	}
	var args []string
	if called {
		for _, arg := range strings.Split(inner, ",") {
			args = append(args, strings.TrimSpace(arg))
		}
	}
	switch word {
	case "int":
		return wholeNumber(args, math.MinInt32, math.MaxInt32, 4)
	case "long":
		return wholeNumber(args, math.MinInt64, math.MaxInt64, 8)
	case "list":
		return list(name, args)
	case "lorem":
		return lorem(args)
	case "uuid":
		if called {
			return uuidWithin(inner)
		}
	}
	if k, ok := simple[word]; ok && !called {
		return k, nil
	}
	return kind{}, fmt.Errorf("type %.60q; %s", text, writeType)
}
