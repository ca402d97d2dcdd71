package memcached

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/loadgen/loadgen/pkg/driver"
)

// textCodec is a driver.Codec for the classic commands get or gets, set and delete. Its only state is its command for reading.
type textCodec struct {
	read string // "get " or "gets "
}

var (
	_ driver.BatchCodec = textCodec{}
	_ driver.Layout     = textCodec{}
)

func newTextCodec(cas bool) textCodec {
	if cas {
		return textCodec{"gets "}
	}
	return textCodec{"get "}
}

const (
	setWord, casWord = "set ", "cas " // cas takes one more word than set, at its end
	deleteWord       = "delete "
	clientFlags      = " 0 "     // of a set; no information in them
	endOfValues      = "END\r\n" // ends the reply to a get
	valueWord        = "VALUE"   // begins a value in that reply
	valueFields      = 4         // VALUE, key, client flags and size; a CAS unique may follow
)

// Greet sends nothing: there is no command that every server and proxy of this protocol knows and none of them counts.
func (textCodec) Greet(dst []byte) ([]byte, int) { return dst, 0 }

// ParseGreeting is never called.
func (textCodec) ParseGreeting([]byte, int) (int, error) { return 0, nil }

// AppendRequest appends get or gets, set with its data block, cas if the request has a token, or delete.
func (c textCodec) AppendRequest(dst []byte, req *driver.Request) []byte {
	switch req.Verb {
	case driver.Get:
		dst = append(append(dst, c.read...), req.Key...)
	case driver.Put:
		return appendSet(dst, req.Key, req.Value, req.Token)
	case driver.Delete:
		dst = append(append(dst, deleteWord...), req.Key...)
	default:
		panic("memcached: request with an unknown verb")
	}
	return append(dst, "\r\n"...)
}

func appendSet(dst, key []byte, v *driver.Value, token uint64) []byte {
	word := setWord
	if token != 0 {
		word = casWord
	}
	dst = append(append(dst, word...), key...)
	dst = append(dst, clientFlags...)
	dst = strconv.AppendUint(dst, uint64(v.TTL/1000), 10)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(v.Size), 10)
	if token != 0 {
		dst = strconv.AppendUint(append(dst, ' '), token, 10)
	}
	dst = append(dst, "\r\n"...)
	return append(v.AppendTo(dst), "\r\n"...)
}

// Offsets implements driver.Layout, for requests without a token.
func (c textCodec) Offsets(req *driver.Request) (keyAt, valueAt int) {
	switch req.Verb {
	case driver.Get:
		return len(c.read), 0
	case driver.Put:
		keyAt = len(setWord)
		lifetime := digits(int(req.Value.TTL / 1000))
		return keyAt, keyAt + len(req.Key) + len(clientFlags) + lifetime + len(" ") + digits(req.Value.Size) + len("\r\n")
	default:
		return len(deleteWord), 0
	}
}

// Parse reads one reply. If the value is incomplete, it reads only the line before the value.
func (c textCodec) Parse(b []byte, verb driver.Verb, reply *driver.Reply) (int, error) {
	if verb == driver.Get {
		return c.parseGet(b, reply)
	}
	*reply = driver.Reply{}
	line, n, err := readLine(b)
	if n == 0 || err != nil {
		return 0, err
	}
	word := firstWord(line)
	known := false
	switch {
	case isError(word):
		reply.Outcome, reply.Message, known = driver.Error, told(line), true
	case verb == driver.Put:
		known = settle(setWords[:], word, reply)
	case verb == driver.Delete:
		known = settle(deleteWords[:], word, reply)
	}
	if !known {
		return 0, unexpected(verb, b[:n])
	}
	return n, nil
}

var (
	setWords = [...]meaning{
		{"STORED", driver.OK, nil},
		{"NOT_STORED", driver.Error, []byte("NOT_STORED")},
		{"EXISTS", driver.Conflict, nil},    // the item has changed since it was read
		{"NOT_FOUND", driver.Conflict, nil}, // the item is gone
	}
	deleteWords = [...]meaning{
		{"DELETED", driver.OK, nil},
		{"NOT_FOUND", driver.Miss, nil},
	}
)

func unexpected(verb driver.Verb, got []byte) error {
	return fmt.Errorf("reply to a memcached %s: got %s", verb, quote(got))
}

// parseGet reads the reply to a get of one key: its value, if any, and END.
func (textCodec) parseGet(b []byte, reply *driver.Reply) (int, error) {
	n, more, err := readItem(b, reply)
	if n == 0 || err != nil || !more {
		return n, err
	}
	return readEnd(b, n)
}

// readEnd takes the END after a value of n bytes.
func readEnd(b []byte, n int) (int, error) {
	rest := b[n:min(len(b), n+len(endOfValues))]
	switch {
	case string(rest) == endOfValues:
		return n + len(endOfValues), nil
	case !bytes.HasPrefix([]byte(endOfValues), rest):
		return 0, fmt.Errorf("a value of a memcached get is not followed by END: got %s", quote(b[n:]))
	}
	return 0, nil
}

// readItem reads one part of the reply to a get: a value, after which there is more; or END, which is a miss; or an error.
func readItem(b []byte, reply *driver.Reply) (n int, more bool, err error) {
	*reply = driver.Reply{}
	line, n, err := readLine(b)
	if n == 0 || err != nil {
		return 0, false, err
	}
	switch word := firstWord(line); {
	case isError(word):
		reply.Outcome, reply.Message = driver.Error, told(line)
		return n, false, nil
	case string(line) == "END":
		reply.Outcome = driver.Miss
		return n, false, nil
	case string(word) != valueWord:
		return 0, false, unexpected(driver.Get, b[:n])
	}
	size, cas, ok := readHead(line)
	if !ok {
		return 0, false, fmt.Errorf("not a size: got %s", quote(b[:n]))
	}
	taken, err := takeValue(b, n, size, reply)
	reply.Token = cas
	return taken, taken > 0, err
}

// readHead reads the line of a value. Its fourth word is the size. A fifth is the CAS unique, 0 if absent; a sixth is not allowed.
func readHead(line []byte) (size int, cas uint64, ok bool) {
	at := 0
	for range valueFields - 1 {
		i := bytes.IndexByte(line[at:], ' ')
		if i <= 0 {
			return 0, 0, false
		}
		at += i + 1
	}
	field, unique, follows := bytes.Cut(line[at:], []byte(" "))
	n, err := strconv.ParseUint(string(field), 10, strconv.IntSize-1)
	if err == nil && follows {
		cas, err = strconv.ParseUint(string(unique), 10, 64)
	}
	return int(n), cas, err == nil
}

// AppendBatch appends one get or gets of all keys, or a set for each item.
func (c textCodec) AppendBatch(dst []byte, req *driver.Request) []byte {
	items := req.Batch
	if req.Verb == driver.Put {
		for i := range items {
			dst = appendSet(dst, items[i].Key, &items[i].Value, 0)
		}
		return dst
	}
	dst = append(dst, c.read[:len(c.read)-1]...)
	for i := range items {
		dst = append(append(dst, ' '), items[i].Key...)
	}
	return append(dst, "\r\n"...)
}

// ParseBatch reads a reply for each set, or the one reply to a get: the values that exist, and END. The other keys are misses.
func (c textCodec) ParseBatch(b []byte, v driver.Verb, replies []driver.Reply) (int, error) {
	if v == driver.Put {
		return parseEach(c, b, v, replies)
	}
	n := 0
	for i := range replies {
		size, more, err := readItem(b[n:], &replies[i])
		if size == 0 || err != nil {
			return 0, err
		}
		n += size
		if !more {
			settleRest(replies, i)
			return n, nil
		}
	}
	return readEnd(b, n)
}

// settleRest gives the end of a reply to all keys for which it brought no value. An error applies to all keys.
func settleRest(replies []driver.Reply, from int) {
	end := replies[from]
	if end.Outcome == driver.Error {
		from = 0
	}
	for i := from; i < len(replies); i++ {
		replies[i] = driver.Reply{Outcome: end.Outcome}
	}
	if end.Outcome == driver.Error {
		replies[0].Message = end.Message
	}
}
