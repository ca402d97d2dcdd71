package engine

import (
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// written records the writes of a worker's sessions to a dataset's keys, each of which has a single writer. It lasts for the run.
type written struct {
	writers uint64               // sessions of all workers; session s writes the keys whose index modulo writers is s; 0 if each has a pool
	keys    uint64               // how many keys the dataset, or each session's pool, has
	of      map[int][]writtenKey // each session's keys, in order
}

// writtenKey records the writes of one key. Versions increase from write to write; 0 means none.
type writtenKey struct {
	acked uint64 // version of the newest write that was acknowledged
	at    int64  // when that was, on the run clock
	gone  uint64 // version of the newest delete that has begun, whether or not that was acknowledged
	read  uint64 // newest version that was read while staleness was measured
}

// mayMiss reports whether a get may miss the key: no write was acknowledged since a delete began.
func (k *writtenKey) mayMiss() bool { return k.gone > 0 && k.gone >= k.acked }

// keysOf returns the records of a session's keys.
func (w *written) keysOf(session int) []writtenKey {
	if w.of[session] == nil {
		n := w.keys
		if w.writers > 0 {
			n = (w.keys - uint64(session) + w.writers - 1) / w.writers
		}
		w.of[session] = make([]writtenKey, n)
	}
	return w.of[session]
}

// follower notes which writes of a loop's sessions are acknowledged, and compares with them what gets return: the gets of a verify or, if staleness
// is measured, those of the load.
type follower struct {
	l         *loop
	writers   uint64
	keys      [][]writtenKey // by the session's index in the loop
	verifies  bool           // the step reads every key that was written
	staleness *staleness     // nil if staleness is not measured
}

// followed is the follower's record of an op in flight.
type followed struct {
	session, row int32  // the session of this loop that writes the key, and the key's index among that session's keys; −1 if none of them writes it
	version      uint64 // a write's own version; for a get whose staleness is measured, the newest version that was acknowledged
	seen         uint64 // for a get whose staleness is measured: the newest version that its session had read
	begun        int64
	hash         uint64 // of the key, where the fast way needs it
}

// staleness is what measuring staleness needs besides the records of writes. It covers the sessions of one loop, whose gets read only keys that these
// sessions write.
type staleness struct {
	before [][]history // by session and key
	next   [][]uint8   // by session and key: where in its history the next write goes
	seen   [][]uint64  // by reading session: the newest version it has read of each key of each session; in pools, of its own keys
	rows   int         // the most keys of a session; 0 in pools
}

// history is a ring of a key's last acknowledged writes before the newest.
type history [superseded]acknowledged

// superseded is how many acknowledged writes of a key are kept besides the newest. It is larger than [measure.Behind], since writes that are
// acknowledged during a get push out older ones, which the get may have missed as well.
const superseded = 8

// acknowledged is a write that was acknowledged.
type acknowledged struct {
	version uint64
	at      int64
}

// measureStaleness makes the follower compare what each get returns.
func (f *follower) measureStaleness() {
	r := &staleness{}
	for _, keys := range f.keys {
		r.before = append(r.before, make([]history, len(keys)))
		r.next = append(r.next, make([]uint8, len(keys)))
		if f.writers > 0 {
			r.rows = max(r.rows, len(keys))
		}
	}
	for _, keys := range f.keys {
		r.seen = append(r.seen, make([]uint64, max(len(keys), r.rows*len(f.keys))))
	}
	f.staleness = r
}

// reach restricts the gets of a stream to keys that the loop's sessions write, if staleness is measured.
func (f *follower) reach(stream workload.Stream) workload.Stream {
	if f != nil && f.staleness != nil {
		first := f.l.sessions[0].id
		stream.Reach(first, first+len(f.keys))
	}
	return stream
}

// place returns which session of the loop writes the key of session s' op, and the key's index among that session's keys; −1 if none does.
func (f *follower) place(s *session, o *op.Op) (session, row int32) {
	if f.writers == 0 {
		return int32(s.index), int32(o.Index)
	}
	at := o.Index / f.writers
	by := int(o.Index-at*f.writers) - f.l.sessions[0].id
	if uint(by) >= uint(len(f.keys)) {
		return -1, -1
	}
	return int32(by), int32(at)
}

// key returns the record of a key that one of the loop's sessions writes.
func (f *follower) key(session, row int32) *writtenKey { return &f.keys[session][row] }

// skips reports whether a drawn op is left out: a verify reads only keys that were written.
func (f *follower) skips(s *session, o *op.Op) bool {
	return f != nil && f.verifies && f.key(f.place(s, o)).acked == 0
}

// due returns how many ops a verify carries out.
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

// sign gives an op its version, right before it begins.
func (f *follower) sign(o *op.Op, now int64) {
	f.l.sign(o, now)
	if o.Verb == driver.Delete {
		o.Value.Version = f.l.versions(1, now)
	}
}

// begin fills in a for a signed op that a session begins.
func (f *follower) begin(a *followed, s *session, o *op.Op, now int64) {
	a.session, a.row = f.place(s, o)
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

// of returns where the newest version of the op's key that session s has read is kept.
func (r *staleness) of(s *session, a *followed) *uint64 {
	return &r.seen[s.index][int(a.session)*r.rows+int(a.row)]
}

// ended notes how an op of a load has ended (those of a verify go to verify). version is the version that a get returned, 0 if it is not known.
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
	if outcome == driver.Miss && k.gone > 0 && k.gone >= a.version { // a delete had begun and may have taken effect
		return
	}
	if version < a.seen {
		s.Backwards++
	}
	if seen := f.staleness.of(by, a); version >= k.read { // else there is no need to look it up, which is slow
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

// behind returns how many writes of a key, at most [measure.Behind], were acknowledged before the get began and are newer than the version that it
// returned. It also returns when the first of them was acknowledged.
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

// verify compares the version that was read of a key with the version that was written.
func (f *follower) verify(o *op.Op, a *followed, step *op.Step) {
	k, v := f.key(a.session, a.row), &f.l.rec.Compared().Verified
	v.Keys++
	switch {
	case step.Outcome > driver.Miss:
		v.Unread++
	case step.Outcome == driver.Miss && k.mayMiss(), step.Outcome == driver.OK && step.Version == k.acked:
	case step.Outcome == driver.OK && step.Version > k.acked:
		v.Newer++
	default:
		v.Lose(measure.Lost{At: k.at, Key: o.Key, Version: k.acked, Found: step.Version})
	}
}
