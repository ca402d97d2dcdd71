package measure

import (
	"cmp"
	"slices"
)

// Interval holds what several sources counted in the same part of a step.
type Interval struct {
	From, To int64   // nanoseconds on the run clock
	Delta    *Totals // owned by the Joiner; valid until the next call of Add or Next
	Final    bool    // every source has finished the step
}

// mostWaiting bounds how many intervals wait for a source. Beyond it, each pair of neighbours is joined.
const mostWaiting = 128

// mostJoined bounds the memory of waiting intervals, in bytes, to the most that two workers can count. Beyond it, waiting intervals are joined.
const mostJoined = 2 * mostHeld

// Joiner joins what several sources (the loops of a worker, the workers of a run) count in one step, interval by interval. When a source falls
// behind, the others' intervals wait for it separately, and are returned one by one once it has caught up or finished. Neighbours are joined only
// where a source has counted across the boundary between them, where more than 128 wait, or where those waiting take more than Most.
type Joiner struct {
	Most int // bytes that waiting intervals may take; NewJoiner sets 256 MiB

	at      int64
	upTo    []int64
	final   []bool
	waiting []Interval // ascending by To; From is the earliest that any source has added
	free    []*Totals  // for reuse: a step of hours allocates no more than a short one
	passed  *Totals    // the Delta returned last
}

// NewJoiner returns a Joiner for a step that starts at a time on the run clock.
func NewJoiner(sources int, at int64) *Joiner {
	j := &Joiner{Most: mostJoined, at: at, upTo: make([]int64, sources), final: make([]bool, sources)}
	for i := range j.upTo {
		j.upTo[i] = at
	}
	return j
}

// Add takes what a source has counted since its last Add, up to a time on the run clock. It keeps nothing of t.
func (j *Joiner) Add(source int, upTo int64, final bool, t *Totals) {
	from := j.upTo[source]
	upTo = max(upTo, from)
	j.upTo[source], j.final[source] = upTo, final
	j.release()
	i, there := slices.BinarySearchFunc(j.waiting, upTo, func(w Interval, to int64) int { return cmp.Compare(w.To, to) })
	if !there {
		j.waiting = slices.Insert(j.waiting, i, Interval{From: from, To: upTo, Delta: j.fresh(t.Origin)})
	}
	w := &j.waiting[i]
	w.From = min(w.From, from)
	w.Delta.Merge(t)
	for len(j.waiting) > mostWaiting || len(j.waiting) > 1 && j.Held() > j.Most {
		j.waiting = Fold(j.waiting, 2, j.join)
	}
}

// Held returns the bytes that waiting intervals take. It exceeds Most only if a single interval does.
func (j *Joiner) Held() (n int) {
	for i := range j.waiting {
		n += j.waiting[i].Delta.bytes()
	}
	return n
}

// Next returns the earliest interval that all sources have passed and that has not been returned yet.
func (j *Joiner) Next() (Interval, bool) {
	j.release()
	n, end := j.first()
	if n == 0 || end > j.past() || end <= j.at && slices.Contains(j.final, false) {
		return Interval{}, false
	}
	Fold(j.waiting[:n], n, j.join)
	joint := Interval{From: j.at, To: end, Delta: j.waiting[0].Delta}
	j.waiting = slices.Delete(j.waiting, 0, n)
	joint.Final = len(j.waiting) == 0 && !slices.Contains(j.final, false)
	j.at, j.passed = end, joint.Delta
	return joint, true
}

// Ahead returns the waiting interval that ends at to, as counted so far. It may still grow.
func (j *Joiner) Ahead(to int64) (Interval, bool) {
	i := slices.IndexFunc(j.waiting, func(w Interval) bool { return w.To == to })
	if i < 0 {
		return Interval{}, false
	}
	return j.waiting[i], true
}

// first returns how many waiting intervals must be taken together, and where they end: at the first boundary that no source has counted across.
func (j *Joiner) first() (n int, end int64) {
	end = j.at
	for i := range j.waiting {
		if w := &j.waiting[i]; end <= j.at || w.From < end {
			n, end = i+1, w.To
		}
	}
	return n, end
}

// past returns the time that all sources have reached.
func (j *Joiner) past() int64 {
	to := slices.Max(j.upTo)
	for i, t := range j.upTo {
		if !j.final[i] {
			to = min(to, t)
		}
	}
	return to
}

// join adds a waiting interval to an earlier one.
func (j *Joiner) join(into, from *Interval) {
	into.From, into.To = min(into.From, from.From), from.To
	into.Delta.Merge(from.Delta)
	j.recycle(from.Delta)
	*from = Interval{}
}

// fresh returns an empty Totals.
func (j *Joiner) fresh(origin int64) *Totals {
	n := len(j.free)
	if n == 0 {
		return &Totals{rest: rest{Origin: origin}}
	}
	t := j.free[n-1]
	j.free = j.free[:n-1]
	t.Origin = origin
	return t
}

// release takes back the Delta that was returned last.
func (j *Joiner) release() {
	if j.passed != nil {
		j.recycle(j.passed)
		j.passed = nil
	}
}

// recycle keeps a Totals for reuse, unless the kept ones would take more than half of Most.
func (j *Joiner) recycle(t *Totals) {
	kept := t.bytes()
	for _, t := range j.free {
		kept += t.bytes()
	}
	if kept > j.Most/2 {
		return
	}
	t.Reset()
	t.Requests = t.Requests[:0] // it grows to match the next Totals merged into it
	j.free = append(j.free, t)
}
