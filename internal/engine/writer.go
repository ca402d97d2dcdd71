package engine

import (
	"bytes"
	"slices"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	leastLent   = 8 << 10 // bytes of a value: the kernel takes less as quickly in one piece
	sheetSize   = 64      // requests of a sheet
	mostStamped = 256     // bytes of a value that is worth being copied twice
)

// writer makes the requests of a loop's connections. Where the codec has a layout, a request is a copy of one like it with another key
// and value. Where ops have no state, a large value is lent instead of copied, and of ops that are alike, many are made at once.
type writer struct {
	codec *guarded
	forms [driver.NumVerbs]form
	req   driver.Request // scratch
	lends bool           // the poller takes bytes from several places
	exact bool           // what programs ask for is left to the codec
	parts [][]byte       // of a value that is lent
	sheet sheet
}

// form is what all requests of a verb have in common whose keys are of one length and values of one size. The TTL is the same for all of a
// step.
type form struct {
	free       bool   // there is none: requests of the verb differ in other ways, too
	key, value int    // length and size
	whole      []byte // a request like it; none: there is no form yet
	keyAt      int
	valueAt    int // its end, where it has no value
}

// usual is the length of the keys that most plans have: a copy of known length needs no call.
const usual = 16

// sheet is many equal requests, for ops that are alike but for their keys and values and go to all endpoints: a write's requests are copied at
// once, and then keys and values are stamped onto them.
type sheet struct {
	fits     bool   // the step's ops are such
	requests []byte // sheetSize of them, or one, if values are not worth being copied twice; none: they are still to be made
	size     int    // of one request
	keyAt    int
	key      int // length of the key
	valueAt  int
	value    driver.Value      // of puts, but for its seed
	seeds    [sheetSize]uint64 // of the values of a write
}

func newWriter(c *guarded, lends bool) writer { return writer{codec: c, lends: lends} }

// begin forgets the forms of another step's requests. exact is of one whose values live for times that differ, as those of traces do.
func (w *writer) begin(exact bool) {
	*w = newWriter(w.codec, w.lends)
	w.exact = exact
}

// request appends the request of a program for an op. One that is for the op's own key and value is made as those of the other ways are.
func (w *writer) request(dst []byte, req *driver.Request, o *op.Op) []byte {
	switch {
	case len(req.Batch) > 0:
		return w.codec.batch(dst, req.Verb, req.Batch)
	case w.exact || req.Asking || !own(req, o):
		return w.codec.request(dst, req)
	}
	return w.append(dst, o)
}

// own says whether a request is the op's own: of its verb, its key, and its value if it stores one.
func own(req *driver.Request, o *op.Op) bool {
	if req.Verb != o.Verb || !sameBytes(req.Key, o.Key) {
		return false
	}
	if req.Verb.Stores() {
		return req.Value == &o.Value
	}
	return req.Value == nil
}

// sameBytes says whether two slices are the same memory.
func sameBytes(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// append appends the request of an op.
func (w *writer) append(dst []byte, o *op.Op) []byte {
	f := &w.forms[o.Verb]
	if len(o.Key) != f.key || o.Value.Size != f.value || len(f.whole) == 0 {
		if w.codec.layout == nil || f.free || len(f.whole) > 0 && o.Value.Size != f.value { // sizes differ: a form would not last
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

// form makes f the form of requests like o's; false: there is none, since the codec has panicked.
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
	}
	return w.codec.request(dst, &w.req)
}

// lend appends the request of an op with its value lent, and returns its bytes; 0 where it has to be encoded.
func (w *writer) lend(c *wireConn, o *op.Op) int {
	v, f := &o.Value, &w.forms[o.Verb]
	if !o.Verb.Stores() || f.free || v.Size < leastLent || v.Checked || !v.Text() || !w.lends || w.codec.layout == nil {
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
	w.parts = v.Parts(w.parts[:0])
	for _, text := range w.parts {
		c.lent = append(c.lent, lent{at: len(c.out), text: text})
	}
	c.out = append(c.out, f.whole[f.valueAt+f.value:]...)
	return len(f.whole)
}

// alike says whether a sheet does for the ops of a step, of puts if their values have fewer bytes than a limit.
func alike(source *workload.Source, codec *guarded, limit int) bool {
	value := source.Value()
	return codec.layout != nil && source.Alike() && (!source.Stores() || value.Text() && value.Size < limit)
}

// laidOut says whether the sheet is made; it is now, after the next op of the stream, unless there is none or it has no form.
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
	if o.Verb.Stores() && o.Value.Size > mostStamped {
		copies = 1
	}
	w.sheet = sheet{
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

// stamp appends the requests of up to n ops of a stream, which are alike, to a connection's output, and returns how many these are, and their bytes.
func (w *wire) stamp(c *wireConn, stream *workload.Stream, n int, now int64) (got, size int) {
	sh, verb := &w.writer.sheet, stream.Verb()
	number, first, more := stream.At()
	if !more {
		return 0, 0
	}
	w.touch(c)
	at := len(c.out)
	c.out = sh.append(c.out, n)
	keys := c.out[at+sh.keyAt:]
	got = stream.Stamp(keys, sh.key, sh.size, sh.seeds[:n])
	c.out = c.out[:at+got*sh.size]
	if verb.Stores() {
		sh.value.Writer, sh.value.Version = uint64(number), w.l.versions(got, now)
		sh.value.Stamp(c.out[at+sh.valueAt:], sh.size, sh.seeds[:got])
	}
	w.split(c, at, sh.size)
	row := measure.Row{Stream: number, N: first, Verb: verb, Size: sh.value.Size, Keys: keys, Stride: sh.size, Key: sh.key}
	w.l.rec.Mix(row.Digest(got))
	return got, got * sh.size
}
