package redis

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

const (
	// maxBulk bounds a bulk string: Redis' own default limit (proto-max-bulk-len).
	maxBulk = 512 << 20
	// maxLine bounds a status or an error, terminator included. Redis' own are under 1 KiB; scripts can raise longer ones.
	maxLine = 64 << 10
	// maxQuote is how much of an unexpected reply an error shows.
	maxQuote = 40
)

type kind uint8

const (
	status kind = iota
	errorReply
	integer
	bulk
	null
	array // a header: integer elements follow as separate values, none if integer is negative

	// Kinds that only RESP3 has.
	scalar    // a double, a boolean or a big number
	mapping   // a header: twice integer elements follow
	set       // as array
	push      // as array; a message that is no reply
	attribute // as mapping; precedes the value it describes
)

// reply is one value. text is a slice of the buffer that the value was read from.
type reply struct {
	kind    kind
	integer int64
	text    []byte
}

// missing reports whether the reply is a form of null: a null string, a null array, or RESP3's null.
func (r *reply) missing() bool { return r.kind == null || r.kind == array && r.integer == -1 }

// readValue reads the RESP2 value at the front of b and returns its length, 0 if it is incomplete. For an array, it reads only the header.
func readValue(b []byte) (reply, int, error) {
	if len(b) == 0 {
		return reply{}, 0, nil
	}
	switch b[0] {
	case '+', '-':
		line, n, err := readLine(b)
		r := reply{kind: status, text: line}
		if b[0] == '-' {
			r.kind = errorReply
		}
		return r, n, err
	case ':':
		v, n, err := readNumber(b)
		return reply{kind: integer, integer: v}, n, err
	case '$':
		return readBulk(b)
	case '*':
		v, n, err := readNumber(b)
		return reply{kind: array, integer: v}, n, err
	case '_': // null of RESP3, which some servers also send in RESP2
		_, n, err := readWord(b, "")
		return reply{kind: null}, n, err
	default:
		return reply{}, 0, fmt.Errorf("not RESP2: got %s", quote(b))
	}
}

// shortBulk reads a complete, well-formed bulk string whose length has up to five digits, which most replies are. It returns 0 for anything else,
// which readValue then reads.
func shortBulk(b []byte) (text []byte, n int) {
	if len(b) < 4 || b[0] != '$' {
		return nil, 0
	}
	size, at := uint(b[1]-'0'), 2
	if size > 9 {
		return nil, 0
	}
	for ; at < min(len(b), 6) && b[at] != '\r'; at++ {
		digit := uint(b[at] - '0')
		if digit > 9 {
			return nil, 0
		}
		size = size*10 + digit
	}
	from := uint(at) + 2
	end := from + size
	if end+2 > uint(len(b)) || b[at] != '\r' || b[at+1] != '\n' || b[end] != '\r' || b[end+1] != '\n' {
		return nil, 0
	}
	return b[from:end:end], int(end) + 2
}

// skimBulks skips up to most bulk strings that shortBulk would read, and returns how many and their bytes. A string as long as the previous one
// begins with the same header, of up to eight bytes, so its length need not be parsed.
func skimBulks(b []byte, most int) (n, took int) {
	for n < most {
		text, size := shortBulk(b[took:])
		if size == 0 {
			break
		}
		n++
		took += size
		if size < 8 {
			continue
		}
		head := size - len(text) - len("\r\n")
		mask := uint64(math.MaxUint64) >> (64 - 8*head)
		want := binary.LittleEndian.Uint64(b[took-size:]) & mask
		for n < most && took+size <= len(b) {
			next := b[took : took+size]
			if binary.LittleEndian.Uint64(next)&mask != want || next[size-2] != '\r' || next[size-1] != '\n' {
				break
			}
			n++
			took += size
		}
	}
	return n, took
}

func readBulk(b []byte) (reply, int, error) {
	size, n, err := readNumber(b)
	if n == 0 || err != nil {
		return reply{}, 0, err
	}
	switch {
	case size == -1:
		return reply{kind: null}, n, nil
	case size < 0:
		return reply{}, 0, fmt.Errorf("bulk string of negative length: got %s", quote(b[:n]))
	case size > maxBulk:
		return reply{}, 0, fmt.Errorf("bulk string of %d bytes is beyond the limit of %d", size, maxBulk)
	}
	end := n + int(size)
	if len(b) < end+2 {
		return reply{}, 0, nil
	}
	if b[end] != '\r' || b[end+1] != '\n' {
		return reply{}, 0, fmt.Errorf("bulk string of %d bytes goes on after its end: got %s", size, quote(b[end:]))
	}
	return reply{kind: bulk, text: b[n:end:end]}, end + 2, nil
}

// readNumber reads the signed decimal between the type byte and CR LF. It takes at most 18 digits, so it cannot overflow.
func readNumber(b []byte) (v int64, n int, err error) {
	const mostDigits = 18
	at := 1
	if len(b) > 1 && b[1] == '-' {
		at = 2
	}
	first := at
	for ; at < len(b) && b[at]-'0' <= 9 && at-first < mostDigits; at++ {
		v = v*10 + int64(b[at]-'0')
	}
	end := b[at:]
	switch {
	case len(end) == 0, len(end) == 1 && end[0] == '\r' && at > first:
		return 0, 0, nil
	case at == first || end[0] != '\r' || end[1] != '\n':
		return 0, 0, fmt.Errorf("not a number: got %s", quote(b))
	}
	if first == 2 {
		v = -v
	}
	return v, at + 2, nil
}

// readLine returns the text between the type byte and CR LF, and the bytes taken, including CR LF.
func readLine(b []byte) ([]byte, int, error) {
	within := b[:min(len(b), maxLine)]
	i := bytes.IndexByte(within, '\n')
	switch {
	case i < 0 && len(within) == maxLine:
		return nil, 0, fmt.Errorf("line does not end within %d bytes: got %s", maxLine, quote(b))
	case i < 0:
		return nil, 0, nil
	case i < 2 || b[i-1] != '\r':
		return nil, 0, fmt.Errorf("line does not end in CR LF: got %s", quote(b[:i+1]))
	}
	return b[1 : i-1 : i-1], i + 1, nil
}

// quote shows the beginning of b in an error.
func quote(b []byte) string {
	if len(b) > maxQuote {
		return strconv.Quote(string(b[:maxQuote])) + "…"
	}
	return strconv.Quote(string(b))
}

// appendLength appends n ≥ 0 in decimal, and CR LF. Lengths of keys and values usually have two or three digits.
func appendLength(dst []byte, n int) []byte {
	if n < 100 && n >= 10 {
		return append(dst, byte('0'+n/10), byte('0'+n%10), '\r', '\n')
	}
	return appendAnyLength(dst, n)
}

// lengthSize returns how many bytes appendLength appends.
func lengthSize(n int) int {
	size := len("0\r\n")
	for ; n >= 10; n /= 10 {
		size++
	}
	return size
}

func appendAnyLength(dst []byte, n int) []byte {
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}
