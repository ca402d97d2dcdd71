package engine

import (
	"bytes"
	"slices"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	leastLent   = 8 << 10 // the smallest value, in bytes, that is lent; for a smaller one, a contiguous write is as fast
	sheetSize   = 64      // how many requests a sheet has
	mostStamped = 256     // the largest value, in bytes, that is worth copying twice
)

// writer makes the requests of a loop's connections. If the codec has a layout, a request is a copy of a similar one with another key and value. A
// large value is lent instead of copied. If ops have no state, many similar ops are made at once.
type writer struct {
	codec *guarded
	forms [driver.NumVerbs]form
	req   driver.Request // scratch
	one   op.Op          // scratch
	lends bool           // the poller can write from several slices at once
	exact bool           // the codec makes each request of programs
	parts [][]byte       // scratch: the pieces of a lent value
	sheet sheet
}

// form holds what all requests of a verb with the same key length and value size have in common. The TTL is the same throughout a step.
type form struct {
	free       bool   // there is no form: requests of the verb differ in other ways, too
	key, value int    // the key's length and the value's size
	whole      []byte // one such request; empty: there is no form yet
	keyAt      int
	valueAt    int // the request's end if it has no value
}

// usual is the key length of most plans. It is a constant because a copy of constant length is compiled without a call.
const usual = 16

// sheet is a template of many equal requests, for ops that differ only in their keys and values and go to all endpoints. All requests of a write are copied at
// once, and then keys and values are stamped onto them.
type sheet struct {
	fits     bool   // the step's ops fit a sheet
	requests []byte // sheetSize requests, or one if values are not worth copying twice; nil until they are made
	size     int    // of one request
	keyAt    int
	key      int // length of the key
	valueAt  int
	value    driver.Value      // the value of puts, except its seed
	seeds    [sheetSize]uint64 // the seeds of a write's values
	keys     [sheetSize]uint64 // the hashes of their keys
}

func newWriter(c *guarded, lends bool) writer { return writer{codec: c, lends: lends} }

// begin forgets the forms of another step's requests. exact is set for a step whose values may have different TTLs, such as those of traces.
func (w *writer) begin(exact bool) {
	*w = newWriter(w.codec, w.lends)
	w.exact = exact
}

// request appends a program's request for an op. A request with the op's own key and value is made as in the other ways.
func (w *writer) request(dst []byte, req *driver.Request, o *op.Op) []byte {
	switch {
	case len(req.Batch) > 0:
		return w.codec.batch(dst, req)
	case w.exact || req.Asking || !own(req, o):
		return w.codec.request(dst, req)
	}
	return w.append(dst, o)
}

// own reports whether a request is the op's own: it has the op's verb and key and, if it stores one, its value.
func own(req *driver.Request, o *op.Op) bool {
	if req.Verb != o.Verb || !sameBytes(req.Key, o.Key) {
		return false
	}
	if req.Verb.Stores() {
		return req.Value == &o.Value
	}
	return req.Value == nil
}

// sameBytes reports whether two slices are the same, non-empty memory.
func sameBytes(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// append appends the request of an op.
func (w *writer) append(dst []byte, o *op.Op) []byte {
	f := &w.forms[o.Verb]
	if len(o.Key) != f.key || o.Value.Size != f.value || len(f.whole) == 0 {
		if w.codec.layout == nil || f.free || len(f.whole) > 0 && o.Value.Size != f.value { // there is no layout, or value sizes vary and a form would not last
			return w.encode(dst, o)
		}
		if !w.form(f, o) {
			return dst
		}
		if f.free {
			return w.encode(dst, o)
		}
	}
	at := len(dst) + f.keyAt
	dst = append(dst, f.whole[:f.valueAt]...)
	if len(o.Key) == usual {
		*(*[usual]byte)(dst[at:]) = [usual]byte(o.Key)
	} else {
		copy(dst[at:], o.Key)
	}
	if !o.Verb.Stores() {
		return dst
	}
	dst = o.Value.AppendTo(dst)
	return append(dst, f.whole[f.valueAt+f.value:]...)
}

// form makes f the form of requests like o's; false if the codec panicked, so that there is none.
func (w *writer) form(f *form, o *op.Op) bool {
	f.key, f.value = len(o.Key), o.Value.Size
	f.whole = w.encode(f.whole[:0], o)
	f.keyAt, f.valueAt = w.codec.offsets(&w.req)
	if !o.Verb.Stores() {
		f.valueAt = len(f.whole)
	}
	if w.codec.fault != nil {
		f.whole = f.whole[:0]
		return false
	}
	if f.free = f.keyAt < 0; f.free {
		f.whole = f.whole[:0]
	}
	return true
}

func (w *writer) encode(dst []byte, o *op.Op) []byte {
	w.req = driver.Request{Verb: o.Verb, Stream: o.Stream, N: o.N, Key: o.Key}
	if o.Verb.Stores() {
		w.req.Value = &o.Value
		if o.Value.Size >= leastLent {
			dst = slices.Grow(dst, o.Value.Size+len(o.Key)+aroundItem)
		}
	}
	return w.codec.request(dst, &w.req)
}

// lend appends the request of an op with its value lent, and returns the request's size in bytes; 0 if it must be encoded.
func (w *writer) lend(c *wireConn, o *op.Op) int {
	v, f := &o.Value, &w.forms[o.Verb]
	if !o.Verb.Stores() || f.free || c.aside || v.Size < leastLent || v.Checked || !v.Text() || !w.lends || w.codec.layout == nil {
		return 0
	}
	if len(f.whole) == 0 && !w.form(f, o) {
		return 0
	}
	if f.free {
		return 0
	}
	if len(o.Key) != f.key || v.Size != f.value {
		return 0
	}
	at := len(c.out)
	c.out = append(c.out, f.whole[:f.valueAt]...)
	copy(c.out[at+f.keyAt:], o.Key)
	c.out = v.AppendMark(c.out)
	w.parts = v.Parts(w.parts[:0])
	for _, text := range w.parts {
		c.lent = append(c.lent, lent{at: len(c.out), text: text})
	}
	c.out = append(c.out, f.whole[f.valueAt+f.value:]...)
	return len(f.whole)
}

// lendRequest is lend for a program's request.
func (w *writer) lendRequest(c *wireConn, req *driver.Request) int {
	if req.Value == nil || req.Value.Size < leastLent || w.exact || req.Asking || len(req.Batch) > 0 {
		return 0
	}
	w.one.Verb, w.one.Stream, w.one.N, w.one.Key, w.one.Value = req.Verb, req.Stream, req.N, req.Key, *req.Value
	return w.lend(c, &w.one)
}

// alike reports whether a sheet fits the ops of a step; if they are puts, their values must have fewer bytes than limit, and room for a whole header.
func alike(source *workload.Source, codec *guarded, limit int) bool {
	value := source.Value()
	return codec.layout != nil && source.Alike() && (!source.Stores() || value.Text() && value.Size < limit && (!value.Checked || value.Size >= driver.HeaderSize))
}

// laidOut makes the sheet from the stream's next op, unless it is made. It returns false if there is no next op or no form.
func (w *writer) laidOut(stream workload.Stream) bool {
	if w.sheet.requests != nil {
		return true
	}
	o := new(op.Op)
	if !stream.Next(o) {
		return false
	}
	f := &w.forms[o.Verb]
	if !w.form(f, o) {
		return false
	}
	if f.free {
		w.sheet.fits = false
		return false
	}
	copies := sheetSize
	if o.Value.Size > mostStamped {
		copies = 1
	}
	w.sheet = sheet{
		fits: true, requests: bytes.Repeat(f.whole, copies), size: len(f.whole), keyAt: f.keyAt, key: f.key,
		valueAt: f.valueAt, value: o.Value,
	}
	return true
}

// append appends up to sheetSize requests. Their bytes where keys and values will be stamped are undefined.
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

// stamp appends the requests of up to n similar ops of a stream to a connection's output, and returns their number, their size in
// bytes and what keyOf returns for the first.
func (w *wire) stamp(c *wireConn, stream *workload.Stream, n int, now int64) (got, size int, key uint64) {
	sh, verb := &w.writer.sheet, stream.Verb()
	number, first, more := stream.At()
	if !more {
		return 0, 0, 0
	}
	w.touch(c)
	at := len(c.out)
	c.out = sh.append(c.out, n)
	keys := c.out[at+sh.keyAt:]
	got = stream.Stamp(keys, sh.key, sh.size, sh.seeds[:n])
	c.out = c.out[:at+got*sh.size]
	if verb.Stores() {
		for i := range got {
			sh.keys[i] = driver.KeyHash(keys[i*sh.size:][:sh.key])
		}
		sh.value.Run, sh.value.Writer, sh.value.Version = w.l.runBits, number, w.l.versions(got, now)
		sh.value.Stamp(c.out[at+sh.valueAt:], sh.size, sh.seeds[:got], sh.keys[:got])
	}
	w.split(c, at, sh.size)
	row := measure.Row{Stream: number, N: first, Verb: verb, Size: sh.value.Size, Keys: keys, Stride: sh.size, Key: sh.key}
	w.l.rec.Mix(row.Digest(got))
	return got, got * sh.size, w.keyOf(verb, keys[:sh.key])
}
