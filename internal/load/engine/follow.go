package engine

import (
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// written is what a worker's sessions know of their writes to a dataset's keys, each of which has a single writer. It lasts as long as the run.
type written struct {
	writers uint64               // sessions of all workers: session s writes the keys whose index is s modulo that
	keys    uint64               //
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

// follower notes which writes of a loop's sessions are acknowledged, and compares with them what a verify reads.
type follower struct {
	l        *loop
	writers  uint64
	keys     [][]writtenKey // by session in the loop
	verifies bool           // every key that was written is read
}

// key returns what is known of an op's key; nil if that is none of the dataset's, or if another loop's session writes it.
func (f *follower) key(o *op.Op) *writtenKey {
	session, row := int(o.Index%f.writers)-f.l.sessions[0].id, o.Index/f.writers
	if session < 0 || session >= len(f.keys) || row >= uint64(len(f.keys[session])) {
		return nil
	}
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
func (f *follower) begin(o *op.Op, now int64) {
	if o.Verb != driver.Delete {
		return
	}
	o.Value.Version = f.l.versions(1, now)
	f.key(o).gone = o.Value.Version
}

// ended notes how an op has ended.
func (f *follower) ended(o *op.Op, step *op.Step, now int64) {
	switch {
	case o.Verb == driver.Get:
		if f.verifies {
			f.verify(o, step)
		}
	case step.Outcome <= driver.Miss:
		if k := f.key(o); o.Value.Version > k.acked {
			k.acked, k.at = o.Value.Version, now
		}
	}
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
