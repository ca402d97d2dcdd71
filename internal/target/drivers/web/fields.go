package web

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"

	"golang.org/x/net/http2/hpack"
)

// appendFields appends the header block (RFC 7541) of a request, given its head in HTTP/1.1. Fields are literals outside of any table, so that the block
// means the same on each connection.
func appendFields(dst, head []byte, secure bool) []byte {
	const method, http, https, path, authority = 0x02, 0x86, 0x87, 0x04, 0x01 // literals with a name of the static table; of :scheme the values, too
	line, head, _ := bytes.Cut(head, []byte("\r\n"))
	verb, line, _ := bytes.Cut(line, []byte(" "))
	to, _, _ := bytes.Cut(line, []byte(" "))
	dst = appendText(append(dst, method), verb)
	if secure {
		dst = append(dst, https)
	} else {
		dst = append(dst, http)
	}
	dst = appendText(append(dst, path), to)
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

	name, value []byte // of the last field; no name if it was none
	coded       bool   // value is in Huffman's code
	names, text bytes.Buffer
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

// next reads the field at the front of a block that is not empty, and returns the rest. The field is valid until the next call.
func (f *fields) next(b []byte) (rest []byte, err error) {
	bits, indexed := 4, b[0] >= 0x80
	switch {
	case indexed:
		bits = 7
	case b[0] >= 0x40:
		bits = 6
	case b[0] >= 0x20: // the size of the dynamic table
		bits = 5
	}
	f.name, f.value, f.coded = nil, nil, false
	i, b := number(b, bits)
	switch {
	case bits == 5 && i == 0:
		return b, nil
	case i < 0 || i >= len(f.static) || bits == 5 || indexed && i == 0:
		return nil, errFields
	case i > 0:
		f.name, f.value = f.static[i][0], f.static[i][1]
	default:
		var coded bool
		if f.name, coded, b, err = text(b); coded {
			f.name, err = decoded(&f.names, f.name)
		}
	}
	if !indexed && err == nil {
		f.value, f.coded, b, err = text(b)
	}
	return b, err
}

// said returns the value of the last field.
func (f *fields) said() ([]byte, error) {
	if f.coded {
		return decoded(&f.text, f.value)
	}
	return f.value, nil
}

// sum reads what matters of a response's head: its status, and the length of its body; -1 if it does not say.
func (f *fields) sum(block []byte) (status, length int, err error) {
	for length = -1; len(block) > 0; {
		if block, err = f.next(block); err != nil {
			return 0, 0, err
		}
		var into *int
		switch string(f.name) {
		case ":status":
			into = &status
		case "content-length":
			into = &length
		default:
			continue
		}
		value, err := f.said()
		if err != nil {
			return 0, 0, err
		}
		if *into, err = strconv.Atoi(string(value)); err != nil || *into < 0 {
			return 0, 0, errors.New("a status or a length of the body that is no number")
		}
	}
	if status < 100 || status > 999 {
		return 0, 0, errors.New("a head without a status from 100 on")
	}
	return status, length, nil
}

// decoded decodes a text in Huffman's code.
func decoded(into *bytes.Buffer, code []byte) ([]byte, error) {
	into.Reset()
	if _, err := hpack.HuffmanDecode(into, code); err != nil {
		return nil, errFields
	}
	return into.Bytes(), nil
}

// text reads a string, which may be in Huffman's code.
func text(b []byte) (s []byte, coded bool, rest []byte, err error) {
	if len(b) == 0 {
		return nil, false, nil, errFields
	}
	coded = b[0] >= 0x80
	n, b := number(b, 7)
	if n < 0 || n > len(b) {
		return nil, false, nil, errFields
	}
	return b[:n], coded, b[n:], nil
}

// number reads a number that begins in the last bits of the first byte; -1 if there is none below 2^28.
func number(b []byte, bits int) (n int, rest []byte) {
	whole := 1<<bits - 1
	if n = int(b[0]) & whole; n < whole {
		return n, b[1:]
	}
	more, size := binary.Uvarint(b[1:])
	if size <= 0 || more > 1<<28 {
		return -1, nil
	}
	return n + int(more), b[1+size:]
}
