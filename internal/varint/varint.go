// Package varint reads binary forms in which each state is written in one way only, so that what is equal has equal bytes.
//
// Numbers are varints of encoding/binary, unsigned or zigzag, of the fewest bytes. A form that is cut short, or that has a number in more bytes
// than need be, is an error, as is whatever its reader calls one; the reader then goes on as over zeros, and looks at the error at its end.
package varint

import (
	"encoding/binary"
	"fmt"
)

// Reader takes a form apart from the front of Rest. After the first error all that it returns is 0, and Rest stays where it was. One goroutine at a
// time uses it.
type Reader struct {
	Rest []byte // what has not been read
	Err  error  // the first error
}

// Fail notes an error, unless there was one before.
func (r *Reader) Fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf(format, args...)
	}
}

// Take returns the next n bytes, which are a part of Rest; nil after an error.
func (r *Reader) Take(n int) []byte {
	if r.Err != nil || len(r.Rest) < n {
		r.Fail("it ends early")
		return nil
	}
	b := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return b
}

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if r.Err != nil || len(r.Rest) == 0 {
		r.Fail("it ends early")
		return 0
	}
	c := r.Rest[0]
	r.Rest = r.Rest[1:]
	return c
}

// Uvarint reads an unsigned number.
func (r *Reader) Uvarint() uint64 {
	if r.Err != nil || len(r.Rest) == 0 || r.Rest[0] >= 0x80 {
		return r.long()
	}
	c := r.Rest[0]
	r.Rest = r.Rest[1:]
	return uint64(c)
}

// long is Uvarint for a number of several bytes.
func (r *Reader) long() uint64 {
	if r.Err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.Rest)
	switch {
	case n == 0:
		r.Fail("it ends early")
		return 0
	case n < 0:
		r.Fail("a number above 2^64 − 1")
		return 0
	case r.Rest[n-1] == 0:
		r.Fail("a number longer than need be")
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Varint reads a signed number: 0, −1, 1, −2, … are written as 0, 1, 2, 3, …
func (r *Reader) Varint() int64 {
	u := r.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}
