package engine

import (
	"time"

	"github.com/loadgen/loadgen/internal/base/panics"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// timed is the transport of drivers that have none: the loop's own timers complete requests.
type timed struct {
	l         *loop
	lane      *lane
	number    int32 // its number among the loop's timed transports
	driver    driver.Timed
	config    any
	endpoints int
	limit     int   // the most requests outstanding for a session and endpoint
	timeout   int64 // of a request, in nanoseconds
	owed      []int // requests outstanding, by session and endpoint
	calls     []timedCall
	free      []int32
	reply     driver.Reply // the current reply
}

// timedCall is a request whose reply is computed but not due yet.
type timedCall struct {
	st       *opState // nil once it has timed out
	endpoint int
	owed     int // index into timed.owed
	verb     driver.Verb
	tag      uint8
	reply    driver.Reply
	late     int64 // time from the timeout to the late reply
}

func (t *timed) open(int64) error {
	t.owed = make([]int, len(t.l.sessions)*t.endpoints)
	return nil
}

func (t *timed) send(s *session, st *opState, req *driver.Request) bool {
	owed := s.index*t.endpoints + req.Endpoint
	if t.owed[owed] >= t.limit {
		return false
	}
	now := t.l.clock.now()
	if t.l.expired(now) {
		return false
	}
	t.owed[owed]++
	if st.start == 0 {
		st.start = now
	}
	i := t.call()
	c := &t.calls[i]
	*c = timedCall{st: st, endpoint: req.Endpoint, owed: owed, verb: req.Verb, tag: req.Tag}
	wait, err := t.ask(req, &c.reply)
	if err != nil {
		t.owed[owed]--
		c.st = nil
		t.free = append(t.free, i)
		t.l.wrong([]byte(err.Error()))
		t.l.panicked(s, err, now)
		return false
	}
	takes := int64(wait)
	if takes > t.timeout {
		c.late = takes - t.timeout
		takes = t.timeout
	}
	t.l.timers.set(now+takes, complete, i, t.number)
	return true
}

// ask makes the driver reply. A panic becomes an error.
func (t *timed) ask(req *driver.Request, reply *driver.Reply) (d time.Duration, err error) {
	defer func() {
		if e := panics.Recovered(recover()); e != nil {
			err = e
		}
	}()
	return t.driver.Reply(t.config, req, reply), nil
}

func (t *timed) call() int32 {
	if n := len(t.free); n > 0 {
		i := t.free[n-1]
		t.free = t.free[:n-1]
		return i
	}
	t.calls = append(t.calls, timedCall{})
	return int32(len(t.calls) - 1)
}

func (t *timed) fire(tm timer, now int64) {
	c := t.calls[tm.arg]
	if c.late > 0 {
		t.calls[tm.arg].st, t.calls[tm.arg].late = nil, 0
		t.l.timers.set(tm.at+c.late, complete, tm.arg, t.number)
		t.lane.programs.lost(request{st: c.st, endpoint: c.endpoint, verb: c.verb, tag: c.tag}, op.RequestTimeout, now)
		return
	}
	t.owed[c.owed]--
	t.calls[tm.arg].st = nil
	t.free = append(t.free, tm.arg)
	if c.st == nil {
		t.l.rec.LateReplies++
		return
	}
	t.reply = c.reply
	t.lane.programs.replied(request{st: c.st, endpoint: c.endpoint, verb: c.verb, tag: c.tag}, &t.reply, nil, len(t.reply.Value), now)
}

func (t *timed) wait(d time.Duration) bool {
	if d > 0 {
		t.l.clock.sleep(d)
	}
	return false
}

func (t *timed) flush() {}

func (t *timed) recall() {}

func (t *timed) sweep(int64) int64 { return never }

func (t *timed) outstanding(into []measure.Requests) {
	for i := range t.calls {
		if c := &t.calls[i]; c.st != nil {
			into[t.lane.row(c.endpoint)*driver.NumVerbs+int(c.verb)].InFlight++
		}
	}
}

func (t *timed) close() {}
