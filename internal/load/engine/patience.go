package engine

import (
	"context"
	"io"
)

// A file system may answer late, or never: its server has gone, or a process in user space serves it. A call into it cannot be cancelled, but its
// caller can go on.

// awaited returns what call returns, or ctx's cause if that ends first. The call then runs on by itself, and late, if not nil, gets what it still
// returns.
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
		go func() { // ends with the call, or with the process
			if a := <-answered; a.err == nil {
				late(a.value)
			}
		}()
	}
	var none T
	return none, context.Cause(ctx)
}

// readAtOnce is how many bytes of a file one call reads.
const readAtOnce = 64 << 10

// patient reads a file until a context ends, even if a read of it does not return.
type patient struct {
	ctx  context.Context
	from io.ReadSeekCloser
	room []byte // the buffer of reads; once ctx has ended, an abandoned read may still write there, and nobody looks
	have []byte // what was read into room and not passed on
	err  error  // returned once have is used up
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
	n, err := awaited(p.ctx, func() (int, error) { return p.from.Read(p.room) }, nil)
	if p.err = err; p.ctx.Err() == nil { // else an abandoned read may still be running
		p.have = p.room[:n]
	}
}

// Seek moves to another offset of the file.
func (p *patient) Seek(offset int64, whence int) (int64, error) {
	p.have, p.err = nil, nil
	return p.from.Seek(offset, whence)
}

// Close closes the file. The kernel does so once no read is under way any more.
func (p *patient) Close() error { return p.from.Close() }
