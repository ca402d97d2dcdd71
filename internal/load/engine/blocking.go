package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loadgen/loadgen/internal/base/panics"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// dialer connects a blocking client to an endpoint. The client makes its connections with the link's Dial, which meters them.
type dialer func(ctx context.Context, link driver.Link) (driver.Session, error)

// blocking hands requests to goroutines, one for each client, which it owns: open starts them, close waits for them. A session has as many clients of
// an endpoint as it can have ops in flight, so that no op waits for another. Only the loop goroutine touches op states; a call is passed back and
// forth by pointer.
type blocking struct {
	l         *loop
	lane      *lane
	ring      func() // wakes a loop that also waits for other targets when a call has come back; else nil
	dial      dialer
	connect   func(ctx context.Context, endpoint, client int) (net.Conn, error)
	link      func(endpoint string) driver.Link
	endpoints []sockets.Endpoint
	clients   int           // clients of each session and endpoint
	limit     int           // the most calls handed to a client and not returned
	timeout   time.Duration // a request's, from its hand-over
	partials  *partials
	conns     []*blockingConn
	probing   []dialProbing      // by endpoint
	returned  chan *blockingCall // also news of clients that were connected again, or could not be
	free      []*blockingCall
	cancel    context.CancelFunc
	group     sync.WaitGroup
	counted   uint64          // the part of remade that is in the ledger
	remade    atomic.Uint64   // connections after each client's first
	told      sockets.Traffic // traffic up to the last call of traffic
	timer     *time.Timer
	idle      int64 // time for which the loop had nothing to do, in this step
	late      int64 // time for which this executor kept calls from their clients, summed over calls, in this step
}

// blockingConn is one of a session's clients of one endpoint.
type blockingConn struct {
	endpoint int
	number   int // its number its number among the endpoint's clients of all workers
	meter    *sockets.Meter
	room     room
	ended    int64 // when its last call ended, on the run clock; the loop alone uses it
	emptied  int64 // when its last call came back and it had no other, on the run clock; 0 if never in this step
	idle     int64 // blocking.idle at emptied
	calls    chan *blockingCall
	handed   []*blockingCall // calls handed over and not returned, the oldest first; the loop alone uses it
	up       atomic.Bool
	link     link
	renews   bool // its client is being replaced by the plan
}

// blockingCall is a request on its way through a client's goroutine.
type blockingCall struct {
	conn   *blockingConn
	st     *opState
	req    driver.Request
	key    []byte          // holds req.Key
	put    driver.Value    // holds req.Value
	copied op.Verbatim     // holds the value's bytes, if the plan gives them
	bag    driver.Bag      // holds req.Bag
	found  driver.Findings // holds reply.Found
	handed int64           // when it was handed over, on the run clock
	ready  int64           // when its client was connected for it; 0 if it had been before
	start  int64           // when Do began; 0 if it never did
	end    int64
	reply  driver.Reply
	value  []byte // holds reply.Value
	size   int    // of the value before it was condensed
	words  []byte // holds reply.Message
	whose
	failed op.EventKind
	in     int  // bytes read
	out    int  // bytes written
	ok     bool // reply is valid
	extra  bool // bytes came with it that nothing had asked for
	cause  error
	taken  uint32 // 1 once the call was taken up or taken back, whichever came first; atomic
	ends   bool   // its client is unusable and has to be connected again
	news   bool   // there is there is no request: the client was connected again or, if there is a cause, could not be
	lost   bool   // the loop, which alone uses this, no longer waits for it
}

const (
	mostDials   = 64                                    // connections that a loop makes at a time
	followEvery = 20 * time.Microsecond                 // between the attempts of clients once one got through: no listen backlog holds all at once
	overtime    = int64(500 * time.Millisecond)         // how long after its deadline a client may return
	closeWithin = time.Duration(overtime) + time.Second // time for goroutines to end once their contexts have ended
)

var errOverdue = errors.New("the client did not return by its deadline")

// timely calls a driver's code. If the code heeds no deadline, timely returns half a second after ctx has ended, and leaves the code's goroutine behind:
// nobody can end it.
func timely(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- panics.Safely(f) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(time.Duration(overtime)):
		return errOverdue
	}
}

// take claims the call, and reports whether nobody had. The goroutine takes a call to carry it out; the loop takes it to have it back.
func (c *blockingCall) take() bool { return atomic.CompareAndSwapUint32(&c.taken, 0, 1) }

func (b *blocking) open(deadline int64) error {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	all := len(b.l.sessions) * len(b.endpoints) * b.clients
	b.returned = make(chan *blockingCall, all*(b.limit+2)) // room for two more that were given up
	b.timer = time.NewTimer(0)
	b.probing = make([]dialProbing, len(b.endpoints))
	by, done := context.WithTimeout(ctx, time.Duration(deadline-b.l.clock.now()))
	defer done()
	conns, clients := make([]*blockingConn, all), make([]driver.Session, all)
	for i := range conns {
		conns[i] = b.newConn(i / b.clients % len(b.endpoints))
		s := b.l.sessions[i/b.clients/len(b.endpoints)]
		conns[i].link = link{session: s, row: b.lane.row(conns[i].endpoint)}
		conns[i].number = s.id*b.clients + i%b.clients
	}
	if err := b.dialAll(by, conns, clients); err != nil {
		return err
	}
	b.conns = conns
	for i, c := range conns {
		c.up.Store(true)
		b.l.made(&c.link, b.l.clock.now())
		b.group.Go(func() { b.serve(ctx, c, clients[i]) })
	}
	return nil
}

func (b *blocking) newConn(endpoint int) *blockingConn {
	c := &blockingConn{endpoint: endpoint, calls: make(chan *blockingCall, b.limit), room: room{all: b.partials}}
	c.meter = sockets.NewMeter(func(ctx context.Context) (net.Conn, error) {
		conn, err := b.connect(ctx, endpoint, c.number)
		if err == nil && c.meter.Made() > 0 && !c.renews {
			b.remade.Add(1)
		}
		return conn, err
	}, b.lane.side.target.IdleTimeout, b.l.clock.now)
	return c
}

// client makes a client of a connection's endpoint.
func (b *blocking) client(ctx context.Context, c *blockingConn) (driver.Session, error) {
	link := b.link(b.endpoints[c.endpoint].Text)
	link.Dial, link.Room = c.meter.Dial, &c.room
	made := make(chan driver.Session, 1)
	err := timely(ctx, func() error {
		client, err := b.dial(ctx, link)
		made <- client
		return err
	})
	if err != nil {
		c.meter.Cut()
		return nil, err
	}
	return <-made, nil
}

// hangUp closes a client and any connection it has left open. The error is dropped: either no request is outstanding, or the request's own error is
// reported.
func (c *blockingConn) hangUp(client driver.Session) {
	if client == nil {
		return
	}
	_ = panics.Safely(client.Close)
	c.meter.Cut()
	c.room.close()
}

// dialAll connects all clients, some at a time. It stops at the first that cannot be connected, and closes those that were.
func (b *blocking) dialAll(ctx context.Context, conns []*blockingConn, clients []driver.Session) error {
	dials, ctx := errgroup.WithContext(ctx)
	dials.SetLimit(mostDials)
	for i := range clients {
		if ctx.Err() != nil {
			break
		}
		dials.Go(func() (err error) {
			if clients[i], err = b.client(ctx, conns[i]); err != nil {
				return fmt.Errorf("connect to %v: %w", b.endpoints[conns[i].endpoint], err)
			}
			return nil
		})
	}
	err := dials.Wait()
	if err == nil {
		return nil
	}
	for i, client := range clients {
		if client != nil {
			conns[i].hangUp(client)
		}
	}
	return err
}

// serve is a client's goroutine. It ends when the transport is closed.
func (b *blocking) serve(ctx context.Context, c *blockingConn, client driver.Session) {
	calling, release := newCallContext(ctx)
	defer release()
	most, rand := b.l.churn.ops(), rand.New(rand.NewPCG(uint64(c.number), 0))
	used, due := int64(0), b.l.churn.due(rand)
	part := func() {
		c.meter.Reset()
		c.hangUp(client)
		client, due = nil, nil
	}
	for {
		var call *blockingCall
		select {
		case call = <-c.calls:
		case <-due:
			part()
			continue
		}
		if call == nil {
			c.hangUp(client)
			return
		}
		if b.l.lease.over(b.l.clock.now()) || !call.take() {
			continue // the loop stops by itself, and takes back the calls that nobody took
		}
		if client == nil {
			client = b.renew(ctx, call)
			used, due = 0, b.l.churn.due(rand)
		}
		if client != nil && b.do(calling, call, client) {
			if used++; used == most {
				part()
			}
			b.give(ctx, call)
			continue
		}
		c.meter.Lose()
		c.hangUp(client)
		c.up.Store(false)
		call.ends = true
		b.give(ctx, call)
		if client = b.redial(ctx, c); client == nil {
			return // the transport is being closed
		}
		used, due = 0, b.l.churn.due(rand)
	}
}

// renew connects a client for a call.
func (b *blocking) renew(ctx context.Context, call *blockingCall) (client driver.Session) {
	by, done := context.WithTimeout(ctx, max(b.timeout, connectLimit))
	defer done()
	call.conn.renews = true
	client, call.cause = b.client(by, call.conn)
	call.conn.renews = false
	call.ready = b.l.clock.now()
	if client == nil {
		call.failed, call.end = op.Refused, call.ready
	}
	return client
}

// do carries out a call and reports whether the client is still usable.
func (b *blocking) do(calling *callContext, call *blockingCall, client driver.Session) bool {
	now := b.l.clock.now()
	left := b.timeout - time.Duration(now-max(call.handed, call.ready))
	if left <= 0 { // the call waited too long behind others; the client never saw it
		call.failed, call.cause, call.end = op.RequestTimeout, context.DeadlineExceeded, now
		return true
	}
	calling.begin(left)
	in, out := call.conn.meter.Bytes()
	call.start = b.l.clock.now()
	err := panics.Safely(func() error { return client.Do(calling, &call.req, &call.reply) })
	call.end = b.l.clock.now()
	calling.end()
	call.cause = err
	inNow, outNow := call.conn.meter.Bytes()
	call.in, call.out = int(inNow-in), int(outNow-out)
	switch {
	case err == nil || err == driver.ErrUnasked:
		call.extra = err != nil
		call.size = len(call.reply.Value)
		if call.size <= keptBuffer {
			call.value = append(call.value[:0], call.reply.Value...)
			call.reply.Value = call.value
		} else {
			call.value = call.reply.Condense(call.value)
		}
		call.conn.room.rest()
		call.words = append(call.words[:0], call.reply.Message...)
		call.reply.Message = call.words
		if found := call.reply.Found; found != nil {
			call.found = driver.Findings{Failed: found.Failed, Hops: found.Hops, Bag: append(call.found.Bag[:0], found.Bag...)}
			call.reply.Found = &call.found
		}
		call.ok = true
		return call.req.Verb != driver.Get || !call.misplaced(&call.reply, driver.KeyHash(call.req.Key))
	case errors.Is(err, context.DeadlineExceeded):
		call.failed = op.RequestTimeout
	default:
		call.failed = op.Lost
	}
	return err == nil
}

// redial connects again, until it succeeds or the transport closes.
func (b *blocking) redial(ctx context.Context, c *blockingConn) driver.Session {
	gate := &b.probing[c.endpoint]
	for gate.enter(ctx, c) {
		by, done := context.WithTimeout(ctx, max(b.timeout, connectLimit))
		client, err := b.client(by, c)
		done()
		gate.tried(c, err == nil)
		if ctx.Err() == nil {
			c.up.Store(err == nil)
			b.give(ctx, &blockingCall{news: true, conn: c, cause: err})
		}
		if err == nil {
			return client
		}
	}
	return nil
}

// dialProbing does what [probing] does, for goroutines. The zero value is ready.
type dialProbing struct {
	mu      sync.Mutex
	probe   *blockingConn
	waiting []chan time.Duration // each receives, once, how long to wait before it follows
}

// enter waits until the client should try to connect; it returns false if ctx ends first.
func (g *dialProbing) enter(ctx context.Context, c *blockingConn) bool {
	wait := time.Duration(0)
	g.mu.Lock()
	switch g.probe {
	case nil:
		g.mu.Unlock()
	case c:
		g.mu.Unlock()
		wait = probeEvery
	default:
		told := make(chan time.Duration, 1)
		g.waiting = append(g.waiting, told)
		g.mu.Unlock()
		select {
		case wait = <-told:
		case <-ctx.Done():
		}
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// tried notes whether a client could connect.
func (g *dialProbing) tried(c *blockingConn, through bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !through && g.probe == nil:
		g.probe = c
	case through:
		g.probe = nil
		for i, told := range g.waiting {
			told <- time.Duration(i+1) * followEvery
		}
		g.waiting = nil
	}
}

func (b *blocking) send(s *session, st *opState, req *driver.Request) bool {
	c := b.pick(s, req.Endpoint)
	if c == nil {
		return false
	}
	call := b.call()
	*call = blockingCall{conn: c, st: st, req: *req, handed: b.l.clock.now(), whose: b.lane.whose, key: call.key, value: call.value, words: call.words, copied: call.copied, bag: call.bag, found: call.found}
	call.keep()
	select {
	case c.calls <- call:
	default: // the queue is full of calls that were given up while the client is still busy with one
		b.free = append(b.free, call)
		return false
	}
	if len(c.handed) == 0 && c.emptied != 0 { // the client waited for the loop, except while the loop was idle
		b.late += max(0, call.handed-c.emptied-(b.idle-c.idle))
	}
	c.handed = append(c.handed, call)
	return true
}

// pick returns the session's client of an endpoint that has the fewest calls; nil if none is up and has room.
func (b *blocking) pick(s *session, endpoint int) (least *blockingConn) {
	at := (s.index*len(b.endpoints) + endpoint) * b.clients
	for _, c := range b.conns[at : at+b.clients] {
		if !c.up.Load() || len(c.handed) >= b.limit || least != nil && len(c.handed) >= len(least.handed) {
			continue
		}
		if least = c; len(c.handed) == 0 {
			break
		}
	}
	return least
}

// give hands a call back to the loop, unless the transport is being closed.
func (b *blocking) give(ctx context.Context, call *blockingCall) {
	select {
	case b.returned <- call:
	case <-ctx.Done():
		return
	}
	if b.ring != nil {
		b.ring()
	}
}

// keep copies what the request points to. A client may still use a request that was given up while the loop has begun another op in its place.
func (c *blockingCall) keep() {
	c.key = append(c.key[:0], c.req.Key...)
	c.req.Key = c.key
	if c.req.Bag != nil {
		c.bag = append(c.bag[:0], *c.req.Bag...)
		c.req.Bag = &c.bag
	}
	if c.req.Value == nil {
		return
	}
	c.put = *c.req.Value
	if given, ok := c.put.Maker.(*op.Verbatim); ok {
		c.copied.Bytes = append(c.copied.Bytes[:0], given.Bytes...)
		c.put.Maker = &c.copied
	}
	c.req.Value = &c.put
}

func (b *blocking) call() *blockingCall {
	if n := len(b.free); n > 0 {
		c := b.free[n-1]
		b.free = b.free[:n-1]
		return c
	}
	return new(blockingCall)
}

func (b *blocking) wait(d time.Duration) bool {
	var first *blockingCall
	if len(b.returned) == 0 {
		began := b.l.clock.now()
		b.timer.Reset(d)
		select {
		case first = <-b.returned:
		case <-b.timer.C:
		}
		b.idle += b.l.clock.now() - began
	}
	return b.collect(first)
}

// collect takes the calls that have come back, beginning with first unless it is nil, and reports whether there were any.
func (b *blocking) collect(first *blockingCall) bool {
	finished, now := 0, b.l.clock.now()
	if !b.l.lapsed {
		b.l.seal(now)
	}
	if first != nil {
		b.finish(first, now)
		finished++
	}
	for len(b.returned) > 0 {
		b.finish(<-b.returned, now)
		finished++
	}
	if n := b.remade.Load(); n != b.counted {
		b.l.rec.Reconnects += n - b.counted
		b.counted = n
	}
	return finished > 0
}

// finish reports the end of a call that came back at now.
func (b *blocking) finish(call *blockingCall, now int64) {
	if call.news {
		b.heard(call, now)
		return
	}
	if call.extra {
		b.l.unasked.Count(false)
	}
	if call.ends {
		if call.conn.meter.Made() == 0 { // it makes no connections that could be counted, and is made again at once
			b.l.rec.Reconnects++
		}
		call.conn.link.session.links--
		b.l.missed(&call.conn.link, call.end)
		b.lane.side.suspect(call.conn.endpoint)
	}
	if call.lost {
		if call.ok {
			b.l.rec.LateReplies++
		}
		return
	}
	c := call.conn
	at := slices.Index(c.handed, call)
	c.handed = slices.Delete(c.handed, at, at+1)
	if call.start != 0 {
		b.late += call.start - max(call.handed, c.ended, call.ready)
		c.ended = call.end
		if len(c.handed) == 0 { // the next call had to wait for this
			b.late += max(0, now-call.end)
			c.emptied, c.idle = now, b.idle
		}
	}
	st := call.st
	st.delayed = st.delayed || call.ready > 0
	if st.start == 0 || call.start != 0 && call.start < st.start {
		st.start = call.start
	}
	if call.conn.meter.Made() == 0 { // the client makes no connections
		call.in = call.size
	}
	b.l.rec.AddBytes(st.Verb, 0, call.out)
	st.out += int64(call.out)
	if call.ok {
		b.lane.programs.replied(call.request(), &call.reply, nil, call.in, call.end)
	} else {
		b.l.panicked(st.session, call.cause, call.end)
		b.fail(call, call.failed, call.cause, call.end)
	}
	b.free = append(b.free, call)
}

// heard handles the news that a client was connected again, or why it could not be.
func (b *blocking) heard(news *blockingCall, now int64) {
	if news.cause == nil {
		b.l.made(&news.conn.link, now)
		return
	}
	b.lane.side.suspect(news.conn.endpoint)
	b.l.rec.Errors.Add(b.lane.blame(nil, &b.endpoints[news.conn.endpoint], news.cause)) // no op failed by it
}

// request returns the request that the call carries.
func (c *blockingCall) request() request {
	return request{st: c.st, endpoint: c.conn.endpoint, verb: c.req.Verb, tag: c.req.Tag}
}

// fail ends a call that brought no reply.
func (b *blocking) fail(call *blockingCall, how op.EventKind, cause error, now int64) {
	b.l.wrong(b.lane.blame(nil, &b.endpoints[call.conn.endpoint], cause))
	b.lane.programs.lost(call.request(), how, now)
}

func (b *blocking) flush() {}

// recall takes back the calls that no goroutine has taken up. Their ops stay in flight.
func (b *blocking) recall() {
	for _, c := range b.conns {
		c.handed = slices.DeleteFunc(c.handed, func(call *blockingCall) bool {
			if !call.take() {
				return false
			}
			ledger := b.lane.requests(c.endpoint, call.req.Verb)
			ledger.Sent--
			ledger.Refused++
			return true
		})
	}
}

func (b *blocking) fire(timer, int64) {}

// sweep ends overdue calls. A call that no client has taken up, because its client is busy or reconnecting, ends at its deadline. A call that its
// client should have returned ends after overtime, and is not reused: the client's goroutine still has it.
func (b *blocking) sweep(now int64) int64 {
	next := now + int64(b.timeout) // calls handed over from now on expire no earlier
	for _, c := range b.conns {
		for len(c.handed) > 0 {
			call := c.handed[0]
			over := call.handed + int64(b.timeout)
			cause := context.DeadlineExceeded
			overdue := over <= now && !call.take()
			if overdue {
				over += overtime
				cause = errOverdue
			}
			if over > now {
				next = min(next, over)
				break
			}
			if overdue { // unblocks the client if it is blocked on a connection
				c.meter.Cut()
			}
			c.handed = slices.Delete(c.handed, 0, 1)
			call.lost = true
			b.fail(call, op.RequestTimeout, cause, now)
		}
	}
	return next
}

// links implements connecting.
func (b *blocking) links(since *measure.Connections) (making, open int64) {
	for _, c := range b.conns {
		d := c.meter.Dials()
		making, open = making+d.Making, open+d.Open
		since.Attempted, since.Refused = since.Attempted+d.Attempted, since.Refused+d.Refused
		since.Renewed, since.Lost = since.Renewed+d.Closed, since.Lost+d.Lost
		for _, s := range d.Made {
			since.Made(took(s, false, s.Made))
		}
	}
	return making, open
}

// own returns how much of a step's time this executor was at work or kept clients waiting: the time for which the loop was not idle or, if greater,
// the mean time that calls spent between the loop and their clients, on the way there and back.
func (b *blocking) own(wall int64) int64 {
	abreast := len(b.l.sessions) * min(len(b.endpoints)*b.clients, b.l.pipeline)
	own := max(wall-b.idle, b.late/int64(abreast))
	b.idle, b.late = 0, 0
	for _, c := range b.conns {
		c.emptied = 0
	}
	return min(own, wall)
}

func (b *blocking) outstanding(into []measure.Requests) {
	for _, c := range b.conns {
		for _, call := range c.handed {
			into[b.lane.row(c.endpoint)*driver.NumVerbs+int(call.req.Verb)].InFlight++
		}
	}
}

// close ends the goroutines and waits for them, but not for a client that ignores the end of its context. Outstanding calls are given up.
func (b *blocking) close() {
	if b.cancel != nil {
		b.cancel()
	}
	for _, c := range b.conns {
		close(c.calls)
	}
	ended := make(chan struct{})
	go func() {
		b.group.Wait()
		close(ended)
	}()
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		for _, c := range b.conns {
			c.meter.Cut()
		}
	}
}

// traffic returns the kernel's counts of the connections since the last call; false if there were no connections.
func (b *blocking) traffic() (since sockets.Traffic, known bool) {
	var all sockets.Traffic
	for _, c := range b.conns {
		all.Add(c.meter.Traffic())
		known = known || c.meter.Made() > 0
	}
	since = all.Since(b.told)
	b.told = all
	return since, known
}
