package engine

import "github.com/loadgen/loadgen/internal/plan/op"

// awaitTry arranges another try, after a time, of an op whose last try ended in an event of a kind. Once the step was asked to end there are no more
// tries.
func (l *loop) awaitTry(st *opState, kind op.EventKind, wait, now int64) {
	st.failed = kind
	if l.stopped {
		st.by.deliver(op.Event{Kind: kind, Op: &st.Op}, now)
		return
	}
	st.waits = true
	l.timers.set(now+wait, nextTry, st.Slot, 0)
}

// tryAgain ends the wait of an op and delivers an event to its program.
func (l *loop) tryAgain(st *opState, kind op.EventKind, now int64) {
	st.waits = false
	st.by.deliver(op.Event{Kind: kind, Op: &st.Op}, now)
}

// stopTries ends ops that wait for their next try. They end as their last try did.
func (l *loop) stopTries(now int64) {
	l.timers.drop(nextTry)
	for _, st := range l.slab {
		if st.waits {
			l.tryAgain(st, st.failed, now)
		}
	}
}
