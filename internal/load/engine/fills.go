package engine

import (
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// fills puts the keys that gets missed, as applications fill a cache. Such a put is an op of its own, which takes over the get's slot. It is not
// drawn from the stream: the number of such puts depends on the target and not on the plan, so they are counted but not digested.
type fills struct {
	l      *loop
	source *workload.Source
	width  int   // the most requests that a put begins with; they pass the gate together with the get
	op     op.Op // the put that comes next
}

// reserved returns how many requests passed the gate with an op for the put that may follow it.
func (f *fills) reserved(st *opState) int {
	if f == nil || st.Verb != driver.Get {
		return 0
	}
	return f.width
}

// take prepares the put for an op that has ended, if that was a get that missed and the load goes on.
func (f *fills) take(st *opState, outcome driver.Outcome) bool {
	if f == nil || st.Verb != driver.Get {
		return false
	}
	f.l.gate.refund(f.width)
	if outcome != driver.Miss || f.l.stopped {
		return false
	}
	key := append(f.op.Key[:0], st.Key...)
	f.op = st.Op
	f.op.Key = key
	if sc := st.scene; sc != nil {
		f.source.RefillStep(&f.op, sc.number, sc.at)
		sc.fills = true
	} else {
		f.source.Refill(&f.op)
	}
	return true
}

// put begins the put that take has prepared, in the slot of the get.
func (f *fills) put(s *session, sc *scene, now int64) {
	l := f.l
	if sc == nil {
		l.occupy(s, 1, now)
	}
	st := l.take()
	slot, key := st.Slot, st.Key
	st.Op = f.op
	st.Slot, f.op.Key = slot, key
	l.rec.AddDue(st.Verb)
	l.sets(st, s, sc, now, now)
	st.fill = true
	l.gate.pass()
	l.states.launch(st, now)
}
