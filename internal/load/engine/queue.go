package engine

import "github.com/loadgen/loadgen/pkg/driver"

// pending is consecutive requests of one verb whose replies are owed: either one request of a program's op, or a run, which has one request for each
// of several ops without a state that were due and written together, in a batch or as plain ops.
type pending struct {
	st    *opState // the program's op; nil for a run
	batch *batch   // the run's batch, in the way quorum; else nil
	start *int64   // the op's or batch's start; set when its first request leaves
	due   int64    // when a run of plain ops was due
	sent  int64
	n     int32  // replies owed
	keys  int16  // keys of the one request, if it has several; else 0
	at    int16  // index in the batch of the first op
	key   uint64 // of a run of gets: the hash of the first op's key; 0 if its reply is not examined
	verb  driver.Verb
	tag   uint8 // the program's tag for the one request
	dead  bool  // timed out: its replies are discarded

	asking bool   // the reply to the request's announcement is owed, too
	id     uint32 // the request's, if the codec has ids
}

// queue is a first-in first-out ring that grows as needed. Its zero value is empty.
type queue struct {
	ring       []pending // its length is 0 or a power of two
	head, size int
	dead       int // entries at the front that have timed out
	owed       int // replies that all entries owe
}

// len returns the number of entries.
func (q *queue) len() int { return q.size }

// at returns the i-th entry from the front.
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
	q.owed += int(p.n)
	*q.at(q.size - 1) = p
}

// take removes n replies that the first entry owes, and the entry with the last of them.
func (q *queue) take(n int) {
	p := q.at(0)
	q.owed -= n
	p.key = 0
	p.at += int16(n)
	if p.n -= int32(n); p.n > 0 {
		return
	}
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.size--
	if q.dead > 0 {
		q.dead--
	}
}

// front moves the i-th entry to the front, and those before it back by one.
func (q *queue) front(i int) {
	p := *q.at(i)
	for ; i > 0; i-- {
		*q.at(i) = *q.at(i - 1)
	}
	*q.at(0) = p
}

// back undoes front.
func (q *queue) back(i int) {
	p := *q.at(0)
	for at := range i {
		*q.at(at) = *q.at(at + 1)
	}
	*q.at(i) = p
}

// pop removes the first entry.
func (q *queue) pop() pending {
	p := *q.at(0)
	q.take(int(p.n))
	return p
}

// drop removes the newest entry; there must be one.
func (q *queue) drop() pending {
	q.size--
	p := *q.at(q.size)
	q.owed -= int(p.n)
	return p
}
