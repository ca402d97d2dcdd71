package cachenode

import (
	"errors"
	"fmt"
	"strconv"
)

const (
	// maxArgs bounds the arguments of one request, the command's name included.
	maxArgs = 1024
	// maxLengthDigits bounds a number in a request, so that reading it cannot overflow.
	maxLengthDigits = 10
	// maxBulk is the longest argument Redis takes (proto-max-bulk-len).
	maxBulk = 512 << 20
)

// protocolError returns the answer to a client before its connection is closed.
func protocolError(text string) error { return errors.New("Protocol error: " + text) }

// respRequest reads one request, an array of bulk strings or a line, from bytes that arrive in pieces. Nothing is read twice, so a client that sends
// a byte at a time costs no more.
type respRequest struct {
	limit int // of all arguments' bytes

	args    []span
	missing int // arguments still to come; 0 before the array's header
	size    int // length of the argument being read, -1 before its header
	total   int // bytes of arguments announced
	at      int // how far the request was read
	scanned int // how far a line's end was searched for
}

// span is the position of an argument in the request's bytes.
type span struct{ from, to int }

// of returns the argument; b begins with the request's first byte.
func (s span) of(b []byte) []byte { return b[s.from:s.to] }

// reset makes the parser ready for the next request.
func (r *respRequest) reset() {
	*r = respRequest{limit: r.limit, args: r.args[:0], size: -1}
}

// parse continues to read b, which begins with the request's first byte. It reports whether the request is complete: r.at bytes, with arguments
// r.args. An error is a protocolError.
func (r *respRequest) parse(b []byte) (complete bool, err error) {
	if r.at == 0 && len(b) > 0 {
		if b[0] != '*' {
			return r.inline(b)
		}
		count, ok, err := r.header(b, '*', "invalid multibulk length")
		if err != nil || !ok {
			return false, err
		}
		if count > maxArgs {
			return false, protocolError("invalid multibulk length")
		}
		r.missing = count
	}
	for r.missing > 0 {
		if ok, err := r.argument(b); err != nil || !ok {
			return false, err
		}
	}
	return r.at > 0, nil
}

// argument reads one argument.
func (r *respRequest) argument(b []byte) (complete bool, err error) {
	if r.size < 0 {
		size, ok, err := r.header(b, '$', "invalid bulk length")
		if err != nil || !ok {
			return false, err
		}
		if r.total += size; size > maxBulk || r.total > r.limit {
			return false, protocolError("invalid bulk length")
		}
		r.size = size
	}
	end := r.at + r.size
	if len(b) < end+2 {
		return false, nil
	}
	if b[end] != '\r' || b[end+1] != '\n' {
		return false, protocolError("bulk string without CR LF at its end")
	}
	r.args = append(r.args, span{r.at, end})
	r.at, r.size = end+2, -1
	r.missing--
	return true, nil
}

// header reads a type byte, a length and CR LF. It refuses a negative length, which Redis takes for an empty request.
func (r *respRequest) header(b []byte, want byte, complaint string) (v int, complete bool, err error) {
	b = b[r.at:]
	if len(b) == 0 {
		return 0, false, nil
	}
	if b[0] != want {
		return 0, false, protocolError(fmt.Sprintf("expected '%c', got %s", want, strconv.QuoteToASCII(string(b[:1]))))
	}
	i := 1
	for ; i < len(b) && b[i]-'0' <= 9 && i <= maxLengthDigits; i++ {
		v = v*10 + int(b[i]-'0')
	}
	end := b[i:]
	switch {
	case len(end) == 0, len(end) == 1 && end[0] == '\r' && i > 1:
		return 0, false, nil
	case i == 1 || end[0] != '\r' || end[1] != '\n':
		return 0, false, protocolError(complaint)
	}
	r.at += i + 2
	return v, true, nil
}
