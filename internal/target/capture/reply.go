package capture

import (
	"bufio"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"strconv"
	"strings"
)

// reply reads replies of RESP2 and digests them so that equal answers have equal digests, whatever order or digits a server chose where it is free to.
type reply struct {
	in   *bufio.Reader
	seed maphash.Seed
	keep []byte // what a person sees of the reply read last; nil if that is not wanted
	n    int64  // bytes of it read so far
	null bool   // the reply, or a reply within, says that something is not there
}

const (
	mostReply = 512 << 20
	mostKept  = 200 // bytes of a reply that people see
	mostDepth = 32
)

// Shapes of replies whose parts may come in any order, or hold numbers.
type shape uint8

const (
	inOrder   shape = iota
	unordered       // a set of elements
	pairs           // a set of fields with their values
	scored          // elements in order, each followed by a number
	number          // a number as text
)

// shapeOf returns the shape of a command's reply.
func shapeOf(name string, words [][]byte) shape {
	switch name {
	case "SMEMBERS", "SINTER", "SUNION", "SDIFF", "KEYS", "HKEYS", "HVALS", "PUBSUB":
		return unordered
	case "HGETALL":
		return pairs
	case "ZSCORE", "ZINCRBY", "INCRBYFLOAT", "HINCRBYFLOAT", "GEODIST", "ZMSCORE":
		return number
	case "ZADD":
		if hasWord(words[1:], "INCR") {
			return number
		}
	case "ZPOPMIN", "ZPOPMAX":
		return scored
	case "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "ZUNION", "ZINTER", "ZDIFF":
		if hasWord(words[1:], "WITHSCORES") {
			return scored
		}
	}
	return inOrder
}

// errReply says that a server's bytes are no reply.
var errReply = errors.New("not a reply of RESP2")

// next reads a reply and returns its digest.
func (r *reply) next(s shape) (uint64, error) {
	r.n, r.null = 0, false
	return r.value(s, 0)
}

func (r *reply) value(s shape, depth int) (uint64, error) {
	line, err := r.in.ReadSlice('\n')
	switch {
	case err != nil:
		return 0, err
	case len(line) < 3 || line[len(line)-2] != '\r' || depth > mostDepth:
		return 0, errReply
	}
	if r.n += int64(len(line)); r.n > mostReply {
		return 0, fmt.Errorf("a reply of more than %d MiB", mostReply>>20)
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '-':
		r.show("(error) ", text)
		word, _, _ := strings.Cut(string(text), " ")
		return r.digest('-', []byte(word)), nil
	case '+', ':':
		r.show("", text)
		return r.digest(kind, text), nil
	}
	size, err := strconv.ParseInt(string(text), 10, 40)
	if err != nil || size < -1 || kind != '$' && kind != '*' {
		return 0, errReply
	}
	if size < 0 {
		r.null = true
		r.show("(nil)", nil)
		return r.digest('_', nil), nil
	}
	if kind == '$' {
		return r.bulk(size, s)
	}
	return r.array(size, s, depth)
}

// bulk reads a text of a size.
func (r *reply) bulk(size int64, s shape) (uint64, error) {
	if r.n += size; r.n > mostReply {
		return 0, fmt.Errorf("a reply of more than %d MiB", mostReply>>20)
	}
	var h maphash.Hash
	h.SetSeed(r.seed)
	_ = h.WriteByte('$') // a hash never fails
	var head [64]byte
	if size <= int64(len(head)) {
		if _, err := io.ReadFull(r.in, head[:size]); err != nil {
			return 0, err
		}
		r.show("", head[:size])
		if x, err := strconv.ParseFloat(string(head[:size]), 64); s == number && err == nil {
			_, _ = h.WriteString(strconv.FormatUint(math.Float64bits(x), 16))
		} else {
			_, _ = h.Write(head[:size])
		}
	} else {
		first, _ := r.in.Peek(int(min(size, mostKept)))
		r.show("", first)
		if _, err := io.CopyN(&h, r.in, size); err != nil {
			return 0, err
		}
	}
	if end, err := r.in.Peek(2); err != nil || string(end) != "\r\n" {
		return 0, errors.Join(errReply, err)
	}
	_, _ = r.in.Discard(2) // it is there
	return h.Sum64(), nil
}

// array reads elements.
func (r *reply) array(size int64, s shape, depth int) (uint64, error) {
	r.show("[", nil)
	sum, field := uint64(size), uint64(0)
	for i := range size {
		of := inOrder
		if s == number || s == scored && i%2 == 1 {
			of = number
		}
		d, err := r.value(of, depth+1)
		switch {
		case err != nil:
			return 0, err
		case s == unordered:
			sum += mix(7, d)
		case s == pairs && i%2 == 0:
			field = d
		case s == pairs:
			sum += mix(mix(7, field), d)
		default:
			sum = mix(sum, d)
		}
	}
	return mix('*', sum), nil
}

// mix folds a digest into another, in order.
func mix(a, b uint64) uint64 {
	x := (a ^ b*0x9E3779B97F4A7C15) * 0xD6E8FEB86659FD93
	return x ^ x>>32
}

func (r *reply) digest(kind byte, text []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	_ = h.WriteByte(kind)
	_, _ = h.Write(text)
	return h.Sum64()
}

// show keeps a part of a reply for people.
func (r *reply) show(lead string, text []byte) {
	if r.keep == nil || len(r.keep) > mostKept {
		return
	}
	if len(r.keep) > 0 {
		r.keep = append(r.keep, ' ')
	}
	r.keep = append(r.keep, lead...)
	if text != nil {
		r.keep = strconv.AppendQuote(r.keep, string(text[:min(len(text), mostKept)]))
	}
}
