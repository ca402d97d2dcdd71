package cachenode

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// maxHydraHead bounds a request's line and headers, so a key. Hydra itself has no bound; keys of 200,000 bytes are known to work.
const maxHydraHead = 256 << 10

// hydraRequest is one HTTP request, read in pieces. In the zero value, nothing has been read.
type hydraRequest struct {
	method    string // upper case
	target    []byte // as the client wrote it; like body, a slice of the request's bytes
	body      []byte
	size      int    // of the whole request, in bytes
	status    string // the status with which it is refused unread, which ends the connection; "" if it is not
	old       bool   // HTTP/1.0
	keepAlive bool   // the client wants to keep the connection
	closes    bool   // the client wants to end the connection
	expects   bool   // the client waits for 100 Continue before it sends the body
	told      bool   // 100 Continue was sent

	searched int // how far the head's end was searched for
}

// hydraState says how far a request was read.
type hydraState int

const (
	unfinishedHead hydraState = iota
	unfinishedBody
	wholeRequest
)

// hydraMethods are the methods that an HTTP server of Hydra's time knows. It takes them in lower case, too.
var hydraMethods = [...]string{"GET", "PUT", "DELETE", "POST", "HEAD", "OPTIONS", "TRACE", "CONNECT"}

// parse reads b, which begins with the request's first byte, and of which the last call saw a part. A request with status set is whole.
func (r *hydraRequest) parse(b []byte, limit int) hydraState {
	end := bytes.Index(b[r.searched:min(len(b), maxHydraHead)], []byte("\r\n\r\n"))
	if end < 0 {
		r.searched = max(0, min(len(b), maxHydraHead)-3)
		if len(b) >= maxHydraHead {
			return r.refuse(b, "400 Bad Request")
		}
		return unfinishedHead
	}
	end += r.searched
	r.searched = end
	line, headers, _ := bytes.Cut(b[:end], []byte("\r\n"))
	words := bytes.Split(line, []byte(" "))
	if len(words) != 3 || len(words[1]) == 0 || !bytes.HasPrefix(words[2], []byte("HTTP/1.")) {
		return r.refuse(b, "400 Bad Request")
	}
	if r.method = strings.ToUpper(string(words[0])); !slices.Contains(hydraMethods[:], r.method) {
		return r.refuse(b, "501 Not Implemented")
	}
	r.target, r.old = words[1], string(words[2]) == "HTTP/1.0"
	return r.entity(b, end+4, headers, limit)
}

// entity reads the headers, and the body, which begins at from.
func (r *hydraRequest) entity(b []byte, from int, headers []byte, limit int) hydraState {
	length, chunked := -1, false
	for header := range bytes.SplitSeq(headers, []byte("\r\n")) {
		name, value, _ := strings.Cut(string(header), ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-length":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 || n > limit {
				return r.refuse(b, "400 Bad Request")
			}
			length = n
		case "transfer-encoding":
			chunked = strings.EqualFold(value, "chunked")
		case "connection":
			r.keepAlive, r.closes = strings.EqualFold(value, "keep-alive"), strings.EqualFold(value, "close")
		case "expect":
			r.expects = strings.EqualFold(value, "100-continue")
		}
	}
	switch {
	case chunked:
		return r.chunks(b, from, limit)
	case length < 0 && (r.method == "PUT" || r.method == "POST"):
		return unfinishedBody // its end is unknown: the server waits until the connection ends
	}
	length = max(length, 0)
	if len(b) < from+length {
		return unfinishedBody
	}
	r.body, r.size = b[from:from+length], from+length
	return wholeRequest
}

// chunks reads a body that comes in chunks, each after its length in hexadecimal.
func (r *hydraRequest) chunks(b []byte, at, limit int) hydraState {
	var body []byte
	for {
		end := bytes.Index(b[at:], []byte("\r\n"))
		if end < 0 {
			if len(b)-at > 20 {
				return r.refuse(b, "400 Bad Request")
			}
			return unfinishedBody
		}
		size, err := strconv.ParseUint(string(b[at:at+end]), 16, 31)
		if err != nil || len(body)+int(size) > limit {
			return r.refuse(b, "400 Bad Request")
		}
		at += end + 2
		if len(b) < at+int(size)+2 {
			return unfinishedBody
		}
		body = append(body, b[at:at+int(size)]...)
		at += int(size) + 2
		if size == 0 {
			r.body, r.size = body, at
			return wholeRequest
		}
	}
}

// refuse makes all of b a request that is answered with a status, and the last of its connection.
func (r *hydraRequest) refuse(b []byte, status string) hydraState {
	r.status, r.size, r.old, r.expects = status, len(b), true, false
	return wholeRequest
}

// protocol returns the version of HTTP that the answer is in.
func (r *hydraRequest) protocol() string {
	if r.old {
		return "HTTP/1.0"
	}
	return "HTTP/1.1"
}

// connection returns the answer's Connection header; "" for none.
func (r *hydraRequest) connection() string {
	switch {
	case r.status != "":
		return "Close"
	case r.closes:
		return "close"
	case r.old && r.keepAlive:
		return "keep-alive"
	}
	return ""
}

// last reports whether the connection ends after the answer.
func (r *hydraRequest) last() bool { return r.status != "" || r.closes || r.old && !r.keepAlive }
