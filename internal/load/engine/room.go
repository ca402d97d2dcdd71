package engine

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	leastPartial = 256 << 10         // initial size of a buffer outside of the heap, in bytes
	sparePartial = plan.SpareReplies // bytes that replies may take there
	keptBuffer   = 4 << 20           // a buffer larger than this and twice the plan's largest value is given up after use,
	keptBytes    = 64 << 20          // as are more buffers than this, and than the plan's values need, in total
)

// partials limits the memory of long incomplete replies over all connections of a phase, since a server could announce as long a reply on each as its
// protocol allows. The memory is outside of the heap, because the garbage collector is off while a load is measured. Any loop that is not held may
// call its methods.
type partials struct {
	expected int64        // bytes that the plan's values need
	largest  int          // bytes of the plan's largest value
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

// usual is the largest buffer, in bytes, that is kept for further requests and replies.
func (p *partials) usual() int { return max(keptBuffer, 2*p.largest) }

// kept is how many bytes of buffers a loop keeps.
func (p *partials) kept() int { return int(max(keptBytes, p.expected)) }

func (p *partials) give(n int) { p.taken.Add(int64(-n)) }

// resized returns b in size bytes outside of the heap, where it is already if mapped.
func resized(b []byte, mapped bool, size int) ([]byte, error) {
	if mapped {
		grown, err := unix.Mremap(b[:cap(b)], size, unix.MREMAP_MAYMOVE)
		return grown[:min(len(b), len(grown))], err
	}
	grown, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	return append(grown[:0], b...), err
}

// room implements [driver.Room]. The goroutine of its client uses it.
type room struct {
	all *partials
	b   []byte // empty
}

func (r *room) Grow(b []byte, n int) ([]byte, error) {
	need, size := len(b)+n, max(2*cap(b), leastPartial)
	if need <= cap(r.b) {
		return r.b[:len(b)], nil
	}
	size = max(size, need)
	if err := r.all.take(size-cap(r.b), len(b)); err != nil {
		return nil, err
	}
	grown, err := resized(r.b[:len(b)], cap(r.b) > 0, size)
	if err != nil {
		r.all.give(size - cap(r.b))
		return nil, fmt.Errorf("memory for a reply of more than %d bytes: %w", len(b), err)
	}
	r.b = grown[:0]
	return grown, nil
}

// rest gives the memory back unless replies are likely to need as much again.
func (r *room) rest() {
	if cap(r.b) > r.all.usual() {
		r.close()
	}
}

// close gives the memory back.
func (r *room) close() {
	if cap(r.b) > 0 {
		r.all.give(cap(r.b))
		unmap(r.b)
		r.b = nil
	}
}

func unmap(b []byte) {
	if err := unix.Munmap(b[:cap(b)]); err != nil {
		panic("engine: give back memory of a reply: " + err.Error())
	}
}
