package engine

import (
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// bulk is the batching that runs and quorum share: they draw and write many ops at a time, and one entry in the queue of replies stands for all ops
// that were due and written together.
type bulk struct {
	l *loop
	w *wire

	// The current ops. A few are drawn before the first is encoded: the steps within one op depend on each other, but those of several do not, so the
	// processor overlaps them.
	ops [drawn]op.Op
}

const drawn = 16

// draw takes the next n ops of a stream, or fewer if it ends, and returns how many.
func (x *bulk) draw(stream *workload.Stream, n int, now int64) int {
	got := stream.Draw(x.ops[:n])
	var digest uint64
	for i := range x.ops[:got] {
		o := &x.ops[i]
		digest += digestOf(o)
		x.l.sign(o, now)
	}
	x.l.rec.Mix(digest)
	return got
}

// readAnswers takes the replies at the front of b that belong to the first entry of the connection's queue, as [wireWay.answered] does, and settles
// them together. checked says that the values of gets carry a header. The headers are added to headers, unless that is nil.
func (w *wire) readAnswers(c *wireConn, b []byte, checked bool, headers *[]driver.Header, now int64) (took int, whole bool, err error) {
	p := c.queue.at(0)
	got, most := &w.answers, int(p.n)
	got.begin()
	if p.key != 0 && headers == nil {
		took, err = w.first(b, p, got)
	}
	blind := w.codec.skimmer != nil && !(checked && p.verb == driver.Get) // the values are not looked at
	if blind && err == nil && got.n < most {
		var n, size int
		if n, size, err = w.codec.skim(b[took:], p.verb, most-got.n); n > 0 {
			got.add(driver.OK, n)
		}
		took += size
	}
	for more := true; more && err == nil && got.n < most && took < len(b); {
		var size int
		if headers != nil {
			size, more, err = w.codec.parseHeaders(b[took:], most, headers, &w.reply, got)
		} else {
			size, more, err = w.codec.parseRun(b[took:], p.verb, most, checked, &w.reply, got)
		}
		if more {
			w.l.wrong(w.l.said.of(w.reply.Message))
		}
		took += size
	}
	w.l.rec.Foreign += uint64(got.foreign)
	verb := p.verb
	whole, got.bytes = got.n == most, took
	if got.n > 0 {
		if s := w.l.sampling; s != nil {
			s.in = int64(took / got.n)
		}
		w.bulk.settle(c, got, now)
	}
	if w.l.sampling != nil {
		w.l.sampling.forget()
	}
	if blind && err == nil && !whole && took < len(b) {
		var size int
		size, err = w.codec.outline(b[took:], verb)
		took += c.outline(size, len(b)-took)
	}
	return took, whole, err
}

// first takes the first reply to a run of gets, and examines whose value it holds.
func (w *wire) first(b []byte, p *pending, got *answers) (took int, err error) {
	if took, err = w.codec.parse(b, driver.Get, &w.reply); err != nil || took == 0 {
		return 0, err
	}
	got.add(w.reply.Outcome, 1)
	if w.lane.checked && foreign(driver.Get, &w.reply) {
		got.foreign++
	}
	w.lane.examine(&w.reply, p.key)
	if w.reply.Outcome.Failed() {
		got.failed++
		w.l.wrong(w.l.said.of(w.reply.Message))
	}
	return took, nil
}

// keyOf returns the hash of the key that a get asks for, if its value says whose it is, else 0.
func (w *wire) keyOf(verb driver.Verb, key []byte) uint64 {
	if verb != driver.Get || !w.lane.checked && !w.lane.marked {
		return 0
	}
	return driver.KeyHash(key)
}

// enter counts answers to requests and takes them off the connection's queue.
func (x *bulk) enter(c *wireConn, got *answers, now int64) {
	x.l.answers = now
	p := c.queue.at(0)
	ledger := x.l.rec.Request(c.endpoint, p.verb)
	ledger.Error += uint64(got.failed)
	ledger.Answered += uint64(got.n - got.failed)
	x.l.rec.AddBytes(p.verb, got.bytes, 0)
	c.queue.take(got.n)
}
