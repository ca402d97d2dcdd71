package hydra

import (
	"bytes"
	"errors"
	"fmt"
)

const (
	maxHead = 16 << 10  // bytes of a response's head; those of Hydra take about 150
	maxBody = 512 << 20 // bytes of a response's body
)

var (
	errNoFrame  = errors.New("hydra: a value without a version in front of it")
	errNoLength = errors.New("hydra: a response without a Content-Length")
	errTooLong  = fmt.Errorf("hydra: a response of more than %d MiB", maxBody>>20)
	errNoHTTP   = errors.New("hydra: not an HTTP response")
)

// response is one HTTP response. Its slices point into the buffer that it was read from.
type response struct {
	size   int // in bytes; 0 if the response is incomplete
	status uint16
	reason []byte // the status and its words
	server []byte // the Server header
	body   []byte
}

// httpStart begins each response; a digit follows.
const httpStart = "HTTP/1."

// statusAt is where the status begins.
const statusAt = len(httpStart + "1 ")

// parseResponse reads the response that b begins with. It allocates nothing.
func parseResponse(b []byte) (r response, err error) {
	if n := min(len(b), len(httpStart)); string(b[:n]) != httpStart[:n] {
		return r, errNoHTTP
	}
	end := bytes.Index(b[:min(len(b), maxHead)], []byte("\r\n\r\n"))
	switch {
	case end < 0 && len(b) >= maxHead:
		return r, errNoHTTP
	case end < 0:
		return r, nil
	}
	line, headers, _ := bytes.Cut(b[:end], []byte("\r\n"))
	if len(line) < statusAt+3 || line[statusAt-1] != ' ' {
		return r, errNoHTTP
	}
	for _, digit := range line[statusAt : statusAt+3] {
		if digit < '0' || digit > '9' {
			return r, errNoHTTP
		}
		r.status = 10*r.status + uint16(digit-'0')
	}
	r.reason = line[statusAt:]
	length := -1
	for len(headers) > 0 {
		var header []byte
		header, headers, _ = bytes.Cut(headers, []byte("\r\n"))
		name, value, _ := bytes.Cut(header, []byte(":"))
		switch value = bytes.TrimSpace(value); {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = size(value); err != nil {
				return response{}, err
			}
		case bytes.EqualFold(name, []byte("Server")):
			r.server = value
		}
	}
	if length < 0 {
		return response{}, errNoLength
	}
	from := end + len("\r\n\r\n")
	if len(b) < from+length {
		return response{}, nil
	}
	r.body, r.size = b[from:from+length], from+length
	return r, nil
}

// size reads a Content-Length.
func size(digits []byte) (n int, err error) {
	if len(digits) == 0 {
		return 0, errNoLength
	}
	for _, digit := range digits {
		if digit < '0' || digit > '9' {
			return 0, errNoLength
		}
		if n = 10*n + int(digit-'0'); n > maxBody {
			return 0, errTooLong
		}
	}
	return n, nil
}
