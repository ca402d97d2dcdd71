package measure

import (
	"cmp"
	"slices"
)

// Interval is what several sources counted in the same stretch of a step.
type Interval struct {
	From, To int64   // nanoseconds on the run clock
	Delta    *Totals // the Joiner's: it is valid until the next call of Add or Next
	Final    bool    // every source has finished the step
}

// mostWaiting bounds the intervals that wait for a source. When there are more, every two neighbours are joined.
const mostWaiting = 128

// Joiner joins what several sources (the loops of a worker, the workers of a run) count in one step, interval by interval. When a
// source falls behind, the others' intervals wait for it, each by itself, and are returned one after the other once it has caught up or
// finished. Two neighbours are joined only where a source has counted across the boundary between them, or where more than 128 wait.
type Joiner struct {
	at      int64
	upTo    []int64
	final   []bool
	waiting []Interval // by To, rising; From is the earliest of those that sources have handed over
	free    []*Totals  // to be used again: a step that lasts for hours allocates no more than a short one
	passed  *Totals    // what was returned last
}

// NewJoiner returns a Joiner for a step that starts at a time on the run clock.
func NewJoiner(sources int, at int64) *Joiner {
	j := &Joiner{at: at, upTo: make([]int64, sources), final: make([]bool, sources)}
	for i := range j.upTo {
		j.upTo[i] = at
	}
	return j
}

// Add takes what a source has counted since its last Add, up to a time on the run clock; nothing of t is kept.
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
	if len(j.waiting) > mostWaiting {
		j.halve()
	}
}

// Next returns the earliest interval that all sources have got past and that was not returned before.
func (j *Joiner) Next() (Interval, bool) {
	j.release()
	n, end := j.first()
	if n == 0 || end > j.past() || end <= j.at && slices.Contains(j.final, false) {
		return Interval{}, false
	}
	for i := range n - 1 {
		j.join(&j.waiting[i], &j.waiting[n-1])
	}
	joint := Interval{From: j.at, To: end, Delta: j.waiting[n-1].Delta}
	j.waiting = slices.Delete(j.waiting, 0, n)
	joint.Final = len(j.waiting) == 0 && !slices.Contains(j.final, false)
	j.at, j.passed = end, joint.Delta
	return joint, true
}

// Ahead returns what has come so far of an interval that waits for a source. It may still grow.
func (j *Joiner) Ahead(to int64) (Interval, bool) {
	i := slices.IndexFunc(j.waiting, func(w Interval) bool { return w.To == to })
	if i < 0 {
		return Interval{}, false
	}
	return j.waiting[i], true
}

// first returns how many of those waiting have to be taken together, and where they end: at the first boundary that no source has counted across.
func (j *Joiner) first() (n int, end int64) {
	end = j.at
	for i := range j.waiting {
		if w := &j.waiting[i]; i == 0 || end <= j.at || w.From < end {
			n, end = i+1, w.To
		}
	}
	return n, end
}

// past is up to where all sources have got.
func (j *Joiner) past() int64 {
	to := slices.Max(j.upTo)
	for i, t := range j.upTo {
		if !j.final[i] {
			to = min(to, t)
		}
	}
	return to
}

// halve joins every two neighbours that wait.
func (j *Joiner) halve() {
	kept := j.waiting[:0]
	for pair := range slices.Chunk(j.waiting, 2) {
		if len(pair) == 2 {
			j.join(&pair[0], &pair[1])
		}
		kept = append(kept, pair[len(pair)-1])
	}
	clear(j.waiting[len(kept):])
	j.waiting = kept
}

// join adds an interval to a later one.
func (j *Joiner) join(w, to *Interval) {
	to.From = min(to.From, w.From)
	to.Delta.Merge(w.Delta)
	j.recycle(w.Delta)
}

// fresh returns an empty Totals.
func (j *Joiner) fresh(origin int64) *Totals {
	n := len(j.free)
	if n == 0 {
		return &Totals{Origin: origin}
	}
	t := j.free[n-1]
	j.free = j.free[:n-1]
	t.Origin = origin
	return t
}

// release takes back what was returned last.
func (j *Joiner) release() {
	if j.passed != nil {
		j.recycle(j.passed)
		j.passed = nil
	}
}

func (j *Joiner) recycle(t *Totals) {
	t.Reset()
	t.Requests = t.Requests[:0] // as many as the next that is merged into it
	j.free = append(j.free, t)
}
