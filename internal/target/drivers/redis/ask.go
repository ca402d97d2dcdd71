package redis

import (
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

// ask is a compiled form. It is immutable.
type ask struct {
	verb    driver.Verb
	args    []form.Template
	script  string // run by EVALSHA; "" for none
	whole   bool   // the key is the request
	block   bool   // the request is a transaction
	selects bool   // a SELECT stands before it
	rules   rules

	op       string
	captures form.Captures[int] // of elements

	pieces []piece // the arguments as they are sent
	tail   []byte  // the bytes after the last piece
	laid   bool    // requests differ only in key and value, each present at most once, the key first
}

// piece is an argument with placeholders, and the bytes before it.
type piece struct {
	lead   []byte // bytes up to the $ before the argument's length
	arg    form.Template
	size   int  // bytes of its fixed text
	keys   int  // number of {key}
	values int  // number of {value}
	ns     int  // number of {n}
	fields bool // it has fields or other parts whose lengths are known only once they are generated
}

// lay compiles the pieces for a run.
func (a *ask) lay(run string) {
	if a.whole {
		return
	}
	lead := appendLength([]byte{'*'}, len(a.args))
	keys, values, free := 0, 0, false
	for _, t := range a.args {
		t = t.With(run)
		if n := t.Count(form.Text); n == len(t) {
			text := t.Append(nil, &driver.Request{}, run)
			lead = appendLength(append(lead, '$'), len(text))
			lead = append(append(lead, text...), "\r\n"...)
			continue
		}
		p := piece{
			lead: slices.Clone(append(lead, '$')), arg: t, keys: t.Count(form.Key), values: t.Count(form.Value), ns: t.Count(form.N), fields: t.Count(form.Field)+t.Count(form.Noted)+t.Count(form.Secret) > 0,
		}
		for _, part := range t {
			if part.Kind == form.Text {
				p.size += len(part.Text)
			}
			free = free || part.Kind == form.Key && values > 0
		}
		keys, values = keys+p.keys, values+p.values
		free = free || p.fields || p.ns > 0 || p.keys > 0 && p.values > 0
		a.pieces = append(a.pieces, p)
		lead = append(lead[:0], "\r\n"...)
	}
	a.tail = slices.Clone(lead)
	stored := 0
	if a.verb.Stores() {
		stored = 1
	}
	a.laid = !free && keys == 1 && values == stored
}

// append appends a request.
func (a *ask) append(dst []byte, req *driver.Request) []byte {
	if a.whole {
		return append(dst, req.Key...)
	}
	if req.Asking {
		dst = append(dst, asking...)
	}
	for i := range a.pieces {
		p := &a.pieces[i]
		dst = append(dst, p.lead...)
		if p.fields {
			dst = p.measured(dst, req)
			continue
		}
		dst = appendLength(dst, p.length(req))
		dst = p.arg.Append(dst, req, "")
	}
	return append(dst, a.tail...)
}

// length returns the length of a request's argument.
func (p *piece) length(req *driver.Request) int {
	n := p.size + p.keys*len(req.Key)
	if p.values > 0 {
		n += p.values * req.Value.Size
	}
	if p.ns > 0 {
		digits := 1
		for x := req.N; x >= 10; x /= 10 {
			digits++
		}
		n += p.ns * digits
	}
	return n
}

// measured appends an argument whose length is known only once it is generated.
func (p *piece) measured(dst []byte, req *driver.Request) []byte {
	at := len(dst)
	dst = p.arg.Append(dst, req, "")
	size := len(dst) - at
	head := lengthSize(size)
	for range head {
		dst = append(dst, 0)
	}
	copy(dst[at+head:], dst[at:at+size])
	appendLength(dst[:at], size)
	return dst
}

// offsets returns where key and value start in a request; −1 if requests also differ in other ways.
func (a *ask) offsets(req *driver.Request) (keyAt, valueAt int) {
	if !a.laid {
		return -1, 0
	}
	at := 0
	for i := range a.pieces {
		p := &a.pieces[i]
		at += len(p.lead) + lengthSize(p.length(req))
		for _, part := range p.arg {
			switch part.Kind {
			case form.Key:
				keyAt = at
				at += len(req.Key)
			case form.Value:
				valueAt = at
				at += req.Value.Size
			default:
				at += len(part.Text)
			}
		}
	}
	return keyAt, valueAt
}
