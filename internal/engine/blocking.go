package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/panics"
	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/pkg/driver"
)

// dialer connects a blocking client to an endpoint. The connections of its own are those of the link, which are metered.
type dialer func(ctx context.Context, link driver.Link) (driver.Session, error)

// blocking hands requests to goroutines, one for each client, which it owns: open starts them, close waits for them. A session has as many
// clients of an endpoint as it can have ops in flight, so that no op waits for another's.
// The loop goroutine alone touches op states; a call is passed back and forth by its pointer.
type blocking struct {
	l         *loop
	lane      *lane
	ring      func() // tells the loop, where it waits for other targets, too, that a call has come back
	dial      dialer
	connect   func(ctx context.Context, endpoint int) (net.Conn, error)
	link      func(endpoint string) driver.Link
	endpoints []sockets.Endpoint
	clients   int           // of each session and endpoint
	limit     int           // calls handed to a connection and not returned
	timeout   time.Duration // of a request, from when it is handed over
	conns     []*blockingConn
	returned  chan *blockingCall
	free      []*blockingCall
	cancel    context.CancelFunc
	group     sync.WaitGroup
	counted   uint64          // of remade, what is in the ledger
	remade    atomic.Uint64   // connections but for each client's first, and clients without any that were made again
	told      sockets.Traffic // up to the last call of traffic
	timer     *time.Timer
	idle      int64 // that the loop had nothing to do, in this step
	late      int64 // that calls were not with their client because of this executor, summed over calls, in this step
}

// blockingConn is one of a session's clients of one endpoint.
type blockingConn struct {
	endpoint int
	meter    *sockets.Meter
	ended    int64 // run clock, when its last call did; the loop's
	emptied  int64 // run clock, when the loop had its last call back and it had no other; 0: never in this step
	idle     int64 // of the loop in this step, by then
	calls    chan *blockingCall
	handed   []*blockingCall // and not returned, the oldest first; the loop's
	up       atomic.Bool
}

// blockingCall is a request on its way through a connection's goroutine.
type blockingCall struct {
	conn   *blockingConn
	st     *opState
	req    driver.Request
	put    driver.Value // what req.Value names, where the bytes of that do not last, and
	copied op.Verbatim  // its bytes
	handed int64        // run clock, when it was handed over
	start  int64        // when Do began; 0 if it never did
	end    int64
	reply  driver.Reply
	value  []byte // holds reply.Value
	words  []byte // holds reply.Message
	failed op.EventKind
	in     int  // bytes that were read,
	out    int  // and written
	ok     bool // reply is valid
	cause  error
	taken  uint32 // 1 once it was taken up or taken back, whichever came first; atomic
	lost   bool   // nobody waits for it any more; the loop's
}

const (
	mostDials   = 64                                    // under way in a loop at a time
	overtime    = int64(500 * time.Millisecond)         // beyond its deadline that a client has to return
	closeWithin = time.Duration(overtime) + time.Second // that goroutines have to end, once their contexts have
)

var errOverdue = errors.New("the client did not return by its deadline")

// take reports whether the call was still untaken. It decides between the goroutine that is about to carry it out and the loop that wants
// it back.
func (c *blockingCall) take() bool { return atomic.CompareAndSwapUint32(&c.taken, 0, 1) }

func (b *blocking) open(deadline int64) error {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	all := len(b.l.sessions) * len(b.endpoints) * b.clients
	b.returned = make(chan *blockingCall, all*(b.limit+2)) // two that nobody waits for
	b.timer = time.NewTimer(0)
	by, done := context.WithTimeout(ctx, time.Duration(deadline-b.l.clock.now()))
	defer done()
	conns, clients := make([]*blockingConn, all), make([]driver.Session, all)
	for i := range conns {
		conns[i] = b.newConn(i / b.clients % len(b.endpoints))
	}
	if err := b.dialAll(by, conns, clients); err != nil {
		return err
	}
	b.conns = conns
	for i, c := range conns {
		c.up.Store(true)
		b.group.Go(func() { b.serve(ctx, c, clients[i]) })
	}
	return nil
}

func (b *blocking) newConn(endpoint int) *blockingConn {
	c := &blockingConn{endpoint: endpoint, calls: make(chan *blockingCall, b.limit)}
	c.meter = sockets.NewMeter(func(ctx context.Context) (net.Conn, error) {
		conn, err := b.connect(ctx, endpoint)
		if err == nil && c.meter.Made() > 0 {
			b.remade.Add(1)
		}
		return conn, err
	})
	return c
}

// client makes a client of a connection's endpoint.
func (b *blocking) client(ctx context.Context, c *blockingConn) (client driver.Session, err error) {
	link := b.link(b.endpoints[c.endpoint].Text)
	link.Dial = c.meter.Dial
	err = panics.Safely(func() (err error) {
		client, err = b.dial(ctx, link)
		return err
	})
	if err != nil {
		c.meter.Cut()
	}
	return client, err
}

// hangUp ends a client, and what it has left open. Its error says nothing: no request is outstanding, or it is the request's that is reported.
func (c *blockingConn) hangUp(client driver.Session) {
	_ = panics.Safely(client.Close)
	c.meter.Cut()
}

// dialAll connects all clients, some at a time. The first that cannot be connected ends it; those that were are closed then.
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

// serve is a connection's goroutine. It ends when calls is closed.
func (b *blocking) serve(ctx context.Context, c *blockingConn, client driver.Session) {
	calling, release := newCallContext(ctx)
	defer release()
	for call := range c.calls {
		if b.l.lease.over(b.l.clock.now()) || !call.take() {
			continue // the loop ends by itself, and takes back what was not taken up
		}
		if client == nil {
			call.failed, call.cause, call.end = op.Lost, errors.New("connection lost"), b.l.clock.now()
			b.give(call)
			continue
		}
		if !b.do(calling, call, client) {
			c.hangUp(client)
			c.up.Store(false)
			client = nil
			b.give(call)
			client = b.redial(ctx, c)
			continue
		}
		b.give(call)
	}
	if client != nil {
		c.hangUp(client)
	}
}

// do carries out a call and reports whether the client is of further use.
func (b *blocking) do(calling *callContext, call *blockingCall, client driver.Session) bool {
	now := b.l.clock.now()
	left := b.timeout - time.Duration(now-call.handed)
	if left <= 0 { // it has waited behind others for so long: the client knows nothing of it
		call.failed, call.cause, call.end = op.RequestTimeout, context.DeadlineExceeded, now
		return true
	}
	calling.begin(left)
	call.reply = driver.Reply{}
	in, out := call.conn.meter.Bytes()
	call.start = b.l.clock.now()
	err := panics.Safely(func() error { return client.Do(calling, &call.req, &call.reply) })
	call.end = b.l.clock.now()
	calling.end()
	call.cause = err
	inNow, outNow := call.conn.meter.Bytes()
	call.in, call.out = int(inNow-in), int(outNow-out)
	switch {
	case err == nil:
		call.value = append(call.value[:0], call.reply.Value...)
		call.words = append(call.words[:0], call.reply.Message...)
		call.reply.Value, call.reply.Message = call.value, call.words
		call.ok = true
	case errors.Is(err, context.DeadlineExceeded):
		call.failed = op.RequestTimeout
	default:
		call.failed = op.Lost
	}
	return err == nil
}

// redial connects again, backing off between attempts, until it has or the transport closes.
func (b *blocking) redial(ctx context.Context, c *blockingConn) driver.Session {
	for backoff := firstBackoff; ctx.Err() == nil; backoff = min(2*backoff, lastBackoff) {
		by, done := context.WithTimeout(ctx, max(b.timeout, lastBackoff))
		client, err := b.client(by, c)
		done()
		if err == nil {
			if c.meter.Made() == 0 {
				b.remade.Add(1)
			}
			c.up.Store(true)
			return client
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
	}
	return nil
}

func (b *blocking) send(s *session, st *opState, req *driver.Request) bool {
	c := b.pick(s, req.Endpoint)
	if c == nil {
		return false
	}
	call := b.call()
	*call = blockingCall{conn: c, st: st, req: *req, handed: b.l.clock.now(), value: call.value, words: call.words, copied: call.copied}
	call.keep()
	select {
	case c.calls <- call:
	default: // it holds limit, of which some were given up and the client is still busy with one
		b.free = append(b.free, call)
		return false
	}
	if len(c.handed) == 0 && c.emptied != 0 { // the loop was at work on this and others' ops, unless there was nothing to do
		b.late += max(0, call.handed-c.emptied-(b.idle-c.idle))
	}
	c.handed = append(c.handed, call)
	return true
}

// pick returns the session's client of an endpoint that has the fewest calls, one without any if there is one; nil: none is up and has room.
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

// give hands a call back to the loop.
func (b *blocking) give(call *blockingCall) {
	b.returned <- call
	if b.ring != nil {
		b.ring()
	}
}

// keep has a call name bytes of its own for a value whose bytes do not last until its turn.
func (c *blockingCall) keep() {
	v := c.req.Value
	if v == nil {
		return
	}
	if bytes, ok := v.Maker.(*op.Verbatim); ok {
		c.copied.Bytes = append(c.copied.Bytes[:0], bytes.Bytes...)
		c.put = *v
		c.put.Maker, c.req.Value = &c.copied, &c.put
	}
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

// collect takes the calls that have come back, the first of which may be at hand, and reports whether there were any.
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

// finish tells the loop how a call ended, which has come back at a time.
func (b *blocking) finish(call *blockingCall, now int64) {
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
		b.late += max(0, call.start-max(call.handed, c.ended))
		c.ended = call.end
		if len(c.handed) == 0 { // what comes next has waited for this
			b.late += max(0, now-call.end)
			c.emptied, c.idle = now, b.idle
		}
	}
	st := call.st
	if st.start == 0 || call.start != 0 && call.start < st.start {
		st.start = call.start
	}
	if call.conn.meter.Made() == 0 { // it does without connections
		call.in = len(call.value)
	}
	b.l.rec.AddBytes(call.req.Verb, 0, call.out)
	st.out += int64(call.out)
	if call.ok {
		b.lane.programs.replied(call.request(), &call.reply, call.in, call.end)
	} else {
		b.l.panicked(st.session, call.cause, call.end)
		b.fail(call, call.failed, call.cause, call.end)
	}
	b.free = append(b.free, call)
}

// request is what the call carries.
func (c *blockingCall) request() request {
	return request{st: c.st, endpoint: c.conn.endpoint, verb: c.req.Verb, tag: c.req.Tag}
}

// fail ends a call that brought no reply.
func (b *blocking) fail(call *blockingCall, how op.EventKind, cause error, now int64) {
	b.l.wrong(b.lane.blame(nil, &b.endpoints[call.conn.endpoint], cause))
	b.lane.programs.lost(call.request(), how, now)
}

func (b *blocking) flush() {}

// recall takes back the calls that no goroutine has taken up. Their ops stay in flight: nobody awaits them.
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

// sweep ends calls whose time is over and that have not come back: those that no client has taken up, because theirs is at work on another or
// is being connected again; and, somewhat later, one that its client should have returned. They are not used again: their connection's
// goroutine still has them.
func (b *blocking) sweep(now int64) int64 {
	next := now + int64(b.timeout) // what is handed over from now on is not due before
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
			if overdue { // what it is blocked in returns then, if that is a connection
				c.meter.Cut()
			}
			c.handed = slices.Delete(c.handed, 0, 1)
			call.lost = true
			b.fail(call, op.RequestTimeout, cause, now)
		}
	}
	return next
}

// own returns how much of a step's time this executor was at work, or somebody waited for it: the loop, while it was not idle; or, where that
// is more, the connections, while they had calls that were not with their clients yet, or had come back and were not seen.
func (b *blocking) own(wall int64) int64 {
	abreast := len(b.l.sessions) * min(len(b.endpoints)*b.clients, b.l.pipeline)
	own := max(0, wall-b.idle, b.late/int64(max(1, abreast)))
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

// close ends the goroutines and waits for them, but not for a client that ignores the end of its context. Nothing may be outstanding, or what is
// is given up.
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

// traffic returns what the kernel has counted on the connections since the last call, and false where there have been none.
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
