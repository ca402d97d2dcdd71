package engine

import (
	"time"
)

// closedFeed starts a session's next op when one of its slots becomes free: due = freed + think.
type closedFeed struct {
	l        *loop
	pipeline int
	ramp     time.Duration // how much later than the first the phase's last session starts
	sessions int           // the phase's sessions on all workers
	lasts    int64         // time in which ops may start, from the step's start; 0 if only the streams' ends count
	stopAt   int64         // the end of that time, on the run clock
	live     int           // slots that may still start an op
}

func (f *closedFeed) begin() {
	f.stopAt = never
	if f.lasts > 0 {
		f.stopAt = f.l.origin + f.lasts
	}
	f.live = len(f.l.sessions) * f.pipeline
	for i, s := range f.l.sessions {
		delay := int64(float64(f.ramp) * float64(s.id) / float64(f.sessions))
		f.l.timers.set(f.l.origin+delay, startSlots, int32(i), int32(f.pipeline))
	}
}

func (f *closedFeed) fire(t timer, now int64) {
	f.start(f.l.sessions[t.arg], int(t.n), t.at, now)
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
	f.live -= n
}

// over reports whether the session will start nothing at the given time, now or in the future.
func (f *closedFeed) over(s *session, at int64) bool {
	return f.l.stopped || s.retired || at >= f.stopAt
}

func (f *closedFeed) freed(s *session, n int, now int64, held bool) {
	delay := f.l.think
	if held {
		delay = max(delay, pause)
	}
	switch due := now + delay; {
	case held && f.l.stranded(s) && !f.over(s, now):
		f.l.park(s, n, now)
	case delay == 0:
		f.start(s, n, due, now)
	case f.over(s, due):
		f.live -= n
	default:
		f.l.waste(s, n, now+f.l.think, due) // no time is lost unless held
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
	return min(now, f.stopAt)
}

func (f *closedFeed) next() int64 {
	if f.l.away.slots == 0 {
		return never
	}
	return f.stopAt
}

func (f *closedFeed) stop(now int64) {
	f.live -= f.l.timers.drop(startSlots) + f.l.dismiss(now) + f.l.gate.drop(startSlots)
}

func (f *closedFeed) done() bool { return f.live == 0 }
