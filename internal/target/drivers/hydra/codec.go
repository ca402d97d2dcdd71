package hydra

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"

	"github.com/loadgen/loadgen/pkg/driver"
)

// version is a value's version as a frame holds it: 4 bytes of address, 2 of port, 8 of counter.
type version [14]byte

// null is the version of a key that does not exist.
var null = version{127, 0, 0, 1}

// versions holds the versions of keys that a session knows.
type versions map[string]*version

// codec is shared by the connections of a loop. It keeps the versions that their sessions know.
type codec struct {
	prefix   string // prefix of keys
	sessions map[int]versions
}

var _ driver.Stateful = (*codec)(nil)

// Connection implements driver.Stateful.
func (c *codec) Connection(endpoint string, session int) (driver.Codec, error) {
	known := c.sessions[session]
	if known == nil {
		known = versions{}
		c.sessions[session] = known
	}
	own := &conn{host: endpoint, prefix: c.prefix, known: known}
	if at, err := netip.ParseAddrPort(endpoint); err == nil && at.Addr().Is4() {
		address := at.Addr().As4()
		copy(own.node[:], address[:])
		binary.BigEndian.PutUint16(own.node[4:], at.Port())
	}
	return own, nil
}

var errShared = errors.New("hydra: a request without a connection")

// Greet is never called: each connection has its own codec.
func (*codec) Greet(dst []byte) ([]byte, int) { return dst, 0 }

// ParseGreeting is never called.
func (*codec) ParseGreeting([]byte, int) (int, error) { return 0, errShared }

// AppendRequest is never called.
func (*codec) AppendRequest(dst []byte, _ *driver.Request) []byte { return dst }

// Parse is never called.
func (*codec) Parse([]byte, driver.Verb, *driver.Reply) (int, error) { return 0, errShared }

// asked is a request whose reply is owed.
type asked struct {
	of   *version // what the session knows of the key
	sent version  // what it knew when it asked
}

// conn is the codec of one connection.
type conn struct {
	host   string
	node   [6]byte // the host as versions hold it; zeros if they cannot
	prefix string  // prefix of keys
	known  versions
	asked  []asked // of the requests whose replies are owed, from first on
	first  int
}

// Greet sends nothing.
func (*conn) Greet(dst []byte) ([]byte, int) { return dst, 0 }

// ParseGreeting is never called.
func (*conn) ParseGreeting([]byte, int) (int, error) {
	return 0, errors.New("hydra: no greeting is owed")
}

// frameStart is the head of a frame: its length of 5, the protocol's version 1, the type 100 for a blob, and the length of the address.
const frameStart = "\x00\x05\x01\x00\x64\x04"

const frameSize = len(frameStart) + len(version{})

var methods = [...]string{driver.Get: "GET /", driver.Put: "PUT /", driver.Delete: "DELETE /"}

// AppendRequest implements driver.Codec.
func (c *conn) AppendRequest(dst []byte, req *driver.Request) []byte {
	of := c.known[string(req.Key)]
	if of == nil {
		of = new(version)
		*of = null
		c.known[string(req.Key)] = of
	}
	c.owe(asked{of, *of})
	dst = appendKey(append(append(dst, methods[req.Verb]...), c.prefix...), req.Key, c.prefix == "")
	dst = append(append(dst, " HTTP/1.1\r\nHost: "...), c.host...)
	if req.Verb != driver.Put {
		return append(dst, "\r\n\r\n"...)
	}
	dst = strconv.AppendInt(append(dst, "\r\nContent-Length: "...), int64(frameSize+req.Value.Size), 10)
	dst = append(append(dst, "\r\n\r\n"+frameStart...), of[:]...)
	return req.Value.AppendTo(dst)
}

// owe notes that the reply to a request for a key is owed.
func (c *conn) owe(a asked) {
	if c.first == len(c.asked) {
		c.asked, c.first = c.asked[:0], 0
	} else if c.first > 64 && 2*c.first > len(c.asked) {
		c.asked, c.first = c.asked[:copy(c.asked, c.asked[c.first:])], 0
	}
	c.asked = append(c.asked, a)
}

// answered returns the request whose reply has come; the zero value if none was owed.
func (c *conn) answered() asked {
	if c.first == len(c.asked) {
		return asked{}
	}
	c.first++
	return c.asked[c.first-1]
}

// appendKey appends a key, which may be the whole of a request's target.
func appendKey(dst, key []byte, whole bool) []byte {
	reserved := whole && (string(key) == "registry" || string(key) == "storage" || string(key) == "dump")
	for i, b := range key {
		switch {
		case b <= ' ', b >= 0x7f, b == '/', b == '?', b == '#', b == '%', reserved && i == 0:
			const hex = "0123456789ABCDEF"
			dst = append(dst, '%', hex[b>>4], hex[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return dst
}

// tooFew begins what a server says that has not reached enough others.
var tooFew = []byte("Not enough members participated")

// noDelete is the message of a delete that a server does not know.
var noDelete = []byte("405 Method Not Allowed: servers of 2009 have no delete; leave it out of ops, or load a server of 2011")

// Parse implements driver.Codec.
func (c *conn) Parse(b []byte, verb driver.Verb, reply *driver.Reply) (int, error) {
	*reply = driver.Reply{}
	r, err := parseResponse(b)
	if r.size == 0 || err != nil {
		return 0, err
	}
	reply.Code = r.status
	request, told := c.answered(), null
	switch {
	case r.status == 200 && verb == driver.Delete:
	case (r.status == 200 || r.status == 201) && verb == driver.Put && len(r.body) == 0: // servers before 7 April 2009 do not say the version
		copy(told[:], c.node[:])
		binary.BigEndian.PutUint64(told[6:], binary.BigEndian.Uint64(request.sent[6:])+1)
	case (r.status == 200 || r.status == 201) && verb != driver.Delete:
		if len(r.body) < frameSize || string(r.body[:len(frameStart)]) != frameStart {
			return 0, errNoFrame
		}
		copy(told[:], r.body[len(frameStart):])
		if verb == driver.Get {
			reply.Value = r.body[frameSize:]
		}
	case r.status == 404 && verb == driver.Get:
		reply.Outcome = driver.Miss
	case r.status == 409 && verb == driver.Put:
		reply.Outcome = driver.Conflict
	case r.status == 500 && bytes.HasPrefix(r.body, tooFew):
		reply.Outcome, reply.Message, reply.Acks = driver.QuorumFailed, r.body, received(r.body)
	case r.status == 500:
		reply.Outcome, reply.Message = driver.Error, r.body
	case r.status == 405 && verb == driver.Delete:
		reply.Outcome, reply.Message = driver.Error, noDelete
	default:
		reply.Outcome, reply.Message = driver.Error, r.reason
	}
	if request.of != nil && (reply.Outcome == driver.OK || reply.Outcome == driver.Miss) {
		*request.of = told
	}
	return r.size, nil
}

// received reads how many servers have answered from "… - expected[2] : received[1]".
func received(text []byte) uint8 {
	_, after, _ := bytes.Cut(text, []byte("received["))
	n := 0
	for _, digit := range after {
		if digit < '0' || digit > '9' || n > 25 {
			break
		}
		n = 10*n + int(digit-'0')
	}
	return uint8(min(n, 255))
}
