package engine

import (
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// encoder appends the requests of plain ops. Where the codec has a layout, a request is a copy of one like it with another key and value.
type encoder struct {
	codec *guarded
	forms [driver.NumVerbs]form
	req   driver.Request // scratch
}

// form is what all requests of a verb have in common whose keys are of one length and values of one size. The TTL is the same for all of a
// step.
type form struct {
	key, value int    // length and size
	whole      []byte // a request like it; none: there is no form yet
	keyAt      int
	valueAt    int // its end, where it has no value
}

// usual is the length of the keys that most plans have: a copy of known length needs no call.
const usual = 16

func newEncoder(c *guarded) encoder { return encoder{codec: c} }

func (e *encoder) append(dst []byte, o *op.Op) []byte {
	f := &e.forms[o.Verb]
	if len(o.Key) != f.key || o.Value.Size != f.value || len(f.whole) == 0 {
		if e.codec.layout == nil || len(f.whole) > 0 && o.Value.Size != f.value { // sizes differ: a form would not last
			return e.encode(dst, o)
		}
		if !e.form(f, o) {
			return dst
		}
	}
	at := len(dst) + f.keyAt
	dst = append(dst, f.whole[:f.valueAt]...)
	if len(o.Key) == usual {
		*(*[usual]byte)(dst[at:]) = [usual]byte(o.Key)
	} else {
		copy(dst[at:], o.Key)
	}
	if o.Verb != driver.Put {
		return dst
	}
	dst = o.Value.AppendTo(dst)
	return append(dst, f.whole[f.valueAt+f.value:]...)
}

// form makes f the form of requests like o's; false: there is none, since the codec has panicked.
func (e *encoder) form(f *form, o *op.Op) bool {
	f.key, f.value = len(o.Key), o.Value.Size
	f.whole = e.encode(f.whole[:0], o)
	f.keyAt, f.valueAt = e.codec.offsets(&e.req)
	if o.Verb != driver.Put {
		f.valueAt = len(f.whole)
	}
	if e.codec.fault != nil {
		f.whole = f.whole[:0]
		return false
	}
	return true
}

func (e *encoder) encode(dst []byte, o *op.Op) []byte {
	e.req = driver.Request{Verb: o.Verb, Stream: o.Stream, N: o.N, Key: o.Key}
	if o.Verb == driver.Put {
		e.req.Value = &o.Value
	}
	return e.codec.request(dst, &e.req)
}
