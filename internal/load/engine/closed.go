package engine

import (
	"time"

	"github.com/loadgen/loadgen/pkg/plan"
)

// closedFeed starts a session's next op when one of its slots becomes free: due = freed + think. Sessions may come and go: one that goes starts nothing
// more, and what it has in flight ends.
type closedFeed struct {
	l        *loop
	pipeline int
	load     *plan.Closed // nil if all sessions begin at once
	sessions int          // the phase's sessions on all workers
	lasts    int64        // time in which ops may start, from the step's start; 0 if only the streams' ends count
	stopAt   int64        // the end of that time, on the run clock
	live     int          // slots that may still start an op, those of sessions that are to come included
}

func (f *closedFeed) begin() {
	f.stopAt = never
	if f.lasts > 0 {
		f.stopAt = f.l.origin + f.lasts
	}
	for _, s := range f.l.sessions {
		f.await(s, 0)
	}
}

// await sets when a session comes, the first time or after it has gone at a time since the step's start.
func (f *closedFeed) await(s *session, gone int64) {
	from, to := int64(0), f.stopAt-f.l.origin
	switch {
	case f.load == nil:
	case len(f.load.Stages) == 0:
		from = int64(float64(f.load.Ramp) * float64(s.id) / float64(f.sessions))
	default:
		comes, goes := f.load.Present(s.id, time.Duration(gone))
		from, to = int64(comes), int64(goes)
	}
	if from >= to {
		return
	}
	f.live += f.pipeline
	f.l.timers.set(f.l.origin+from, comes, int32(s.index), int32(f.pipeline))
}

func (f *closedFeed) fire(t timer, now int64) {
	s, n := f.l.sessions[t.arg], int(t.n)
	if t.kind == comes {
		if s.until = f.stopAt; f.load != nil && len(f.load.Stages) > 0 {
			_, goes := f.load.Present(s.id, time.Duration(t.at-f.l.origin))
			s.until = f.l.origin + int64(goes)
			f.await(s, int64(goes))
		}
		f.live -= s.armed // slots that have something left from when it was last there go on as such
		n -= s.armed
		s.armed += n
	}
	f.start(s, n, t.at, now)
}

// start starts ops in n free slots of the session, or retires the slots.
func (f *closedFeed) start(s *session, n int, due, now int64) {
	if !f.over(s, now) {
		may := f.l.gate.admit(n, now)
		if may < n {
			f.l.gate.hold(due, startSlots, int32(s.index), int32(n-may))
		}
		n = may - f.l.way.start(s, &s.stream, may, due, now)
	}
	f.disarm(s, n)
}

// disarm retires slots of a session.
func (f *closedFeed) disarm(s *session, n int) {
	f.live -= n
	s.armed -= n
}

// over reports whether the session will start nothing at the given time, now or in the future.
func (f *closedFeed) over(s *session, at int64) bool {
	return f.l.stopped || s.retired || at >= s.until
}

func (f *closedFeed) freed(s *session, n int, now int64, held bool) {
	if n > 1 && f.l.thinks != nil {
		for range n {
			f.freed(s, 1, now, held)
		}
		return
	}
	think := f.l.rest(s)
	delay := think
	if held {
		delay = max(delay, pause)
	}
	switch due := now + delay; {
	case held && f.l.stranded(s) && !f.over(s, now):
		f.l.park(s, n, now)
	case delay == 0:
		f.start(s, n, due, now)
	case f.over(s, due):
		f.disarm(s, n)
	default:
		f.l.waste(s, n, now+think, due) // no time is lost unless held
		f.l.timers.set(due, startSlots, int32(s.index), int32(n))
	}
}

func (f *closedFeed) due(now int64) {
	if now >= f.stopAt {
		f.live -= f.l.dismiss(now) + f.l.gate.drop(startSlots)
	}
}

func (f *closedFeed) works(s *session, now int64) int64 {
	if s.retired || s.stream.Ended() {
		return 0
	}
	return min(now, s.until)
}

func (f *closedFeed) next() int64 {
	if f.l.away.slots == 0 {
		return never
	}
	return f.stopAt
}

func (f *closedFeed) stop(now int64) {
	f.live -= f.l.timers.drop(startSlots) + f.l.timers.drop(comes) + f.l.dismiss(now) + f.l.gate.drop(startSlots)
}

func (f *closedFeed) done() bool { return f.live == 0 }
