package engine

import (
	"context"
	"io"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// replayFeed starts the ops of a trace when the trace says. Ops that wait for their session are held. While too many are held, no more of the trace
// is read; later ops then start late, but keep their due times.
type replayFeed struct {
	tape
	tardy

	held     waiters
	l        *loop
	pipeline int
	shed     bool
	lasts    int64 // how long the trace goes on, from the step's start
	drain    int64 // how long after that due ops may still start
	drainAt  int64 // when drain ends, on the run clock
	lookAt   int64 // when to look at the trace again while the reader is not ahead
	ending   bool  // nothing more starts: held ops, and those that were due by endBy, are shed, some in each turn
	endBy    int64
	busy     *session // the session whose op is being started
	scratch  op.Op
}

// newReplay makes the feed of a step that replays a trace.
func newReplay(l *loop, source *workload.Source, o *plan.Open, words driver.Words, open func(context.Context) (io.ReadSeekCloser, error)) *replayFeed {
	f := &replayFeed{
		tape: newTape(l, source, o.Trace, o.Sessions, words, open), held: newWaiters(len(l.sessions)),
		l: l, pipeline: o.Pipeline, shed: o.Sheds(), lasts: int64(o.Duration), drain: int64(o.Drain),
	}
	f.timed = true
	if o.Trace.Even {
		f.rate = o.Rate
	}
	return f
}

func (f *replayFeed) begin() {
	f.drainAt = f.l.origin + f.lasts + f.drain
	f.tape.begin()
}

func (f *replayFeed) fire(t timer, now int64) { f.freed(f.l.sessions[t.arg], 0, now, false) }

func (f *replayFeed) due(now int64) {
	if now >= f.drainAt && !f.done() && !f.ending {
		f.end(never)
	}
	if f.ending {
		f.shedSome()
		return
	}
	for f.held.n < mostHeld && f.ready() && f.l.origin+f.head().due <= now {
		x := f.head()
		s, due := f.l.sessions[x.session], f.l.origin+x.due
		switch room := s.active < f.pipeline && f.held.none(s); {
		case room && !f.l.gate.open(now):
			f.roomAt = f.l.gate.after(now)
			return
		case room:
			f.fill(&f.scratch, x)
			f.start(s, &f.scratch, due, now)
		case f.shed:
			f.drop(x)
		default:
			f.fill(f.held.hold(s, due), x)
		}
		f.pos++
	}
	if f.held.n >= mostHeld {
		f.roomAt = now // lines that are not read yet wait for those held
	}
	f.lookAt = now + starved
}

// start begins an op in a free slot of the session.
func (f *replayFeed) start(s *session, o *op.Op, due, now int64) {
	before := f.busy
	f.busy = s
	f.begun(f.l, s, due, now)
	f.l.gate.pass()
	f.l.startDrawn(s, f.begins(o), due, now)
	f.busy = before
}

func (f *replayFeed) freed(s *session, n int, now int64, _ bool) {
	if s.active+n >= f.pipeline {
		s.roomAt = now
	}
	if s == f.busy {
		return // due calls this again
	}
	for s.active < f.pipeline && !f.held.none(s) {
		if !f.l.gate.open(now) {
			f.l.gate.hold(now, startSlots, int32(s.index), 0)
			return
		}
		w := f.held.release(s)
		f.start(s, &w.op, w.due, now)
	}
}

func (f *replayFeed) next() int64 {
	switch {
	case f.done():
		return never
	case f.ending:
		return 0 // at once
	case f.over || f.held.n >= mostHeld:
		return f.drainAt
	case !f.ready():
		return min(f.lookAt, f.drainAt)
	}
	return min(f.l.gate.after(f.l.origin+f.head().due), f.drainAt)
}

func (f *replayFeed) works(_ *session, now int64) int64 { return min(now, f.l.origin+f.lasts) }

func (f *replayFeed) stop(now int64) {
	f.end(now)
	f.shedSome()
}

// end makes the feed shed what is held and what was due by a time, and forget the rest.
func (f *replayFeed) end(by int64) { f.ending, f.endBy = true, by }

// shedSome sheds some more ops after end, as that of [openFeed] does.
func (f *replayFeed) shedSome() {
	for _, s := range f.l.sessions {
		for !f.held.none(s) {
			f.shedOp(&f.held.release(s).op)
		}
	}
	for left := shedEach; f.ready() && f.l.origin+f.head().due <= f.endBy; left-- {
		if left == 0 {
			return
		}
		f.drop(f.head())
		f.pos++
	}
	f.over = f.over || f.at != nil // the current line is due later; without one, the next is not read yet
}

// drop sheds an op that was not held.
func (f *replayFeed) drop(x *traced) {
	f.fill(&f.scratch, x)
	f.shedOp(&f.scratch)
}

func (f *replayFeed) shedOp(o *op.Op) {
	o = f.begins(o)
	f.l.count(o)
	f.l.rec.Shed(o.Verb, 1)
	f.l.rec.ShedKeys(o.Verb, len(o.Batch))
}

func (f *replayFeed) done() bool { return f.over && f.held.n == 0 }
