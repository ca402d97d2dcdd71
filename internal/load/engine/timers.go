package engine

import "math"

// never is a time that never comes.
const never = math.MaxInt64

// timerKind says what a timer is for.
type timerKind uint8

const (
	startSlots     timerKind = iota // the closed feed: arg is the session's index in the loop, n the slots to start
	comes                           // the closed feed: arg is the index of a session that comes, n its slots
	reconnect                       // the wire transport: arg is the connection
	nextScene                       // scenes: arg is the scene whose next step is due
	complete                        // a timed transport: arg is the request, n the transport's number in the loop
	furtherRequest                  // the gate: arg is the request
	happens                         // an event of the phase: arg is its number in the loop
	nextTry                         // an op that has failed is tried again: arg is its slot
)

// timer fires once. Timers set for the same time fire in the order in which they were set.
type timer struct {
	at   int64
	seq  uint64
	arg  int32
	n    int32
	kind timerKind
}

// timers is ordered by time. Its zero value is empty.
//
// Timers that are set in firing order, such as those of a think time, are in a list, whose cost does not depend on its length. The others are in a
// heap.
type timers struct {
	line []timer // in firing order
	done int     // how many of line have fired
	heap []timer
	seq  uint64
}

func earlierTimer(a, b timer) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// next returns when the earliest timer fires.
func (t *timers) next() int64 {
	at := int64(never)
	if t.done < len(t.line) {
		at = t.line[t.done].at
	}
	if len(t.heap) > 0 {
		at = min(at, t.heap[0].at)
	}
	return at
}

func (t *timers) set(at int64, kind timerKind, arg, n int32) {
	t.seq++
	x := timer{at: at, seq: t.seq, arg: arg, n: n, kind: kind}
	if len(t.line) > t.done && at < t.line[len(t.line)-1].at {
		t.heap = push(t.heap, x, earlierTimer)
		return
	}
	if len(t.line) == cap(t.line) && t.done >= len(t.line)/2 { // reuse the room of timers that have fired
		t.line = t.line[:copy(t.line, t.line[t.done:])]
		t.done = 0
	}
	t.line = append(t.line, x)
}

// pop removes the earliest timer; there must be one.
func (t *timers) pop() timer {
	if t.done < len(t.line) && (len(t.heap) == 0 || earlierTimer(t.line[t.done], t.heap[0])) {
		t.done++
		return t.line[t.done-1]
	}
	first := t.heap[0]
	t.heap = pop(t.heap, earlierTimer)
	return first
}

// drop removes all timers of a kind and returns the sum of their n.
func (t *timers) drop(kind timerKind) (n int) {
	without := func(from []timer) []timer {
		kept := from[:0]
		for _, x := range from {
			if x.kind == kind {
				n += int(x.n)
				continue
			}
			kept = append(kept, x)
		}
		return kept
	}
	t.line, t.done = without(t.line[t.done:]), 0
	t.heap = without(t.heap)
	heapify(t.heap, earlierTimer)
	return n
}
