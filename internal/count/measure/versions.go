package measure

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/pkg/hist"
)

// Versions compares the versions of values that gets returned with those of writes that had been acknowledged.
type Versions struct {
	Verified  Verified
	Staleness Staleness
}

// Verified holds what a verify found. Keys = keys as they should be + Missing + Older + Unread.
type Verified struct {
	Keys           uint64 // keys that were put and acknowledged
	Missing, Older uint64 // lost keys: those that are not there; those whose value is older than the last one that was acknowledged
	Newer          uint64 // keys that are not lost: their value was put later, and never acknowledged
	Unread         uint64 // keys whose get failed
	Lost           []Lost // the [MaxLost] keys of Missing and Older that were acknowledged last, the last one first
}

// Lost is an acknowledged write that is gone. Versions are those of values, roughly Unix nanoseconds; the time is on the run clock.
type Lost struct {
	At             int64 // when it was acknowledged
	Key            []byte
	Version, Found uint64 // Found is 0 if the key is missing
}

// MaxLost is the most examples of lost writes.
const MaxLost = 16

// maxLostKey is the longest key, in bytes.
const maxLostKey = 250

// Behind is the number of classes of stale gets: behind by one version, two, three, and more.
const Behind = 4

// Staleness counts gets of keys that had an acknowledged write before the get began.
type Staleness struct {
	Gets      uint64
	Stale     uint64         // gets that returned a version older than one that had been acknowledged
	Behind    [Behind]uint64 // of Stale: by one version, two, three, more
	Backwards uint64         // gets that returned a version older than one that their session had read before they began
	Age       hist.Hist      // of Stale, ns: how long before the get began the first newer version had been acknowledged
}

// Compared returns Versions, creating it at first use.
func (t *rest) Compared() *Versions { return made(&t.Versions) }

// Lose adds a lost write. It does not keep the key.
func (v *Verified) Lose(l Lost) {
	if l.Found == 0 {
		v.Missing++
	} else {
		v.Older++
	}
	v.example(l)
}

// example keeps a lost write if it is among the last.
func (v *Verified) example(l Lost) {
	i, _ := slices.BinarySearchFunc(v.Lost, l, compareLost)
	if i == MaxLost {
		return
	}
	v.extend()
	last := len(v.Lost) - 1
	key := v.Lost[last].Key
	copy(v.Lost[i+1:], v.Lost[i:])
	l.Key = append(key[:0], l.Key...)
	v.Lost[i] = l
}

// extend makes room for one more example, and reuses the memory of an earlier key; if there are already as many as are kept, that of the last.
func (v *Verified) extend() {
	if n := len(v.Lost); n < MaxLost {
		v.Lost = slices.Grow(v.Lost, 1)[:n+1]
	}
}

func compareLost(a, b Lost) int {
	return cmp.Or(cmp.Compare(b.At, a.At), bytes.Compare(a.Key, b.Key), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Found, b.Found))
}

// counts lists the counts that add up.
func (v *Versions) counts() [8 + Behind]*uint64 {
	f, s := &v.Verified, &v.Staleness
	return [...]*uint64{&f.Keys, &f.Missing, &f.Older, &f.Newer, &f.Unread, &s.Gets, &s.Stale, &s.Backwards, &s.Behind[0], &s.Behind[1], &s.Behind[2], &s.Behind[3]}
}

// check compares the classes of reads with their total.
func (v *Versions) check() error {
	if v == nil {
		return nil
	}
	f, s := &v.Verified, &v.Staleness
	behind := s.Behind[0] + s.Behind[1] + s.Behind[2] + s.Behind[3]
	if s.Stale > s.Gets || behind != s.Stale || s.Age.Count() != s.Stale {
		return fmt.Errorf("%d of %d gets stale, but %d behind and %d with an age", s.Stale, s.Gets, behind, s.Age.Count())
	}
	lost := f.Missing + f.Older
	if lost+f.Newer+f.Unread > f.Keys || uint64(len(f.Lost)) > lost {
		return fmt.Errorf("%d keys lost, %d newer and %d unread of %d, and %d examples", lost, f.Newer, f.Unread, f.Keys, len(f.Lost))
	}
	for i := range f.Lost {
		if l := &f.Lost[i]; l.Found >= l.Version {
			return fmt.Errorf("version %d of a key lost, but %d found", l.Version, l.Found)
		}
	}
	return nil
}

// empty says whether nothing was compared.
func (v *Versions) empty() bool {
	if v == nil {
		return true
	}
	for _, n := range v.counts() {
		if *n != 0 {
			return false
		}
	}
	return len(v.Verified.Lost) == 0 && v.Staleness.Age.Count() == 0
}

func (v *Versions) merge(o *Versions) {
	from := o.counts()
	for i, n := range v.counts() {
		*n += *from[i]
	}
	for _, l := range o.Verified.Lost {
		v.Verified.example(l)
	}
	v.Staleness.Age.Merge(&o.Staleness.Age)
}

func (v *Versions) reset() {
	if v == nil {
		return
	}
	for _, n := range v.counts() {
		*n = 0
	}
	v.Verified.Lost = v.Verified.Lost[:0]
	v.Staleness.Age.Reset()
}
