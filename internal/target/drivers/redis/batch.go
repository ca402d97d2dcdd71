package redis

import (
	"errors"
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
)

var _ driver.BatchCodec = (*codec)(nil)

// AppendBatch appends MGET or MSET.
func (*codec) AppendBatch(dst []byte, req *driver.Request) []byte {
	items := req.Batch
	dst = append(dst, '*')
	if req.Verb == driver.Get {
		dst = appendLength(dst, 1+len(items))
		dst = append(dst, "$4\r\nMGET\r\n"...)
	} else {
		dst = appendLength(dst, 1+2*len(items))
		dst = append(dst, "$4\r\nMSET\r\n"...)
	}
	for i := range items {
		item := &items[i]
		dst = append(dst, '$')
		dst = appendLength(dst, len(item.Key))
		dst = append(dst, item.Key...)
		if req.Verb == driver.Put {
			dst = append(dst, "\r\n$"...)
			dst = appendLength(dst, item.Value.Size)
			dst = item.Value.AppendTo(dst)
		}
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// ParseBatch reads the reply to an MGET or MSET.
func (c *codec) ParseBatch(b []byte, v driver.Verb, replies []driver.Reply) (int, error) {
	head, n, err := c.read(b)
	if n == 0 || err != nil {
		return 0, err
	}
	switch {
	case head.kind == errorReply:
		fill(replies, driver.Reply{Outcome: driver.Error})
		replies[0].Message = c.told(head.text)
	case v == driver.Put && head.kind == status && string(head.text) == "OK":
		fill(replies, driver.Reply{Outcome: driver.OK})
	case v == driver.Get && head.kind == array && head.integer == int64(len(replies)):
		for i := range replies {
			size, err := c.parse(b[n:], driver.Get, &replies[i])
			if size == 0 || err != nil {
				return 0, err
			}
			n += size
		}
	case v == driver.Get && head.kind == array && head.integer >= 0 && head.integer < int64(len(replies)):
		return 0, leavesOut(len(replies), head.integer)
	default:
		return 0, fmt.Errorf("reply to a redis %s of %d keys: got %s", v, len(replies), quote(b[:n]))
	}
	return n, nil
}

var errLeavesOut = errors.New("it leaves out keys that are not there, as Ignite does, so nobody can tell which value is whose: leave batch out of the phase")

// leavesOut is the error of a server whose MGET does not answer each key.
func leavesOut(keys int, values int64) error {
	return fmt.Errorf("it answered MGET of %d keys with %d values: %w", keys, values, errLeavesOut)
}

func fill(replies []driver.Reply, with driver.Reply) {
	for i := range replies {
		replies[i] = with
	}
}
