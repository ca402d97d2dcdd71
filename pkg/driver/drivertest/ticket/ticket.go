// Package ticket is the worked example of docs/drivers.md: the complete driver of a toy protocol, and a server for it. Requests and replies are one
// line each, of words separated by a space; a value follows the line that gives its size. A client may send many requests before it reads a reply.
// Each request begins with a number that the client chooses, its ticket, and so does its reply. Replies come in any order.
//
//	request           reply            outcome
//	7 get KEY         7 value SIZE …   ok, with the value
//	                  7 miss           miss
//	7 put KEY SIZE …  7 ok             ok
//	7 delete KEY      7 ok             ok
//	                  7 miss           miss
//	7 version         7 ticket 1       of Identify
//	any               7 error WORDS    error, with the words
//
// Lines end in a line feed. A key is 1 to 250 bytes above the space.
package ticket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Driver implements the protocol. Its zero value is ready to use.
type Driver struct{}

var (
	_ driver.Wire       = Driver{}
	_ driver.Identifier = Driver{}
	_ driver.Tagged     = codec{}
)

// Config holds the driver's own attributes: it has none.
type Config struct{}

// Name returns "ticket".
func (Driver) Name() string { return "ticket" }

// NewConfig returns a *Config.
func (Driver) NewConfig() any { return new(Config) }

// Outcomes says that a get and a delete can miss.
func (Driver) Outcomes(v driver.Verb) []driver.Outcome { return outcomes[v] }

var outcomes = map[driver.Verb][]driver.Outcome{
	driver.Get:    {driver.OK, driver.Miss},
	driver.Delete: {driver.OK, driver.Miss},
	driver.Put:    {driver.OK},
}

// Builtin returns "": no built-in node speaks the protocol.
func (Driver) Builtin() string { return "" }

// NewCodec returns the codec, which has no state.
func (Driver) NewCodec(driver.Link) (driver.Codec, error) { return codec{}, nil }

// Identify asks for the version.
func (Driver) Identify(ctx context.Context, conn net.Conn, _ driver.Link) (map[string]string, error) {
	var said [64]byte
	n := 0
	err := driver.Interruptible(ctx, conn, func() error {
		if _, err := conn.Write([]byte("1 version\n")); err != nil {
			return err
		}
		for n < len(said) && !bytes.ContainsRune(said[:n], '\n') {
			got, err := conn.Read(said[n:])
			if n += got; err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask for the version: %w", err)
	}
	version, ok := bytes.CutPrefix(said[:n], []byte("1 ticket "))
	if !ok || !bytes.HasSuffix(version, []byte("\n")) {
		return nil, fmt.Errorf("ask for the version: %q is no answer of a ticket server", said[:n])
	}
	return map[string]string{"server": "ticket", "version": string(bytes.TrimSpace(version))}, nil
}

const (
	maxLine  = 512      // of a reply, in bytes
	maxValue = 64 << 20 // of a get
)

// codec implements driver.Tagged.
type codec struct{}

// Greet says nothing.
func (codec) Greet(dst []byte) ([]byte, int) { return dst, 0 }

// ParseGreeting is never called.
func (codec) ParseGreeting([]byte, int) (int, error) { return 0, errors.New("nothing was said") }

// AppendRequest appends a line and, for a put, the value after it.
func (codec) AppendRequest(dst []byte, req *driver.Request) []byte {
	dst = strconv.AppendUint(dst, uint64(req.ID), 10)
	dst = append(dst, ' ')
	dst = append(dst, req.Verb.String()...)
	dst = append(dst, ' ')
	dst = append(dst, req.Key...)
	if req.Verb != driver.Put {
		return append(dst, '\n')
	}
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(req.Value.Size), 10)
	dst = append(dst, '\n')
	return req.Value.AppendTo(dst)
}

// Tag reads the number up to the first space. If the bytes begin with none, it returns 0, which no request has, and Parse refuses them.
func (codec) Tag(b []byte) (id uint32, ok bool) {
	n, rest, ok := number(b, ' ')
	if !ok {
		return 0, len(rest) > 0
	}
	return uint32(n), true
}

var (
	okLine    = []byte("ok")
	missLine  = []byte("miss")
	valueLine = []byte("value ")
	errorLine = []byte("error ")
)

// Parse reads a line, and the value after it.
func (codec) Parse(b []byte, v driver.Verb, reply *driver.Reply) (n int, err error) {
	*reply = driver.Reply{}
	end := bytes.IndexByte(b[:min(len(b), maxLine)], '\n')
	if end < 0 {
		if len(b) >= maxLine {
			return 0, fmt.Errorf("a line of more than %d bytes: %q", maxLine, b[:40])
		}
		return 0, nil
	}
	_, words, ok := number(b[:end], ' ')
	switch {
	case !ok:
	case v != driver.Get && bytes.Equal(words, okLine):
		return end + 1, nil
	case v != driver.Put && bytes.Equal(words, missLine):
		reply.Outcome = driver.Miss
		return end + 1, nil
	case bytes.HasPrefix(words, errorLine):
		reply.Outcome, reply.Message = driver.Error, words[len(errorLine):]
		return end + 1, nil
	case v == driver.Get && bytes.HasPrefix(words, valueLine):
		return value(b, end+1, words[len(valueLine):len(words)+1], reply)
	}
	return 0, fmt.Errorf("%q is no reply to a %v", b[:min(end, 40)], v)
}

// value takes the value at offset at, whose length is the number in word.
func value(b []byte, at int, word []byte, reply *driver.Reply) (n int, err error) {
	size, rest, ok := number(word, '\n')
	if !ok || len(rest) > 0 || size > maxValue {
		return 0, fmt.Errorf("a value of %q bytes", word[:min(len(word), 40)])
	}
	if len(b)-at < int(size) {
		return 0, nil
	}
	reply.Value = b[at : at+int(size)]
	return at + int(size), nil
}

// number reads a decimal 32-bit number up to the byte until, and returns what follows. If b does not begin with such a number, ok is false and rest
// begins with the byte that shows it; rest is nil if more bytes could still complete the number.
func number(b []byte, until byte) (n uint64, rest []byte, ok bool) {
	for i, c := range b {
		switch {
		case c == until && i > 0:
			return n, b[i+1:], true
		case c < '0' || c > '9' || i > 9:
			return 0, b[i:], false
		}
		if n = 10*n + uint64(c-'0'); n > 1<<32-1 {
			return 0, b[i:], false
		}
	}
	return 0, nil, false
}
