package behaviour

import (
	"fmt"
	"net"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
)

// mostReply bounds the bytes that are read for one reply.
const mostReply = 4 << 20

// Conn carries out requests over a connection, and keeps the replies' bytes. The caller greets, and sets deadlines.
type Conn struct {
	net.Conn
	Codec   driver.Codec
	Replies []Exchange

	in []byte // received, not yet taken
	id uint32 // of the last request
}

// Exchange is a request and the bytes that answered it.
type Exchange struct {
	Verb  driver.Verb
	Bytes []byte
}

// Do is a Do.
func (c *Conn) Do(reqs ...driver.Request) ([]driver.Reply, error) {
	if err := c.Send(reqs); err != nil {
		return nil, err
	}
	return c.Receive(reqs)
}

// Send sends requests, and gives them their ids.
func (c *Conn) Send(reqs []driver.Request) error {
	var out []byte
	for i := range reqs {
		c.id++
		reqs[i].ID = c.id
		out = c.Codec.AppendRequest(out, &reqs[i])
	}
	_, err := c.Write(out)
	return err
}

// Receive reads the replies to requests that were sent. If they carry ids, they may come in any order.
func (c *Conn) Receive(reqs []driver.Request) ([]driver.Reply, error) {
	replies, answered := make([]driver.Reply, len(reqs)), make([]bool, len(reqs))
	tagged, _ := c.Codec.(driver.Tagged)
	aside, _ := c.Codec.(driver.Aside)
	for at := range reqs {
		of := at
		taken, err := c.Take(func(b []byte) (int, error) {
			if tagged != nil {
				id, ok := tagged.Tag(b)
				for ; ok && id == 0 && aside != nil && len(b) > 0; id, ok = tagged.Tag(b) {
					n, err := aside.Aside(b)
					if err != nil || n == 0 {
						return 0, err
					}
					b, c.in = b[n:], b[n:]
				}
				if !ok {
					return 0, nil
				}
				i := slices.IndexFunc(reqs, func(r driver.Request) bool { return r.ID == id })
				if i < 0 || answered[i] {
					return 0, fmt.Errorf("a reply with the id %d, for which no request waits: %.40q", id, b)
				}
				of = i
			}
			return c.Codec.Parse(b, reqs[of].Verb, &replies[of])
		})
		if err != nil {
			return nil, fmt.Errorf("reply %d of %d, to a %s: %w", at+1, len(reqs), reqs[of].Verb, err)
		}
		r := &replies[of]
		answered[of], r.Value, r.Message = true, slices.Clone(r.Value), slices.Clone(r.Message)
		c.Replies = append(c.Replies, Exchange{reqs[of].Verb, taken})
	}
	return replies, nil
}

// Take reads until parse takes something, and returns that.
func (c *Conn) Take(parse func([]byte) (int, error)) ([]byte, error) {
	for {
		n, err := parse(c.in)
		if owing, ok := c.Codec.(driver.Owing); ok && err == nil {
			_, err = c.Write(owing.AppendOwed(nil))
		}
		switch {
		case err != nil:
			return nil, err
		case n > len(c.in):
			return nil, fmt.Errorf("%d bytes are taken of %d", n, len(c.in))
		case n > 0:
			taken := c.in[:n:n]
			c.in = c.in[n:]
			return taken, nil
		case len(c.in) > mostReply:
			return nil, fmt.Errorf("it goes on after %d bytes, and begins %.40q", len(c.in), c.in)
		}
		c.in = slices.Grow(c.in, 64<<10)
		n, err = c.Read(c.in[len(c.in):cap(c.in)])
		if c.in = c.in[:len(c.in)+n]; err != nil {
			return nil, fmt.Errorf("no whole reply came, only %.40q: %w", c.in, err)
		}
	}
}
