package values

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// scaled maps a random word to a number in [0, n).
func scaled(word, n uint64) uint64 {
	hi, _ := bits.Mul64(word, n)
	return hi
}

// simple holds the types without arguments.
var simple = map[string]kind{
	"float": {
		json: form{len("1.23456789e-05"), func(dst []byte, r random) []byte {
			return strconv.AppendFloat(dst, r.float(), 'g', -1, 32)
		}},
		packed: form{4, func(dst []byte, r random) []byte {
			return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(r.float())))
		}},
	},
	"double": {
		json: form{len("1.2345678901234567e-16"), func(dst []byte, r random) []byte {
			return strconv.AppendFloat(dst, r.double(), 'g', -1, 64)
		}},
		packed: form{8, func(dst []byte, r random) []byte {
			return binary.LittleEndian.AppendUint64(dst, math.Float64bits(r.double()))
		}},
	},
	"date": text(len("2006-01-02"), func(dst []byte, r random) []byte {
		return r.moment().AppendFormat(dst, "2006-01-02")
	}).packedAs(form{4, func(dst []byte, r random) []byte {
		return binary.LittleEndian.AppendUint32(dst, uint32(r.moment().Unix()/(24*60*60)))
	}}),
	"datetime": text(len("2006-01-02T15:04:05.000Z"), func(dst []byte, r random) []byte {
		return r.moment().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
	}).packedAs(form{8, func(dst []byte, r random) []byte {
		return binary.LittleEndian.AppendUint64(dst, uint64(r.moment().UnixMilli()))
	}}),
	"uuid": text(len("00000000-0000-4000-8000-000000000000"), uuidText).packedAs(form{16, uuidBytes}),
	"qname": text(len("{http://loadgen.example/model//1.0}")+3*longest, qname).numberedAs(form{1 + 1 + 2*longest, func(dst []byte, r random) []byte {
		dst = append(dst, byte(r.below(namespaces)))
		at := len(dst)
		return counted(localName(dst, &r), at)
	}}),
}

// text returns the kind of texts without characters that JSON escapes.
func text(bound int, plain writer) kind {
	return kind{
		json: form{bound + len(`""`), func(dst []byte, r random) []byte {
			return append(plain(append(dst, '"'), r), '"')
		}},
		packed: form{binary.MaxVarintLen32 + bound, func(dst []byte, r random) []byte {
			at := len(dst)
			return counted(plain(dst, r), at)
		}},
		plain: plain,
	}
}

func (k kind) packedAs(f form) kind {
	k.packed = f
	return k
}

func (k kind) numberedAs(f form) kind {
	k.dictionary = f
	return k
}

// counted inserts the length of dst[at:] before it.
func counted(dst []byte, at int) []byte {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(dst)-at))
	return slices.Insert(dst, at, length[:n]...)
}

func (r *random) float() float64  { return float64(r.word()>>40) / (1 << 24) }
func (r *random) double() float64 { return float64(r.word()>>11) / (1 << 53) }

// The range of dates, in milliseconds since 1970: from the first, up to but not including the second.
var (
	first  = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	beyond = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
)

func (r *random) moment() time.Time {
	return time.UnixMilli(first + int64(r.below(uint64(beyond-first)))).UTC()
}

// uuid returns a UUID of version 4 and variant 10 (RFC 9562, section 5.4).
func (r *random) uuid() (b [16]byte) {
	hi, lo := r.word(), r.word()
	for i := range 8 {
		b[i], b[8+i] = byte(hi>>(8*i)), byte(lo>>(8*i))
	}
	b[6], b[8] = b[6]&0x0F|0x40, b[8]&0x3F|0x80
	return b
}

func uuidBytes(dst []byte, r random) []byte {
	b := r.uuid()
	return append(dst, b[:]...)
}

func uuidText(dst []byte, r random) []byte {
	b := r.uuid()
	for i, n := range [...]int{4, 2, 2, 2, 6} {
		if i > 0 {
			dst = append(dst, '-')
		}
		at := [...]int{0, 4, 6, 8, 10}[i]
		dst = hex.AppendEncode(dst, b[at:at+n])
	}
	return dst
}

// uuidWithin returns the kind of a UUID within a text that has %s in its place.
func uuidWithin(format string) (kind, error) {
	before, after, found := strings.Cut(format, "%s")
	if !found || strings.Contains(before+after, "%") || len(format) > maxText || !utf8.ValidString(format) {
		return kind{}, fmt.Errorf("uuid(%.60s); write up to %d bytes of UTF-8 with one %%s, where the UUID stands, and no other %%", format, maxText)
	}
	plain := func(dst []byte, r random) []byte {
		return append(uuidText(append(dst, before...), r), after...)
	}
	open, shut := strings.TrimSuffix(quoted(before), `"`), strings.TrimPrefix(quoted(after), `"`)
	k := text(len(format)+len("00000000-0000-4000-8000-000000000000"), plain)
	k.json = form{len(open) + len("00000000-0000-4000-8000-000000000000") + len(shut), func(dst []byte, r random) []byte {
		return append(uuidText(append(dst, open...), r), shut...)
	}}
	lead, trail := counted([]byte(before), 0), counted([]byte(after), 0)
	k.packed = form{len(lead) + 16 + len(trail), func(dst []byte, r random) []byte {
		return append(uuidBytes(append(dst, lead...), r), trail...)
	}}
	k.dictionary = form{16, uuidBytes}
	return k, nil
}

// namespaces is the number of namespaces of qualified names.
const namespaces = 16

// qname appends a qualified name.
func qname(dst []byte, r random) []byte {
	dst = append(dst, `{http://loadgen.example/model/`...)
	dst = append(dst, words[r.below(namespaces)]...)
	dst = append(dst, `/1.0}`...)
	return localName(dst, &r)
}

// localName appends the part of a qualified name after its namespace.
func localName(dst []byte, r *random) []byte {
	dst = append(dst, r.latin()...)
	second := r.latin()
	dst = append(dst, second[0]-'a'+'A')
	return append(dst, second[1:]...)
}

// wholeNumber returns the kind of a number between the two arguments, or between the limits of its type, which has size bytes.
func wholeNumber(args []string, least, most int64, size int) (kind, error) {
	from, to := least, most
	if len(args) > 0 {
		var errs [2]error
		if len(args) == 2 {
			from, errs[0] = strconv.ParseInt(args[0], 10, 64)
			to, errs[1] = strconv.ParseInt(args[1], 10, 64)
		}
		if len(args) != 2 || errs[0] != nil || errs[1] != nil || from > to || from < least || to > most {
			return kind{}, fmt.Errorf("the range (%.60s); write two whole numbers from %d to %d, the smaller first", strings.Join(args, ", "), least, most)
		}
	}
	span := uint64(to) - uint64(from) + 1 // 0 for all 64 bits
	number := func(r *random) int64 {
		x := r.word()
		if span != 0 {
			x = scaled(x, span)
		}
		return int64(uint64(from) + x)
	}
	return kind{
		json: form{max(len(strconv.FormatInt(from, 10)), len(strconv.FormatInt(to, 10))), func(dst []byte, r random) []byte {
			return strconv.AppendInt(dst, number(&r), 10)
		}},
		packed: form{size, func(dst []byte, r random) []byte {
			if size == 4 {
				return binary.LittleEndian.AppendUint32(dst, uint32(number(&r)))
			}
			return binary.LittleEndian.AppendUint64(dst, uint64(number(&r)))
		}},
	}, nil
}

// lorem returns the kind of running text.
func lorem(args []string) (kind, error) {
	words := uint64(8)
	if len(args) > 0 {
		n, err := strconv.ParseUint(args[0], 10, 32)
		if err != nil || len(args) != 1 || n < 1 || n > maxWords {
			return kind{}, fmt.Errorf("lorem(%.40s); write a number of words from 1 to %d", strings.Join(args, ", "), maxWords)
		}
		words = n
	}
	return text(int(words)*(longest+1), func(dst []byte, r random) []byte {
		for i := range words {
			if i > 0 {
				dst = append(dst, ' ')
			}
			dst = append(dst, r.latin()...)
		}
		return dst
	}), nil
}

// latin returns a word of the text.
func (r *random) latin() string { return words[r.below(uint64(len(words)))] }

// words are the placeholder text's, from Cicero, De finibus bonorum et malorum, 1.10.32. The first 16 serve as namespaces of qualified names.
var words = [...]string{
	"lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "adipiscing", "elit", "sed", "do", "eiusmod", "tempor", "incididunt", "ut",
	"labore", "et", "dolore", "magna", "aliqua", "enim", "ad", "minim", "veniam", "quis", "nostrud", "exercitation", "ullamco", "laboris",
	"nisi", "aliquip", "ex", "ea", "commodo", "consequat", "duis", "aute", "irure", "in", "reprehenderit", "voluptate", "velit", "esse",
	"cillum", "eu", "fugiat", "nulla", "pariatur", "excepteur", "sint", "occaecat", "cupidatat", "non", "proident", "sunt", "culpa", "qui",
	"officia", "deserunt", "mollit", "anim", "id", "est", "laborum",
}

// longest is the length of the longest word.
const longest = len("reprehenderit")
