package workload

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/plan/keyfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// maxKeyWidth bounds the N of %0Nd: no integer has more digits, and a key stays about as long as its format.
const maxKeyWidth = 64

// keyFormat is a compiled key format: text around one integer. It appends what fmt would print, but faster.
type keyFormat struct {
	prefix, suffix string
	base           int // 10 or 16
	width          int // least number of digits, zero-padded

	// Keys that end in at least 8 digits and are at least 16 bytes long are written as two words after lead, for numbers below limit.
	// For other formats limit is 0.
	limit  uint64
	lead   string
	upper  uint64 // the upper word for number 0
	digits uint64 // mask of the bytes in upper that are digits

	listed *keyfile.Set // a file's keys, by number; the other fields are then unused. nil if keys are generated
}

// formatOf returns the key format of a dataset.
func formatOf(k *plan.Keys, listed *keyfile.Set) (keyFormat, error) {
	if k.File == nil {
		return parseKeyFormat(k.Format)
	}
	if listed == nil || int64(listed.Len()) != k.Count {
		return keyFormat{}, fmt.Errorf("the %d keys of %s are not at hand", k.Count, k.File.Path)
	}
	return keyFormat{listed: listed}, nil
}

// parseKeyFormat compiles a format of literal text with exactly one of the verbs %d, %0Nd, %x and %0Nx, N from 1 to 64; %% is a
// percent sign. The error says what is wrong with the format. The plan, not parseKeyFormat, checks which characters a key may have.
func parseKeyFormat(format string) (keyFormat, error) {
	var f keyFormat
	var text strings.Builder
	for rest := format; rest != ""; {
		literal, after, found := strings.Cut(rest, "%")
		text.WriteString(literal)
		if !found {
			break
		}
		if strings.HasPrefix(after, "%") {
			text.WriteByte('%')
			rest = after[1:]
			continue
		}
		verb, err := f.verb(after)
		if err != nil {
			return keyFormat{}, fmt.Errorf("key format %q: %w", format, err)
		}
		f.prefix = text.String()
		text.Reset()
		rest = after[verb:]
	}
	if f.base == 0 {
		return keyFormat{}, fmt.Errorf("key format %q: no verb for the key's number; write it as in key:%%012d", format)
	}
	f.suffix = text.String()
	f.compile()
	return f, nil
}

// compile prepares the fast path for writing keys.
func (f *keyFormat) compile() {
	zero := f.appendAny(nil, 0)
	lead := len(zero) - 16
	if f.base != 10 || f.suffix != "" || f.width < 8 || f.width > 16 || lead < 0 {
		return
	}
	f.limit = uint64(math.Pow10(f.width))
	f.lead = string(zero[:lead])
	f.upper = binary.LittleEndian.Uint64(zero[lead:])
	f.digits = math.MaxUint64 << (8 * (16 - f.width)) // 0 for eight digits: all are in the lower word
}

// verb reads a verb, without its percent sign, from the front of s and returns its length.
func (f *keyFormat) verb(s string) (int, error) {
	if f.base != 0 {
		return 0, fmt.Errorf("a second verb; a key has one number")
	}
	end := strings.IndexAny(s, "dx")
	digits := s[:max(end, 0)]
	if end < 0 || digits != "" && digits[0] != '0' {
		return 0, fmt.Errorf("only %%d, %%0Nd, %%x, %%0Nx and %%%% may be in it")
	}
	f.base = 10
	if s[end] == 'x' {
		f.base = 16
	}
	if digits != "" {
		width, err := strconv.ParseUint(digits[1:], 10, 8)
		if err != nil || width < 1 || width > maxKeyWidth || digits[1] == '0' {
			return 0, fmt.Errorf("width %q of %%%s is not a number from 1 to %d", digits[1:], s[:end+1], maxKeyWidth)
		}
		f.width = int(width)
	}
	return end + 1, nil
}

// Append appends the key with the given number.
func (f *keyFormat) Append(dst []byte, number uint64) []byte {
	if number >= f.limit {
		return f.appendAny(dst, number)
	}
	upper, lower := f.words(number)
	dst = append(dst, f.lead...)
	dst = binary.LittleEndian.AppendUint64(dst, upper)
	return binary.LittleEndian.AppendUint64(dst, lower)
}

// words returns the last 16 bytes of the key with a number below limit.
func (f *keyFormat) words(number uint64) (upper, lower uint64) {
	upper = f.upper
	if number >= 1e8 {
		upper |= eightDigits(number/1e8) & f.digits
		number %= 1e8
	}
	return upper, eightDigits(number)
}

// eightDigits returns the digits of n < 10⁸ as text, the first one in the lowest byte. It splits the number within one word: into halves of
// four digits, then of two, then of one.
func eightDigits(n uint64) uint64 {
	const text = 0x3030303030303030
	fours := n/1e4 | n%1e4<<32
	hundreds := fours * 5243 >> 19 & 0x7F0000007F // x·5243/2¹⁹ is x/100 for x < 10⁴
	twos := hundreds | (fours-hundreds*100)<<16
	tens := twos * 103 >> 10 & 0xF000F000F000F // x·103/2¹⁰ is x/10 for x < 100
	return tens | (twos-tens*10)<<8 | text
}

func (f *keyFormat) appendAny(dst []byte, number uint64) []byte {
	if f.listed != nil {
		return f.listed.Append(dst, number)
	}
	var digits [20]byte // the digits of 2⁶⁴ − 1 in base 10
	d := strconv.AppendUint(digits[:0], number, f.base)
	dst = append(dst, f.prefix...)
	for range f.width - len(d) {
		dst = append(dst, '0')
	}
	dst = append(dst, d...)
	return append(dst, f.suffix...)
}
