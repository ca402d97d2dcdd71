package engine

import (
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
)

// replyEnd is the end of every skipped reply.
const replyEnd = "\r\n"

// skipped is a reply of known length whose value is not looked at: its bytes are counted as they come and not kept.
type skipped struct {
	size int // size of the whole reply; 0 if none is skipped
	left int // bytes to come before its end
}

// outline begins to skip a reply of a size, of which there bytes have been received; it does nothing if size is 0. It returns how many of the
// received bytes are done with.
func (c *wireConn) outline(size, there int) int {
	if size == 0 {
		return 0
	}
	value := size - len(replyEnd)
	took := min(value, there)
	c.skipped = skipped{size: size, left: value - took}
	return took
}

// skip takes the bytes of the skipped reply from b, and settles the reply once it is complete. It returns how many bytes it took and whether the
// reply is complete.
func (w *wire) skip(c *wireConn, b []byte, now int64) (took int, whole bool, err error) {
	s := &c.skipped
	took = min(s.left, len(b))
	s.left -= took
	end := b[took:]
	if len(end) < len(replyEnd) {
		return took, false, nil
	}
	if end = end[:len(replyEnd)]; string(end) != replyEnd {
		w.l.hold.release()
		return took, false, fmt.Errorf("reply of %d bytes goes on after its end: got %q", s.size, end)
	}
	if c.queue.at(0).dead {
		c.queue.take(1)
		w.l.rec.LateReplies++
	} else {
		w.answers.begin()
		w.answers.add(driver.OK, 1)
		w.answers.bytes = s.size
		w.bulk.settle(c, &w.answers, now)
	}
	s.size = 0
	return took + len(replyEnd), true, nil
}
