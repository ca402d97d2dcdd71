package engine

import "github.com/loadgen/loadgen/pkg/driver"

// pending is a request whose reply is owed.
type pending struct {
	st   *opState // nil once it has timed out: its reply is discarded
	sent int64
	verb driver.Verb
}

// queue is a first-in first-out ring that grows as needed. Its zero value is empty.
type queue struct {
	ring       []pending // its length is 0 or a power of two
	head, size int
	dead       int // entries at the front that have timed out
}

func (q *queue) len() int { return q.size }

// at returns the i-th entry, counted from the front.
func (q *queue) at(i int) *pending { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *queue) push(p pending) {
	if q.size == len(q.ring) {
		grown := make([]pending, max(4, 2*len(q.ring)))
		for i := range q.size {
			grown[i] = *q.at(i)
		}
		q.ring, q.head = grown, 0
	}
	q.size++
	*q.at(q.size - 1) = p
}

func (q *queue) pop() pending {
	p := *q.at(0)
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.size--
	if q.dead > 0 {
		q.dead--
	}
	return p
}

// drop removes the newest entry; there must be one.
func (q *queue) drop() pending {
	q.size--
	return *q.at(q.size)
}
