package engine

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	readSize     = 128 << 10             // bytes asked for in one read
	mostMoved    = 16 << 10              // bytes of a reply that is not complete which a read begins with anew; more stay in place
	firstBuffer  = 512                   // bytes of a buffer at first: at the start of a phase, every connection has one
	keptBuffer   = 4 << 20               // a larger buffer is left to the garbage collector after use,
	keptBytes    = 64 << 20              // as are those beyond so many bytes together
	maxOpening   = 128                   // connections that a loop has in the making at a time: below common listen backlogs
	firstBackoff = 10 * time.Millisecond // before the first attempt to reconnect
	lastBackoff  = time.Second           // and the longest
	readyBatch   = 256                   // sockets looked at in one turn
	spinBelow    = 20 * time.Microsecond // a wait shorter than this is spent looking: a sleeping thread wakes later
)

// wire moves requests over the sockets of a poller. Over epoll it is the event loop's transport, over pipes the blocking executor's.
type wire struct {
	l        *loop
	poll     sockets.Poller
	pipes    *sockets.Pipes   // the poller, if that is what it is; else nil
	gatherer sockets.Gatherer // likewise
	vector   [][]byte         // scratch of it
	codec    *guarded
	replies  []driver.Reply // to the keys of a request that has several
	group    *group
	places   int   // endpoints that a session may have a connection to
	limit    int   // requests outstanding on a connection
	timeout  int64 // of a request
	conns    []*wireConn
	dirty    []*wireConn
	ready    []sockets.Readiness
	rbuf     []byte
	bufs     [][]byte // empty, for conns to write and to keep partial replies in
	kept     int      // bytes that they have room for
	reply    driver.Reply
	direct   *direct // the loop's
	twin     twin
	rand     *rand.Rand // of back-off
	lost     []pending
	opening  bool
	waiting  []*wireConn // to be opened, while opening
	inMaking int
	up       int
	err      error           // what ended the opening
	ended    sockets.Traffic // counted on connections that are closed
	told     sockets.Traffic // counted up to the last call of traffic
	newest   int64           // latest arrival; of pipes
}

type connState uint8

const (
	isDown connState = iota
	isConnecting
	isGreeting
	isUp
)

// wireConn is one session's connection to one endpoint. What each read and write looks at stands together: between two of them the kernel has the
// caches.
type wireConn struct {
	index    int32
	state    connState
	blocked  bool // the socket takes no more for now
	dirty    bool // in wire.dirty
	wasUp    bool
	fd       int
	endpoint int
	queue    queue   // requests whose replies are owed, in order
	fresh    int     // of its entries, the last ones are not written yet
	freed    int     // slots of ops that the read at hand has ended, and the feed does not know of yet
	out      []byte  // to be written, but for
	broken   error   // why it is to be lost instead of written to
	gone     int     // so many bytes at its front, which the socket has taken,
	lent     []lent  // and with these between
	in       []byte  // the beginning of a reply that is not complete
	skipped  skipped // the first reply owed, where nobody looks into it
	heard    int64   // when bytes last came

	behind   int    // entries before the fresh ones that wait for the pipe to have room, and
	batch    int    // those before these were handed to it; when they left is not known yet
	held     []byte // to be written once the connection is up, which it has never been
	cuts     []int  // of out, where another write begins; for pipes
	greets   int    // replies still owed to the greeting, of
	greetAll int
	since    int64 // when the attempt to connect began
	backoff  time.Duration
}

// newWire makes the connections of the loop's sessions, all down.
func newWire(l *loop, p sockets.Poller, codec driver.Codec, g *group) *wire {
	w := &wire{
		l: l, poll: p, codec: newGuarded(codec, &l.hold), group: g, places: g.places(),
		ready: make([]sockets.Readiness, readyBatch),
		rbuf:  make([]byte, readSize),
		rand:  rand.New(rand.NewPCG(uint64(l.index), 0)),
	}
	w.pipes, _ = p.(*sockets.Pipes)
	w.gatherer, _ = p.(sockets.Gatherer)
	w.twin = newTwin(w.codec)
	for range l.sessions {
		for e := range w.places {
			w.conns = append(w.conns, &wireConn{index: int32(len(w.conns)), endpoint: e, fd: -1})
		}
	}
	return w
}

func (w *wire) send(s *session, st *opState, req *driver.Request) bool {
	c := w.conn(s, req.Endpoint)
	if w.room(c) == 0 {
		return false
	}
	to := &c.held
	if c.state == isUp {
		w.touch(c)
		to = &c.out
	} else if c.held == nil {
		c.held = w.buffer()
	}
	if st != w.l.starting { // what a program asks for later need not be what it asked for first
		w.twin.forget()
	}
	at := len(*to)
	if len(req.Batch) > 0 {
		*to = w.codec.batch(*to, req.Verb, req.Batch)
	} else {
		*to = w.twin.append(*to, req)
	}
	w.taint(c)
	if w.pipes != nil && c.state == isUp {
		c.cut(at)
	}
	w.l.rec.AddBytes(req.Verb, 0, len(*to)-at)
	c.queue.push(pending{st: st, n: 1, keys: int16(len(req.Batch)), verb: req.Verb, asking: req.Asking})
	c.fresh++
	return true
}

// taint has the connection that a request was to be gathered for lost, with the next flush, if the codec panicked.
func (w *wire) taint(c *wireConn) {
	if w.codec.fault != nil {
		c.broken = w.codec.took()
	}
}

func (w *wire) conn(s *session, endpoint int) *wireConn {
	return w.conns[s.index*w.places+endpoint]
}

// room returns how many more requests a connection can have.
func (w *wire) room(c *wireConn) int {
	if c.state != isUp && !w.coming(c) {
		return 0
	}
	return max(0, w.limit-c.queue.owed)
}

// coming says whether a connection that is not up is being made for the first time, so that what is for it may wait. One to a node of a
// cluster that had no slots so far begins to be made now.
func (w *wire) coming(c *wireConn) bool {
	if w.l.routes == nil || c.wasUp || c.backoff > 0 {
		return false
	}
	if c.state == isDown {
		w.dial(c)
	}
	return c.state != isDown
}

// touch has a connection among those that are written to, with a buffer for it.
func (w *wire) touch(c *wireConn) {
	if !c.dirty {
		c.dirty = true
		w.dirty = append(w.dirty, c)
		if c.out == nil {
			c.out = w.buffer()
		}
	}
}

func (w *wire) flush() {
	if len(w.dirty) == 0 {
		return
	}
	now := w.l.clock.now()
	if w.l.expired(now) {
		return
	}
	for i := 0; i < len(w.dirty); i++ { // a write that fails can make others dirty
		c := w.dirty[i]
		c.dirty = false
		if c.broken != nil {
			w.lose(c, c.broken)
			continue
		}
		if w.pipes != nil {
			c.behind += c.fresh
		}
		c.stamp(now)
		if c.state == isUp && !c.blocked {
			w.write(c)
		}
	}
	w.dirty = w.dirty[:0]
}

// recall takes back what was gathered or handed over and has not left. Its ops stay in flight: nobody awaits them.
func (w *wire) recall() {
	w.twin.forget()
	for _, c := range w.conns {
		back := c.behind + c.fresh
		if c.batch > 0 && w.pipes.Withdraw(c.fd) {
			back += c.batch
		}
		for ; back > 0 && c.queue.len() > c.queue.dead; back-- {
			p := c.queue.drop()
			ledger := w.l.requests(c.endpoint, p.verb)
			ledger.Sent -= uint64(p.n)
			ledger.Refused += uint64(p.n)
			if p.st == nil && p.volley == nil {
				w.direct.left[p.verb] += int64(p.n)
			}
		}
		c.batch, c.behind, c.fresh, c.dirty = 0, 0, 0, false
	}
	w.dirty = w.dirty[:0]
}

// stamp sets the start of what is about to be written.
func (c *wireConn) stamp(now int64) {
	for ; c.fresh > 0; c.fresh-- {
		p := c.queue.at(c.queue.len() - c.fresh)
		p.sent = now
		switch {
		case p.st != nil && p.st.start == 0:
			p.st.start = now
		case p.volley != nil && p.volley.start == 0:
			p.volley.start = now
		}
	}
}

// write sends what the socket takes.
func (w *wire) write(c *wireConn) {
	w.twin.forget()
	for {
		n, whole, err := w.pass(c)
		if err != nil && err != sockets.ErrAgain {
			w.l.hold.release() // wording takes what loops share
			w.lose(c, fmt.Errorf("write: %w", err))
			return
		}
		c.leave(n)
		if c.gone == len(c.out) && len(c.lent) == 0 {
			break
		}
		c.compact()
		if whole {
			continue
		}
		if !c.blocked {
			w.block(c, true)
		}
		return
	}
	w.recycle(c.out)
	c.out, c.gone = nil, 0
	if c.blocked {
		w.block(c, false)
	}
}

func (w *wire) block(c *wireConn, blocked bool) {
	c.blocked = blocked
	if err := w.poll.Watch(c.fd, c.index, blocked); err != nil {
		w.lose(c, err)
	}
}

func (w *wire) wait(d time.Duration) bool {
	if d < spinBelow && w.pipes == nil {
		d = 0
	}
	n, err := w.poll.Wait(w.ready, d)
	if err != nil {
		panic(err) // the descriptor is this poller's own
	}
	if w.pipes != nil && w.pipes.Lapsed() {
		w.l.lapsed = true
	}
	w.handleAll(w.ready[:n])
	return n > 0
}

// handleAll handles what has happened to connections. What comes of it leaves at once, but not before all that has happened to the same session:
// ops that replies of several servers have made room for share writes.
func (w *wire) handleAll(ready []sockets.Readiness) {
	if w.places > 1 {
		slices.SortFunc(ready, func(a, b sockets.Readiness) int { return int(a.Token) - int(b.Token) })
	}
	for i, r := range ready {
		w.handle(w.conns[r.Token], r)
		if i+1 == len(ready) || int(ready[i+1].Token)/w.places != int(r.Token)/w.places {
			w.flush()
		}
	}
}

func (w *wire) handle(c *wireConn, r sockets.Readiness) {
	switch c.state {
	case isDown: // lost earlier in this turn
	case isConnecting:
		if !w.l.expired(w.l.clock.now()) { // making it greets
			w.connected(c)
		}
	default:
		if r.Write && c.blocked {
			w.flush() // what was gathered in this turn gets its time before it leaves
			if !w.l.expired(w.l.clock.now()) {
				w.write(c)
			}
		}
		for more := r.Read; more && c.state >= isGreeting; {
			more = w.read(c, r.Ended)
		}
	}
}

// read takes one read's bytes and answers what is complete in them. It reports whether there may be more: the buffer was filled, or the
// stream has ended and the end has not been read yet.
func (w *wire) read(c *wireConn, ended bool) (more bool) {
	kept := len(c.in)
	room := w.rbuf
	switch {
	case kept > mostMoved: // what would be moved with every read grows where it is
		if cap(c.in)-kept < readSize {
			c.in = append(make([]byte, 0, max(2*cap(c.in), 2*readSize)), c.in...)
		}
		room = c.in[:cap(c.in)]
	case kept > 0:
		copy(room, c.in)
	}
	n, err := w.poll.Read(c.fd, room[kept:])
	switch {
	case err == sockets.ErrAgain:
		return false
	case err != nil:
		w.l.hold.release()
		w.lose(c, fmt.Errorf("read: %w", err))
		return false
	case n == 0:
		w.lose(c, io.EOF)
		return false
	}
	now := w.arrival(c)
	if !w.l.lapsed { // what has not left is taken back before it is handed over
		w.l.seal(now)
	}
	c.heard = now
	rest, err := w.parse(c, room[:kept+n], now)
	if err == nil {
		err = w.codec.took()
	}
	if c.freed > 0 {
		w.direct.freed(c, now)
	}
	if err != nil {
		w.lose(c, err)
		return false
	}
	w.keep(c, rest)
	return kept+n == len(room) || ended
}

// parse answers the replies that b begins with and returns what is left.
func (w *wire) parse(c *wireConn, b []byte, now int64) ([]byte, error) {
	for c.state == isGreeting && len(b) > 0 {
		n, err := w.codec.parseGreeting(b, c.greetAll-c.greets)
		if err != nil || n == 0 {
			return b, err
		}
		b = b[n:]
		if c.greets--; c.greets == 0 {
			w.raise(c)
		}
	}
	for len(b) > 0 {
		if c.queue.len() == c.unwritten() {
			n, err := w.unasked(b)
			if err != nil || n == 0 {
				return b, err
			}
			b = b[n:]
			continue
		}
		if c.skipped.size > 0 {
			n, whole, err := w.skip(c, b, now)
			b = b[n:]
			if err != nil || !whole {
				return b, err
			}
			continue
		}
		if p := c.queue.at(0); p.st == nil && !p.dead {
			n, whole, err := w.direct.answered(c, p, b, now)
			b = b[n:]
			if err != nil || !whole {
				return b, err
			}
			continue
		}
		if p := c.queue.at(0); p.asking {
			n, err := w.codec.parseAsking(b)
			if err != nil || n == 0 {
				return b, err
			}
			p.asking = false
			w.l.rec.AddBytes(p.verb, n, 0)
			b = b[n:]
			continue
		}
		p := *c.queue.at(0)
		n, err := w.parseOne(b, &p)
		if err != nil || n == 0 {
			return b, err
		}
		b = b[n:]
		c.queue.take(1)
		if p.dead {
			w.l.rec.LateReplies++
			continue
		}
		if p.keys > 0 {
			w.l.answeredBatch(p.st, c.endpoint, w.replies[:p.keys], n, now)
		} else {
			w.l.answered(p.st, c.endpoint, &w.reply, n, now)
		}
	}
	return b, nil
}

// parseOne reads the reply to a request into w.reply, or of one with several keys into w.replies.
func (w *wire) parseOne(b []byte, p *pending) (int, error) {
	if p.keys == 0 {
		return w.codec.parse(b, p.verb, &w.reply)
	}
	if len(w.replies) < int(p.keys) {
		w.replies = make([]driver.Reply, p.keys)
	}
	return w.codec.parseBatch(b, p.verb, w.replies[:p.keys])
}

// unasked takes what came where nothing was asked.
func (w *wire) unasked(b []byte) (int, error) {
	if w.codec.asider != nil {
		if n, err := w.codec.aside(b); err == nil {
			return n, nil
		}
	}
	w.l.hold.release()
	return 0, fmt.Errorf("%w: %q", errUnasked, b[:min(len(b), 40)])
}

var errUnasked = errors.New("a reply to nothing that was asked")

// keep saves the beginning of a reply for the next read.
func (w *wire) keep(c *wireConn, rest []byte) {
	switch {
	case len(rest) == 0:
		if c.in != nil {
			w.recycle(c.in)
			c.in = nil
		}
	case c.in == nil:
		c.in = append(w.buffer(), rest...)
	default:
		c.in = append(c.in[:0], rest...)
	}
}

// sweep times out the requests that have waited for too long, and reopens connections on which nothing moves.
func (w *wire) sweep(now int64) int64 {
	next := now + w.timeout
	for _, c := range w.conns {
		switch {
		case c.state == isConnecting || c.state == isGreeting:
			limit := c.since + max(w.timeout, int64(lastBackoff))
			if now >= limit {
				w.lose(c, errors.New("connect: no answer"))
				continue
			}
			next = min(next, limit)
		case c.queue.len() > c.fresh:
			next = min(next, w.expire(c, now))
		}
	}
	return next
}

// expire times out the connection's overdue requests and returns when to look again.
func (w *wire) expire(c *wireConn, now int64) int64 {
	w.date(c)
	next := int64(never)
	for c.queue.dead < c.queue.len()-c.fresh {
		p := c.queue.at(c.queue.dead)
		if deadline := p.sent + w.timeout; deadline > now {
			next = deadline
			break
		}
		p.dead = true
		c.queue.dead++
		w.failed(c, *p, op.RequestTimeout, now)
	}
	silent := max(c.heard, c.queue.at(0).sent) + 2*w.timeout
	if silent <= now {
		w.l.hold.release()
		w.lose(c, fmt.Errorf("silent for %v", time.Duration(2*w.timeout)))
		return never
	}
	return min(next, silent)
}

// failed ends requests that are not in the queue any more, or dead.
func (w *wire) failed(c *wireConn, p pending, kind op.EventKind, now int64) {
	if p.st == nil {
		w.direct.failed(c, p, kind, now)
		return
	}
	w.l.failed(p.st, c.endpoint, kind, int(p.keys), now)
}

// traffic returns what the kernel has counted on the connections since the last call.
func (w *wire) traffic() sockets.Traffic {
	all := w.ended
	for _, c := range w.conns {
		all.Add(w.counted(c))
	}
	since := sockets.Traffic{
		BytesSent:          all.BytesSent - w.told.BytesSent,
		BytesRetransmitted: all.BytesRetransmitted - w.told.BytesRetransmitted,
		Retransmits:        all.Retransmits - w.told.Retransmits,
	}
	w.told = all
	return since
}

// counted is what the kernel has counted on a connection in its life.
func (w *wire) counted(c *wireConn) sockets.Traffic {
	if p, ok := w.poll.(interface{ Traffic(fd int) sockets.Traffic }); ok && c.fd >= 0 {
		return p.Traffic(c.fd)
	}
	return sockets.Traffic{}
}

func (w *wire) outstanding(into []measure.Requests) {
	for _, c := range w.conns {
		for i := c.queue.dead; i < c.queue.len(); i++ {
			p := c.queue.at(i)
			into[w.l.row(c.endpoint)*driver.NumVerbs+int(p.verb)].InFlight += int64(p.n)
		}
	}
}

func (w *wire) buffer() []byte {
	if n := len(w.bufs); n > 0 {
		b := w.bufs[n-1]
		w.bufs = w.bufs[:n-1]
		w.kept -= cap(b)
		return b
	}
	return make([]byte, 0, firstBuffer)
}

func (w *wire) recycle(b []byte) {
	w.twin.forget()
	if cap(b) <= keptBuffer && w.kept+cap(b) <= keptBytes {
		w.kept += cap(b)
		w.bufs = append(w.bufs, b[:0])
	}
}
