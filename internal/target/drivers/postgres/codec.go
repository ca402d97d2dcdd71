package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
)

// maxMessage bounds a message from the server, in bytes: a field of PostgreSQL has at most 1 GiB.
const maxMessage = 1<<30 + 1<<16

// headSize is the length of a message's head: its type, and its length without the type.
const headSize = 5

// codec is shared by all connections of a loop.
type codec struct {
	run string
	by  [driver.NumVerbs]*statement
}

var (
	_ driver.Codec   = (*codec)(nil)
	_ driver.Aside   = (*codec)(nil)
	_ driver.Resumer = (*codec)(nil)
)

// Greet sends nothing: the handshake has already begun the connection.
func (*codec) Greet(dst []byte) ([]byte, int) { return dst, 0 }

// ParseGreeting is never called.
func (*codec) ParseGreeting([]byte, int) (int, error) {
	return 0, errors.New("postgres: no greeting is owed")
}

// Goodbye implements driver.Goodbyer: it appends Terminate.
func (*codec) Goodbye(dst []byte) []byte { return append(dst, 'X', 0, 0, 0, 4) }

// AppendRequest appends Bind, perhaps Describe, Execute and Sync, or the key that is a request.
func (c *codec) AppendRequest(dst []byte, req *driver.Request) []byte {
	s := c.by[req.Verb]
	if s.whole {
		return append(dst, req.Key...)
	}
	bind := len(dst)
	dst = append(dst, 'B', 0, 0, 0, 0, 0) // the unnamed portal
	dst = append(append(dst, s.name...), 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s.parameters)))
	for i := range s.parameters {
		dst = append(dst, 0, s.parameters[i].format)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s.parameters)))
	for i := range s.parameters {
		at := len(dst)
		dst = s.parameters[i].Append(append(dst, 0, 0, 0, 0), req, c.run)
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	dst = append(dst, 0, 1, 0, s.result) // one format for all columns
	binary.BigEndian.PutUint32(dst[bind+1:], uint32(len(dst)-bind-1))
	if s.captures != nil {
		dst = append(dst, 'D', 0, 0, 0, 6, 'P', 0) // Describe: the names of the columns
	}
	return append(dst, 'E', 0, 0, 0, 9, 0, 0, 0, 0, 0, 'S', 0, 0, 0, 4)
}

// message takes the first message of b. n is 0 if it is incomplete.
func message(b []byte) (kind byte, body []byte, n int, err error) {
	if len(b) < headSize {
		return 0, nil, 0, nil
	}
	size := binary.BigEndian.Uint32(b[1:])
	if size < 4 || size > maxMessage {
		return 0, nil, 0, fmt.Errorf("postgres: a message %q of %d bytes", b[0], size)
	}
	n = int(size) + 1
	if len(b) < n {
		return b[0], nil, 0, nil
	}
	return b[0], b[headSize:n], n, nil
}

// aside reports whether a message may come at any time: a notice, a changed setting, a notification.
func aside(kind byte) bool { return kind == 'N' || kind == 'S' || kind == 'A' }

// Aside implements driver.Aside. A server that ends the connection announces it unasked.
func (*codec) Aside(b []byte) (int, error) {
	switch kind := b[0]; {
	case aside(kind):
		_, _, n, err := message(b)
		return n, err
	case kind == 'E':
		_, body, n, err := message(b)
		if err == nil && n > 0 {
			p := readProblem(body)
			if err = p.lost(); string(p.code) == idled {
				err = driver.ErrIdle
			}
		}
		return 0, err
	default:
		return 0, fmt.Errorf("postgres: %w: a message %q", driver.ErrUnasked, kind)
	}
}

// Resume implements driver.Resumer: it skips messages up to ReadyForQuery, or up to an error, after which a server may send nothing more.
func (*codec) Resume(b []byte, p *driver.Progress) (bool, error) {
	for {
		kind, _, n, err := message(b[p.At:])
		if n == 0 || err != nil {
			return false, err
		}
		if kind == 'Z' || kind == 'E' {
			return true, nil
		}
		p.At += n
	}
}

// Parse reads to ReadyForQuery.
func (c *codec) Parse(b []byte, verb driver.Verb, reply *driver.Reply) (int, error) {
	*reply = driver.Reply{}
	s := c.by[verb]
	whole := s != nil && s.whole
	described := s != nil && s.captures != nil
	rows, failed, done := 0, false, false
	var columns, row []byte
	for at := 0; ; {
		kind, body, n, err := message(b[at:])
		if n == 0 || err != nil {
			return 0, err
		}
		at += n
		switch {
		case aside(kind), kind == '2': // BindComplete
		case whole && !failed && (kind == '1' || kind == 'n' || kind == 'T'): // ParseComplete, NoData, RowDescription
		case described && !failed && (kind == 'T' || kind == 'n'):
			columns = body
		case kind == 'D' && (!done || whole) && !failed:
			if rows++; rows == 1 {
				row = body
				if reply.Value, err = firstColumn(body); err != nil {
					return 0, err
				}
			}
		case kind == 'I' && !done && !failed: // EmptyQueryResponse
			done = true
		case kind == 'C' && (!done || whole) && !failed:
			done = true
			rows = max(rows, affected(body))
		case kind == 'E' && !failed:
			failed = true
			p := readProblem(body)
			if p.fatal {
				return 0, p.lost()
			}
			reply.Outcome, reply.Value, reply.Message = p.outcome(), nil, p.text()
			if string(p.code) == "26000" && s != nil && s.absent {
				reply.Message = p.with(unworded)
			}
		case kind == 'Z' && len(body) == 1 && (done || failed):
			switch {
			case failed:
			case rows == 0:
				c.nothing(verb, reply)
			case described:
				s.captures.Find(reply, s.op, func(name string) ([]byte, string) { return valueOf(name, columns, row) })
			}
			return at, nil
		default:
			return 0, fmt.Errorf("postgres: a message %q of %d bytes out of place", kind, len(body))
		}
	}
}

var noRow = []byte(`no row was found or changed, and the plan expects one (none = "error")`)

// nothing sets the reply to a request that found or changed no row.
func (c *codec) nothing(verb driver.Verb, reply *driver.Reply) {
	if s := c.by[verb]; s != nil {
		reply.Outcome = s.none
	}
	if reply.Outcome == driver.Error {
		reply.Message = noRow
	}
}

// firstColumn returns the first column of a row; nil if it is NULL or the row has none.
func firstColumn(row []byte) ([]byte, error) {
	if len(row) < 2 {
		return nil, errors.New("postgres: a row without a number of columns")
	}
	columns, rest := binary.BigEndian.Uint16(row), row[2:]
	var first []byte
	for i := range columns {
		if len(rest) < 4 {
			return nil, errors.New("postgres: a row that ends in a column")
		}
		size := int32(binary.BigEndian.Uint32(rest))
		rest = rest[4:]
		if size < -1 || int(size) > len(rest) {
			return nil, fmt.Errorf("postgres: a column of %d bytes in a row of %d", size, len(row))
		}
		if size > 0 {
			if i == 0 {
				first = rest[:size]
			}
			rest = rest[size:]
		}
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("postgres: %d bytes after the columns of a row", len(rest))
	}
	return first, nil
}

// affected returns the number that ends a command's tag, as in "DELETE 1"; 1 if it has none, as in "CREATE TABLE".
func affected(tag []byte) int {
	if n := len(tag); n > 0 && tag[n-1] == 0 {
		tag = tag[:n-1]
	}
	n, place, digits := 0, 1, 0
	for i := len(tag) - 1; i >= 0 && tag[i] >= '0' && tag[i] <= '9' && digits < 9; i-- {
		n += int(tag[i]-'0') * place
		place *= 10
		digits++
	}
	if digits == 0 {
		return 1
	}
	return n
}
