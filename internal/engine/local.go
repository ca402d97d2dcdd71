package engine

import (
	"fmt"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// local carries requests out on the loop's own thread: the transport of a driver whose target is files of this machine. An op on a mapped
// file can be shorter than a hand-over to another goroutine.
//
// What is sent is carried out by wait, one request after another, so that an op whose end starts the next is no recursion.
type local struct {
	l        *loop
	store    driver.Store
	sessions []driver.LocalSession // by session.index; nil once one has failed
	calls    []localCall           // sent and not begun, the oldest first from head on
	head     int
	req      driver.Request // at hand
	reply    driver.Reply   // to it
	timeout  int64
	inside   int64 // spent by the sessions, in this step
	slept    int64 // spent waiting for nothing but time
	seat     seat
}

// localCall is a request that was sent.
type localCall struct {
	st  *opState
	req driver.Request
}

// localTurn is how long wait goes on before the loop looks at its timers again.
const localTurn = int64(time.Millisecond)

func (t *local) open(int64) error {
	for _, s := range t.l.sessions {
		session, err := t.store.Session(s.id)
		if err != nil {
			return err
		}
		t.sessions = append(t.sessions, session)
	}
	return nil
}

func (t *local) send(s *session, st *opState, req *driver.Request) bool {
	if t.sessions[s.index] == nil {
		return false
	}
	if t.head == len(t.calls) {
		t.calls, t.head = t.calls[:0], 0
	}
	t.calls = append(t.calls, localCall{st, *req})
	return true
}

func (t *local) wait(d time.Duration) bool {
	began := t.l.clock.now()
	if t.head == len(t.calls) {
		if d > 0 {
			t.l.clock.sleep(d)
			t.slept += t.l.clock.now() - began
		}
		return false
	}
	now := began
	for t.head < len(t.calls) && now < began+localTurn && t.l.halt.Load() != abandon && !t.l.expired(now) {
		st := t.calls[t.head].st
		t.req = t.calls[t.head].req
		t.head++
		now = t.carry(st, &t.req)
	}
	t.l.planned += now - began // a long op is no stall of the loop's
	return true
}

// carry carries a request out and returns when that was.
func (t *local) carry(st *opState, req *driver.Request) (end int64) {
	l, session := t.l, t.sessions[st.session.index]
	if session == nil { // it has failed since
		end = l.clock.now()
		l.failed(st, req.Endpoint, op.Lost, 0, end)
		return end
	}
	reply := &t.reply
	*reply = driver.Reply{}
	err := session.Prepare(req)
	start := l.clock.now()
	st.start = start
	if err == nil {
		err = session.Do(req, reply)
	}
	end = l.clock.now()
	t.inside += end - start
	switch {
	case err != nil:
		t.sessions[st.session.index] = nil
		l.rec.Errors.Add(fmt.Appendf(nil, "%v", err))
		l.failed(st, req.Endpoint, op.Lost, 0, end)
	case end-start > t.timeout:
		l.failed(st, req.Endpoint, op.RequestTimeout, 0, end)
	default:
		if req.Value != nil && reply.Outcome == driver.OK {
			l.rec.AddBytes(req.Verb, 0, req.Value.Size)
		}
		l.answered(st, req.Endpoint, reply, len(reply.Value), end)
	}
	return end
}

func (t *local) flush() {}

// recall takes back what has not begun.
func (t *local) recall() {
	for _, c := range t.calls[t.head:] {
		ledger := t.l.rec.Request(c.req.Endpoint, c.req.Verb)
		ledger.Sent--
		ledger.Refused++
	}
	t.calls, t.head = t.calls[:0], 0
}

func (t *local) fire(timer, int64) {}

func (t *local) sweep(int64) int64 { return never }

func (t *local) outstanding(into []measure.Requests) {
	for _, c := range t.calls[t.head:] {
		into[c.req.Endpoint*driver.NumVerbs+int(c.req.Verb)].InFlight++
	}
}

// close leaves the sessions to the store.
func (t *local) close() {}

// own returns how much of a step's time the loop itself took: what was spent in the sessions is the target's.
func (t *local) own(wall int64) int64 {
	own := max(0, wall-t.inside-t.slept)
	t.inside, t.slept = 0, 0
	return own
}
