package engine

import (
	"slices"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// quorum carries out quorum ops that ask all of their endpoints at once. Ops that a session starts together form a batch, whose requests are encoded
// once and copied.
type quorum struct {
	bulk
	prog  *op.Quorum
	all   bool // all endpoints hold every key
	homes [drawn * maxReplicas]int
	slab  []*batch
	free  []*batch
	page  []byte // scratch for requests that the first connection has no room for
	ends  [drawn]int
	ended tallied // by the current reply or failure
}

// batch is quorum ops of one verb that a session has started together. Their requests stand in the connections' queues as runs, each with the index
// of its first op. Neighbouring ops with equal tallies are counted together, and equal outcomes are recorded together.
type batch struct {
	session *session
	due     int64
	begun   int64
	start   int64 // before the write of the first request; 0 until then
	open    int   // requests that have not ended; the last one ends the batch
	verb    driver.Verb
	spans   []span // the tallies of its ops
}

// span is consecutive ops of a batch with equal tallies.
type span struct {
	op.Tally
	n int16
}

// tallied is the combined effect of several requests of one batch that ended.
type tallied struct {
	acks     [maxReplicas + 1]uint64 // by k, for the k-th good answer; the first element counts the other answers
	outcomes [driver.NumOutcomes]uint64
	done     int
}

func newQuorum(w *wire, prog *op.Quorum, source *workload.Source) *quorum {
	q := &quorum{bulk: bulk{l: w.l, w: w}, prog: prog, all: prog.N == w.places}
	w.writer.sheet.fits = q.all && alike(source, w.codec, mostStamped+1)
	return q
}

func (q *quorum) start(s *session, stream *workload.Stream, n int, due, now int64) int {
	if !q.w.writer.sheet.fits || !q.w.writer.laidOut(*stream) {
		return q.startDrawn(s, stream, n, due, now)
	}
	for at := 0; at < n; at += sheetSize {
		most := min(n-at, sheetSize)
		if got := q.startAlike(s, stream, most, due, now); got < most {
			return at + got
		}
	}
	return n
}

// startDrawn is start for ops that no sheet fits.
func (q *quorum) startDrawn(s *session, stream *workload.Stream, n int, due, now int64) int {
	for at := 0; at < n; at += drawn {
		most := min(n-at, drawn)
		got := q.draw(stream, most, now)
		for from, to := 0, 0; from < got; from = to {
			for to = from + 1; to < got && q.ops[to].Verb == q.ops[from].Verb; to++ {
			}
			q.begin(s, q.ops[from:to], due, now)
		}
		if got < most {
			return at + got
		}
	}
	return n
}

// startAlike begins up to n ops that a sheet fits. The requests are made on the first connection that has room for all of them, and copied to the
// others as far as those have room.
func (q *quorum) startAlike(s *session, stream *workload.Stream, n int, due, now int64) int {
	o := &q.ops[0]
	o.Verb = stream.Verb()
	more := false
	if o.Stream, o.N, more = stream.At(); !more {
		return 0
	}
	q.prog.Place(q.of(0), o)
	lead := q.lead(s, n)
	if lead == nil {
		return q.startDrawn(s, stream, n, due, now)
	}
	at := len(lead.out)
	got, size, key := q.w.stamp(lead, stream, n, now)
	size /= max(1, got) // of one request
	b := q.enlist(s, o.Verb, got, due, now)
	for _, endpoint := range q.of(0) {
		c, room := q.w.conn(s, endpoint), got
		if c != lead {
			room = min(q.w.room(c), got)
			c.out = append(c.out, lead.out[at:at+room*size]...)
		}
		q.ask(c, b, 0, room, got, room*size, key)
	}
	q.started(b, now)
	return got
}

// lead returns the first of the op's connections that has room for n requests, or nil. It marks all connections that have room as to be written to,
// in order.
func (q *quorum) lead(s *session, n int) (lead *wireConn) {
	for _, endpoint := range q.of(0) {
		c := q.w.conn(s, endpoint)
		room := q.w.room(c)
		if room > 0 {
			q.w.touch(c)
		}
		if room >= n && lead == nil {
			lead = c
		}
	}
	return lead
}

// begin starts drawn ops of one verb.
func (q *quorum) begin(s *session, ops []op.Op, due, now int64) {
	b := q.enlist(s, ops[0].Verb, len(ops), due, now)
	q.place(ops)
	for from, to := 0, 0; from < len(ops); from = to {
		for to = from + 1; to < len(ops) && (q.all || slices.Equal(q.of(to), q.of(from))); to++ {
		}
		q.sendAll(b, ops[:to], from)
	}
	q.started(b, now)
}

// enlist makes a batch of n due ops.
func (q *quorum) enlist(s *session, verb driver.Verb, n int, due, now int64) *batch {
	b := q.take()
	b.session, b.due, b.begun, b.start = s, due, now, 0
	b.open, b.verb = n*q.prog.N, verb
	b.spans = append(b.spans[:0], span{Tally: q.prog.Tally(), n: int16(n)})
	q.l.rec.AddDueN(verb, uint64(n))
	q.l.occupy(s, n, now)
	q.ended = tallied{}
	return b
}

// started tells the feed of ops that were refused while their batch was being sent.
func (q *quorum) started(b *batch, now int64) {
	s := b.session
	if n := q.tell(b, op.Refused, now); n > 0 {
		q.l.feed.freed(s, n, now, true)
	}
}

// place finds the endpoints of ops. If all endpoints hold every key, all ops use the first one's order.
func (q *quorum) place(ops []op.Op) {
	if q.all {
		ops = ops[:1]
	}
	for i := range ops {
		q.prog.Place(q.of(i), &ops[i])
	}
}

// of returns the endpoints of the i-th op.
func (q *quorum) of(i int) []int { return q.homes[i*q.prog.N:][:q.prog.N] }

// sendAll sends the requests of ops, which have the same endpoints, or counts them as refused. from is the index of the first in the batch.
func (q *quorum) sendAll(b *batch, ops []op.Op, from int) {
	w := q.w
	var requests []byte // of all these ops, encoded once
	for _, endpoint := range q.of(from) {
		c := w.conn(b.session, endpoint)
		n := min(w.room(c), len(ops)-from)
		if n > 0 {
			w.touch(c)
			c.out = w.fitting(c.out, n*ops[from].Value.Size)
		}
		at := len(c.out)
		switch {
		case n == 0:
		case requests != nil:
			c.out = append(c.out, requests[:q.ends[from+n-1]]...)
		case n == len(ops)-from:
			c.out = q.encode(c.out, ops, from)
			requests = c.out[at:]
		default:
			q.page = q.encode(q.page[:0], ops, from)
			requests = q.page
			c.out = append(c.out, requests[:q.ends[from+n-1]]...)
		}
		if fault := w.codec.fault; fault != nil && n > 0 {
			c.broken = fault
		}
		q.ask(c, b, from, n, len(ops)-from, len(c.out)-at, w.keyOf(b.verb, ops[from].Key))
	}
	w.codec.fault = nil // the connections have taken it over
}

// encode appends the requests of ops from index from on, and notes where each ends.
func (q *quorum) encode(dst []byte, ops []op.Op, from int) []byte {
	at := len(dst)
	for i := from; i < len(ops); i++ {
		dst = q.w.writer.append(dst, &ops[i])
		q.ends[i] = len(dst) - at
	}
	return dst
}

// ask records that a connection was given the requests of n ops of a batch, from the op at index from on, size bytes in total. It had no room for the
// others of all ops, whose requests are refused. key is what keyOf returns for the first op.
func (q *quorum) ask(c *wireConn, b *batch, from, n, all, size int, key uint64) {
	ledger := q.l.rec.Request(c.endpoint, b.verb)
	ledger.Sent += uint64(n)
	if n > 0 {
		q.l.rec.AddBytes(b.verb, 0, size)
		c.joinBatch(b, from, n, key)
	}
	if n < all {
		ledger.Refused += uint64(all - n)
		q.count(b, from+n, all-n, driver.Error)
	}
}

// joinBatch enters the requests of n ops of a batch, from index from on, into the queue: into the newest entry if they continue it.
func (c *wireConn) joinBatch(b *batch, from, n int, key uint64) {
	if c.fresh > 0 {
		if p := c.queue.at(c.queue.len() - 1); p.batch == b && int(p.at)+int(p.n) == from {
			p.n += int32(n)
			c.queue.owed += n
			return
		}
	}
	c.queue.push(pending{batch: b, start: &b.start, at: int16(from), n: int32(n), verb: b.verb, key: key})
	c.fresh++
}

func (q *quorum) answered(c *wireConn, b []byte, now int64) (took int, whole bool, err error) {
	return q.w.readAnswers(c, b, true, nil, now)
}

func (q *quorum) settle(c *wireConn, got *answers, now int64) {
	p := c.queue.at(0)
	b, at := p.batch, int(p.at)
	q.enter(c, got, now)
	q.ended = tallied{}
	for _, run := range got.runs {
		q.count(b, at, run.n, run.outcome)
		at += run.n
	}
	c.freed += q.tell(b, op.Replied, now)
}

// count records the same answer for one request of each of n ops of a batch, from index from on. Ops with equal tallies are counted together.
func (q *quorum) count(b *batch, from, n int, answer driver.Outcome) {
	if n == 0 {
		return
	}
	b.open -= n
	first := b.cut(from)
	last := first
	for ; n > 0; last++ {
		x := &b.spans[last]
		if int(x.n) > n {
			b.cut(from + n)
			x = &b.spans[last]
		}
		k, done, outcome := q.prog.Count(&x.Tally, b.verb, answer)
		q.ended.acks[k] += uint64(x.n)
		if done {
			q.ended.outcomes[outcome] += uint64(x.n)
			q.ended.done += int(x.n)
		}
		from += int(x.n)
		n -= int(x.n)
	}
	b.join(last)
	b.join(first)
}

// cut makes a span begin at an op, and returns the span's index.
func (b *batch) cut(at int) int {
	i := 0
	for ; at > 0 && at >= int(b.spans[i].n); i++ {
		at -= int(b.spans[i].n)
	}
	if at > 0 {
		b.spans = slices.Insert(b.spans, i, b.spans[i])
		b.spans[i].n = int16(at)
		i++
		b.spans[i].n -= int16(at)
	}
	return i
}

// join merges the i-th span into the one before it if their tallies are equal.
func (b *batch) join(i int) {
	if i > 0 && i < len(b.spans) && b.spans[i-1].Tally == b.spans[i].Tally {
		b.spans[i-1].n += b.spans[i].n
		b.spans = slices.Delete(b.spans, i, i+1)
	}
}

// tell records q.ended, caused by an event of a kind, gives back the slots of the ops that were decided, and releases the batch if all its requests
// have ended. It returns how many ops were decided; the caller tells the feed of their slots.
func (q *quorum) tell(b *batch, kind op.EventKind, now int64) int {
	l := q.l
	start := b.start
	if start == 0 {
		start = now
	}
	if l.acks {
		for k, n := range q.ended.acks[1 : q.prog.N+1] {
			if n > 0 {
				l.rec.AckN(b.verb, k+1, now-start, n)
			}
		}
	}
	if q.ended.done > 0 {
		l.fruitless(b.session, q.ended.done, kind, b.due, now)
		l.record(&measure.Sample{Verb: b.verb, Cause: measure.Cause(kind), Due: b.due, Start: start, End: now}, &q.ended.outcomes)
		l.vacate(b.session, q.ended.done, now)
	}
	if b.open == 0 {
		q.release(b)
	}
	return q.ended.done
}

func (q *quorum) failed(c *wireConn, p *pending, kind op.EventKind, now int64) {
	unanswered(q.l.rec.Request(c.endpoint, p.verb), kind, uint64(p.n))
	s := p.batch.session
	q.ended = tallied{}
	q.count(p.batch, int(p.at), int(p.n), driver.Error)
	if n := q.tell(p.batch, kind, now); n > 0 {
		q.l.feed.freed(s, n, now, false)
	}
}

func (q *quorum) sweep(now int64) int64 {
	next := now + q.l.opTimeout
	for _, b := range q.slab {
		if b.open == 0 || !b.running() {
			continue
		}
		if deadline := b.begun + q.l.opTimeout; deadline > now {
			next = min(next, deadline)
			continue
		}
		q.ended = tallied{}
		for i := range b.spans {
			if x := &b.spans[i]; x.Expire() {
				q.ended.outcomes[driver.QuorumFailed] += uint64(x.n)
				q.ended.done += int(x.n)
			}
		}
		q.l.feed.freed(b.session, q.tell(b, op.OpTimeout, now), now, false)
	}
	return next
}

// running reports whether any op of the batch is undecided.
func (b *batch) running() bool {
	return slices.ContainsFunc(b.spans, func(x span) bool { return x.Running() })
}

func (q *quorum) census(ops, _ *[driver.NumVerbs]int64) {
	for _, b := range q.slab {
		if b.open == 0 {
			continue
		}
		for i := range b.spans {
			if b.spans[i].Running() {
				ops[b.verb] += int64(b.spans[i].n)
			}
		}
	}
}

func (q *quorum) take() *batch {
	if len(q.free) == 0 {
		made := make([]batch, minStates)
		for i := range made {
			q.slab = append(q.slab, &made[i])
			q.free = append(q.free, &made[i])
		}
	}
	last := len(q.free) - 1
	b := q.free[last]
	q.free = q.free[:last]
	q.l.used++
	return b
}

func (q *quorum) release(b *batch) {
	q.l.used--
	q.free = append(q.free, b)
}
