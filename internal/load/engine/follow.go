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
	read  uint64 // newest version that was read while staleness was measured
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

// followed is what is known of an op that has begun.
type followed struct {
	session, row int32  // whose key it is, of the loop's sessions, and which of theirs; -1: of none of them
	version      uint64 // of a write: its own; of a get, if staleness is measured: the newest version of its key that was acknowledged
	seen         uint64 // of a get, if staleness is measured: the newest version that its session had read
	begun        int64
}

// staleness is what staleness takes besides what is known of writes. All of it is of one loop's sessions, whose gets go to their own keys.
type staleness struct {
	before [][]history // by session and key
	next   [][]uint8   // likewise: where in its history the next write goes
	seen   [][]uint64  // by session that reads: the newest version it has read of each key, of all sessions in turn
	rows   int         // the most keys of a session
}

// history is a ring of the writes of a key that were acknowledged last, besides the newest.
type history [superseded]acknowledged

// superseded is how many acknowledged writes of a key are known besides the newest. Those that are acknowledged while a get is under way push out older
// ones, which it may have missed, too: there are more than [measure.Behind] tells apart.
const superseded = 8

// acknowledged is a write that was.
type acknowledged struct {
	version uint64
	at      int64
}

// measureStaleness has the follower compare what each get returns.
func (f *follower) measureStaleness() {
	r := &staleness{}
	for _, keys := range f.keys {
		r.before = append(r.before, make([]history, len(keys)))
		r.next = append(r.next, make([]uint8, len(keys)))
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

// place returns whose key an op's is, of the loop's sessions, and which of theirs; -1 if it is none of theirs.
func (f *follower) place(o *op.Op) (session, row int32) {
	at := o.Index / f.writers
	by := int(o.Index-at*f.writers) - f.l.sessions[0].id
	if uint(by) >= uint(len(f.keys)) {
		return -1, -1
	}
	return int32(by), int32(at)
}

// key returns what is known of a key that one of the loop's sessions writes.
func (f *follower) key(session, row int32) *writtenKey { return &f.keys[session][row] }

// skips reports whether an op that was drawn is not carried out: a verify reads only what was written.
func (f *follower) skips(o *op.Op) bool {
	return f != nil && f.verifies && f.key(f.place(o)).acked == 0
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

// sign gives an op that is about to begin its version.
func (f *follower) sign(o *op.Op, now int64) {
	f.l.sign(o, now)
	if o.Verb == driver.Delete {
		o.Value.Version = f.l.versions(1, now)
	}
}

// begin sets what is known of an op that a session begins, which is signed.
func (f *follower) begin(a *followed, s *session, o *op.Op, now int64) {
	a.session, a.row = f.place(o)
	a.version, a.begun = o.Value.Version, now
	switch {
	case a.row < 0:
	case o.Verb == driver.Delete:
		f.key(a.session, a.row).gone = a.version
	case o.Verb == driver.Get && f.staleness != nil:
		a.version = f.key(a.session, a.row).acked
		a.seen = *f.staleness.of(s, a)
	}
}

// of returns the newest version that a session has read of a key of another one, or of its own.
func (r *staleness) of(s *session, a *followed) *uint64 {
	return &r.seen[s.index][int(a.session)*r.rows+int(a.row)]
}

// ended notes how a session's op has ended, which is no part of a verify. version is what a get returned, 0 if it is not known.
func (f *follower) ended(s *session, verb driver.Verb, a *followed, outcome driver.Outcome, version uint64, now int64) {
	switch {
	case outcome > driver.Miss:
	case verb != driver.Get:
		f.acknowledge(a, now)
	case f.staleness != nil && a.row >= 0 && (outcome == driver.Miss || version > 0):
		f.read(s, a, outcome, version)
	}
}

// acknowledge notes that a write was acknowledged.
func (f *follower) acknowledge(a *followed, now int64) {
	k, w := f.key(a.session, a.row), acknowledged{a.version, now}
	if w.version > k.acked {
		k.acked, k.at, w = w.version, w.at, acknowledged{k.acked, k.at}
	}
	if f.staleness == nil {
		return
	}
	next := &f.staleness.next[a.session][a.row]
	f.staleness.before[a.session][a.row][*next%superseded] = w
	*next++
}

// read compares what a get returned with what had been acknowledged before it began, and with what its session had read by then.
func (f *follower) read(by *session, a *followed, outcome driver.Outcome, version uint64) {
	k, s := f.key(a.session, a.row), &f.l.rec.Compared().Staleness
	if a.version > 0 {
		s.Gets++
	}
	if outcome == driver.Miss && k.gone > 0 && k.gone >= a.version { // a delete that had begun may have taken effect
		return
	}
	if version < a.seen {
		s.Backwards++
	}
	if seen := f.staleness.of(by, a); version >= k.read { // it need not be looked at, which takes a while
		k.read, *seen = version, version
	} else {
		*seen = max(*seen, version)
	}
	if version >= a.version {
		return
	}
	behind, since := f.behind(a, version)
	s.Stale++
	s.Behind[behind-1]++
	s.Age.Record(a.begun - since)
}

// behind returns how many writes of a key, up to [measure.Behind], that were acknowledged when a get began are newer than the version that it returned,
// and when the first of them was acknowledged.
func (f *follower) behind(a *followed, version uint64) (n int, since int64) {
	n, since = 0, a.begun
	count := func(of uint64, acked int64) {
		if of > version && acked <= a.begun {
			n, since = n+1, min(since, acked)
		}
	}
	k := f.key(a.session, a.row)
	count(k.acked, k.at)
	for _, w := range f.staleness.before[a.session][a.row] {
		count(w.version, w.at)
	}
	return min(max(n, 1), measure.Behind), since
}

// verify compares what was read of a key with what was written.
func (f *follower) verify(o *op.Op, a *followed, step *op.Step) {
	k, v := f.key(a.session, a.row), &f.l.rec.Compared().Verified
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
