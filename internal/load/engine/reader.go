package engine

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/pkg/driver"
)

// read makes one read and handles the complete replies. It reports whether there may be more to read: the buffer was filled, or the stream has ended
// and the end has not been read yet.
func (w *wire) read(c *wireConn, ended bool) (more bool) {
	kept := len(c.in)
	room := w.rbuf
	switch {
	case kept > mostMoved: // too much to move before every read: it grows in place
		if cap(c.in)-kept < readSize {
			if err := w.makeRoom(c); err != nil {
				w.lose(c, err)
				return false
			}
		}
		room = c.in[:cap(c.in)]
	case kept > 0:
		copy(room, c.in)
	}
	n, err := w.poll.Read(c.fd, room[kept:])
	switch {
	case err == sockets.ErrAgain:
		return false
	case (err != nil || n == 0) && w.rests && w.mayRest(c):
		w.l.hold.release()
		w.rest(c)
		return false
	case err != nil:
		w.l.hold.release()
		w.lose(c, fmt.Errorf("read: %w", err))
		return false
	case n == 0:
		w.lose(c, io.EOF)
		return false
	}
	now := w.out.arrival(c)
	if !w.l.lapsed { // once lapsed, requests that have not left must be taken back before the interval is sealed
		w.l.seal(now)
	}
	c.heard = now
	rest, err := w.parse(c, room[:kept+n], now)
	if n := c.freed; n > 0 {
		c.freed = 0
		w.l.feed.freed(w.session(c), n, now, false)
	}
	w.keep(c, rest)
	if err == nil && c.codec.owing != nil {
		err = w.settle(c)
	}
	switch {
	case err == nil && c.due && w.mayPart(c):
		w.part(c, now)
	case err == nil:
	case err == driver.ErrIdle && w.mayRest(c):
		w.l.hold.release()
		w.rest(c)
		return false
	default:
		w.lose(c, err)
		return false
	}
	return kept+n == len(room) || ended
}

// settle sends what is owed on a connection, or makes it again if its server has taken leave.
func (w *wire) settle(c *wireConn) error {
	owed, left, err := c.codec.owed(w.owed[:0])
	switch w.owed = owed; {
	case left && w.opening:
		err = errors.New("the server takes leave at once")
	case left:
		w.l.hold.release()
		w.rest(c)
		if c.wasUp = true; c.queue.len() > 0 && c.state == isDown {
			w.dial(c)
		}
	case len(owed) > 0:
		w.touch(c)
		c.out = append(c.out, owed...)
	}
	return err
}

// mayRest reports whether a connection may rest: nothing is owed on it.
func (w *wire) mayRest(c *wireConn) bool { return w.alone && c.state == isUp && c.queue.len() == 0 }

// parse handles the complete replies at the front of b and returns the rest.
func (w *wire) parse(c *wireConn, b []byte, now int64) ([]byte, error) {
	if c.state == isParting {
		return nil, nil
	}
	for c.state == isGreeting && len(b) > 0 {
		n, err := c.codec.parseGreeting(b, c.greetAll-c.greets)
		if err != nil || n == 0 {
			return b, err
		}
		b = b[n:]
		if c.greets--; c.greets == 0 {
			w.raise(c)
		}
	}
	if c.progress.At > 0 {
		if whole, err := w.resume(c, b); err != nil || !whole {
			return b, err
		}
	}
	for alone := c.queue.len() == c.unwritten(); len(b) > 0; {
		misplaced := w.l.rec.Misplaced
		n, whole, err := w.take(c, b, now)
		b = b[n:]
		if err != nil && errors.Is(err, driver.ErrUnasked) {
			w.l.unasked.Count(alone)
		}
		if err == nil && w.l.rec.Misplaced != misplaced {
			err = errMisled
		}
		if err == nil && !whole && len(b) > mostMoved {
			_, err = w.resume(c, b)
		}
		if err != nil || !whole {
			return b, err
		}
	}
	return b, nil
}

// resume continues the scan of a long reply, if the codec can go on where it stopped. It reports whether the reply may be complete.
func (w *wire) resume(c *wireConn, b []byte) (whole bool, err error) {
	if c.codec.resumer == nil {
		return true, nil
	}
	whole, err = c.codec.resume(b, &c.progress)
	if whole {
		c.progress = driver.Progress{}
	}
	return whole, err
}

// take handles what is at the front of b: replies to the first requests in the queue, or an unsolicited message. It returns how many bytes it took,
// and whether there may be more to take.
func (w *wire) take(c *wireConn, b []byte, now int64) (n int, whole bool, err error) {
	switch {
	case c.queue.len() == c.unwritten():
		n, err = w.unasked(c, b)
		return n, n > 0, err
	case c.skipped.size > 0:
		return w.skip(c, b, now)
	case w.tags:
		return w.tagged(c, b, now)
	case c.queue.at(0).dead:
		return w.late(c, b)
	}
	return w.way.answered(c, b, now)
}

// tagged handles a reply with an id, which may be to any of the requests that have left.
func (w *wire) tagged(c *wireConn, b []byte, now int64) (n int, whole bool, err error) {
	id, ok, err := c.codec.tag(b)
	if err != nil || !ok {
		return 0, false, err
	}
	q := &c.queue
	at, sent := 0, q.len()-c.unwritten()
	for at < sent && q.at(at).id != id {
		at++
	}
	if at == sent {
		n, err := w.unasked(c, b)
		if err != nil {
			w.l.hold.release()
			if id > 0 {
				err = fmt.Errorf("id %d: %w", id, err)
			}
		}
		return n, n > 0, err
	}
	dead := q.dead
	if q.front(at); !q.at(0).dead && dead > 0 {
		q.dead++ // the dead ones are now behind it, and stay
	}
	if q.at(0).dead {
		n, whole, err = w.late(c, b)
	} else {
		n, whole, err = w.way.answered(c, b, now)
	}
	if n == 0 { // the reply is incomplete, or it is none
		q.back(at)
		q.dead = dead
	}
	return n, whole, err
}

// late handles the reply to a request that has timed out.
func (w *wire) late(c *wireConn, b []byte) (n int, whole bool, err error) {
	p := c.queue.at(0)
	if p.asking {
		return w.announced(c, b)
	}
	if n, err = w.parseOne(c, b); err != nil || n == 0 {
		return 0, false, err
	}
	c.queue.take(1)
	w.l.rec.LateReplies++
	return n, true, nil
}

// announced handles the reply to a request's announcement.
func (w *wire) announced(c *wireConn, b []byte) (n int, whole bool, err error) {
	p := c.queue.at(0)
	if n, err = c.codec.parseAsking(b); err != nil || n == 0 {
		return 0, false, err
	}
	p.asking = false
	w.l.rec.AddBytes(p.verb, n, 0)
	return n, true, nil
}

// parseOne reads the reply to the first request in the queue into w.reply, or into w.replies if the request has several keys.
func (w *wire) parseOne(c *wireConn, b []byte) (int, error) {
	p := c.queue.at(0)
	if p.keys == 0 {
		return c.codec.parse(b, p.verb, &w.reply)
	}
	if len(w.replies) < int(p.keys) {
		w.replies = make([]driver.Reply, p.keys)
	}
	return c.codec.parseBatch(b, p.verb, w.replies[:p.keys])
}

// unasked handles an unsolicited message. If the codec knows such messages, its error says what this one is.
func (w *wire) unasked(c *wireConn, b []byte) (int, error) {
	if c.codec.asider != nil {
		if n, err := c.codec.aside(b); err != driver.ErrUnasked {
			return n, err
		}
	}
	w.l.hold.release()
	return 0, fmt.Errorf("%w: %q", driver.ErrUnasked, legible(b))
}

// legible returns the printable characters at the front of b, without what stands between them; b itself if there are none.
func legible(b []byte) string {
	front := string(b[:min(len(b), 80)])
	shown := strings.FieldsFunc(front, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) })
	return cmp.Or(strings.Join(shown, " "), front)
}

// keep saves an incomplete reply for the next read.
func (w *wire) keep(c *wireConn, rest []byte) {
	switch {
	case len(rest) == 0:
		if c.in != nil {
			w.letGo(c)
		}
	case c.in == nil:
		c.in = append(w.buffer(), rest...)
	case &c.in[:1][0] == &rest[0]: // it was read into in, where it stays
		c.in = rest
	default:
		c.in = append(c.in[:0], rest...)
	}
}
