package engine

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	leastPartial = 2 * readSize // initial size of a buffer outside of the heap, in bytes
	sparePartial = 128 << 20    // bytes that replies may take there, beyond the need of the plan's values
)

// partials limits the memory of long incomplete replies over all connections of a phase, since a server could announce as long a reply on each as its
// protocol allows. The memory is outside of the heap, because the garbage collector is off while a load is measured. Any loop that is not held may
// call its methods.
type partials struct {
	expected int64        // bytes that the plan's values need
	taken    atomic.Int64 // bytes that replies take now
}

// take reserves more bytes for a reply, of which there bytes have been received so far.
func (p *partials) take(more, there int) error {
	most := p.expected + sparePartial
	if p.taken.Add(int64(more)) <= most {
		return nil
	}
	p.give(more)
	return fmt.Errorf("a reply is longer than %d KiB, and all incomplete replies would take more than %d MiB: use fewer sessions, or say in the dataset how long values are",
		there>>10, most>>20)
}

func (p *partials) give(n int) { p.taken.Add(int64(-n)) }

// makeRoom doubles the room of the connection's incomplete reply.
func (w *wire) makeRoom(c *wireConn) error {
	w.l.hold.release()
	size := max(2*cap(c.in), leastPartial)
	more := size
	if c.mapped {
		more -= cap(c.in)
	} else if n := len(w.spares) - 1; n >= 0 && cap(w.spares[n]) >= size {
		size = cap(w.spares[n])
		more = size
	}
	if err := w.partials.take(more, len(c.in)); err != nil {
		return err
	}
	if err := w.move(c, size); err != nil {
		w.partials.give(more)
		return fmt.Errorf("memory for a reply of more than %d bytes: %w", len(c.in), err)
	}
	return nil
}

// move moves the connection's incomplete reply to a buffer of size bytes outside of the heap.
func (w *wire) move(c *wireConn, size int) error {
	if c.mapped {
		grown, err := unix.Mremap(c.in[:cap(c.in)], size, unix.MREMAP_MAYMOVE)
		if err == nil {
			c.in = grown[:len(c.in)]
		}
		return err
	}
	room, err := w.mapping(size)
	if err != nil {
		return err
	}
	room = append(room, c.in...)
	w.recycle(c.in)
	c.in, c.mapped = room, true
	return nil
}

// mapping returns an empty buffer outside of the heap: the last spare one if it has that size, else a new one.
func (w *wire) mapping(size int) ([]byte, error) {
	if n := len(w.spares) - 1; n >= 0 && cap(w.spares[n]) == size {
		b := w.spares[n]
		w.spares = w.spares[:n]
		w.spared -= size
		return b, nil
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	return b[:0], err
}

// letGo gives back the memory of the connection's incomplete reply.
func (w *wire) letGo(c *wireConn) {
	switch size := cap(c.in); {
	case !c.mapped:
		w.recycle(c.in)
	case size <= keptBuffer && w.spared+size <= keptBytes:
		w.partials.give(size)
		w.spares = append(w.spares, c.in[:0])
		w.spared += size
	default:
		w.l.hold.release()
		w.partials.give(size)
		unmap(c.in)
	}
	c.in, c.mapped = nil, false
}

// unmapAll gives back all memory outside of the heap.
func (w *wire) unmapAll() {
	for _, c := range w.conns {
		if c.mapped {
			w.partials.give(cap(c.in))
			unmap(c.in)
			c.in, c.mapped = nil, false
		}
	}
	for _, b := range w.spares {
		unmap(b)
	}
	w.spares, w.spared = nil, 0
}

func unmap(b []byte) {
	if err := unix.Munmap(b[:cap(b)]); err != nil {
		panic("engine: give back memory of a reply: " + err.Error())
	}
}
