package redis

import (
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
)

// codec is a driver.Codec. It is immutable once made.
type codec struct {
	greeting greeting
	cluster  bool   // redirects are followed
	pushes   bool   // the server may send messages between replies, as in RESP3
	read     reader // of replies: readValue, or readReply for RESP3
}

var (
	_ driver.Codec   = (*codec)(nil)
	_ driver.Layout  = (*codec)(nil)
	_ driver.Skimmer = (*codec)(nil)
	_ driver.Aside   = (*codec)(nil)
)

// Goodbye implements driver.Goodbyer.
func (*codec) Goodbye(dst []byte) []byte { return append(dst, "*1\r\n$4\r\nQUIT\r\n"...) }

// AppendRequest appends GET, SET or DEL as an array of bulk strings.
func (*codec) AppendRequest(dst []byte, req *driver.Request) []byte {
	if req.Asking {
		dst = append(dst, asking...)
	}
	switch req.Verb {
	case driver.Get:
		dst = append(dst, "*2\r\n$3\r\nGET\r\n$"...)
	case driver.Put:
		return appendSet(dst, req.Key, req.Value)
	case driver.Delete:
		dst = append(dst, "*2\r\n$3\r\nDEL\r\n$"...)
	default:
		panic("redis: request with an unknown verb")
	}
	dst = appendLength(dst, len(req.Key))
	dst = append(dst, req.Key...)
	return append(dst, "\r\n"...)
}

// appendSet appends a SET, with EX or PX if the value has a TTL.
func appendSet(dst, key []byte, value *driver.Value) []byte {
	if value.TTL == 0 {
		dst = append(dst, "*3\r\n$3\r\nSET\r\n$"...)
	} else {
		dst = append(dst, "*5\r\n$3\r\nSET\r\n$"...)
	}
	dst = appendLength(dst, len(key))
	dst = append(dst, key...)
	dst = append(dst, "\r\n$"...)
	dst = appendLength(dst, value.Size)
	dst = value.AppendTo(dst)
	dst = append(dst, "\r\n"...)
	switch n := int(value.TTL); {
	case n == 0:
		return dst
	case n%1000 == 0:
		dst = append(dst, "$2\r\nEX\r\n$"...)
		return appendNumber(dst, n/1000)
	default:
		dst = append(dst, "$2\r\nPX\r\n$"...)
		return appendNumber(dst, n)
	}
}

// appendNumber appends n ≥ 0 as a bulk string, without the dollar sign.
func appendNumber(dst []byte, n int) []byte {
	dst = appendLength(dst, lengthSize(n)-len("\r\n"))
	return appendLength(dst, n)
}

// Offsets implements driver.Layout.
func (*codec) Offsets(req *driver.Request) (keyAt, valueAt int) {
	keyAt = len("*2\r\n$3\r\nGET\r\n$") + lengthSize(len(req.Key))
	if req.Verb == driver.Put {
		valueAt = keyAt + len(req.Key) + len("\r\n$") + lengthSize(req.Value.Size)
	}
	return keyAt, valueAt
}

// Skim implements driver.Skimmer.
func (*codec) Skim(b []byte, verb driver.Verb, most int) (n, took int) {
	switch verb {
	case driver.Get:
		return skimBulks(b, most)
	case driver.Put:
		for n < most && len(b) >= took+len(stored) && string(b[took:took+len(stored)]) == stored {
			n++
			took += len(stored)
		}
	}
	return n, took
}

// Outline implements driver.Skimmer.
func (*codec) Outline(b []byte, verb driver.Verb) int {
	if verb != driver.Get || len(b) == 0 || b[0] != '$' {
		return 0
	}
	size, n, err := readNumber(b)
	if n == 0 || err != nil || size < 0 || size > maxBulk {
		return 0
	}
	return n + int(size) + len("\r\n")
}

// Parse reads one reply. If a bulk string is incomplete, it reads only the header, so that receiving a large value in pieces costs nothing per piece.
func (c *codec) Parse(b []byte, verb driver.Verb, reply *driver.Reply) (int, error) {
	switch verb {
	case driver.Get:
		if value, n := shortBulk(b); n > 0 {
			*reply = driver.Reply{Value: value} // ok
			return n, nil
		}
	case driver.Put:
		if len(b) >= len(stored) && string(b[:len(stored)]) == stored {
			*reply = driver.Reply{} // ok
			return len(stored), nil
		}
	}
	return c.parse(b, verb, reply)
}

// Aside implements driver.Aside: it takes a push message.
func (c *codec) Aside(b []byte) (int, error) {
	if !c.pushes {
		return 0, driver.ErrUnasked
	}
	if b[0] != '>' {
		return 0, driver.ErrUnasked
	}
	return skip(b)
}

// stored is the reply to a successful SET.
const stored = "+OK\r\n"

// reader reads a value from the front of b.
type reader func(b []byte) (r reply, n int, err error)

// parse is Parse for any reply.
func (c *codec) parse(b []byte, verb driver.Verb, reply *driver.Reply) (int, error) {
	*reply = driver.Reply{}
	r, n, err := c.read(b)
	if n == 0 || err != nil {
		return 0, err
	}
	switch {
	case r.kind == errorReply:
		reply.Outcome, reply.Message = driver.Error, c.told(r.text)
	case verb == driver.Get && r.kind == bulk:
		reply.Outcome, reply.Value = driver.OK, r.text
	case verb != driver.Put && r.missing():
		reply.Outcome = driver.Miss
	case verb == driver.Put && r.kind == status && string(r.text) == "OK":
		reply.Outcome = driver.OK
	case verb == driver.Delete && r.kind == integer && r.integer == 1:
		reply.Outcome = driver.OK
	case verb == driver.Delete && r.kind == integer && r.integer == 0:
		reply.Outcome = driver.Miss
	default:
		return 0, fmt.Errorf("reply to a redis %s: got %s", verb, quote(b[:n]))
	}
	return n, nil
}
