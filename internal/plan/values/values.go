// Package values makes typed records: JSON objects whose fields are drawn at random from a seed.
//
//	{"born":"2014-05-17","id":"0b6f…","state":"live","visits":-1873645}
//
// Fields are sorted by name, without white space between them, in UTF-8. A record is a function of its fields and the seed.
//
//	type              value
//	int, int(a, b)    a 32-bit integer, or one from a to b
//	long, long(a, b)  a 64-bit integer, or one from a to b
//	float, double     a number in [0, 1), a multiple of 2⁻²⁴ or 2⁻⁵³, with the fewest digits that identify it
//	date              "2014-05-17", from 2010-01-01 to 2025-12-31
//	datetime          "2014-05-17T08:15:30.123Z", from the same range
//	list(n)           one of n words derived from the field's name
//	list(a, b, c)     one of these texts
//	uuid              "0b6f8a52-…", random, version 4
//	qname             "{http://loadgen.example/model/content/1.0}dolorAmet", one of 16 namespaces with a name of two words
//	lorem, lorem(n)   n words of running text, 8 by default
//	grow(T)           a list of values of type T, whose length is in the seed; [Grown] makes such seeds
package values

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The bounds of a record.
const (
	maxFields = 256
	maxText   = 256       // bytes of a name, and of a text in a list
	maxList   = 1_000_000 // generated texts of a list
	maxWords  = 200_000   // of running text: more than 1 MB
)

// Record makes records of one kind. It does not change, so any number of goroutines may use it.
type Record struct {
	fields []field
	bound  int
	grows  int // most bytes that each further element takes; 0: no field grows
}

// field makes one field's name and value.
type field struct {
	name  string
	grows bool   // its value is a list of values that write makes
	lead  string // text before the value: brace or comma, and name
	bound int    // bytes of the longest value
	write func(dst []byte, random random) []byte
	plain func(dst []byte, random random) []byte // like write, without JSON syntax; nil: write's output without quotes
}

// New returns the record with the given fields: types by name. The error names the field and says what to write.
func New(types map[string]string) (*Record, error) {
	if len(types) < 1 || len(types) > maxFields {
		return nil, fmt.Errorf("%d fields; write from 1 to %d", len(types), maxFields)
	}
	names := make([]string, 0, len(types))
	for name := range types {
		names = append(names, name)
	}
	slices.Sort(names)
	r := &Record{bound: len("}")}
	for i, name := range names {
		if name == "" || len(name) > maxText || !utf8.ValidString(name) {
			return nil, fmt.Errorf("a field named %.40q; write a name of 1 to %d bytes of UTF-8", name, maxText)
		}
		f, err := newField(name, types[name])
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		f.name, f.lead = name, ","+quoted(name)+":"
		if i == 0 {
			f.lead = "{" + f.lead[1:]
		}
		r.fields = append(r.fields, f)
		r.bound += len(f.lead)
		if f.grows {
			r.bound += len("[]")
			r.grows += len(",") + f.bound
		} else {
			r.bound += f.bound
		}
	}
	return r, nil
}

// Grows reports whether any field grows.
func (r *Record) Grows() bool { return r.grows > 0 }

// Bound returns an upper bound in bytes on records whose growing fields have at most that many elements.
func (r *Record) Bound(elements int64) int64 {
	if r.grows == 0 {
		return int64(r.bound)
	}
	if elements > (math.MaxInt64-int64(r.bound))/int64(r.grows) {
		return math.MaxInt64
	}
	return int64(r.bound) + elements*int64(r.grows)
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

// grown appends a list of n values.
func (f *field) grown(dst []byte, r random, n uint64) []byte {
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = f.write(dst, random(r.word()))
	}
	return append(dst, ']')
}

// Least returns a lower bound on the size of records in bytes.
func (r *Record) Least() int {
	n := len("}")
	for _, f := range r.fields {
		n += len(f.lead) + 1
	}
	return n
}

// Append appends the record of a seed. It allocates only to grow dst.
func (r *Record) Append(dst []byte, seed uint64) []byte {
	all, elements := r.drawn(seed)
	for i := range r.fields {
		f := &r.fields[i]
		dst = append(dst, f.lead...)
		own := random(all.word())
		if f.grows {
			dst = f.grown(dst, own, elements)
		} else {
			dst = f.write(dst, own)
		}
	}
	return append(dst, '}')
}

// Has reports whether records have a field.
func (r *Record) Has(name string) bool {
	_, ok := r.find(name)
	return ok
}

func (r *Record) find(name string) (int, bool) {
	return slices.BinarySearchFunc(r.fields, name, func(f field, name string) int { return strings.Compare(f.name, name) })
}

// AppendField implements form.Fielder.
func (r *Record) AppendField(dst []byte, seed uint64, name string) []byte {
	i, ok := r.find(name)
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
	at := len(dst)
	if dst = f.write(dst, own); dst[at] == '"' {
		dst = append(dst[:at], dst[at+1:len(dst)-1]...)
	}
	return dst
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

const writeType = `write "int", "long", "int(1, 6)", "float", "double", "date", "datetime", "list(9)", "list(draft, live)", "uuid", "qname", "lorem(20)" or "grow(uuid)"`

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
	word, rest, called := strings.Cut(text, "(")
	inner, closed := strings.CutSuffix(rest, ")")
	if called != closed {
		return field{}, fmt.Errorf("type %.60q; %s", text, writeType)
	}
	var args []string
	if called {
		for _, arg := range strings.Split(inner, ",") {
			args = append(args, strings.TrimSpace(arg))
		}
	}
	switch word {
	case "int":
		return wholeNumber(args, math.MinInt32, math.MaxInt32)
	case "long":
		return wholeNumber(args, math.MinInt64, math.MaxInt64)
	case "list":
		return list(name, args)
	case "lorem":
		return lorem(args)
	}
	if f, ok := plain[word]; ok && !called {
		return f, nil
	}
	return field{}, fmt.Errorf("type %.60q; %s", text, writeType)
}

// wholeNumber is a number between the two arguments, or between the limits of its type.
func wholeNumber(args []string, least, most int64) (field, error) {
	from, to := least, most
	if len(args) > 0 {
		var errs [2]error
		if len(args) == 2 {
			from, errs[0] = strconv.ParseInt(args[0], 10, 64)
			to, errs[1] = strconv.ParseInt(args[1], 10, 64)
		}
		if len(args) != 2 || errs[0] != nil || errs[1] != nil || from > to || from < least || to > most {
			return field{}, fmt.Errorf("the range (%.60s); write two whole numbers from %d to %d, the smaller first", strings.Join(args, ", "), least, most)
		}
	}
	span := uint64(to) - uint64(from) + 1 // 0: all 64 bits
	return field{
		bound: max(len(strconv.FormatInt(from, 10)), len(strconv.FormatInt(to, 10))),
		write: func(dst []byte, r random) []byte {
			x := r.word()
			if span != 0 {
				x = scaled(x, span)
			}
			return strconv.AppendInt(dst, int64(uint64(from)+x), 10)
		},
	}, nil
}

// list is one of the arguments or, with a single argument n, one of n words.
func list(name string, args []string) (field, error) {
	var f field
	if len(args) == 1 {
		if n, err := strconv.ParseUint(args[0], 10, 32); err == nil {
			if n < 1 || n > maxList {
				return field{}, fmt.Errorf("a list of %d; write a number from 1 to %d, or the texts themselves", n, maxList)
			}
			seed := random(len(name))
			for _, c := range []byte(name) {
				seed = random(seed.word()) ^ random(c)
			}
			return madeList(uint64(seed), n), nil
		}
	}
	texts := make([]string, len(args))
	for i, arg := range args {
		if arg == "" || len(arg) > maxText || !utf8.ValidString(arg) {
			return field{}, fmt.Errorf("the text %.40q in a list; write 1 to %d bytes of UTF-8 without commas and brackets", arg, maxText)
		}
		texts[i] = quoted(arg)
		f.bound = max(f.bound, len(texts[i]))
	}
	if len(texts) == 0 {
		return field{}, fmt.Errorf("a list of nothing; write how many texts it has, or the texts themselves, as in list(draft, live)")
	}
	f.write = func(dst []byte, r random) []byte { return append(dst, texts[r.below(uint64(len(texts)))]...) }
	f.plain = func(dst []byte, r random) []byte { return append(dst, args[r.below(uint64(len(args)))]...) }
	return f, nil
}

// madeList is one of n texts, each a word and its number. They are generated, not stored.
func madeList(seed, n uint64) field {
	return field{
		bound: len(`"-"`) + longest + len(strconv.FormatUint(n, 10)),
		write: func(dst []byte, r random) []byte {
			i := r.below(n)
			pick := random(seed + i)
			dst = append(dst, '"')
			dst = append(dst, pick.latin()...)
			dst = append(dst, '-')
			dst = strconv.AppendUint(dst, i+1, 10)
			return append(dst, '"')
		},
	}
}

// lorem is running text.
func lorem(args []string) (field, error) {
	words := uint64(8)
	if len(args) > 0 {
		n, err := strconv.ParseUint(args[0], 10, 32)
		if err != nil || len(args) != 1 || n < 1 || n > maxWords {
			return field{}, fmt.Errorf("lorem(%.40s); write a number of words from 1 to %d", strings.Join(args, ", "), maxWords)
		}
		words = n
	}
	return field{
		bound: len(`""`) + int(words)*(longest+1),
		write: func(dst []byte, r random) []byte {
			dst = append(dst, '"')
			for i := range words {
				if i > 0 {
					dst = append(dst, ' ')
				}
				dst = append(dst, r.latin()...)
			}
			return append(dst, '"')
		},
	}, nil
}
