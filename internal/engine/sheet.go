package engine

import (
	"bytes"
	"slices"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// sheet is many equal requests, for ops that are alike but for their keys and values and go to all endpoints: a write's requests are copied at
// once, and then keys and values are stamped onto them.
type sheet struct {
	fits     bool   // the step's ops are such
	requests []byte // sheetSize of them, or one, if values are not worth being copied twice
	size     int    // of one request
	keyAt    int
	key      int // length of the key
	valueAt  int
	value    driver.Value      // of puts, but for its seed
	seeds    [sheetSize]uint64 // of the values of a write
}

const (
	sheetSize   = 64  // requests of a sheet
	mostStamped = 256 // bytes of a value that is worth being copied twice
)

// alike says whether a sheet does for the ops of a step, of puts if their values have fewer bytes than a limit.
func alike(source *workload.Source, codec *guarded, limit int) bool {
	value := source.Value()
	return codec.layout != nil && source.Alike() && (!source.Draws(driver.Put) || value.Text() && value.Size < limit)
}

// stamp begins the next n ops of a stream, as start does. A plain op's connection has room for them.
func (d *direct) stamp(s *session, stream *workload.Stream, n int, due, now int64) int {
	for at := 0; at < n; at += sheetSize {
		most := min(n-at, sheetSize)
		got := 0
		if d.volleys != nil {
			got = d.stampVolley(s, stream, most, due, now)
		} else {
			got = d.stampRun(s, stream, most, due, now)
		}
		if got < most {
			return at + got
		}
	}
	return n
}

// layOut makes the sheet after the next op of the stream; false when there is none, or it has no form.
func (d *direct) layOut(stream workload.Stream) bool {
	o := &d.ops[0]
	if !stream.Next(o) {
		return false
	}
	f := &d.enc.forms[o.Verb]
	if !d.enc.form(f, o) {
		return false
	}
	copies := sheetSize
	if o.Verb.Stores() && o.Value.Size > mostStamped {
		copies = 1
	}
	d.sheet = sheet{
		fits: true, requests: bytes.Repeat(f.whole, copies), size: len(f.whole), keyAt: f.keyAt, key: f.key,
		valueAt: f.valueAt, value: o.Value,
	}
	return true
}

// append adds up to sheetSize requests. What they have where keys and values are to be stamped is not said.
func (sh *sheet) append(dst []byte, n int) []byte {
	if len(sh.requests) > sh.size {
		return append(dst, sh.requests[:n*sh.size]...)
	}
	head, tail := sh.requests[:sh.valueAt], sh.requests[sh.valueAt+sh.value.Size:]
	at := len(dst)
	dst = slices.Grow(dst, n*sh.size)[:at+n*sh.size]
	for ; at < len(dst); at += sh.size {
		copy(dst[at:], head)
		copy(dst[at+sh.size-len(tail):], tail)
	}
	return dst
}

// stampRun begins up to n plain ops.
func (d *direct) stampRun(s *session, stream *workload.Stream, n int, due, now int64) int {
	c := d.w.conn(s, 0)
	got := d.stampOn(c, stream, n, now)
	if got == 0 {
		return 0
	}
	verb := stream.Verb()
	d.l.rec.AddDueN(verb, uint64(got))
	d.l.rec.AddBytes(verb, 0, got*d.sheet.size)
	d.l.rec.Request(c.endpoint, verb).Sent += uint64(got)
	d.l.occupy(s, got, now)
	c.join(verb, got, due)
	return got
}

// stampVolley begins up to n ops of a quorum. Their requests are made on the first connection that has room for all of them, and copied to the others
// as far as these have.
func (d *direct) stampVolley(s *session, stream *workload.Stream, n int, due, now int64) int {
	o, q := &d.ops[0], d.volleys
	o.Verb = stream.Verb()
	more := false
	if o.Stream, o.N, more = stream.At(); !more {
		return 0
	}
	q.prog.Place(q.of(0), o)
	lead := d.lead(s, n)
	if lead == nil {
		return d.startVolleys(s, stream, n, due, now)
	}
	at := len(lead.out)
	got := d.stampOn(lead, stream, n, now)
	v := d.enlist(s, o.Verb, got, due, now)
	q.ended = tallied{}
	for _, endpoint := range q.of(0) {
		c, room := d.w.conn(s, endpoint), got
		if c != lead {
			room = min(d.w.room(c), got)
			c.out = append(c.out, lead.out[at:at+room*d.sheet.size]...)
		}
		d.ask(c, v, 0, room, got, room*d.sheet.size)
	}
	if d.tell(v, op.Refused, now) > 0 {
		d.l.feed.freed(s, q.ended.done, now, true)
	}
	return got
}

// lead returns the first connection of those at hand that has room for n requests, or nil. Those with room for any are written to in their order.
func (d *direct) lead(s *session, n int) (lead *wireConn) {
	for _, endpoint := range d.volleys.of(0) {
		c := d.w.conn(s, endpoint)
		room := d.w.room(c)
		if room > 0 {
			d.w.touch(c)
		}
		if room >= n && lead == nil {
			lead = c
		}
	}
	return lead
}

// stampOn appends the requests of up to n ops of a stream to a connection's output, and returns how many these are.
func (d *direct) stampOn(c *wireConn, stream *workload.Stream, n int, now int64) int {
	sh, verb := &d.sheet, stream.Verb()
	number, first, more := stream.At()
	if !more {
		return 0
	}
	d.w.touch(c)
	at := len(c.out)
	c.out = sh.append(c.out, n)
	keys := c.out[at+sh.keyAt:]
	got := stream.Stamp(keys, sh.key, sh.size, sh.seeds[:n])
	c.out = c.out[:at+got*sh.size]
	if verb.Stores() {
		sh.value.Writer, sh.value.Version = uint64(number), d.l.versions(got, now)
		sh.value.Stamp(c.out[at+sh.valueAt:], sh.size, sh.seeds[:got])
	}
	for i := 0; d.w.pipes != nil && i < got; i++ {
		c.out = c.out[:at+(i+1)*sh.size]
		c.cut(at + i*sh.size)
	}
	row := measure.Row{Stream: number, N: first, Verb: verb, Size: sh.value.Size, Keys: keys, Stride: sh.size, Key: sh.key}
	d.l.rec.Mix(row.Digest(got))
	return got
}
