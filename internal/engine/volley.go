package engine

import (
	"slices"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// volley is ops of a quorum that a session has started together, of one verb. Their requests stand in the queues of the connections as runs,
// each with its place among the ops; what they are answered with is counted once for neighbours that have come equally far, and alike outcomes
// are recorded together.
type volley struct {
	session *session
	due     int64
	begun   int64
	start   int64 // before the write of the first request; 0 until then
	open    int   // requests without an end; the volley is over with the last of them
	verb    driver.Verb
	spans   []span // its ops
}

// span is ops of a volley that stand side by side and have come equally far.
type span struct {
	op.Tally
	n int16
}

// volleys carries out ops of a quorum that ask all of their endpoints at once.
type volleys struct {
	prog  *op.Quorum
	all   bool // of the endpoints hold every key
	homes [drawn * maxReplicas]int
	slab  []*volley
	free  []*volley
	page  []byte // requests of which the first connection has not room for all
	ends  [drawn]int
	ended tallied // by the reply or the failure at hand
}

// tallied is what ends of requests of one volley have come to.
type tallied struct {
	acks     [maxReplicas + 1]uint64 // by k; of no good answers the first
	outcomes [driver.NumOutcomes]uint64
	done     int
}

func newVolleys(prog *op.Quorum, endpoints int) *volleys {
	return &volleys{prog: prog, all: prog.N == endpoints}
}

// startVolleys is start for ops of a quorum.
func (d *direct) startVolleys(s *session, stream *workload.Stream, n int, due, now int64) int {
	for at := 0; at < n; at += drawn {
		most := min(n-at, drawn)
		got := d.draw(stream, most, now)
		for from, to := 0, 0; from < got; from = to {
			for to = from + 1; to < got && d.ops[to].Verb == d.ops[from].Verb; to++ {
			}
			d.launch(s, d.ops[from:to], due, now)
		}
		if got < most {
			return at + got
		}
	}
	return n
}

// launch starts ops of one verb.
func (d *direct) launch(s *session, ops []op.Op, due, now int64) {
	l, q := d.l, d.volleys
	v := d.enlist(s, ops[0].Verb, len(ops), due, now)
	q.ended = tallied{}
	q.place(ops)
	for from, to := 0, 0; from < len(ops); from = to {
		for to = from + 1; to < len(ops) && (q.all || slices.Equal(q.of(to), q.of(from))); to++ {
		}
		d.sendAll(v, ops[:to], from)
	}
	if d.tell(v, op.Refused, now) > 0 {
		l.feed.freed(s, q.ended.done, now, true)
	}
}

// enlist makes the volley of n ops that are due.
func (d *direct) enlist(s *session, verb driver.Verb, n int, due, now int64) *volley {
	l, q := d.l, d.volleys
	v := q.take(l)
	v.session, v.due, v.begun, v.start = s, due, now, 0
	v.open, v.verb = n*q.prog.N, verb
	v.spans = append(v.spans[:0], span{Tally: q.prog.Tally(), n: int16(n)})
	l.rec.AddDueN(verb, uint64(n))
	l.occupy(s, n, now)
	return v
}

// place finds where ops go. Where all endpoints have every key, they all take the order of the first.
func (q *volleys) place(ops []op.Op) {
	if q.all {
		ops = ops[:1]
	}
	for i := range ops {
		q.prog.Place(q.of(i), &ops[i])
	}
}

// of returns the endpoints of the i-th op, where each has its own.
func (q *volleys) of(i int) []int { return q.homes[i*q.prog.N:][:q.prog.N] }

// sendAll sends the requests of ops from one on, which have the same endpoints, or counts them as refused.
func (d *direct) sendAll(v *volley, ops []op.Op, from int) {
	w, q := d.w, d.volleys
	var requests []byte // of all, encoded once
	for _, endpoint := range q.of(from) {
		c := w.conn(v.session, endpoint)
		n := min(w.room(c), len(ops)-from)
		if n > 0 {
			w.touch(c)
		}
		at := len(c.out)
		switch {
		case n == 0:
		case requests != nil:
			c.out = append(c.out, requests[:q.ends[from+n-1]]...)
		case n == len(ops)-from:
			c.out = d.encode(c.out, ops, from)
			requests = c.out[at:]
		default:
			q.page = d.encode(q.page[:0], ops, from)
			requests = q.page
			c.out = append(c.out, requests[:q.ends[from+n-1]]...)
		}
		if fault := w.codec.fault; fault != nil && n > 0 {
			c.broken = fault
		}
		d.ask(c, v, from, n, len(ops)-from, len(c.out)-at)
	}
	w.codec.fault = nil // its connections know
}

// encode appends the requests of ops from one on, and notes where each ends.
func (d *direct) encode(dst []byte, ops []op.Op, from int) []byte {
	at := len(dst)
	for i := from; i < len(ops); i++ {
		dst = d.enc.append(dst, &ops[i])
		d.volleys.ends[i] = len(dst) - at
	}
	return dst
}

// ask enters the requests of n ops of a volley, from one on, that a connection was given, and so many bytes. More it had no room for: they
// are refused.
func (d *direct) ask(c *wireConn, v *volley, from, n, all, size int) {
	ledger := d.l.rec.Request(c.endpoint, v.verb)
	ledger.Sent += uint64(n)
	if n > 0 {
		d.l.rec.AddBytes(v.verb, 0, size)
		c.joinVolley(v, from, n)
	}
	if n < all {
		ledger.Refused += uint64(all - n)
		d.volleys.count(v, from+n, all-n, driver.Error)
	}
}

// joinVolley enters the requests of n ops of a volley into the queue, from one on: with the newest entry, if they follow it.
func (c *wireConn) joinVolley(v *volley, from, n int) {
	if c.fresh > 0 {
		if p := c.queue.at(c.queue.len() - 1); p.volley == v && int(p.at)+int(p.n) == from {
			p.n += int32(n)
			c.queue.owed += n
			return
		}
	}
	c.queue.push(pending{volley: v, at: int16(from), n: int32(n), verb: v.verb})
	c.fresh++
}

// count enters the ends of one request each of n ops of a volley, from one on, that are alike. Of ops that have come as far as each other, what
// becomes of one becomes of all.
func (q *volleys) count(v *volley, from, n int, answer driver.Outcome) {
	if n == 0 {
		return
	}
	v.open -= n
	first := v.cut(from)
	last := first
	for ; n > 0; last++ {
		x := &v.spans[last]
		if int(x.n) > n {
			v.cut(from + n)
			x = &v.spans[last]
		}
		k, done, outcome := q.prog.Count(&x.Tally, v.verb, answer)
		q.ended.acks[k] += uint64(x.n)
		if done {
			q.ended.outcomes[outcome] += uint64(x.n)
			q.ended.done += int(x.n)
		}
		from += int(x.n)
		n -= int(x.n)
	}
	v.join(last)
	v.join(first)
}

// cut has a span begin with an op, and returns which it is.
func (v *volley) cut(at int) int {
	i := 0
	for ; at > 0 && at >= int(v.spans[i].n); i++ {
		at -= int(v.spans[i].n)
	}
	if at > 0 {
		v.spans = slices.Insert(v.spans, i, v.spans[i])
		v.spans[i].n = int16(at)
		i++
		v.spans[i].n -= int16(at)
	}
	return i
}

// join makes one span of the i-th and that before it, where they have come equally far.
func (v *volley) join(i int) {
	if i > 0 && i < len(v.spans) && v.spans[i-1].Tally == v.spans[i].Tally {
		v.spans[i-1].n += v.spans[i].n
		v.spans = slices.Delete(v.spans, i, i+1)
	}
}

// tell records what the ends of requests have come to, by the kind of event that they were, gives back the slots of the ops that they have
// decided, and ends the volley with the last of them. It returns how many ops these are, whose slots the feed does not know of yet.
func (d *direct) tell(v *volley, kind op.EventKind, now int64) int {
	l, q := d.l, d.volleys
	start := v.start
	if start == 0 {
		start = now
	}
	if l.acks {
		for k, n := range q.ended.acks[1 : q.prog.N+1] {
			if n > 0 {
				l.rec.AckN(v.verb, k+1, now-start, n)
			}
		}
	}
	if q.ended.done > 0 {
		d.record(&measure.Sample{Verb: v.verb, Cause: measure.Cause(kind), Due: v.due, Start: start, End: now}, &q.ended.outcomes)
		l.vacate(v.session, q.ended.done, now)
	}
	if v.open == 0 {
		q.release(l, v)
	}
	return q.ended.done
}

// failedVolley ends requests that will not be answered.
func (d *direct) failedVolley(c *wireConn, p *pending, kind op.EventKind, now int64) {
	unanswered(d.l.rec.Request(c.endpoint, p.verb), kind, uint64(p.n))
	s := p.volley.session
	d.volleys.ended = tallied{}
	d.volleys.count(p.volley, int(p.at), int(p.n), driver.Error)
	if n := d.tell(p.volley, kind, now); n > 0 {
		d.l.feed.freed(s, n, now, false)
	}
}

// sweep ends ops whose own deadline has passed, and returns when to look again.
func (q *volleys) sweep(d *direct, now int64) int64 {
	next := now + d.l.opTimeout
	for _, v := range q.slab {
		if v.open == 0 || !v.running() {
			continue
		}
		if deadline := v.begun + d.l.opTimeout; deadline > now {
			next = min(next, deadline)
			continue
		}
		q.ended = tallied{}
		for i := range v.spans {
			if x := &v.spans[i]; x.Expire() {
				q.ended.outcomes[driver.QuorumFailed] += uint64(x.n)
				q.ended.done += int(x.n)
			}
		}
		d.l.feed.freed(v.session, d.tell(v, op.OpTimeout, now), now, false)
	}
	return next
}

// running says whether an op of the volley is undecided.
func (v *volley) running() bool {
	return slices.ContainsFunc(v.spans, func(x span) bool { return x.Running() })
}

// census adds the ops in flight to a count of them by verb.
func (q *volleys) census(ops *[driver.NumVerbs]int64) {
	for _, v := range q.slab {
		if v.open == 0 {
			continue
		}
		for i := range v.spans {
			if v.spans[i].Running() {
				ops[v.verb] += int64(v.spans[i].n)
			}
		}
	}
}

func (q *volleys) take(l *loop) *volley {
	if len(q.free) == 0 {
		made := make([]volley, minStates)
		for i := range made {
			q.slab = append(q.slab, &made[i])
			q.free = append(q.free, &made[i])
		}
	}
	last := len(q.free) - 1
	v := q.free[last]
	q.free = q.free[:last]
	l.used++
	return v
}

func (q *volleys) release(l *loop, v *volley) {
	l.used--
	q.free = append(q.free, v)
}
