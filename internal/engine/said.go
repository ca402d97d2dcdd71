package engine

import "bytes"

// Of what a server says, a run of so many digits, or of letters and digits, is taken for part of a key or value: there are as many of them as there
// are ops, and none is worth a line of its own.
const (
	fewestDigits  = 6
	longestWord   = 24
	mostOfMessage = 512 // bytes of it that are looked at; fewer are kept
)

var cut = []byte("…")

// said counts what servers say of ops that failed, without what they repeat of keys and values. Texts of one cause are one.
type said struct {
	prefix []byte // of the dataset's keys; empty: they begin with their number, or are a file's
	text   []byte
}

// keyPrefix returns what stands before the number in a format of keys.
func keyPrefix(format string) []byte {
	prefix, _, _ := bytes.Cut([]byte(format), []byte("%"))
	return prefix
}

// of returns a message without what is repeated in it. It is valid until the next call.
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

// appendWithoutNumbers appends a word, but for numbers in it that are long.
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

// leading returns how many of the first bytes are of a kind.
func leading(b []byte, is func(byte) bool) int {
	n := 0
	for n < len(b) && is(b[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }
