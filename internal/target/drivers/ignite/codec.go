package ignite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Ops of the protocol.
const (
	opGet           = 1000
	opPut           = 1001
	opGetAll        = 1003
	opPutAll        = 1004
	opRemoveKey     = 1016
	opSize          = 1020
	opGetOrCreate   = 1052
	opMake          = 1054 // get or create a cache, with a configuration
	opConfiguration = 1055
	opDestroy       = 1056
	opSQL           = 2004
)

// Types of objects.
const (
	typeString = 9
	typeBytes  = 12
	typeNull   = 101
)

const (
	lengthSize = 4         // bytes of the length that precedes requests and replies
	replyHead  = 8 + 4     // bytes of id and status
	objectHead = 1 + 4     // bytes of type and length
	mostReply  = 512 << 20 // the longest reply, in bytes
	mostHello  = 1 << 16   // the longest reply to a handshake, in bytes
	noCache    = 1000      // the status for a cache that does not exist
)

// codec implements driver.Tagged and driver.BatchCodec.
//
// A node answers a key once, however often a request repeats it. So a get of several keys with repeated ones has a number in the upper half of its
// id. The reply has the same id, and the codec finds the repeated keys by this number.
type codec struct {
	cache          uint32
	name, region   string
	temporary      bool
	user, password string

	seed    maphash.Seed
	hashes  []uint64            // hashes of the keys of a request; reused
	numbers uint32              // number of requests with repeated keys so far
	repeats map[uint32][]uint64 // by number: for each key, the hash of all its occurrences but one
}

// mostRepeats bounds codec.repeats, where requests without a reply leave their entries. Once there are so many, the codec drops all of them.
const mostRepeats = 1 << 14

var (
	_ driver.Tagged     = (*codec)(nil)
	_ driver.BatchCodec = (*codec)(nil)
)

// Greet appends the handshake.
func (c *codec) Greet(dst []byte) ([]byte, int) {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0, 1, 1, 0, 2, 0, 0, 0, 2)
	if c.user != "" {
		dst = appendObject(appendObject(dst, typeString, c.user), typeString, c.password)
	}
	return ended(dst, at), 1
}

var errNoIgnite = errors.New("not the thin client protocol of Ignite: write the port of clientConnectorConfiguration, 10800 unless the server is told otherwise")

// ParseGreeting reads the reply to the handshake.
func (c *codec) ParseGreeting(b []byte, _ int) (int, error) {
	if len(b) < lengthSize {
		return 0, nil
	}
	size := binary.LittleEndian.Uint32(b)
	if size == 0 || size > mostHello || len(b) > lengthSize && b[lengthSize] > 1 {
		return 0, errNoIgnite
	}
	n := lengthSize + int(size)
	switch {
	case len(b) < n:
		return 0, nil
	case b[lengthSize] == 1:
		return n, nil
	}
	const version = 3 * 2
	body := b[lengthSize+1 : n]
	if len(body) < version {
		return 0, errNoIgnite
	}
	text, _, _ := object(body[version:], typeString)
	return 0, fmt.Errorf("the server, which speaks version %d.%d.%d of the thin client protocol, refuses 1.2.0 or the user: %q",
		binary.LittleEndian.Uint16(body), binary.LittleEndian.Uint16(body[2:]), binary.LittleEndian.Uint16(body[4:]), text)
}

// appendOp appends the head of every request.
func appendOp(dst []byte, op uint16, id uint64) []byte {
	dst = append(dst, 0, 0, 0, 0) // room for the length, which ended fills in
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint16(dst, op), id)
}

// appendHead appends the head of a request to a cache.
func (c *codec) appendHead(dst []byte, op uint16, id uint64) []byte {
	return append(binary.LittleEndian.AppendUint32(appendOp(dst, op, id), c.cache), 0)
}

// appendSize appends the request for the number of keys in the cache.
func (c *codec) appendSize(dst []byte, id uint64) []byte {
	at := len(dst)
	return ended(append(c.appendHead(dst, opSize, id), 0, 0, 0, 0), at) // with no peek modes
}

// ended writes the length of the message that begins at an offset into its first bytes.
func ended(dst []byte, at int) []byte {
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-lengthSize))
	return dst
}

func appendObject[T string | []byte](dst []byte, kind byte, text T) []byte {
	return append(binary.LittleEndian.AppendUint32(append(dst, kind), uint32(len(text))), text...)
}

func appendValue(dst []byte, v *driver.Value) []byte {
	return v.AppendTo(binary.LittleEndian.AppendUint32(append(dst, typeBytes), uint32(v.Size)))
}

var ops = [...]uint16{driver.Get: opGet, driver.Put: opPut, driver.Delete: opRemoveKey}

// AppendRequest implements driver.Codec.
func (c *codec) AppendRequest(dst []byte, req *driver.Request) []byte {
	at := len(dst)
	dst = appendObject(c.appendHead(dst, ops[req.Verb], uint64(req.ID)), typeString, req.Key)
	if req.Verb == driver.Put {
		dst = appendValue(dst, req.Value)
	}
	return ended(dst, at)
}

// AppendBatch implements driver.BatchCodec.
func (c *codec) AppendBatch(dst []byte, req *driver.Request) []byte {
	at, op, id := len(dst), uint16(opPutAll), uint64(req.ID)
	if req.Verb == driver.Get {
		op = opGetAll
		id |= uint64(c.repeated(req.Batch)) << 32
	}
	dst = binary.LittleEndian.AppendUint32(c.appendHead(dst, op, id), uint32(len(req.Batch)))
	for i := range req.Batch {
		dst = appendObject(dst, typeString, req.Batch[i].Key)
		if req.Verb == driver.Put {
			dst = appendValue(dst, &req.Batch[i].Value)
		}
	}
	return ended(dst, at)
}

// repeated records which keys of a request occur more than once, and returns the number under which it recorded them; 0 if none does.
func (c *codec) repeated(items []driver.Item) uint32 {
	c.hashes = c.hashes[:0]
	for i := range items {
		c.hashes = append(c.hashes, maphash.Bytes(c.seed, items[i].Key))
	}
	slices.Sort(c.hashes)
	var again []uint64
	for i := range c.hashes[1:] {
		if c.hashes[i] == c.hashes[i+1] {
			again = append(again, c.hashes[i])
		}
	}
	if len(again) == 0 {
		return 0
	}
	if len(c.repeats) >= mostRepeats {
		clear(c.repeats)
	}
	c.numbers = max(c.numbers+1, 1)
	c.repeats[c.numbers] = again
	return c.numbers
}

// Tag implements driver.Tagged.
func (c *codec) Tag(b []byte) (id uint32, ok bool) {
	if len(b) < lengthSize+8 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b[lengthSize:]), true
}

// frame reads a whole reply, and returns how many bytes it takes; 0 if it is incomplete.
func frame(b []byte) (status uint32, body []byte, n int, err error) {
	if len(b) < lengthSize {
		return 0, nil, 0, nil
	}
	size := binary.LittleEndian.Uint32(b)
	if size < replyHead || size > mostReply {
		return 0, nil, 0, fmt.Errorf("ignite: a reply of %d bytes", size)
	}
	if n = lengthSize + int(size); len(b) < n {
		return 0, nil, 0, nil
	}
	return binary.LittleEndian.Uint32(b[lengthSize+8:]), b[lengthSize+replyHead : n], n, nil
}

// object reads a string or a byte array, and returns what follows it.
func object(b []byte, kind byte) (text, rest []byte, ok bool) {
	if len(b) < objectHead || b[0] != kind {
		return nil, nil, false
	}
	size := binary.LittleEndian.Uint32(b[1:])
	if b = b[objectHead:]; uint64(size) > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:size], b[size:], true
}

// otherType is the error message for a get whose value is not a byte array.
var otherType = []byte("a value of another type than loadgen puts: write the cache_name of a cache of its own")

// notUpdated begins the message of a node that could not store a value. The keys follow it; the reason is not given.
var (
	notUpdated    = []byte("Failed to update keys")
	whyNotUpdated = []byte("Failed to update keys: the node's log says why. If it is IgniteOutOfMemoryException, make the data region larger (maxSize of its DataRegionConfiguration), or put less")
)

// refused returns the reply for a status other than 0. A message may follow the status.
func refused(status uint32, body []byte) driver.Reply {
	text, _, _ := object(body, typeString)
	if bytes.HasPrefix(text, notUpdated) {
		text = whyNotUpdated
	}
	return driver.Reply{Outcome: driver.Error, Message: text, Code: uint16(min(status, math.MaxUint16))}
}

// Parse implements driver.Codec.
func (c *codec) Parse(b []byte, verb driver.Verb, reply *driver.Reply) (int, error) {
	*reply = driver.Reply{}
	status, body, n, err := frame(b)
	if n == 0 || err != nil {
		return 0, err
	}
	switch {
	case status != 0:
		*reply = refused(status, body)
	case verb == driver.Get && len(body) > 0:
		var rest []byte
		var is bool
		switch reply.Value, rest, is = object(body, typeBytes); {
		case is && len(rest) > 0, body[0] == typeBytes && !is, body[0] == typeNull && len(body) > 1:
			*reply = driver.Reply{}
			return 0, errObjects
		case body[0] == typeNull:
			reply.Outcome = driver.Miss
		case !is:
			reply.Outcome, reply.Message = driver.Error, otherType
		}
	case verb == driver.Delete && len(body) == 1:
		if body[0] == 0 {
			reply.Outcome = driver.Miss
		}
	case verb == driver.Put && len(body) == 0:
	default:
		return 0, errObjects
	}
	return n, nil
}

var errObjects = errors.New("ignite: a reply with other objects than its request asked for")

// ParseBatch implements driver.BatchCodec. A reply to gets has the values that exist; the other keys are misses.
func (c *codec) ParseBatch(b []byte, verb driver.Verb, replies []driver.Reply) (int, error) {
	status, body, n, err := frame(b)
	if n == 0 || err != nil {
		return 0, err
	}
	clear(replies)
	switch {
	case status != 0:
		fail(replies, refused(status, body))
		return n, nil
	case verb == driver.Put && len(body) == 0:
		return n, nil
	case verb != driver.Get || len(body) < 4:
		return 0, errObjects
	}
	number := binary.LittleEndian.Uint32(b[lengthSize+4:])
	err = c.found(body, number, replies)
	delete(c.repeats, number)
	if err == errOtherType {
		fail(replies, driver.Reply{Outcome: driver.Error, Message: otherType})
		return n, nil
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// fail gives the same failed reply to all keys of a request.
func fail(replies []driver.Reply, reply driver.Reply) {
	clear(replies)
	replies[0] = reply
	for i := range replies[1:] {
		replies[1+i].Outcome = driver.Error
	}
}

// errOtherType says that one of the values is not a byte array. Its length depends on its type, so the values after it cannot be found.
var errOtherType = errors.New("ignite: a value of another type")

// found reads the keys and values that a get of several keys has found. Each occurrence of a repeated key gets a reply.
func (c *codec) found(body []byte, number uint32, replies []driver.Reply) error {
	count := binary.LittleEndian.Uint32(body)
	body = body[4:]
	again, filled := c.repeats[number], 0
	for range count {
		key, after, isKey := object(body, typeString)
		value, rest, is := object(after, typeBytes)
		switch {
		case !isKey || filled == len(replies) || len(after) == 0:
			return errObjects
		case after[0] != typeBytes:
			return errOtherType
		case !is:
			return errObjects
		}
		body = rest
		replies[filled].Value = value
		filled++
		if len(again) == 0 {
			continue
		}
		hash := maphash.Bytes(c.seed, key)
		for at := slices.Index(again, hash); at >= 0 && filled < len(replies); at = slices.Index(again, hash) {
			again = slices.Delete(again, at, at+1)
			replies[filled].Value = value
			filled++
		}
	}
	for i := filled; i < len(replies); i++ {
		replies[i].Outcome = driver.Miss
	}
	if len(body) > 0 {
		return errObjects
	}
	return nil
}
