package engine

import "github.com/loadgen/loadgen/internal/load/op"

// awaitTry has an op whose try has failed in an event of a kind tried again after a time. A step that was asked to end begins no other try.
func (l *loop) awaitTry(st *opState, kind op.EventKind, wait, now int64) {
	st.failed = kind
	if l.stopped {
		st.by.deliver(op.Event{Kind: kind, Op: &st.Op}, now)
		return
	}
	st.waits = true
	l.timers.set(now+wait, nextTry, st.Slot, 0)
}

// tryAgain goes on with an op that waited for its next try, by an event.
func (l *loop) tryAgain(st *opState, kind op.EventKind, now int64) {
	st.waits = false
	st.by.deliver(op.Event{Kind: kind, Op: &st.Op}, now)
}

// stopTries ends the ops that wait for their next try as their last one ended.
func (l *loop) stopTries(now int64) {
	l.timers.drop(nextTry)
	for _, st := range l.slab {
		if st.waits {
			l.tryAgain(st, st.failed, now)
		}
	}
}
