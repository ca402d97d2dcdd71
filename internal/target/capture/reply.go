package capture

import (
	"bufio"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// reply is a reply of RESP2.
type reply struct {
	kind byte // as the protocol writes it; '_' for what is not there
	text string
	list []reply
}

const (
	mostReply = 256 << 20 // bytes in memory
	mostKept  = 200       // bytes of a reply that people see
	mostDepth = 32
)

// errReply says that a server's bytes are no reply.
var errReply = errors.New("not a reply of RESP2")

// readReply reads a reply, or one within a reply. It takes what memory it needs from room.
func readReply(in *bufio.Reader, room *int64, depth int) (r reply, err error) {
	line, err := in.ReadSlice('\n')
	switch {
	case err != nil:
		return r, err
	case len(line) < 3 || line[len(line)-2] != '\r' || depth > mostDepth:
		return r, errReply
	}
	r.kind, r.text = line[0], string(line[1:len(line)-2])
	if strings.IndexByte("+-:", r.kind) >= 0 {
		return r, nil
	}
	size, err := strconv.ParseInt(r.text, 10, 40)
	if err != nil || size < -1 || r.kind != '$' && r.kind != '*' {
		return r, errReply
	}
	r.text = ""
	switch *room -= size; {
	case size < 0:
		r.kind = '_'
		return r, nil
	case *room < 0:
		return r, fmt.Errorf("a reply of more than %d MiB", mostReply>>20)
	case r.kind == '$':
		text := make([]byte, size+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return r, err
		}
		if r.text = string(text[:size]); string(text[size:]) != "\r\n" {
			return r, errReply
		}
		return r, nil
	}
	for range size {
		*room -= 48 // of the element
		element, err := readReply(in, room, depth+1)
		if err != nil {
			return r, err
		}
		r.list = append(r.list, element)
	}
	return r, nil
}

// missing reports whether the reply, or a reply within, says that something is not there.
func (r reply) missing() bool { return r.kind == '_' || slices.ContainsFunc(r.list, reply.missing) }

// String returns what a person sees of a reply.
func (r reply) String() string {
	switch r.kind {
	case '_':
		return "(nil)"
	case '*':
		b := "["
		for _, e := range r.list {
			if b += " " + e.String(); len(b) > mostKept {
				break
			}
		}
		return b
	case '-':
		return "(error) " + strconv.Quote(r.text[:min(len(r.text), mostKept)])
	}
	return strconv.Quote(r.text[:min(len(r.text), mostKept)])
}

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
func shapeOf(name string, words []string) shape {
	switch name {
	case "SMEMBERS", "SINTER", "SUNION", "SDIFF", "KEYS", "HKEYS", "HVALS", "PUBSUB":
		return unordered
	case "HGETALL":
		return pairs
	case "ZSCORE", "ZINCRBY", "INCRBYFLOAT", "HINCRBYFLOAT", "GEODIST", "ZMSCORE":
		return number
	case "ZADD":
		if hasWord(words, "INCR") {
			return number
		}
	case "ZPOPMIN", "ZPOPMAX":
		return scored
	case "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "ZUNION", "ZINTER", "ZDIFF":
		if hasWord(words, "WITHSCORES") {
			return scored
		}
	}
	return inOrder
}

// digest digests a reply so that equal answers have equal digests, whatever order or digits a server chose where it is free to.
func (r reply) digest(seed maphash.Seed, s shape) uint64 {
	text := r.text
	switch r.kind {
	case '*':
		sum := uint64(len(r.list))
		for i := 0; i < len(r.list); i++ {
			of := inOrder
			if s == number || s == scored && i%2 == 1 {
				of = number
			}
			d := r.list[i].digest(seed, of)
			switch {
			case s == pairs && i+1 < len(r.list):
				i++
				sum += mix(mix(7, d), r.list[i].digest(seed, inOrder))
			case s == unordered:
				sum += mix(7, d)
			default:
				sum = mix(sum, d)
			}
		}
		return mix('*', sum)
	case '-':
		text, _, _ = strings.Cut(text, " ")
	case '$':
		if s == number && len(text) <= 64 {
			if x, err := strconv.ParseFloat(text, 64); err == nil {
				text = strconv.FormatUint(math.Float64bits(x), 16)
			}
		}
	}
	return mix(uint64(r.kind), maphash.String(seed, text))
}

// mix folds a digest into another, in order.
func mix(a, b uint64) uint64 {
	x := (a ^ b*0x9E3779B97F4A7C15) * 0xD6E8FEB86659FD93
	return x ^ x>>32
}
