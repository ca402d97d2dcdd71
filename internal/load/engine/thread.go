package engine

import (
	"fmt"
	"time"

	"github.com/loadgen/loadgen/internal/base/panics"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// thread carries ops out on the loop's own thread. It is the way, and the transport, of a driver whose target is files on this machine. An op on a
// mapped file can take less time than a hand-over to another goroutine.
//
// wait carries out queued ops one after another, so an op whose end starts the next does not recurse. Every op is one request to the one endpoint and
// needs no program, which would take a third of the loop's own time.
type thread struct {
	l        *loop
	store    localfile.Store
	sessions []localfile.Session // by session.index; nil once a session has failed
	timed    []localfile.Timed   // by session.index; nil for a session that does not measure its waits
	calls    []*opState          // ops that have not begun; from head on, the oldest first
	head     int
	req      driver.Request // the current request
	reply    driver.Reply   // to the current request
	timeout  int64
	inside   int64 // time spent in the sessions, in this step
	slept    int64 // time spent sleeping, in this step
	ran      ranOn
}

// threadTurn is how long wait carries out ops before the loop looks at its timers again.
const threadTurn = int64(time.Millisecond)

func (t *thread) open(int64) error {
	for _, s := range t.l.sessions {
		var session localfile.Session
		if err := panics.Safely(func() (err error) {
			session, err = t.store.Session(s.id)
			return err
		}); err != nil {
			return err
		}
		timed, _ := session.(localfile.Timed)
		if timed != nil {
			if _, measured := timed.Waited(); !measured {
				timed = nil
			}
		}
		t.sessions, t.timed = append(t.sessions, session), append(t.timed, timed)
	}
	return nil
}

func (t *thread) start(s *session, stream *workload.Stream, n int, due, now int64) int {
	for i := range n {
		st := t.l.next(s, stream, due, now)
		if st == nil {
			return i
		}
		t.launch(st, now)
	}
	return n
}

// launch queues an op. Its request is made when its turn comes.
func (t *thread) launch(st *opState, now int64) {
	t.l.rec.Request(0, st.Verb).Sent++
	if t.sessions[st.session.index] == nil {
		t.ended(st, driver.Error, op.Refused, now)
		return
	}
	if t.head == len(t.calls) {
		t.calls, t.head = t.calls[:0], 0
	}
	t.calls = append(t.calls, st)
}

// send is never called: this transport runs no programs.
func (t *thread) send(*session, *opState, *driver.Request) bool { return false }

func (t *thread) census(ops, keys *[driver.NumVerbs]int64) { t.l.countStates(ops, keys) }

func (t *thread) wait(d time.Duration) bool {
	began := t.l.clock.now()
	if t.head == len(t.calls) {
		if d > 0 {
			t.l.clock.sleep(d)
			t.slept += t.l.clock.now() - began
		}
		return false
	}
	now := began
	for t.head < len(t.calls) && now < began+threadTurn && t.l.halt.Load() != abandon && !t.l.expired(now) {
		st := t.calls[t.head]
		t.head++
		now = t.carry(st)
	}
	t.l.planned += now - began // a long op does not count as a stall of the loop
	return true
}

// carry carries an op out and returns its end.
func (t *thread) carry(st *opState) (end int64) {
	l, session := t.l, t.sessions[st.session.index]
	if session == nil { // the session has failed meanwhile
		end = l.clock.now()
		t.ended(st, driver.Error, op.Lost, end)
		return end
	}
	req, reply := &t.req, &t.reply
	req.Verb, req.Stream, req.N, req.Index, req.Key, req.Value = st.Verb, st.Stream, st.N, st.Index, st.Key, nil
	if st.Verb.Stores() {
		req.Value = &st.Value
	}
	*reply = driver.Reply{}
	timed := t.timed[st.session.index]
	before := waited(timed)
	start, err := t.work(session, req, reply)
	st.start = start
	end = l.clock.now()
	t.inside += end - start
	switch {
	case err != nil:
		t.sessions[st.session.index] = nil
		l.retire(st.session)
		l.wrong(fmt.Appendf(nil, "%v", err))
		l.panicked(st.session, err, end)
		t.ended(st, driver.Error, op.Lost, end)
	case end-start > t.timeout:
		t.ended(st, driver.Timeout, op.RequestTimeout, end)
	default:
		if timed != nil && st.Verb.Stores() && reply.Outcome == driver.OK {
			l.rec.Split(st.Verb, end-start, int64(waited(timed)-before))
		}
		t.answered(st, reply, end)
	}
	return end
}

// waited returns how long all ops of a session so far have waited for durability; 0 without a session.
func waited(session localfile.Timed) time.Duration {
	if session == nil {
		return 0
	}
	all, _ := session.Waited()
	return all
}

// work makes a session carry a request out, and returns when that began. A panic becomes an error.
func (t *thread) work(session localfile.Session, req *driver.Request, reply *driver.Reply) (start int64, err error) {
	defer func() {
		if e := panics.Recovered(recover()); e != nil {
			err = e
			if start == 0 {
				start = t.l.clock.now()
			}
		}
	}()
	err = session.Prepare(req)
	start = t.l.clock.now()
	if err == nil {
		err = session.Do(req, reply)
	}
	return start, err
}

// answered handles the reply to an op.
func (t *thread) answered(st *opState, reply *driver.Reply, now int64) {
	l := t.l
	l.answers = now
	sent := 0
	switch reply.Outcome {
	case driver.OK:
		sent = st.Value.Size
	case driver.Error:
		l.wrong(reply.Message)
	}
	l.rec.AddBytes(st.Verb, len(reply.Value), sent)
	st.in, st.out = int64(len(reply.Value)), int64(sent)
	t.ended(st, reply.Outcome, op.Replied, now)
}

// ended counts the end of an op's request, and of the op.
func (t *thread) ended(st *opState, outcome driver.Outcome, cause op.EventKind, now int64) {
	l := t.l
	ledger := l.rec.Request(0, st.Verb)
	switch {
	case cause != op.Replied:
		unanswered(ledger, cause, 1)
	case outcome == driver.Error:
		ledger.Error++
	default:
		ledger.Answered++
	}
	s, sc := st.session, st.scene
	l.ended(st, op.Step{Outcome: outcome}, cause, now)
	if l.sampling != nil {
		l.sampling.forget()
	}
	l.release(st)
	l.proceed(s, sc, now, cause == op.Refused)
}

func (t *thread) flush() {}

// recall takes back ops that have not begun.
func (t *thread) recall() {
	for _, c := range t.calls[t.head:] {
		ledger := t.l.rec.Request(0, c.Verb)
		ledger.Sent--
		ledger.Refused++
	}
	t.calls, t.head = t.calls[:0], 0
}

func (t *thread) fire(timer, int64) {}

func (t *thread) sweep(int64) int64 { return never }

func (t *thread) outstanding(into []measure.Requests) {
	for _, c := range t.calls[t.head:] {
		into[c.Verb].InFlight++
	}
}

// close does nothing: the store closes the sessions.
func (t *thread) close() {}

// own returns how much of a step's time the loop itself took: time in the sessions is the target's.
func (t *thread) own(wall int64) int64 {
	own := max(0, wall-t.inside-t.slept)
	t.inside, t.slept = 0, 0
	return own
}
