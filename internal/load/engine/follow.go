package engine

import (
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// written is what a worker's sessions know of their writes to a dataset's keys, each of which has a single writer. It lasts as long as the run.
type written struct {
	writers uint64               // sessions of all workers: session s writes the keys whose index is s modulo that
	keys    uint64               // of the dataset
	of      map[int][]writtenKey // by session: its keys, in order
}

// writtenKey is what is known of the writes of one key. Versions increase from write to write; 0 is none.
type writtenKey struct {
	acked uint64 // version of the newest write that was acknowledged
	at    int64  // when that was, on the run clock
	gone  uint64 // version of the newest delete that has begun, whether or not that was acknowledged
}

// right reports whether a get that did not find the key is: nothing was acknowledged since a delete began.
func (k *writtenKey) right() bool { return k.gone > 0 && k.gone >= k.acked }

// keysOf returns what is known of a session's keys.
func (w *written) keysOf(session int) []writtenKey {
	if w.of[session] == nil {
		w.of[session] = make([]writtenKey, (w.keys-uint64(session)+w.writers-1)/w.writers)
	}
	return w.of[session]
}

// follower notes which writes of a loop's sessions are acknowledged, and compares what gets return with them: what a verify reads, or, if staleness is
// measured, what each get of the load does.
type follower struct {
	l         *loop
	writers   uint64
	keys      [][]writtenKey // by session in the loop
	verifies  bool           // every key that was written is read
	staleness *staleness     // nil: staleness is not measured
}

// staleness is what staleness takes besides what is known of writes. All of it is of one loop's sessions, whose gets go to their own keys.
type staleness struct {
	before [][][superseded]acknowledged // by session and key: the writes before the newest that was acknowledged, newest first
	seen   [][]uint64                   // by session that reads: the newest version it has read of each key, of all sessions in turn
	rows   int                          // the most keys of a session
}

// superseded is how many acknowledged writes of a key are known besides the newest. Those that are acknowledged while a get is under way push out older
// ones, which it may have missed, too: there are more than [measure.Behind] tells apart.
const superseded = 7

// acknowledged is a write that was.
type acknowledged struct {
	version uint64
	at      int64
}

// measureStaleness has the follower compare what each get returns.
func (f *follower) measureStaleness() {
	r := &staleness{}
	for _, keys := range f.keys {
		r.before = append(r.before, make([][superseded]acknowledged, len(keys)))
		r.rows = max(r.rows, len(keys))
	}
	for range f.keys {
		r.seen = append(r.seen, make([]uint64, r.rows*len(f.keys)))
	}
	f.staleness = r
}

// reach keeps the gets of a stream to keys that the loop's sessions write, if staleness is measured.
func (f *follower) reach(stream workload.Stream) workload.Stream {
	if f != nil && f.staleness != nil {
		first := f.l.sessions[0].id
		stream.Reach(first, first+len(f.keys))
	}
	return stream
}

// place returns whose key an op's is, of the loop's sessions, and which of theirs; false if it is not among them.
func (f *follower) place(o *op.Op) (session, row int, ok bool) {
	session, row = int(o.Index%f.writers)-f.l.sessions[0].id, int(o.Index/f.writers)
	return session, row, session >= 0 && session < len(f.keys) && row < len(f.keys[session])
}

// key returns what is known of a key that one of the loop's sessions writes.
func (f *follower) key(o *op.Op) *writtenKey {
	session, row, _ := f.place(o)
	return &f.keys[session][row]
}

// skips reports whether an op that was drawn is not carried out: a verify reads only what was written.
func (f *follower) skips(o *op.Op) bool {
	return f != nil && f.verifies && f.key(o).acked == 0
}

// due returns how many ops of a verify are carried out.
func (f *follower) due() (n uint64) {
	for _, keys := range f.keys {
		for i := range keys {
			if keys[i].acked > 0 {
				n++
			}
		}
	}
	return n
}

// begin notes that an op begins.
func (f *follower) begin(st *opState, now int64) {
	switch st.Verb {
	case driver.Delete:
		st.Value.Version = f.l.versions(1, now)
		f.key(&st.Op).gone = st.Value.Version
	case driver.Get:
		if session, row, ok := f.place(&st.Op); ok && f.staleness != nil {
			st.floor = f.keys[session][row].acked
			st.seen = *f.staleness.of(st.session, session, row)
		}
	}
}

// of returns the newest version that a session has read of a key of another one, or of its own.
func (r *staleness) of(s *session, writer, row int) *uint64 {
	return &r.seen[s.index][writer*r.rows+row]
}

// ended notes how an op has ended.
func (f *follower) ended(st *opState, step *op.Step, now int64) {
	switch {
	case st.Verb == driver.Get && f.verifies:
		f.verify(&st.Op, step)
	case st.Verb == driver.Get && f.staleness != nil:
		f.read(st, step)
	case st.Verb != driver.Get && step.Outcome <= driver.Miss:
		f.acknowledge(&st.Op, now)
	}
}

// acknowledge notes that a write was acknowledged.
func (f *follower) acknowledge(o *op.Op, now int64) {
	session, row, _ := f.place(o)
	k, w := &f.keys[session][row], acknowledged{o.Value.Version, now}
	if w.version > k.acked {
		k.acked, k.at, w = w.version, w.at, acknowledged{k.acked, k.at}
	}
	if f.staleness == nil {
		return
	}
	before := &f.staleness.before[session][row]
	for i := range before { // the newest first, whatever the order of their acknowledgements
		if w.version > before[i].version {
			w, before[i] = before[i], w
		}
	}
}

// read compares what a get returned with what had been acknowledged before it began, and with what its session had read by then.
func (f *follower) read(st *opState, step *op.Step) {
	session, row, ok := f.place(&st.Op)
	foreign := step.Outcome == driver.OK && step.Version == 0
	if !ok || step.Outcome > driver.Miss || foreign {
		return
	}
	k, s := &f.keys[session][row], &f.l.rec.Compared().Staleness
	if st.floor > 0 {
		s.Gets++
	}
	if step.Outcome == driver.Miss && k.gone > 0 && k.gone >= st.floor { // a delete that had begun may have taken effect
		return
	}
	if step.Version < st.seen {
		s.Backwards++
	}
	seen := f.staleness.of(st.session, session, row)
	*seen = max(*seen, step.Version)
	if step.Version >= st.floor {
		return
	}
	behind, since := f.behind(session, row, step.Version, st.begun)
	s.Stale++
	s.Behind[behind-1]++
	s.Age.Record(st.begun - since)
}

// behind returns how many acknowledged writes of a key, up to [measure.Behind], a version was behind at a time, and when the first of them was
// acknowledged.
func (f *follower) behind(session, row int, version uint64, at int64) (n int, since int64) {
	n, since = 0, at
	count := func(of uint64, acked int64) {
		if of > version && acked <= at {
			n, since = n+1, acked
		}
	}
	k := &f.keys[session][row]
	count(k.acked, k.at)
	for _, w := range f.staleness.before[session][row] {
		count(w.version, w.at)
	}
	return min(max(n, 1), measure.Behind), since
}

// verify compares what was read of a key with what was written.
func (f *follower) verify(o *op.Op, step *op.Step) {
	k, v := f.key(o), &f.l.rec.Compared().Verified
	v.Keys++
	switch {
	case step.Outcome > driver.Miss:
		v.Unread++
	case step.Outcome == driver.Miss && k.right(), step.Outcome == driver.OK && step.Version == k.acked:
	case step.Outcome == driver.OK && step.Version > k.acked:
		v.Newer++
	default:
		v.Lose(measure.Lost{At: k.at, Key: o.Key, Version: k.acked, Found: step.Version})
	}
}
