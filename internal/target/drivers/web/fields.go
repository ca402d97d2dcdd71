package web

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"strconv"

	"golang.org/x/net/http2/hpack"
)

// appendFields appends the header block (RFC 7541) of a request, given its head in HTTP/1.1. Fields are literals outside of any table, so that the block
// means the same on each connection.
func appendFields(dst, head []byte, secure bool) []byte {
	const method, path, authority = 0x02, 0x04, 0x01 // literals with a name of the static table
	scheme := byte(0x86)                             // in that table, with its value
	if secure {
		scheme = 0x87
	}
	line, head, _ := bytes.Cut(head, []byte("\r\n"))
	verb, line, _ := bytes.Cut(line, []byte(" "))
	to, _, _ := bytes.Cut(line, []byte(" "))
	dst = appendText(append(dst, method), verb)
	dst = appendText(append(dst, scheme, path), to)
	for len(head) > 0 {
		line, head, _ = bytes.Cut(head, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		start := len(dst)
		dst = appendText(append(dst, 0), name)
		name = dst[len(dst)-len(name):]
		for i, c := range name {
			if 'A' <= c && c <= 'Z' {
				name[i] = c | 0x20
			}
		}
		switch string(name) {
		case "host":
			dst = append(dst[:start], authority)
		case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "te", "http2-settings": // of a connection of HTTP/1.1
			dst = dst[:start]
			continue
		}
		dst = appendText(dst, bytes.TrimSpace(value))
	}
	return dst
}

// appendText appends a string's length and bytes.
func appendText(dst, text []byte) []byte {
	const whole = 1<<7 - 1 // of the first byte, if the length goes on behind it
	if len(text) < whole {
		dst = append(dst, byte(len(text)))
	} else {
		dst = binary.AppendUvarint(append(dst, whole), uint64(len(text)-whole))
	}
	return append(dst, text...)
}

// fields reads header blocks that refer to no dynamic table: the settings of this client allow none. It allocates nothing, as the decoder of package
// hpack does for each literal.
type fields struct {
	static [62][2][]byte // names and values of the static table

	rest  []byte // of the block
	err   error  // the first
	name  []byte // of the last field; none if it was none
	value []byte
	coded bool // value is in Huffman's code

	names, values bytes.Buffer // what was in that code
}

var errFields = errors.New("a header block that is no HPACK, or refers to a dynamic table, although the settings allow none")

func newFields() *fields {
	f := new(fields)
	for i := 1; i < len(f.static); i++ {
		entry, _ := hpack.NewDecoder(0, nil).DecodeFull([]byte{0x80 | byte(i)}) // it is there
		f.static[i] = [2][]byte{[]byte(entry[0].Name), []byte(entry[0].Value)}
	}
	return f
}

// begin goes to the front of a block.
func (f *fields) begin(block []byte) { f.rest, f.err = block, nil }

// next reads another field; false if there is none, or err says why not. The field is valid until the next call.
func (f *fields) next() bool {
	if len(f.rest) == 0 || f.err != nil {
		return false
	}
	kind := max(4, bits.Len8(f.rest[0])-1) // the bits of its number tell its kind: 7 of an indexed field, 5 of the dynamic table's size
	i := f.number(kind)
	f.name, f.value, f.coded = nil, nil, false
	switch {
	case kind == 5 && i == 0:
		return true
	case i >= len(f.static) || kind == 5 || kind == 7 && i == 0:
		f.err = errFields
	case i > 0:
		f.name, f.value = f.static[i][0], f.static[i][1]
	default:
		f.text()
		f.name = f.said(&f.names)
	}
	if kind < 7 {
		f.text()
	}
	return f.err == nil
}

// text reads a string.
func (f *fields) text() {
	f.coded = len(f.rest) > 0 && f.rest[0] >= 0x80
	n := f.number(7)
	if n > len(f.rest) {
		n, f.err = 0, errFields
	}
	f.value, f.rest = f.rest[:n], f.rest[n:]
}

// number reads a number below 2^28 that begins in the last bits of the first byte.
func (f *fields) number(bits int) (n int) {
	if len(f.rest) == 0 {
		f.err = errFields
		return 0
	}
	whole := 1<<bits - 1
	n, f.rest = int(f.rest[0])&whole, f.rest[1:]
	if n == whole {
		more, size := binary.Uvarint(f.rest)
		if size <= 0 || more > 1<<28 {
			f.err = errFields
			return 0
		}
		n, f.rest = n+int(more), f.rest[size:]
	}
	return n
}

// said returns the last string.
func (f *fields) said(into *bytes.Buffer) []byte {
	if !f.coded {
		return f.value
	}
	into.Reset()
	if _, err := hpack.HuffmanDecode(into, f.value); err != nil {
		f.err = errFields
	}
	return into.Bytes()
}

// sum reads what matters of a response's head: its status, and the length of its body; -1 if it does not say.
func (f *fields) sum(block []byte) (status, length int, err error) {
	length = -1
	for f.begin(block); f.next(); {
		switch string(f.name) {
		case ":status":
			status = f.count()
		case "content-length":
			length = f.count()
		}
	}
	if f.err == nil && (status < 100 || status > 999) {
		f.err = errors.New("a head without a status from 100 on")
	}
	return status, length, f.err
}

// count returns the last string as a number.
func (f *fields) count() int {
	n, err := strconv.ParseUint(string(f.said(&f.values)), 10, 62)
	if err != nil && f.err == nil {
		f.err = errors.New("a status or a length of the body that is no number")
	}
	return int(n)
}
