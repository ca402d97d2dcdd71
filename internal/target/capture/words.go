package capture

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
)

// AppendCommands appends commands of Redis as they are sent, and whether they are a transaction. A command that would keep later ones waiting becomes a
// transaction of its own, in which it does not.
func AppendCommands(dst []byte, r *Record) (request []byte, transaction bool) {
	if len(r.Commands) == 1 && Waits(r.Name, r.Commands[0]) {
		dst = AppendCommand(dst, "MULTI")
		dst = AppendCommand(dst, r.Commands[0]...)
		return AppendCommand(dst, "EXEC"), true
	}
	for _, words := range r.Commands {
		dst = AppendCommand(dst, words...)
	}
	return dst, len(r.Commands) > 1
}

// AppendSelect appends a SELECT.
func AppendSelect(dst []byte, database string) []byte {
	return AppendCommand(dst, "SELECT", database)
}

// AppendCommand appends a command of Redis as it is sent.
func AppendCommand[Word string | []byte](dst []byte, words ...Word) []byte {
	dst = append(strconv.AppendInt(append(dst, '*'), int64(len(words)), 10), "\r\n"...)
	for _, w := range words {
		dst = append(strconv.AppendInt(append(dst, '$'), int64(len(w)), 10), "\r\n"...)
		dst = append(append(dst, w...), "\r\n"...)
	}
	return dst
}

// AppendHTTP appends a request of an access log without its Host header, which is the target's.
func AppendHTTP(dst []byte, r *Record) []byte {
	dst = append(dst, bytes.Join(r.Commands[0], []byte{' '})...)
	return append(dst, " HTTP/1.1\r\n\r\n"...)
}

// AppendStatement appends a statement as PostgreSQL's clients send it: a Query, or with parameters Parse, Bind, Execute and Sync, of which the server
// infers the parameters' types and reads their text.
func AppendStatement(dst []byte, r *Record) []byte {
	sql, parameters := r.Commands[0][0], r.Commands[0][1:]
	message := func(kind byte, body ...[]byte) {
		dst = append(dst, kind, 0, 0, 0, 0)
		at := len(dst)
		for _, b := range body {
			dst = append(dst, b...)
		}
		binary.BigEndian.PutUint32(dst[at-4:], uint32(len(dst)-at+4))
	}
	if len(parameters) == 0 {
		message('Q', sql, []byte{0})
		return dst
	}
	values := [][]byte{{0, 0, 0, 0}, binary.BigEndian.AppendUint16(nil, uint16(len(parameters)))} // portal and statement unnamed, all as text
	for _, p := range parameters {
		size := uint32(len(p))
		if p == nil {
			size = math.MaxUint32 // NULL
		}
		values = append(values, binary.BigEndian.AppendUint32(nil, size), p)
	}
	message('P', []byte{0}, sql, []byte{0, 0, 0})
	message('B', append(values, []byte{0, 0})...)
	message('E', []byte{0, 0, 0, 0, 0})
	message('S')
	return dst
}
