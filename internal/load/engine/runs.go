package engine

import (
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// runs carries out plain ops over sockets without a state, an event or a program call for each op. An op is a place in the queue of replies. Ops that
// were due and written together, a run, share an entry there and are counted together. The results equal those of programs, to the nanosecond.
type runs struct {
	bulk
	prog  *op.Plain
	homes [drawn]int // the endpoints of the drawn ops
}

func newRuns(w *wire, prog *op.Plain, source *workload.Source) *runs {
	w.writer.sheet.fits = w.places == 1 && alike(source, w.codec, leastLent)
	return &runs{bulk: bulk{l: w.l, w: w}, prog: prog}
}

func (r *runs) start(s *session, stream *workload.Stream, n int, due, now int64) int {
	w := r.w
	if w.writer.sheet.fits && w.room(w.conn(s, 0)) >= n && w.writer.laidOut(*stream) {
		return r.startAlike(s, stream, n, due, now)
	}
	for at := 0; at < n; at += drawn {
		most := min(n-at, drawn)
		got := r.draw(stream, most, now)
		for i := range r.ops[:got] {
			r.homes[i] = r.prog.Home(&r.ops[i])
		}
		for from := 0; from < got; {
			from += r.send(s, from, got, due, now)
		}
		if got < most {
			return at + got
		}
	}
	return n
}

// startAlike is start for ops that a sheet fits. Their connection has room for them.
func (r *runs) startAlike(s *session, stream *workload.Stream, n int, due, now int64) int {
	c, verb := r.w.conn(s, 0), stream.Verb()
	for at := 0; at < n; at += sheetSize {
		most := min(n-at, sheetSize)
		got, size, key := r.w.stamp(c, stream, most, now)
		if got > 0 {
			r.l.rec.AddDueN(verb, uint64(got))
			r.l.rec.AddBytes(verb, 0, size)
			r.l.rec.Request(c.endpoint, verb).Sent += uint64(got)
			r.l.occupy(s, got, now)
			c.joinRun(verb, got, due, key)
		}
		if got < most {
			return at + got
		}
	}
	return n
}

// send starts drawn ops, from index from up to got: as many as share an endpoint and a verb and fit on the connection, or are refused because none
// fits. It returns how many.
func (r *runs) send(s *session, from, got int, due, now int64) int {
	l, w := r.l, r.w
	verb, endpoint := r.ops[from].Verb, r.homes[from]
	c := w.conn(s, endpoint)
	room := w.room(c)
	to := from + 1
	for to < got && to-from != room && r.ops[to].Verb == verb && r.homes[to] == endpoint {
		to++
	}
	n := to - from
	l.rec.AddDueN(verb, uint64(n))
	l.occupy(s, n, now)
	ledger := l.rec.Request(endpoint, verb)
	if room == 0 {
		ledger.Refused += uint64(n)
		r.end(s, &pending{due: due, sent: now, n: int32(n), verb: verb}, op.Refused, now)
		l.feed.freed(s, n, now, true)
		return n
	}
	ledger.Sent += uint64(n)
	w.touch(c)
	size := 0
	for i := range r.ops[from:to] {
		size += w.put(c, &r.ops[from+i])
	}
	l.rec.AddBytes(verb, 0, size)
	c.joinRun(verb, n, due, w.keyOf(verb, r.ops[from].Key))
	return n
}

// joinRun enters the requests of n ops into the queue: into the newest entry if verb and due time are equal. key is what keyOf returns for the first.
func (c *wireConn) joinRun(verb driver.Verb, n int, due int64, key uint64) {
	if c.fresh > 0 {
		if p := c.queue.at(c.queue.len() - 1); p.verb == verb && p.due == due {
			p.n += int32(n)
			c.queue.owed += n
			return
		}
	}
	c.queue.push(pending{due: due, n: int32(n), verb: verb, key: key})
	c.fresh++
}

func (r *runs) answered(c *wireConn, b []byte, now int64) (took int, whole bool, err error) {
	return r.w.readAnswers(c, b, r.prog.Checked(), nil, now)
}

func (r *runs) settle(c *wireConn, got *answers, now int64) {
	p := c.queue.at(0)
	sample := measure.Sample{Verb: p.verb, Cause: measure.Cause(op.Replied), Due: p.due, Start: p.sent, End: now}
	r.enter(c, got, now)
	r.l.record(&sample, &got.ended)
	r.l.vacate(r.w.session(c), got.n, now)
	c.freed += got.n
}

func (r *runs) failed(c *wireConn, p *pending, kind op.EventKind, now int64) {
	unanswered(r.l.rec.Request(c.endpoint, p.verb), kind, uint64(p.n))
	s := r.w.session(c)
	r.end(s, p, kind, now)
	r.l.feed.freed(s, int(p.n), now, false)
}

// end records the ops of p, which were not answered, and gives their slots back.
func (r *runs) end(s *session, p *pending, kind op.EventKind, now int64) {
	outcome := r.prog.Outcome(kind, nil)
	r.l.errorStop.ended(outcome, uint64(p.n))
	sample := measure.Sample{
		Verb: p.verb, Outcome: outcome, Cause: measure.Cause(kind),
		Due: p.due, Start: p.sent, End: now,
	}
	r.l.rec.RecordN(&sample, uint64(p.n))
	r.l.fruitless(s, int(p.n), kind, p.due, now)
	if r.l.sampling != nil {
		r.l.sampling.ended(&sample, uint64(p.n))
	}
	r.l.vacate(s, int(p.n), now)
}

// sweep does nothing: a plain op has no deadline but its request's.
func (r *runs) sweep(int64) int64 { return never }

// census counts the queues. Ops whose requests were taken back before they left stay in flight, too.
func (r *runs) census(ops, _ *[driver.NumVerbs]int64) {
	for v, n := range r.w.recalled {
		ops[v] += n
	}
	for _, c := range r.w.conns {
		for i := c.queue.dead; i < c.queue.len(); i++ {
			p := c.queue.at(i)
			ops[p.verb] += int64(p.n)
		}
	}
}
