package cachenode

import (
	"bytes"
	"errors"
)

const (
	// maxCommandLine bounds a command line, its terminator included; memcached's own bound.
	maxCommandLine = 2048
	// maxKeysLine bounds the line of a get or gets, which may name any number of keys.
	maxKeysLine = 128 << 10
	// noData is the size for a command without a data block.
	noData = -1
)

// memcachedRequest reads one request: a line of words and, if the first word is ms or set, a data block, whose size is the third or fifth word.
// Nothing is read twice, so a client that sends a byte at a time costs no more.
//
//	+----+-------+-----+-------+-----+---------+------+------+------+
//	| ms | space | key | space | n   | … flags | CRLF | data | CRLF |
//	+----+-------+-----+-------+-----+---------+------+------+------+
//	  2B    1B    1-250B  1B    1-10B             1-2B   n B    2B
type memcachedRequest struct {
	limit int // of the data, in bytes

	words    []span // of the line; none until it is complete
	searched int    // how far the line's end was searched for
	data     span   // after the line; empty if there is none
	size     int    // of the data, or noData
	at       int    // how far the request was read
}

// reset makes the parser ready for the next request.
func (r *memcachedRequest) reset() {
	*r = memcachedRequest{limit: r.limit, words: r.words[:0], size: noData}
}

// parse continues to read b, which begins with the request's first byte. It reports whether the request is complete: r.at bytes. An error is the answer
// to a client whose connection is closed because the end of its request is unclear.
func (r *memcachedRequest) parse(b []byte) (complete bool, err error) {
	if r.at == 0 {
		if complete, err := r.line(b); !complete || err != nil {
			return false, err
		}
	}
	if r.size == noData {
		return true, nil
	}
	end := r.data.from + r.size
	if len(b) < end+2 {
		return false, nil
	}
	if b[end] != '\r' || b[end+1] != '\n' {
		return false, errors.New("CLIENT_ERROR bad data chunk")
	}
	r.data.to, r.at = end, end+2
	return true, nil
}

// line reads the line. Like memcached, it also accepts LF alone as its end.
func (r *memcachedRequest) line(b []byte) (complete bool, err error) {
	longest := maxCommandLine
	if bytes.HasPrefix(b, []byte("get ")) || bytes.HasPrefix(b, []byte("gets ")) {
		longest = maxKeysLine
	}
	i := bytes.IndexByte(b[r.searched:min(len(b), longest)], '\n')
	if i < 0 {
		r.searched = min(len(b), longest)
		if r.searched == longest {
			return false, errors.New("CLIENT_ERROR line too long")
		}
		return false, nil
	}
	r.at = r.searched + i + 1
	line := bytes.TrimSuffix(b[:r.at-1], []byte("\r"))
	for from := 0; from < len(line); {
		size := bytes.IndexByte(line[from:], ' ')
		if size < 0 {
			size = len(line) - from
		}
		if size > 0 {
			r.words = append(r.words, span{from, from + size})
		}
		from += size + 1
	}
	if len(r.words) == 0 {
		return true, nil
	}
	switch string(r.words[0].of(b)) {
	case "ms":
		return true, r.announce(b, 2)
	case "set":
		return true, r.announce(b, 4)
	}
	return true, nil
}

// announce reads the size of the data block from the word with index at.
func (r *memcachedRequest) announce(b []byte, at int) error {
	if len(r.words) <= at {
		return errors.New("CLIENT_ERROR bad command line format")
	}
	digits, size := r.words[at].of(b), 0
	if len(digits) > maxLengthDigits {
		return errors.New("SERVER_ERROR object too large for cache")
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return errors.New("CLIENT_ERROR bad command line format")
		}
		size = size*10 + int(c-'0')
	}
	if size > r.limit {
		return errors.New("SERVER_ERROR object too large for cache")
	}
	r.size, r.data = size, span{r.at, r.at}
	return nil
}
