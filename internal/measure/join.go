package measure

import (
	"cmp"
	"slices"
)

// Interval is what several sources counted in the same stretch of a step.
type Interval struct {
	From, To int64   // nanoseconds on the run clock
	Delta    *Totals // the Joiner's: it is valid until the next Add
	Final    bool    // every source has finished the step
}

// Joiner joins what several sources (the loops of a worker, the workers of a run) count in one step, interval by interval. A
// source may join neighbouring intervals; the others' then wait for it.
type Joiner struct {
	at      int64
	upTo    []int64
	final   []bool
	waiting []Interval // by To, rising
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

// Add takes what a source has counted since its last Add, up to a time on the run clock; nothing of t is kept. It returns the
// interval that all sources have now got past, if there is one.
func (j *Joiner) Add(source int, upTo int64, final bool, t *Totals) (Interval, bool) {
	j.upTo[source], j.final[source] = max(upTo, j.upTo[source]), final
	j.recycle(j.passed)
	j.passed = nil
	i, there := slices.BinarySearchFunc(j.waiting, upTo, func(w Interval, to int64) int { return cmp.Compare(w.To, to) })
	if !there {
		j.waiting = slices.Insert(j.waiting, i, Interval{To: upTo, Delta: j.fresh(t.Origin)})
	}
	j.waiting[i].Delta.Merge(t)
	return j.pass()
}

// pass takes out what lies before the source that is furthest behind.
func (j *Joiner) pass() (Interval, bool) {
	done, to := !slices.Contains(j.final, false), slices.Max(j.upTo)
	for i, t := range j.upTo {
		if !j.final[i] {
			to = min(to, t)
		}
	}
	if !done && to <= j.at {
		return Interval{}, false
	}
	joint := Interval{From: j.at, To: to, Final: done}
	for len(j.waiting) > 0 && j.waiting[0].To <= to {
		if joint.Delta == nil {
			joint.Delta = j.waiting[0].Delta
		} else {
			joint.Delta.Merge(j.waiting[0].Delta)
			j.recycle(j.waiting[0].Delta)
		}
		j.waiting = slices.Delete(j.waiting, 0, 1)
	}
	if joint.Delta == nil {
		joint.Delta = j.fresh(0)
	}
	j.at, j.passed = to, joint.Delta
	return joint, true
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

func (j *Joiner) recycle(t *Totals) {
	if t != nil {
		t.Reset()
		t.Requests = t.Requests[:0] // as many as the next that is merged into it
		j.free = append(j.free, t)
	}
}
