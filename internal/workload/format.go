package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// maxKeyWidth bounds the N of %0Nd: no integer has more digits to show, and a key's length stays close to its text's.
const maxKeyWidth = 64

// keyFormat is a compiled key format: text around one integer. It appends what fmt would print, without its cost.
type keyFormat struct {
	prefix, suffix string
	base           int // 10 or 16
	width          int // least number of digits, zero-padded
}

// parseKeyFormat compiles a format of literal text with exactly one of the verbs %d, %0Nd, %x and %0Nx, N from 1 to 64; %% is a
// percent sign. The error says what is wrong with the format. Which text a key may hold is for the plan to say.
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
	return f, nil
}

// verb reads a verb behind its percent sign from the front of s and returns its length.
func (f *keyFormat) verb(s string) (int, error) {
	if f.base != 0 {
		return 0, fmt.Errorf("a second verb; a key has one number")
	}
	end := strings.IndexAny(s, "dx")
	digits := s[:max(end, 0)]
	if end < 0 || digits != "" && digits[0] != '0' {
		return 0, fmt.Errorf("only %%d, %%0Nd, %%x, %%0Nx and %%%% may stand in it")
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
	var digits [20]byte // of 2⁶⁴ − 1 in base 10
	d := strconv.AppendUint(digits[:0], number, f.base)
	dst = append(dst, f.prefix...)
	for range f.width - len(d) {
		dst = append(dst, '0')
	}
	dst = append(dst, d...)
	return append(dst, f.suffix...)
}
