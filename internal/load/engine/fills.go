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
	width  int       // the most requests that a put begins with; they pass the gate together with the get
	op     op.Op     // the put that comes next
	chain  *op.Chain // the program of ops that are chains; else nil
}

// reserved returns how many requests passed the gate with an op for the put that may follow it.
func (f *fills) reserved(st *opState) int {
	if !f.follows(st) {
		return 0
	}
	return f.width
}

// follows reports whether a put may follow an op.
func (f *fills) follows(st *opState) bool {
	return f != nil && (st.Verb == driver.Get || f.chain != nil && st.Verb.Own())
}

// take prepares the put for an op that has ended, if that was a get that missed and the load goes on.
func (f *fills) take(st *opState, step *op.Step) bool {
	if !f.follows(st) {
		return false
	}
	f.l.gate.refund(f.width)
	there := step.Outcome == driver.OK && step.Good == len(st.Batch) // of a get of one key, both are 0
	if step.Outcome > driver.Miss || there || f.l.stopped {
		return false
	}
	key, rest := append(f.op.Key[:0], st.Key...), f.op.Batch
	f.op = st.Op
	f.op.Key, f.op.Batch = key, nil
	if f.chain != nil {
		f.op.Batch = f.rest(rest, st.Batch[step.Good:])
	}
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
	st.swap(&f.op)
	l.rec.AddDue(st.Verb)
	if len(st.Batch) > 0 {
		l.rec.AddKeysDue(st.Verb, len(st.Batch))
	}
	l.sets(st, s, sc, now, now)
	st.fill = true
	l.gate.pass()
	l.states.launch(st, now)
}

// rest makes puts of the keys of a chain that were not there, with room for them.
func (f *fills) rest(room, items []driver.Item) []driver.Item {
	room = atLeast(room, len(items))
	for i := range items {
		to := &room[i]
		one := op.Op{Index: items[i].Index, Key: append(to.Key[:0], items[i].Key...)}
		f.source.Refill(&one)
		to.Index, to.Key, to.Value = one.Index, one.Key, one.Value
	}
	return room
}

// atLeast returns items with length n, which keep their buffers.
func atLeast(items []driver.Item, n int) []driver.Item {
	items = items[:cap(items)]
	if n > len(items) {
		items = append(items, make([]driver.Item, n-len(items))...)
	}
	return items[:n]
}
