// Package varint reads binary forms in which each state has exactly one encoding, so that equal states have equal bytes.
//
// Numbers are varints of encoding/binary, unsigned or zigzag, in the fewest bytes. A truncated form, or a number in more bytes than necessary, is an
// error, as is whatever the caller reports with Fail. The caller may then read on, gets zeros, and checks the error at the end.
package varint

import (
	"encoding/binary"
	"fmt"
)

// Reader decodes a form from the front of Rest. After the first error it returns only zeros, and Rest stays where it was. One goroutine at a time may
// use it.
type Reader struct {
	Rest []byte // bytes that have not been read
	Err  error  // the first error
}

// Fail records an error, unless there already is one.
func (r *Reader) Fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf(format, args...)
	}
}

// Take returns the next n bytes, which alias Rest; nil after an error.
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
