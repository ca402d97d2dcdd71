package engine

import "fmt"

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
		grown, err := resized(c.in, true, size)
		if err == nil {
			c.in = grown
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
	return resized(nil, false, size)
}

// letGo gives back the memory of the connection's incomplete reply.
func (w *wire) letGo(c *wireConn) {
	switch size := cap(c.in); {
	case !c.mapped:
		w.recycle(c.in)
	case size <= w.partials.usual() && w.spared+size <= w.partials.kept():
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
