package engine

import (
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	leastLent = 8 << 10 // bytes of a value: the kernel takes less as quickly in one piece
	mostParts = 32      // of one write
)

// lent is bytes of a connection's output that were not copied there: of the text that large values are cut from. A pipeline of them is
// megabytes that would pass through no cache twice; the text stays in one.
type lent struct {
	at   int    // in wireConn.out, before which they stand
	text []byte // what is left of them
}

// lend appends the request of an op with its value lent, and returns its bytes; 0 where it has to be encoded.
func (d *direct) lend(c *wireConn, o *op.Op) int {
	v, f := &o.Value, &d.enc.forms[driver.Put]
	if o.Verb != driver.Put || v.Size < leastLent || v.Checked || !v.Text() || d.w.gatherer == nil || d.enc.codec.layout == nil {
		return 0
	}
	if len(f.whole) == 0 && !d.enc.form(f, o) {
		return 0
	}
	if len(o.Key) != f.key || v.Size != f.value {
		return 0
	}
	at := len(c.out)
	c.out = append(c.out, f.whole[:f.valueAt]...)
	copy(c.out[at+f.keyAt:], o.Key)
	d.parts = v.Parts(d.parts[:0])
	for _, text := range d.parts {
		c.lent = append(c.lent, lent{at: len(c.out), text: text})
	}
	c.out = append(c.out, f.whole[f.valueAt+f.value:]...)
	return len(f.whole)
}

// parts returns what a connection is to write next, and how many bytes these are.
func (w *wire) parts(c *wireConn) (parts [][]byte, size int) {
	parts = w.vector[:0]
	at := c.gone
	for i := range c.lent {
		if len(parts) >= mostParts {
			break
		}
		p := &c.lent[i]
		if at < p.at {
			parts = append(parts, c.out[at:p.at])
		}
		parts = append(parts, p.text)
		at = p.at
	}
	if len(parts) < mostParts && at < len(c.out) {
		parts = append(parts, c.out[at:])
	}
	w.vector = parts
	for _, p := range parts {
		size += len(p)
	}
	return parts, size
}

// leave enters that n bytes of a connection's output have been written.
func (c *wireConn) leave(n int) {
	used := 0
	for n > 0 && used < len(c.lent) {
		p := &c.lent[used]
		own := min(n, p.at-c.gone)
		c.gone += own
		n -= own
		took := min(n, len(p.text))
		p.text = p.text[took:]
		n -= took
		if len(p.text) == 0 {
			used++
		}
	}
	c.gone += n
	c.lent = c.lent[:copy(c.lent, c.lent[used:])]
}

// compact gives up the room of what has been written, once it is half of all: no byte is moved more than once for each that has left.
func (c *wireConn) compact() {
	if c.gone <= len(c.out)/2 {
		return
	}
	for i := range c.lent {
		c.lent[i].at -= c.gone
	}
	c.out, c.gone = c.out[:copy(c.out, c.out[c.gone:])], 0
}
