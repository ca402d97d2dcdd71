package engine

import (
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// opState is the state of an op from its start to its last event, in the ways that keep one.
type opState struct {
	op.Op
	by      *programs // the programs of the op's lane
	session *session
	scene   *scene // the scenario that it is a step of; else nil
	due     int64
	begun   int64        // when the program started it
	start   int64        // before the write of its first request; 0 until then
	in, out int64        // bytes received and sent, for samples
	follow  followed     // used if the loop follows its ops
	keys    int          // if the op has several keys: how many of them have no answer yet
	loading int64        // when it began to load from the source of a cache; 0 if it does not
	fill    bool         // it puts a key that a get missed
	used    bool         // in use, between take and release
	done    bool         // the outcome is known; requests may be outstanding
	delayed bool         // it waited for a connection
	noRoom  bool         // it waited for a free slot before, if connections are renewed
	waits   bool         // it waits for its next try
	failed  op.EventKind // if it waits: how its last try ended
}

// next draws the next op of a stream into a slot of the session; nil if the stream has ended.
func (l *loop) next(s *session, stream *workload.Stream, due, now int64) *opState {
	st := l.take()
	for more := true; more; more = l.follows.skips(s, &st.Op) {
		if !stream.Next(&st.Op) {
			l.release(st)
			return nil
		}
	}
	l.occupy(s, 1, now)
	l.ready(st, s, nil, due, now)
	return st
}

// launch begins an op that the caller has drawn, in a slot of the session that the caller has taken. o gets the state's buffers in exchange for its
// own.
func (l *loop) launch(s *session, o *op.Op, sc *scene, due, now int64) {
	st := l.take()
	st.swap(o)
	l.ready(st, s, sc, due, now)
	l.states.launch(st, now)
}

// swap makes o the state's op, and gives it the state's buffers in exchange for its own.
func (st *opState) swap(o *op.Op) {
	slot, key, batch := st.Slot, st.Key, st.Batch
	st.Op = *o
	st.Slot, o.Key, o.Batch = slot, key, batch
}

// startDrawn begins an op that the caller has drawn, in a free slot of the session.
func (l *loop) startDrawn(s *session, o *op.Op, due, now int64) {
	l.occupy(s, 1, now)
	l.launch(s, o, nil, due, now)
}

// ready counts and readies an op that is about to begin.
func (l *loop) ready(st *opState, s *session, sc *scene, due, now int64) {
	l.count(&st.Op)
	l.sets(st, s, sc, due, now)
}

// sets signs an op that is about to begin, and fills in its state.
func (l *loop) sets(st *opState, s *session, sc *scene, due, now int64) {
	st.by = l.lanes[st.Target].programs
	st.session, st.scene, st.due, st.begun, st.start, st.loading, st.done, st.delayed, st.fill, st.keys, st.in, st.out = s, sc, due, now, 0, 0, false, false, false, len(st.Batch), 0, 0
	st.noRoom, l.churn.noRoom = l.churn.noRoom, false
	if l.follows == nil {
		l.sign(&st.Op, now)
		return
	}
	l.follows.sign(&st.Op, now)
	l.follows.begin(&st.follow, s, &st.Op, now)
}

// ended records the outcome of an op. It frees the op's slot; the caller then tells the feed.
func (l *loop) ended(st *opState, step op.Step, cause op.EventKind, now int64) {
	outcome := step.Outcome
	st.done = true
	switch f := l.follows; {
	case f == nil:
	case f.verifies:
		f.verify(&st.Op, &st.follow, &step)
	default:
		f.ended(st.session, st.Verb, &st.follow, outcome, step.Version, now)
	}
	if outcome > driver.Miss {
		l.errorStop.ended(outcome, 1)
		l.fruitless(st.session, 1, cause, st.due, now)
	}
	sample := measure.Sample{
		Verb: st.Verb, Outcome: outcome, Cause: measure.Cause(cause), Kind: step.Kind,
		Due: st.due, Start: st.startOr(now), End: now,
	}
	if l.churn.waited(st, sample.Start) {
		l.rec.Waited.Record(sample.Start - sample.Due)
	}
	if l.sampling != nil {
		l.sampling.endedAlone(&sample, st)
	}
	if st.scene != nil && st.fill {
		l.rec.RecordWithin(&sample, st.scene.due)
		return
	}
	if st.scene != nil {
		st.scene.took(st, outcome, cause, now)
		l.rec.RecordStep(l.scenes.at(st.scene), &sample, st.scene.due)
		return
	}
	l.vacate(st.session, 1, now)
	l.rec.Record(&sample)
	if l.ordinals > 0 {
		l.rec.Grow(&sample, l.ordinal(st.N, st.Stream))
	}
}

// ordinal returns the position in the phase, from 1, of a session's n-th op, n from 0, as if sessions took turns. It depends on the plan only, not on
// which session happens to be ahead or which worker runs it.
func (l *loop) ordinal(n uint64, session uint32) uint64 { return n*l.ordinals + uint64(session) + 1 }

// proceed gives back the slot of an op that has ended, or continues its scenario.
func (l *loop) proceed(s *session, sc *scene, now int64, held bool) {
	if sc != nil {
		l.scenes.proceed(sc, now, held)
		return
	}
	l.feed.freed(s, 1, now, held)
}

// startOr returns when the op's first request was written; now if none was.
func (st *opState) startOr(now int64) int64 {
	if st.start == 0 {
		return now
	}
	return st.start
}

func (l *loop) take() *opState {
	if len(l.free) == 0 {
		l.grow()
	}
	last := len(l.free) - 1
	st := l.slab[l.free[last]]
	l.free = l.free[:last]
	st.used = true
	l.used++
	return st
}

func (l *loop) grow() {
	made := make([]opState, minStates)
	for i := range made {
		made[i].Slot = int32(len(l.slab))
		l.slab = append(l.slab, &made[i])
	}
	for i := len(made) - 1; i >= 0; i-- {
		l.free = append(l.free, made[i].Slot)
	}
}

func (l *loop) release(st *opState) {
	st.used = false
	l.used--
	l.free = append(l.free, st.Slot)
}

// countStates adds the ops in flight that have a state, and their keys, to counts by verb.
func (l *loop) countStates(ops, keys *[driver.NumVerbs]int64) {
	for _, st := range l.slab {
		if st.used && !st.done {
			ops[st.Verb]++
		}
		if st.used {
			keys[st.Verb] += int64(st.keys)
		}
	}
}

// request is a request that the transport has accepted; it reports the request's end to programs.
type request struct {
	st       *opState
	endpoint int
	verb     driver.Verb
	tag      uint8
	keys     int // how many it has; 0 if it has just one
}
