package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// dialer connects a blocking client to an endpoint.
type dialer func(ctx context.Context, endpoint int) (driver.Session, error)

// blocking hands requests to goroutines, one for each session and endpoint, which it owns: open starts them, close waits for them.
// The loop goroutine alone touches op states; a call is passed back and forth by its pointer.
type blocking struct {
	l         *loop
	dial      dialer
	endpoints []endpoint
	limit     int           // calls handed to a connection and not returned
	timeout   time.Duration // of a request, from when it is handed over
	conns     []*blockingConn
	returned  chan *blockingCall
	free      []*blockingCall
	cancel    context.CancelFunc
	group     sync.WaitGroup
	counted   uint64 // of redialed, what is in the ledger
	redialed  atomic.Uint64
	timer     *time.Timer
}

// blockingConn is one session's client of one endpoint.
type blockingConn struct {
	endpoint int
	calls    chan *blockingCall
	handed   []*blockingCall // and not returned, the oldest first; the loop's
	up       atomic.Bool
}

// blockingCall is a request on its way through a connection's goroutine.
type blockingCall struct {
	conn   *blockingConn
	st     *opState
	req    driver.Request
	handed int64 // run clock, when it was handed over
	start  int64 // when Do began; 0 if it never did
	end    int64
	reply  driver.Reply
	value  []byte // holds reply.Value
	words  []byte // holds reply.Message
	failed op.EventKind
	ok     bool // reply is valid
	cause  error
	taken  uint32 // 1 once it was taken up or taken back, whichever came first; atomic
}

// take reports whether the call was still untaken. It decides between the goroutine that is about to carry it out and the loop that wants
// it back.
func (c *blockingCall) take() bool { return atomic.CompareAndSwapUint32(&c.taken, 0, 1) }

func (b *blocking) open(deadline int64) error {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	b.returned = make(chan *blockingCall, len(b.l.sessions)*len(b.endpoints)*b.limit)
	b.timer = time.NewTimer(0)
	by, done := context.WithTimeout(ctx, time.Duration(deadline-b.l.clock.now()))
	defer done()
	for range b.l.sessions {
		for e := range b.endpoints {
			client, err := b.dial(by, e)
			if err != nil {
				return fmt.Errorf("connect to %v: %w", b.endpoints[e], err)
			}
			c := &blockingConn{endpoint: e, calls: make(chan *blockingCall, b.limit)}
			c.up.Store(true)
			b.conns = append(b.conns, c)
			b.group.Go(func() { b.serve(ctx, c, client) })
		}
	}
	return nil
}

// serve is a connection's goroutine. It ends when calls is closed.
func (b *blocking) serve(ctx context.Context, c *blockingConn, client driver.Session) {
	for call := range c.calls {
		if b.l.clock.now() >= b.l.lease.Load() || !call.take() {
			continue // the loop ends by itself, and takes back what was not taken up
		}
		if client == nil {
			call.failed, call.cause, call.end = op.Lost, errors.New("connection lost"), b.l.clock.now()
			b.returned <- call
			continue
		}
		if !b.do(ctx, call, client) {
			_ = client.Close() // it has failed already; that failure is the one reported
			c.up.Store(false)
			client = nil
			b.returned <- call
			client = b.redial(ctx, c)
			continue
		}
		b.returned <- call
	}
	if client != nil {
		_ = client.Close() // nothing is outstanding on it
	}
}

// do carries out a call and reports whether the client is of further use.
func (b *blocking) do(ctx context.Context, call *blockingCall, client driver.Session) bool {
	now := b.l.clock.now()
	left := b.timeout - time.Duration(now-call.handed)
	if left <= 0 { // it has waited behind others for so long: the client knows nothing of it
		call.failed, call.cause, call.end = op.RequestTimeout, context.DeadlineExceeded, now
		return true
	}
	call.start = now
	by, done := context.WithTimeout(ctx, left)
	defer done()
	call.reply = driver.Reply{}
	err := client.Do(by, &call.req, &call.reply)
	call.end = b.l.clock.now()
	call.cause = err
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
		client, err := b.dial(by, c.endpoint)
		done()
		if err == nil {
			b.redialed.Add(1)
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
	c := b.conns[s.index*len(b.endpoints)+req.Endpoint]
	if !c.up.Load() || len(c.handed) >= b.limit {
		return false
	}
	call := b.call()
	*call = blockingCall{conn: c, st: st, req: *req, handed: b.l.clock.now(), value: call.value, words: call.words}
	c.handed = append(c.handed, call)
	c.calls <- call // has room: it holds limit
	return true
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
	b.timer.Reset(d)
	finished := 0
	select {
	case call := <-b.returned:
		b.finish(call)
		finished++
	case <-b.timer.C:
	}
	for len(b.returned) > 0 {
		b.finish(<-b.returned)
		finished++
	}
	if n := b.redialed.Load(); n != b.counted {
		b.l.rec.Reconnects += n - b.counted
		b.counted = n
	}
	return finished > 0
}

// finish tells the loop how a call ended.
func (b *blocking) finish(call *blockingCall) {
	call.conn.handed = slices.Delete(call.conn.handed, 0, 1)
	st, endpoint := call.st, call.conn.endpoint
	if st.start == 0 || call.start != 0 && call.start < st.start {
		st.start = call.start
	}
	if call.ok {
		b.l.answered(st, endpoint, &call.reply, len(call.value), call.end)
	} else {
		b.l.rec.Errors.Add(fmt.Appendf(nil, "%v: %v", b.endpoints[endpoint], call.cause))
		b.l.failed(st, endpoint, call.failed, 0, call.end)
	}
	b.free = append(b.free, call)
}

func (b *blocking) flush() {}

// recall takes back the calls that no goroutine has taken up. Their ops stay in flight: nobody awaits them.
func (b *blocking) recall() {
	for _, c := range b.conns {
		c.handed = slices.DeleteFunc(c.handed, func(call *blockingCall) bool {
			if !call.take() {
				return false
			}
			ledger := b.l.rec.Request(c.endpoint, call.req.Verb)
			ledger.Sent--
			ledger.Refused++
			return true
		})
	}
}

func (b *blocking) fire(timer, int64) {}

func (b *blocking) sweep(int64) int64 { return never }

func (b *blocking) outstanding(into []measure.Requests) {
	for _, c := range b.conns {
		for _, call := range c.handed {
			into[c.endpoint*driver.NumVerbs+int(call.req.Verb)].InFlight++
		}
	}
}

// close ends the goroutines and waits for them. Nothing may be outstanding, or what is is given up.
func (b *blocking) close() {
	if b.cancel != nil {
		b.cancel()
	}
	for _, c := range b.conns {
		close(c.calls)
	}
	b.group.Wait()
}
