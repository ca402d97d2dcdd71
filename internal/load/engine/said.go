package engine

import "bytes"

// In a server's message, fewestDigits or more digits in a row, or a word of at least longestWord letters and digits, are taken for part of a key or
// value. Such parts differ from op to op, and would make each message an error of its own.
const (
	fewestDigits  = 6
	longestWord   = 24
	mostOfMessage = 512 // how many bytes of a message are read; the text that is kept is shorter
)

var cut = []byte("…")

// said redacts servers' error messages: without the keys and values that they repeat, one cause gives one text.
type said struct {
	prefix []byte // the prefix of the dataset's keys; empty if they begin with their number or are from a file
	text   []byte
}

// keyPrefix returns the part of a key format that stands before the number.
func keyPrefix(format string) []byte {
	prefix, _, _ := bytes.Cut([]byte(format), []byte("%"))
	return prefix
}

// of returns a message without the keys and values that it repeats. The result is valid until the next call.
func (s *said) of(message []byte) []byte {
	m := message[:min(len(message), mostOfMessage)]
	s.text = s.text[:0]
	for i := 0; i < len(m); {
		if len(s.prefix) > 0 && bytes.HasPrefix(m[i:], s.prefix) {
			s.text = append(s.text, s.prefix...)
			i += len(s.prefix)
			if n := leading(m[i:], isDigit); n > 0 {
				s.text = append(s.text, cut...)
				i += n
			}
			continue
		}
		n := leading(m[i:], isWord)
		switch {
		case n == 0:
			s.text = append(s.text, m[i])
			n = 1
		case n >= longestWord:
			s.text = append(s.text, cut...)
		default:
			s.text = appendWithoutNumbers(s.text, m[i:i+n])
		}
		i += n
	}
	return s.text
}

// appendWithoutNumbers appends a word, but cuts long numbers out of it.
func appendWithoutNumbers(dst, word []byte) []byte {
	for i := 0; i < len(word); {
		n := leading(word[i:], isDigit)
		switch {
		case n == 0:
			dst = append(dst, word[i])
			n = 1
		case n >= fewestDigits:
			dst = append(dst, cut...)
		default:
			dst = append(dst, word[i:i+n]...)
		}
		i += n
	}
	return dst
}

// leading returns how many of the first bytes satisfy is.
func leading(b []byte, is func(byte) bool) int {
	n := 0
	for n < len(b) && is(b[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }
