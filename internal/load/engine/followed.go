package engine

import (
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// followedRuns are runs whose ops the loop's follower checks. What the follower needs is kept from an op's begin to its end, in the order of its
// connection's replies.
type followedRuns struct {
	runs
	f       *follower
	begun   [drawn]followed // of the drawn ops
	owed    []followedQueue // for each connection, the ops in its queue that have not timed out
	headers []driver.Header // scratch of answered
}

func newFollowedRuns(w *wire, prog *op.Plain, f *follower) *followedRuns {
	return &followedRuns{runs: runs{bulk: bulk{l: w.l, w: w}, prog: prog}, f: f, owed: make([]followedQueue, len(w.conns))}
}

func (r *followedRuns) start(s *session, stream *workload.Stream, n int, due, now int64) int {
	for at := 0; at < n; at += drawn {
		most := min(n-at, drawn)
		got := r.drawAll(s, stream, most, now)
		for from := 0; from < got; {
			c := r.w.conn(s, r.homes[from])
			owed := c.queue.owed
			sent := r.send(s, from, got, due, now)
			if c.queue.owed > owed {
				r.owed[c.index].push(r.begun[from : from+sent])
			}
			from += sent
		}
		if got < most {
			return at + got
		}
	}
	return n
}

// drawAll draws the next n ops, or fewer, as draw does, and begins them.
func (r *followedRuns) drawAll(s *session, stream *workload.Stream, n int, now int64) int {
	got := stream.Draw(r.ops[:n])
	var digest uint64
	for i := range r.ops[:got] {
		o := &r.ops[i]
		digest += digestOf(o)
		r.f.sign(o, now)
		r.homes[i] = r.prog.Home(o)
		r.begun[i].hash = driver.KeyHash(o.Key)
	}
	r.l.rec.Mix(digest)
	for i := range r.ops[:got] { // the tables may be large; in one loop, the processor overlaps the look-ups
		r.f.begin(&r.begun[i], s, &r.ops[i], now)
	}
	return got
}

func (r *followedRuns) answered(c *wireConn, b []byte, now int64) (took int, whole bool, err error) {
	r.headers = r.headers[:0]
	if c.queue.at(0).verb != driver.Get {
		return r.w.readAnswers(c, b, true, nil, now)
	}
	return r.w.readAnswers(c, b, true, &r.headers, now)
}

func (r *followedRuns) settle(c *wireConn, got *answers, now int64) {
	s, verb, owed, at := r.w.session(c), c.queue.at(0).verb, &r.owed[c.index], 0
	for _, run := range got.runs {
		for range run.n {
			version := uint64(0)
			if verb == driver.Get {
				if h := &r.headers[at]; !r.w.lane.anothers(h, owed.at(at).hash) {
					version = h.Version
				}
			}
			r.f.ended(s, verb, owed.at(at), run.outcome, version, now)
			at++
		}
	}
	owed.take(at)
	r.runs.settle(c, got, now)
}

func (r *followedRuns) failed(c *wireConn, p *pending, kind op.EventKind, now int64) {
	r.owed[c.index].take(int(p.n))
	r.runs.failed(c, p, kind, now)
}

// followedQueue is a first-in first-out ring that grows as needed. Its zero value is empty.
type followedQueue struct {
	ring       []followed // its length is 0 or a power of two
	head, size int
}

// at returns the i-th op from the front.
func (q *followedQueue) at(i int) *followed { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *followedQueue) push(ops []followed) {
	for q.size+len(ops) > len(q.ring) {
		grown := make([]followed, max(drawn, 2*len(q.ring)))
		for i := range q.size {
			grown[i] = *q.at(i)
		}
		q.ring, q.head = grown, 0
	}
	for i := range ops {
		q.size++
		*q.at(q.size - 1) = ops[i]
	}
}

// take removes the first n ops.
func (q *followedQueue) take(n int) {
	q.head = (q.head + n) & (len(q.ring) - 1)
	q.size -= n
}
