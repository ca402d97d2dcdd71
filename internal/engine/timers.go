package engine

import "math"

// never is a time that does not come.
const never = math.MaxInt64

// timerKind says whom a timer is for.
type timerKind uint8

const (
	startSlots timerKind = iota // the closed feed: arg is the session's index in the loop, n the slots to start
	reconnect                   // the wire transport: arg is the connection
	complete                    // the timed transport: arg is the request
)

// timer fires once. Timers of the same time fire in the order in which they were set.
type timer struct {
	at   int64
	seq  uint64
	arg  int32
	n    int32
	kind timerKind
}

// timers is ordered by time. Its zero value is empty.
type timers struct {
	heap []timer
	seq  uint64
}

func earlierTimer(a, b timer) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// next returns when the earliest timer fires.
func (t *timers) next() int64 {
	if len(t.heap) == 0 {
		return never
	}
	return t.heap[0].at
}

func (t *timers) set(at int64, kind timerKind, arg, n int32) {
	t.seq++
	t.heap = push(t.heap, timer{at: at, seq: t.seq, arg: arg, n: n, kind: kind}, earlierTimer)
}

// pop removes the earliest timer; there must be one.
func (t *timers) pop() timer {
	first := t.heap[0]
	t.heap = pop(t.heap, earlierTimer)
	return first
}

// drop removes all timers of a kind and returns the sum of their n.
func (t *timers) drop(kind timerKind) int {
	n, kept := 0, t.heap[:0]
	for _, x := range t.heap {
		if x.kind == kind {
			n += int(x.n)
			continue
		}
		kept = append(kept, x)
	}
	t.heap = kept
	heapify(t.heap, earlierTimer)
	return n
}
