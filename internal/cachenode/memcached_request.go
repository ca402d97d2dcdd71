package cachenode

import "bytes"

const (
	// maxCommandLine bounds a command line, its terminator included; memcached's own bound.
	maxCommandLine = 2048
	// maxKeysLine bounds that of a get or gets, which names any number of keys.
	maxKeysLine = 128 << 10
	// noData is the size of the data block that a command without one brings.
	noData = -1
)

// lineError is what a client is told before its connection is closed: what comes behind its request cannot be told apart.
type lineError string

func (e lineError) Error() string { return string(e) }

// memcachedRequest reads one request: a line of words and, if the first of them is ms or set, the data block whose size the third or fifth one
// tells. What was read once is not read again, so a client that sends a byte at a time costs no more than that.
//
//	+----+-------+-----+-------+-----+---------+------+------+------+
//	| ms | space | key | space | n   | … flags | CRLF | data | CRLF |
//	+----+-------+-----+-------+-----+---------+------+------+------+
//	  2B    1B    1-250B  1B    1-10B             1-2B   n B    2B
type memcachedRequest struct {
	limit int // of the data's bytes

	words    []span // of the line; none before it is complete
	searched int    // how far the line's end was looked for
	data     span   // behind the line; empty when there is none
	size     int    // of the data, or noData
	at       int    // how far the request was read
}

// reset makes the parser ready for the next request.
func (r *memcachedRequest) reset() {
	*r = memcachedRequest{limit: r.limit, words: r.words[:0], size: noData}
}

// parse goes on reading b, which begins with the request's first byte. It reports whether the request is complete: r.at bytes.
// An error is a lineError.
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
		return false, lineError("CLIENT_ERROR bad data chunk")
	}
	r.data.to, r.at = end, end+2
	return true, nil
}

// line reads the line. As memcached does, it takes LF alone for an end, too.
func (r *memcachedRequest) line(b []byte) (complete bool, err error) {
	longest := maxCommandLine
	if bytes.HasPrefix(b, []byte("get ")) || bytes.HasPrefix(b, []byte("gets ")) {
		longest = maxKeysLine
	}
	i := bytes.IndexByte(b[r.searched:min(len(b), longest)], '\n')
	if i < 0 {
		r.searched = min(len(b), longest)
		if r.searched == longest {
			return false, lineError("CLIENT_ERROR line too long")
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

// announce reads how much data follows a command whose word at an index tells.
func (r *memcachedRequest) announce(b []byte, at int) error {
	if len(r.words) <= at {
		return lineError("CLIENT_ERROR bad command line format")
	}
	digits, size := r.words[at].of(b), 0
	if len(digits) > maxLengthDigits {
		return lineError("SERVER_ERROR object too large for cache")
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return lineError("CLIENT_ERROR bad command line format")
		}
		size = size*10 + int(c-'0')
	}
	if size > r.limit {
		return lineError("SERVER_ERROR object too large for cache")
	}
	r.size, r.data = size, span{r.at, r.at}
	return nil
}
