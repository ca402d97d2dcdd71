package capture

import (
	"bytes"
	"strconv"
)

// AppendCommands appends commands of Redis as they are sent, and whether they are a transaction. A command that would keep later ones waiting becomes a
// transaction of its own, in which it does not.
func AppendCommands(dst []byte, r *Record) (request []byte, transaction bool) {
	if len(r.Commands) == 1 && Waits(r.Name, r.Commands[0]) {
		dst = appendCommand(dst, []byte("MULTI"))
		dst = appendCommand(dst, r.Commands[0]...)
		return appendCommand(dst, []byte("EXEC")), true
	}
	for _, words := range r.Commands {
		dst = appendCommand(dst, words...)
	}
	return dst, len(r.Commands) > 1
}

// AppendSelect appends a SELECT.
func AppendSelect(dst []byte, database string) []byte {
	return appendCommand(dst, []byte("SELECT"), []byte(database))
}

func appendCommand(dst []byte, words ...[]byte) []byte {
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
