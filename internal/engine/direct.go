package engine

import (
	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// direct carries out ops of the plain program over sockets without a state, an event and a call of the program for each: such an op is a
// place in the queue of replies, and ops that were due and written together share an entry there. They are counted together, too. Those of a
// quorum have a share of a volley beside it. What comes out is what the program would have made of them, to the nanosecond.
type direct struct {
	l       *loop
	w       *wire
	prog    *op.Plain              // or
	volleys *volleys               // of a quorum
	left    [driver.NumVerbs]int64 // ops that were started and taken back before they left; they stay in flight

	// Ops at hand, and where they go. A few are drawn before the first is encoded: one op's steps hang on each other, those of several do
	// not, and a processor does them side by side.
	ops   [drawn]op.Op
	homes [drawn]int
	enc   encoder
	sheet sheet
	parts [][]byte // of a value that is lent

	checked bool // the values of gets carry a header
}

const drawn = 16

// bypass has the loop carry out ops directly where its program and transport allow it.
func (l *loop) bypass(source *workload.Source) {
	l.direct = nil
	l.thread, _ = l.tr.(*local)
	w, wired := l.tr.(*wire)
	if !wired || l.scenes != nil {
		return
	}
	d := &direct{l: l, w: w, enc: newEncoder(w.codec)}
	switch prog := l.prog.(type) {
	case *op.Plain:
		d.prog, d.checked = prog, prog.Checked()
		d.sheet.fits = alike(source, d.enc.codec, leastLent) && w.places == 1
	case *op.Quorum:
		if w.pipes != nil || source.Draws(driver.Get) && !prog.AsksAll(driver.Get) { // pipes say later when each of the requests left
			return
		}
		d.volleys, d.checked = newVolleys(prog, w.places), true
		d.sheet.fits = alike(source, d.enc.codec, mostStamped+1) && d.volleys.all
	default:
		return
	}
	l.direct, w.direct = d, d
}

// start begins the next n ops of a stream, or fewer when it ends, and returns how many.
func (d *direct) start(s *session, stream *workload.Stream, n int, due, now int64) int {
	switch {
	case d.sheet.fits && (d.volleys != nil || d.w.room(d.w.conn(s, 0)) >= n) && (d.sheet.requests != nil || d.layOut(*stream)):
		return d.stamp(s, stream, n, due, now)
	case d.volleys != nil:
		return d.startVolleys(s, stream, n, due, now)
	}
	return d.startAny(s, stream, n, due, now)
}

// startAny is start for ops of any kind.
func (d *direct) startAny(s *session, stream *workload.Stream, n int, due, now int64) int {
	for at := 0; at < n; at += drawn {
		most := min(n-at, drawn)
		got := d.draw(stream, most, now)
		for from := 0; from < got; {
			from += d.send(s, from, got, due, now)
		}
		if got < most {
			return at + got
		}
	}
	return n
}

// draw takes the next n ops of a stream, or fewer when it ends, and returns how many.
func (d *direct) draw(stream *workload.Stream, n int, now int64) int {
	got := stream.Draw(d.ops[:n])
	var digest uint64
	for i := range d.ops[:got] {
		o := &d.ops[i]
		digest += digestOf(o)
		d.l.sign(o, now)
		if d.prog != nil {
			d.homes[i] = d.prog.Home(o)
		}
	}
	d.l.rec.Mix(digest)
	return got
}

// send starts ops at hand from one on, as many as have one endpoint and one verb and find room there or find none. It returns how many
// these are.
func (d *direct) send(s *session, from, got int, due, now int64) int {
	l, w := d.l, d.w
	verb, endpoint := d.ops[from].Verb, d.homes[from]
	c := w.conn(s, endpoint)
	room := w.room(c)
	to := from + 1
	for to < got && to-from != room && d.ops[to].Verb == verb && d.homes[to] == endpoint {
		to++
	}
	n := to - from
	l.rec.AddDueN(verb, uint64(n))
	l.occupy(s, n, now)
	ledger := l.rec.Request(endpoint, verb)
	if room == 0 {
		ledger.Refused += uint64(n)
		d.end(s, pending{due: due, sent: now, n: int32(n), verb: verb}, op.Refused, now)
		l.feed.freed(s, n, now, true)
		return n
	}
	ledger.Sent += uint64(n)
	w.touch(c)
	size := 0
	for i := range d.ops[from:to] {
		size += d.put(c, &d.ops[from+i])
	}
	l.rec.AddBytes(verb, 0, size)
	c.join(verb, n, due)
	return n
}

// put appends the request of an op to a connection's output, and returns its bytes.
func (d *direct) put(c *wireConn, o *op.Op) int {
	if n := d.lend(c, o); n > 0 {
		return n
	}
	at := len(c.out)
	c.out = d.enc.append(c.out, o)
	d.w.taint(c)
	if d.w.pipes != nil {
		c.cut(at)
	}
	return len(c.out) - at
}

// join enters the requests of n ops without a state into the queue: with the newest entry, if they are alike.
func (c *wireConn) join(verb driver.Verb, n int, due int64) {
	if c.fresh > 0 {
		if p := c.queue.at(c.queue.len() - 1); p.st == nil && p.verb == verb && p.due == due {
			p.n += int32(n)
			c.queue.owed += n
			return
		}
	}
	c.queue.push(pending{due: due, n: int32(n), verb: verb})
	c.fresh++
}

// answered takes the replies to p, the first entry of the connection's queue, that b begins with. It returns the bytes they took and
// whether they were all that p is owed; the slots are added to c.freed.
func (d *direct) answered(c *wireConn, p *pending, b []byte, now int64) (took int, whole bool, err error) {
	w, rec := d.w, d.l.rec
	var got answers
	most := int(p.n)
	if p.volley != nil {
		d.volleys.ended = tallied{}
	}
	blind := w.codec.skimmer != nil && !(d.checked && p.verb == driver.Get) // nobody looks into the values
	if blind {
		got.n, took, err = w.codec.skim(b, p.verb, most)
		got.ended[driver.OK] = uint64(got.n)
		if p.volley != nil {
			d.volleys.count(p.volley, int(p.at), got.n, driver.OK)
		}
	}
	for err == nil && got.n < most && took < len(b) {
		size := 0
		if size, err = w.codec.parse(b[took:], p.verb, &w.reply); size == 0 || err != nil {
			break
		}
		if p.volley != nil {
			d.volleys.count(p.volley, int(p.at)+got.n, 1, w.reply.Outcome)
		}
		took += size
		got.n++
		got.ended[w.reply.Outcome]++
		if w.reply.Outcome == driver.Error {
			rec.Errors.Add(d.l.said.of(w.reply.Message))
		}
		if d.checked && foreign(p.verb, &w.reply) {
			rec.Foreign++
		}
	}
	whole, got.bytes = got.n == most, took
	if got.n > 0 {
		d.settle(c, &got, now)
	}
	if blind && err == nil && !whole && took < len(b) {
		size := 0
		size, err = w.codec.outline(b[took:], p.verb)
		took += c.outline(size, len(b)-took)
	}
	return took, whole, err
}

// answers are replies to the requests of one entry in a queue.
type answers struct {
	n, bytes int
	ended    [driver.NumOutcomes]uint64 // the n, by outcome
}

// settle enters the next answers to the first entry of the connection's queue. The slots are added to c.freed.
func (d *direct) settle(c *wireConn, got *answers, now int64) {
	p, rec := c.queue.at(0), d.l.rec
	d.l.answers = now
	ledger := rec.Request(c.endpoint, p.verb)
	ledger.Error += got.ended[driver.Error]
	ledger.Answered += uint64(got.n) - got.ended[driver.Error]
	rec.AddBytes(p.verb, got.bytes, 0)
	if p.volley != nil {
		c.freed += d.tell(p.volley, op.Replied, now)
	} else {
		d.record(&measure.Sample{Verb: p.verb, Cause: measure.Cause(op.Replied), Due: p.due, Start: p.sent, End: now}, &got.ended)
		d.l.vacate(d.session(c), got.n, now)
		c.freed += got.n
	}
	c.queue.take(got.n)
}

// record counts ops that ended at the same time, by their outcome.
func (d *direct) record(sample *measure.Sample, ended *[driver.NumOutcomes]uint64) {
	for outcome, count := range ended {
		if count > 0 {
			sample.Outcome = driver.Outcome(outcome)
			d.l.rec.RecordN(sample, count)
			if sample.Outcome > driver.Miss {
				d.l.brake.ended(sample.Outcome, count)
			}
		}
	}
}

// foreign says whether a reply holds a value that no loadgen wrote.
func foreign(v driver.Verb, reply *driver.Reply) bool {
	if v != driver.Get || reply.Outcome != driver.OK {
		return false
	}
	_, _, ok := driver.ReadHeader(reply.Value)
	return !ok
}

// freed tells the feed of the slots whose ops a read has ended.
func (d *direct) freed(c *wireConn, now int64) {
	n := c.freed
	c.freed = 0
	d.l.feed.freed(d.session(c), n, now, false)
}

// failed ends ops whose requests were sent and will not be answered.
func (d *direct) failed(c *wireConn, p pending, kind op.EventKind, now int64) {
	if p.volley != nil {
		d.failedVolley(c, &p, kind, now)
		return
	}
	unanswered(d.l.rec.Request(c.endpoint, p.verb), kind, uint64(p.n))
	s := d.session(c)
	d.end(s, p, kind, now)
	d.l.feed.freed(s, int(p.n), now, false)
}

// end records the ops of p, which was not answered, and gives their slots back.
func (d *direct) end(s *session, p pending, kind op.EventKind, now int64) {
	outcome := d.prog.Outcome(kind, nil)
	d.l.brake.ended(outcome, uint64(p.n))
	d.l.rec.RecordN(&measure.Sample{
		Verb: p.verb, Outcome: outcome, Cause: measure.Cause(kind),
		Due: p.due, Start: p.sent, End: now,
	}, uint64(p.n))
	d.l.vacate(s, int(p.n), now)
}

func (d *direct) session(c *wireConn) *session {
	return d.l.sessions[int(c.index)/d.w.places]
}

// running adds the ops in flight to a count of them by verb.
func (d *direct) running(ops *[driver.NumVerbs]int64) {
	if d.volleys != nil {
		d.volleys.census(ops)
		return
	}
	for v, n := range d.left {
		ops[v] += n
	}
	for _, c := range d.w.conns {
		for i := c.queue.dead; i < c.queue.len(); i++ {
			if p := c.queue.at(i); p.st == nil {
				ops[p.verb] += int64(p.n)
			}
		}
	}
}
