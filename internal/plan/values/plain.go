package values

import (
	"encoding/hex"
	"math/bits"
	"strconv"
	"time"
)

// scaled maps a random word to a number in [0, n).
func scaled(word, n uint64) uint64 {
	hi, _ := bits.Mul64(word, n)
	return hi
}

// plain holds the types without arguments.
var plain = map[string]field{
	"float": {bound: len("1.23456789e-05"), write: func(dst []byte, r random) []byte {
		return strconv.AppendFloat(dst, float64(r.word()>>40)/(1<<24), 'g', -1, 32)
	}},
	"double": {bound: len("1.2345678901234567e-16"), write: func(dst []byte, r random) []byte {
		return strconv.AppendFloat(dst, float64(r.word()>>11)/(1<<53), 'g', -1, 64)
	}},
	"date": {bound: len(`"2006-01-02"`), write: func(dst []byte, r random) []byte {
		return r.moment().AppendFormat(dst, `"2006-01-02"`)
	}},
	"datetime": {bound: len(`"2006-01-02T15:04:05.000Z"`), write: func(dst []byte, r random) []byte {
		return r.moment().AppendFormat(dst, `"2006-01-02T15:04:05.000Z"`)
	}},
	"uuid":  {bound: len(`"00000000-0000-4000-8000-000000000000"`), write: uuid},
	"qname": {bound: len(`"{http://loadgen.example/model//1.0}"`) + 3*longest, write: qname},
}

// The range of dates, in milliseconds since 1970: from the first, up to but not including the second.
var (
	first  = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	beyond = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
)

func (r *random) moment() time.Time {
	return time.UnixMilli(first + int64(r.below(uint64(beyond-first)))).UTC()
}

// uuid appends a UUID of version 4 and variant 10 (RFC 9562, section 5.4).
func uuid(dst []byte, r random) []byte {
	var b [16]byte
	hi, lo := r.word(), r.word()
	for i := range 8 {
		b[i], b[8+i] = byte(hi>>(8*i)), byte(lo>>(8*i))
	}
	b[6], b[8] = b[6]&0x0F|0x40, b[8]&0x3F|0x80
	dst = append(dst, '"')
	for i, n := range [...]int{4, 2, 2, 2, 6} {
		if i > 0 {
			dst = append(dst, '-')
		}
		at := [...]int{0, 4, 6, 8, 10}[i]
		dst = hex.AppendEncode(dst, b[at:at+n])
	}
	return append(dst, '"')
}

// qname appends a qualified name.
func qname(dst []byte, r random) []byte {
	dst = append(dst, `"{http://loadgen.example/model/`...)
	dst = append(dst, words[r.below(16)]...)
	dst = append(dst, `/1.0}`...)
	dst = append(dst, r.latin()...)
	second := r.latin()
	dst = append(dst, second[0]-'a'+'A')
	dst = append(dst, second[1:]...)
	return append(dst, '"')
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
