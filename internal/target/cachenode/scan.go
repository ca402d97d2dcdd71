package cachenode

import "slices"

// scanOrder is the order in which keys first came, which SCAN follows. A cursor is the number of a key, so a key that is there from the beginning of
// a scan to its end is visited exactly once, whatever comes and goes meanwhile.
type scanOrder struct {
	places []place // by number; gaps left by deleted keys are closed from time to time
	last   uint64  // the last number given; the first is 1
	gone   int     // places without an entry
}

// place is the place of a key, present or gone.
type place struct {
	number uint64
	entry  *entry // nil if the key is gone
}

func (o *scanOrder) reset() { *o = scanOrder{last: o.last} }

// add gives an entry the next number.
func (o *scanOrder) add(e *entry) {
	o.last++
	e.place = len(o.places)
	o.places = append(o.places, place{o.last, e})
}

// remove forgets an entry. Gaps are closed once they are half of all places, so that the amortised cost is constant.
func (o *scanOrder) remove(e *entry) {
	o.places[e.place].entry = nil
	o.gone++
	if o.gone < 64 || o.gone < len(o.places)/2 {
		return
	}
	o.places = slices.DeleteFunc(o.places, func(p place) bool { return p.entry == nil })
	for i := range o.places {
		o.places[i].entry.place = i
	}
	o.gone = 0
}

// walk visits the entries at up to count places from a cursor on, until visit returns false. It returns the cursor to go on from, 0 at the end.
func (o *scanOrder) walk(cursor uint64, count int, visit func(*entry) bool) (next uint64) {
	from, _ := slices.BinarySearchFunc(o.places, cursor, func(p place, number uint64) int {
		if p.number < number {
			return -1
		}
		return 1
	})
	for ; from < len(o.places); from++ {
		if count == 0 {
			return o.places[from].number
		}
		if e := o.places[from].entry; e != nil && !visit(e) {
			count = 1
		}
		count--
	}
	return 0
}
