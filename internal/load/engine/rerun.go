package engine

import (
	"context"
	"io"
	"time"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

const dealEach = 256 // lines of a trace given out in one turn

// rerunFeed starts a session's next line when one of its slots becomes free. The op is due think later, or when its line was read if that is later.
// While any session has nothing to do, the feed reads on and holds the lines of busy sessions. While too many lines are held it reads no further, and
// sessions without lines wait for the others.
type rerunFeed struct {
	tape
	held     waiters
	l        *loop
	pipeline int
	ramp     time.Duration // how much later than the first the last session starts
	lasts    int64         // time in which ops may start, from the step's start; 0 if only the trace's end counts
	stopAt   int64         // the end of that time, on the run clock
	free     []int         // by session: slots that may start an op and have none
	idle     int           // their sum
	lookAt   int64         // when to look at the trace again for those slots
	ended    bool          // nothing more starts
	scratch  op.Op
}

// newRerun makes the feed of a step whose closed sessions replay a trace.
func newRerun(l *loop, source *workload.Source, c *plan.Closed, words driver.Words, open func(context.Context) (io.ReadSeekCloser, error)) *rerunFeed {
	f := &rerunFeed{
		tape: newTape(l, source, c.Trace, c.Sessions, words, open), held: newWaiters(len(l.sessions)), l: l,
		pipeline: c.Pipeline, ramp: c.Ramp, lasts: int64(c.Duration), free: make([]int, len(l.sessions)),
	}
	f.limit = c.Iterations
	return f
}

func (f *rerunFeed) begin() {
	f.stopAt = never
	if f.lasts > 0 {
		f.stopAt = f.l.origin + f.lasts
	}
	for i, s := range f.l.sessions {
		delay := int64(float64(f.ramp) * float64(s.id) / float64(f.all))
		f.l.timers.set(f.l.origin+delay, startSlots, int32(i), int32(f.pipeline))
	}
	f.tape.begin()
}

func (f *rerunFeed) fire(t timer, now int64) {
	f.offer(f.l.sessions[t.arg], int(t.n), t.at, now)
}

// offer gives n free slots of the session the ops held for it.
func (f *rerunFeed) offer(s *session, n int, due, now int64) {
	f.free[s.index] += n
	f.idle += n
	f.lookAt = now
	for f.free[s.index] > 0 && !f.held.none(s) && f.may(now) {
		if !f.l.gate.open(now) {
			f.l.gate.hold(due, startSlots, int32(s.index), 0)
			return
		}
		f.start(s, &f.held.release(s).op, due, now)
	}
}

// may reports whether ops may still start.
func (f *rerunFeed) may(now int64) bool { return !f.ended && now < f.stopAt }

// start begins an op in a free slot of the session.
func (f *rerunFeed) start(s *session, o *op.Op, due, now int64) {
	f.free[s.index]--
	f.idle--
	f.l.gate.pass()
	f.l.startDrawn(s, f.begins(o), due, now)
}

func (f *rerunFeed) freed(s *session, n int, now int64, held bool) {
	think := f.l.rest(s)
	delay := think
	if held {
		delay = max(delay, pause)
	}
	switch {
	case delay == 0:
		f.offer(s, n, now, now)
	case held && f.l.stranded(s):
		f.l.park(s, n, now)
	default:
		f.l.waste(s, n, now+think, now+delay) // no time is lost unless held
		f.l.timers.set(now+delay, startSlots, int32(s.index), int32(n))
	}
}

func (f *rerunFeed) due(now int64) {
	if !f.may(now) {
		f.ended = true
		return
	}
	for range dealEach {
		if f.idle == 0 || f.held.n >= mostHeld {
			return
		}
		if !f.ready() {
			f.lookAt = now + starved
			return
		}
		if !f.l.gate.open(now) {
			f.lookAt = f.l.gate.after(now)
			return
		}
		f.deal(f.head(), now)
		f.pos++
	}
}

// deal gives a line to its session.
func (f *rerunFeed) deal(x *traced, now int64) {
	s := f.l.sessions[x.session]
	if f.free[s.index] == 0 || !f.held.none(s) {
		f.fill(f.held.hold(s, 0), x)
		return
	}
	f.fill(&f.scratch, x)
	f.start(s, &f.scratch, now, now)
}

func (f *rerunFeed) next() int64 {
	switch {
	case f.done():
		return never
	case f.over || f.idle == 0 || f.held.n >= mostHeld:
		return f.stopAt
	}
	return min(f.lookAt, f.stopAt)
}

func (f *rerunFeed) works(_ *session, now int64) int64 {
	if f.over && f.held.n == 0 {
		return 0
	}
	return min(now, f.stopAt)
}

func (f *rerunFeed) stop(int64) { f.ended = true }

func (f *rerunFeed) done() bool { return f.ended || f.over && f.held.n == 0 }

// close also drops the timers of sessions that were still to continue.
func (f *rerunFeed) close() error {
	f.l.timers.drop(startSlots)
	return f.tape.close()
}
