package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	readSize    = 128 << 10             // the most bytes of one read
	mostMoved   = 16 << 10              // the most bytes of an incomplete reply that are moved before each read; a longer one stays in place
	firstBuffer = 512                   // initial size of a buffer: every connection has one at the start of a phase
	maxOpening  = 128                   // connections that a loop opens at a time; common listen backlogs are longer
	readyBatch  = 256                   // sockets handled in one turn
	mostOverdue = 10                    // how many timeouts a reply with an id may be late while others come
	spinBelow   = 20 * time.Microsecond // a shorter wait polls: a sleeping thread wakes later
)

// wire is the transport over the sockets of a poller: over epoll for the event loop executor, over pipes for the blocking one.
type wire struct {
	l        *loop
	poll     sockets.Poller
	codec    *guarded       // the codec of all connections, or the one that makes each connection's own
	shared   bool           // codecs keep no connection state, and replies come in order
	tags     bool           // replies come in any order
	alone    bool           // its target is no cluster
	rests    bool           // an idle connection that is closed stays down until it is needed
	replies  []driver.Reply // the replies to a request with several keys
	lane     *lane
	base     int32 // the token of this wire's first connection
	places   int   // endpoints that a session may have a connection to
	idle     int64 // how long a connection may idle before it is closed, in nanoseconds; 0 for ever
	limit    int   // the most requests outstanding on a connection
	timeout  int64 // of a request, in nanoseconds
	conns    []*wireConn
	probing  []probing // by endpoint
	dirty    []*wireConn
	ready    []sockets.Readiness
	rbuf     []byte
	bufs     [][]byte // empty buffers, for output and partial replies of conns
	kept     int      // their total capacity in bytes
	partials *partials
	spares   [][]byte // empty mappings outside of the heap, for long replies
	spared   int      // their total capacity in bytes
	reply    driver.Reply
	way      wireWay // of the current step
	bulk     bulkWay // way, if it is a bulkWay; else nil
	answers  answers // scratch of bulk
	out      outlet
	writer   writer
	records  bool                   // a single write should fit in a TLS record
	recalled [driver.NumVerbs]int64 // requests of this step that were taken back before they left
	rand     *rand.Rand             // for back-off
	asking   sync.WaitGroup         // goroutines that ask servers to give up
	lost     []pending
	text     []byte // why a connection is lost
	owed     []byte // scratch
	opening  bool
	waiting  []*wireConn // connections still to be opened, while opening
	inMaking int
	up       int
	err      error           // what ended the opening
	ended    sockets.Traffic // traffic of connections that are closed
	told     sockets.Traffic // traffic up to the last call of traffic
}

type connState uint8

const (
	isDown connState = iota
	isConnecting
	isGreeting
	isUp
	isParting // goodbye was said, and the server is to close it
)

// wireConn is one session's connection to one endpoint. The fields that each read and write use stand together, since system calls in between evict
// them from the processor's caches.
type wireConn struct {
	index    int32
	state    connState
	blocked  bool // the socket takes no more for now
	dirty    bool // in wire.dirty
	wasUp    bool
	rests    bool // it was up and idle when the server closed it
	fd       int
	endpoint int
	queue    queue           // requests whose replies are owed, in order
	fresh    int             // how many of the last entries in queue are not written yet
	freed    int             // slots of ops ended by the current read, not yet reported to the feed
	out      []byte          // to be written
	givenUp  *givenUp        // its server owes answers for too long; else nil
	broken   error           // why the next flush loses the connection instead of writing; else nil
	gone     int             // bytes at the front of out that the socket has taken
	lent     []lent          // pieces to write between the bytes of out
	in       []byte          // the beginning of an incomplete reply
	mapped   bool            // in is outside of the heap
	skipped  skipped         // the first reply owed, if it is skipped
	progress driver.Progress // how far codec.resume has scanned in; zero if it was not used
	heard    int64           // when bytes last came

	behind   int // entries before the fresh ones that wait for room in the pipe
	handed   int // entries before those that were handed to the pipe, and whose start is not known yet
	codec    *guarded
	lastID   uint32 // the id of the last request
	held     []byte // to be written once the connection is up
	aside    bool   // out and held are exchanged until the next flush
	cuts     []int  // offsets in out where another write begins; for pipes
	greets   int    // replies still owed to the greeting
	greetAll int
	since    int64 // when the attempt to connect began, or goodbye was said
	link     link

	steps sockets.Steps // of the attempt to connect
	used  int64         // requests since it was last closed, if their number matters
	until int64         // when it is due; 0 for never
	due   bool          // it is to be renewed: no more requests
	later []heldRequest // requests that wait until it was
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
	w.probing = make([]probing, w.places)
	w.shared = !stateful && !w.tags
	for _, s := range l.sessions {
		for e := range w.places {
			c := &wireConn{index: int32(len(w.conns)), endpoint: e, fd: -1, codec: w.codec}
			c.link = link{session: s, row: la.row(e)}
			w.conns = append(w.conns, c)
		}
	}
	return w
}

// session returns the session whose connection c is.
func (w *wire) session(c *wireConn) *session { return w.l.sessions[int(c.index)/w.places] }

// token returns the token by which the poller knows a connection.
func (w *wire) token(c *wireConn) int32 { return w.base + c.index }

func (w *wire) conn(s *session, endpoint int) *wireConn {
	return w.conns[s.index*w.places+endpoint]
}

// room returns how many more requests a connection can take.
func (w *wire) room(c *wireConn) int {
	if c.state != isUp && !w.coming(c) {
		return 0
	}
	return max(0, w.limit-c.queue.owed)
}

// coming reports whether a connection that is not up is being made for the first time, or again after a rest, so that requests may wait for it. It
// dials a connection that rests, or that goes to a cluster node without slots so far.
func (w *wire) coming(c *wireConn) bool {
	if !c.rests && (w.lane.routes == nil || c.wasUp) || c.link.gone > 0 {
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

// handleAll handles events of connections. Resulting requests leave at once, but only after all events of the same session, so that ops to which
// several servers' replies gave room share writes.
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
		if !w.l.expired(w.l.clock.now()) { // connected sends the greeting
			w.connected(c)
		}
	default:
		if r.Write && c.blocked {
			w.flush() // gives the requests gathered in this turn their timestamp
			if !w.l.expired(w.l.clock.now()) {
				w.write(c)
			}
		}
		for more := r.Read; more && c.state >= isGreeting; {
			more = w.read(c, r.Ended)
		}
	}
}

// sweep times out requests that have waited too long, closes connections that idle too long, and reopens those on which nothing moves.
func (w *wire) sweep(now int64) int64 {
	next := now + w.timeout
	if w.idle > 0 {
		next = min(next, now+w.idle)
	}
	for _, c := range w.conns {
		if c.until > 0 && !c.due {
			c.due = c.until <= now
			next = min(next, max(c.until, now))
		}
		switch {
		case c.state == isConnecting || c.state == isGreeting:
			limit := c.since + max(w.timeout, int64(connectLimit))
			if now >= limit {
				w.lose(c, errors.New("connect: no answer"))
				continue
			}
			next = min(next, limit)
		case c.state == isParting && now < c.since+int64(farewell):
			next = min(next, c.since+int64(farewell))
		case c.state == isParting, c.due && w.mayPart(c):
			w.part(c, now)
		case c.queue.len() > c.fresh || c.givenUp != nil:
			next = min(next, w.expire(c, now))
		case w.idle > 0 && c.state == isUp && c.queue.len() == 0:
			if until := c.heard + w.idle; until > now {
				next = min(next, until)
				continue
			}
			w.l.hold.release()
			w.rest(c)
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
	if c.givenUp != nil {
		return min(next, w.pursue(c, now))
	}
	silent := max(c.heard, c.queue.at(0).sent) + 2*w.timeout
	if w.tags { // replies to other requests may go on coming
		silent = min(silent, c.queue.at(0).sent+mostOverdue*w.timeout)
	}
	if silent <= now && w.giveUp(c, now) {
		return min(next, now+sweepStep)
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

// traffic returns the kernel's counts of the connections since the last call; false if they are not this process's sockets.
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

// counted returns the kernel's counts of a connection since it was opened.
func (w *wire) counted(c *wireConn) sockets.Traffic {
	if p, ok := w.poll.(interface{ Traffic(fd int) sockets.Traffic }); ok && c.fd >= 0 {
		return p.Traffic(c.fd)
	}
	return sockets.Traffic{}
}

func (w *wire) outstanding(into []measure.Requests) {
	for _, c := range w.conns {
		for i := range c.later {
			into[w.lane.row(c.endpoint)*driver.NumVerbs+int(c.later[i].req.Verb)].InFlight++
		}
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

// fitting returns b with room for n more bytes, if n is large: in a buffer that was used before, if there is one. Growing by appending would leave
// more garbage than the buffer holds.
func (w *wire) fitting(b []byte, n int) []byte {
	if n < leastLent || cap(b)-len(b) >= n {
		return b
	}
	need := len(b) + n + aroundItem
	larger := slices.IndexFunc(w.bufs, func(b []byte) bool { return cap(b) >= need })
	if larger < 0 {
		return slices.Grow(b, n+aroundItem)
	}
	other := w.bufs[larger]
	w.bufs[larger] = b[:0]
	w.kept += cap(b) - cap(other)
	return append(other, b...)
}

func (w *wire) recycle(b []byte) {
	if cap(b) <= w.partials.usual() && w.kept+cap(b) <= w.partials.kept() {
		w.kept += cap(b)
		w.bufs = append(w.bufs, b[:0])
	}
}

// leads returns the target and endpoint of the connection with a token. Any goroutine may call it once the loop is made.
func (l *loop) leads(token int32) (x *side, endpoint int) {
	w := l.wireOf(token)
	return w.lane.side, int(token-w.base) % w.places
}

// wireOf returns the wire that has the connection with a token.
func (l *loop) wireOf(token int32) *wire {
	for _, la := range l.lanes {
		if w, ok := la.tr.(*wire); ok && token-w.base < int32(len(w.conns)) {
			return w
		}
	}
	panic("engine: a connection of no target")
}
