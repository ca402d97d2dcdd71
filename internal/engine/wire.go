package engine

import (
	"errors"
	"fmt"
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
	mostOverdue  = 10                    // timeouts that a reply with an id may stay away while others come
	spinBelow    = 20 * time.Microsecond // a wait shorter than this is spent looking: a sleeping thread wakes later
)

// wire moves requests over the sockets of a poller. Over epoll it is the event loop's transport, over pipes the blocking executor's.
type wire struct {
	l        *loop
	poll     sockets.Poller
	codec    *guarded       // of all connections, or what makes those of each
	shared   bool           // connections have no state, and replies come in order
	tags     bool           // replies come in any order
	replies  []driver.Reply // to the keys of a request that has several
	lane     *lane
	base     int32 // of its connections' tokens
	places   int   // endpoints that a session may have a connection to
	limit    int   // requests outstanding on a connection
	timeout  int64 // of a request
	conns    []*wireConn
	dirty    []*wireConn
	ready    []sockets.Readiness
	rbuf     []byte
	bufs     [][]byte // empty, for conns to write and to keep partial replies in
	kept     int      // bytes that they have room for
	partials *partials
	spares   [][]byte // empty, of these, for more of them
	spared   int      // bytes that they have room for
	reply    driver.Reply
	way      wireWay // of the step at hand
	bulk     bulkWay // likewise, if it is one; else nil
	answers  answers // scratch of it
	out      outlet
	writer   writer
	records  bool                   // what is written at once should not be longer than a TLS record
	recalled [driver.NumVerbs]int64 // requests of the step that were taken back before they left
	rand     *rand.Rand             // of back-off
	lost     []pending
	text     []byte // of why a connection is lost
	opening  bool
	waiting  []*wireConn // to be opened, while opening
	inMaking int
	up       int
	err      error           // what ended the opening
	ended    sockets.Traffic // counted on connections that are closed
	told     sockets.Traffic // counted up to the last call of traffic
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
	queue    queue           // requests whose replies are owed, in order
	fresh    int             // of its entries, the last ones are not written yet
	freed    int             // slots of ops that the read at hand has ended, and the feed does not know of yet
	out      []byte          // to be written, but for
	broken   error           // why it is to be lost instead of written to
	gone     int             // so many bytes at its front, which the socket has taken,
	lent     []lent          // and with these between
	in       []byte          // the beginning of a reply that is not complete,
	mapped   bool            // which is outside of the heap
	skipped  skipped         // the first reply owed, where nobody looks into it
	progress driver.Progress // in the beginning of a long reply; 0: in is none
	heard    int64           // when bytes last came

	behind   int // entries before the fresh ones that wait for the pipe to have room, and
	handed   int // those before these were handed to it; when they left is not known yet
	codec    *guarded
	lastID   uint32 // that a request had
	held     []byte // to be written once the connection is up, which it has never been
	cuts     []int  // of out, where another write begins; for pipes
	greets   int    // replies still owed to the greeting, of
	greetAll int
	since    int64 // when the attempt to connect began
	backoff  time.Duration
}

// newWire makes the connections of the loop's sessions, all down.
func newWire(la *lane, p sockets.Poller, codec driver.Codec) *wire {
	l := la.l
	w := &wire{
		l: l, poll: p, codec: newGuarded(codec, &l.hold), lane: la, places: la.side.places(), partials: new(partials),
		ready: make([]sockets.Readiness, readyBatch),
		rbuf:  make([]byte, readSize),
		rand:  rand.New(rand.NewPCG(uint64(l.index), 0)),
	}
	_, lends := p.(sockets.Gatherer)
	w.out, w.writer = newOutlet(w, p), newWriter(w.codec, lends)
	w.records = !w.out.prompt()
	_, stateful := codec.(driver.Stateful)
	_, w.tags = codec.(driver.Tagged)
	w.shared = !stateful && !w.tags
	for range l.sessions {
		for e := range w.places {
			w.conns = append(w.conns, &wireConn{index: int32(len(w.conns)), endpoint: e, fd: -1, codec: w.codec})
		}
	}
	return w
}

// session is whose connection it is.
func (w *wire) session(c *wireConn) *session { return w.l.sessions[int(c.index)/w.places] }

// token is what the poller knows a connection by.
func (w *wire) token(c *wireConn) int32 { return w.base + c.index }

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
	if w.lane.routes == nil || c.wasUp || c.backoff > 0 {
		return false
	}
	if c.state == isDown {
		w.dial(c)
	}
	return c.state != isDown
}

func (w *wire) wait(d time.Duration) bool {
	n, err := w.out.wait(d)
	if err != nil {
		panic(err) // the descriptor is this poller's own
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
	w.out.date(c)
	next := int64(never)
	for c.queue.dead < c.queue.len()-c.fresh {
		p := c.queue.at(c.queue.dead)
		if deadline := p.sent + w.timeout; deadline > now {
			next = deadline
			break
		}
		p.dead = true
		c.queue.dead++
		w.way.failed(c, p, op.RequestTimeout, now)
	}
	silent := max(c.heard, c.queue.at(0).sent) + 2*w.timeout
	if w.tags { // others' replies may come for ever
		silent = min(silent, c.queue.at(0).sent+mostOverdue*w.timeout)
	}
	if silent <= now {
		w.l.hold.release()
		if now < max(c.heard, c.queue.at(0).sent)+2*w.timeout {
			w.lose(c, fmt.Errorf("no reply to a request for %v, while others were answered", time.Duration(mostOverdue*w.timeout)))
			return never
		}
		w.lose(c, fmt.Errorf("silent for %v", time.Duration(2*w.timeout)))
		return never
	}
	return min(next, silent)
}

// traffic returns what the kernel has counted on the connections since the last call, and false where they are not this process' sockets.
func (w *wire) traffic() (since sockets.Traffic, known bool) {
	if !w.out.prompt() {
		return since, false
	}
	all := w.ended
	for _, c := range w.conns {
		all.Add(w.counted(c))
	}
	since = all.Since(w.told)
	w.told = all
	return since, true
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
			into[w.lane.row(c.endpoint)*driver.NumVerbs+int(p.verb)].InFlight += int64(p.n)
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
	if cap(b) <= keptBuffer && w.kept+cap(b) <= keptBytes {
		w.kept += cap(b)
		w.bufs = append(w.bufs, b[:0])
	}
}
