package rowfile

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The following functions are for text that is known to be valid JSON, so they only look for the ends of values.

// space returns the index of the first byte from i on that is not a space.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// stringEnd returns the index after a string that begins at i.
func stringEnd(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd returns the index after a value that begins at i.
func valueEnd(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = stringEnd(b, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			i++
			continue
		default:
			for i < len(b) && strings.IndexByte(",:]} \t\r\n", b[i]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// unescape returns the text of a string.
func (r *Reader) unescape(b []byte) []byte {
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	begin := len(r.plain)
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			r.plain = append(r.plain, b[i])
			continue
		}
		i++
		switch b[i] {
		case 'b':
			r.plain = append(r.plain, '\b')
		case 'f':
			r.plain = append(r.plain, '\f')
		case 'n':
			r.plain = append(r.plain, '\n')
		case 'r':
			r.plain = append(r.plain, '\r')
		case 't':
			r.plain = append(r.plain, '\t')
		case 'u':
			c := unit(b[i+1:])
			i += 4
			if utf16.IsSurrogate(c) {
				low := rune(-1)
				if i+6 < len(b) && b[i+1] == '\\' && b[i+2] == 'u' {
					low = unit(b[i+3:])
				}
				if c = utf16.DecodeRune(c, low); c != utf8.RuneError {
					i += 6
				}
			}
			r.plain = utf8.AppendRune(r.plain, c)
		default:
			r.plain = append(r.plain, b[i])
		}
	}
	return r.plain[begin:]
}

// unit reads four hexadecimal digits.
func unit(b []byte) rune {
	n, _ := strconv.ParseUint(string(b[:4]), 16, 16) // valid JSON has only such digits
	return rune(n)
}
