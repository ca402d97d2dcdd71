package engine

import (
	"bytes"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// sheet is many equal requests, for ops that are alike but for their keys and values and have one endpoint: a write's requests are copied at
// once, and then keys and values are stamped onto them.
type sheet struct {
	fits     bool // the step's ops are such
	requests []byte
	size     int // of one request
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

// alike says whether a sheet does for the ops of a step.
func alike(source *workload.Source, codec driver.Layout) bool {
	value := source.Value()
	return codec != nil && source.Alike() && (!source.Draws(driver.Put) || value.Text() && value.Size <= mostStamped)
}

// stamp begins the next n ops of a stream, as start does.
func (d *direct) stamp(s *session, stream *workload.Stream, n int, due, now int64) int {
	c := d.w.conn(s, 0)
	if d.w.room(c) < n || d.sheet.requests == nil && !d.layOut(*stream) {
		return d.startAny(s, stream, n, due, now)
	}
	for at := 0; at < n; at += sheetSize {
		most := min(n-at, sheetSize)
		if got := d.stampSheet(s, c, stream, most, due, now); got < most {
			return at + got
		}
	}
	return n
}

// layOut makes the sheet after the next op of the stream; false when there is none.
func (d *direct) layOut(stream workload.Stream) bool {
	o := &d.ops[0]
	if !stream.Next(o) {
		return false
	}
	f := &d.enc.forms[o.Verb]
	d.enc.form(f, o)
	d.sheet = sheet{
		fits: true, requests: bytes.Repeat(f.whole, sheetSize), size: len(f.whole), keyAt: f.keyAt, key: f.key,
		valueAt: f.valueAt, value: o.Value,
	}
	return true
}

// stampSheet begins up to n ops of one sheet on a connection that has room for them.
func (d *direct) stampSheet(s *session, c *wireConn, stream *workload.Stream, n int, due, now int64) int {
	l, sh, verb := d.l, &d.sheet, stream.Verb()
	number, first, more := stream.At()
	if !more {
		return 0
	}
	d.w.touch(c)
	at := len(c.out)
	c.out = append(c.out, sh.requests[:n*sh.size]...)
	keys := c.out[at+sh.keyAt:]
	got := stream.Stamp(keys, sh.key, sh.size, sh.seeds[:n])
	c.out = c.out[:at+got*sh.size]
	if verb.Stores() {
		sh.value.Writer, sh.value.Version = uint64(number), uint64(l.wall+now)
		sh.value.Stamp(c.out[at+sh.valueAt:], sh.size, sh.seeds[:got])
	}
	for i := 0; d.w.pipes != nil && i < got; i++ {
		c.out = c.out[:at+(i+1)*sh.size]
		c.cut(at + i*sh.size)
	}
	row := measure.Row{Stream: number, N: first, Verb: verb, Size: sh.value.Size, Keys: keys, Stride: sh.size, Key: sh.key}
	l.rec.Mix(row.Digest(got))
	l.rec.AddDueN(verb, uint64(got))
	l.rec.AddBytes(verb, 0, got*sh.size)
	l.rec.Request(c.endpoint, verb).Sent += uint64(got)
	l.occupy(s, got, now)
	c.join(verb, got, due)
	return got
}
