package engine

import (
	"context"
	"io"
)

// A file system may answer late, or never: a server of it has gone, or a process in user space serves it. A call into it cannot be called off, but
// who waits for it can go on.

// awaited returns what call returns, or ctx's cause when that ends before. Then call is left to itself, and what it
// still returns goes to late, which may be nil.
func awaited[T any](ctx context.Context, call func() (T, error), late func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() { // ends with the call, or with the process
		value, err := call()
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
	}
	if late != nil {
		go func() { // likewise
			if a := <-answered; a.err == nil {
				late(a.value)
			}
		}()
	}
	var none T
	return none, context.Cause(ctx)
}

// readAtOnce is how much of a file is read with one call.
const readAtOnce = 64 << 10

// patient reads a file until a context ends, although a read of it does not.
type patient struct {
	ctx  context.Context
	from io.ReadSeekCloser
	room []byte // that reads go to; nil while one is left to itself
	have []byte // of it: what was read and not passed on
	err  error  // behind that
}

func newPatient(ctx context.Context, from io.ReadSeekCloser) *patient {
	return &patient{ctx: ctx, from: from, room: make([]byte, readAtOnce)}
}

func (p *patient) Read(to []byte) (int, error) {
	if err := context.Cause(p.ctx); err != nil {
		return 0, err
	}
	if len(p.have) == 0 && p.err == nil {
		p.fill()
	}
	n := copy(to, p.have)
	if p.have = p.have[n:]; n == 0 {
		return 0, p.err
	}
	return n, nil
}

// fill reads once.
func (p *patient) fill() {
	room := p.room
	p.room = nil // while a read may write there
	n, err := awaited(p.ctx, func() (int, error) { return p.from.Read(room) }, nil)
	if p.err = err; p.ctx.Err() == nil { // so the read is over
		p.room, p.have = room, room[:n]
	}
}

// Seek goes to another place of the file.
func (p *patient) Seek(offset int64, whence int) (int64, error) {
	p.have, p.err = nil, nil
	return p.from.Seek(offset, whence)
}

// Close closes the file. The kernel does so once no read is under way any more.
func (p *patient) Close() error { return p.from.Close() }
