package memcached

import (
	"fmt"
	"strconv"

	"github.com/loadgen/loadgen/pkg/driver"
)

// codec is a driver.Codec without state.
type codec struct{}

var (
	_ driver.Codec   = codec{}
	_ driver.Layout  = codec{}
	_ driver.Skimmer = codec{}
)

// Goodbye implements driver.Goodbyer.
func (codec) Goodbye(dst []byte) []byte { return append(dst, "quit\r\n"...) }

// AppendRequest appends mg, ms with its data block, or md.
func (codec) AppendRequest(dst []byte, req *driver.Request) []byte {
	switch req.Verb {
	case driver.Get:
		dst = append(dst, "mg "...)
		dst = append(dst, req.Key...)
		return append(dst, " v\r\n"...)
	case driver.Put:
		dst = append(dst, "ms "...)
		dst = append(dst, req.Key...)
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, int64(req.Value.Size), 10)
		dst = appendTTL(dst, req.Value.TTL)
		dst = append(dst, "\r\n"...)
		dst = req.Value.AppendTo(dst)
	case driver.Delete:
		dst = append(dst, "md "...)
		dst = append(dst, req.Key...)
	default:
		panic("memcached: request with an unknown verb")
	}
	return append(dst, "\r\n"...)
}

// Offsets implements driver.Layout.
func (codec) Offsets(req *driver.Request) (keyAt, valueAt int) {
	keyAt = len("mg ")
	if req.Verb == driver.Put {
		valueAt = keyAt + len(req.Key) + len(" ") + digits(req.Value.Size) + ttlSize(req.Value.TTL) + len("\r\n")
	}
	return keyAt, valueAt
}

// appendTTL appends the flag with the number of seconds after which an item expires.
func appendTTL(dst []byte, ms uint32) []byte {
	if ms == 0 {
		return dst
	}
	dst = append(dst, " T"...)
	return strconv.AppendUint(dst, uint64(ms/1000), 10)
}

// ttlSize returns how many bytes appendTTL appends.
func ttlSize(ms uint32) int {
	if ms == 0 {
		return 0
	}
	return len(" T") + digits(int(ms/1000))
}

// digits returns the length of n ≥ 0 in decimal.
func digits(n int) int {
	size := 1
	for ; n >= 10; n /= 10 {
		size++
	}
	return size
}

// Skim implements driver.Skimmer.
func (codec) Skim(b []byte, verb driver.Verb, most int) (n, took int) {
	switch verb {
	case driver.Get:
		return skimValues(b, most)
	case driver.Put:
		for n < most && len(b) >= took+len(stored) && string(b[took:took+len(stored)]) == stored {
			n++
			took += len(stored)
		}
	}
	return n, took
}

// Outline implements driver.Skimmer.
func (codec) Outline(b []byte, verb driver.Verb) int {
	line, n, err := readLine(b)
	if verb != driver.Get || n == 0 || err != nil || string(firstWord(line)) != "VA" {
		return 0
	}
	size, err := readSize(line)
	if err != nil || size > maxValue {
		return 0
	}
	return n + size + len("\r\n")
}

// stored is the reply to a successful ms.
const stored = "HD\r\n"

// Parse reads one reply. If the value is incomplete, it reads only the line before the value, so that receiving a large value in pieces costs nothing
// per piece.
func (codec) Parse(b []byte, verb driver.Verb, reply *driver.Reply) (int, error) {
	*reply = driver.Reply{}
	line, n, err := readLine(b)
	if n == 0 || err != nil {
		return 0, err
	}
	code := firstWord(line)
	if isError(code) {
		reply.Outcome, reply.Message = driver.Error, told(line)
		return n, nil
	}
	known := false
	switch verb {
	case driver.Get:
		if string(code) == "VA" {
			return readValue(b, line, n, reply)
		}
		reply.Outcome, known = driver.Miss, string(code) == "EN"
	case driver.Put:
		known = settle(putCodes[:], code, reply)
	case driver.Delete:
		known = settle(deleteCodes[:], code, reply)
	}
	if !known {
		return 0, fmt.Errorf("reply to a memcached %s: got %s", verb, quote(b[:n]))
	}
	return n, nil
}

// meaning is what a code means in reply to a verb.
type meaning struct {
	code    string
	outcome driver.Outcome
	message []byte // message of an error
}

var (
	putCodes = [...]meaning{
		{"HD", driver.OK, nil},
		{"NS", driver.Error, []byte("NS: not stored")},
		{"EX", driver.Error, []byte("EX: not stored, the item has changed")},
		{"NF", driver.Error, []byte("NF: not stored, there is no such item")},
	}
	deleteCodes = [...]meaning{
		{"HD", driver.OK, nil},
		{"NF", driver.Miss, nil},
		{"NS", driver.Error, []byte("NS: not deleted")},
		{"EX", driver.Error, []byte("EX: not deleted, the item has changed")},
	}
)

// settle fills reply with the code's meaning. It reports false if the code has none.
func settle(meanings []meaning, code []byte, reply *driver.Reply) bool {
	for i := range meanings {
		if m := &meanings[i]; string(code) == m.code {
			reply.Outcome, reply.Message = m.outcome, m.message
			return true
		}
	}
	return false
}
