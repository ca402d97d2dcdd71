package engine

import (
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// programs carries ops out by their programs. It is the way for any kind of op over any transport, and the reference for the other ways.
type programs struct {
	op.Program
	through  *op.Through // the program, if ops read through a cache; else nil
	chain    *op.Chain   // the program, if ops are chains; else nil
	l        *loop
	lane     *lane
	w        *wire              // the lane's transport, if it is a wire
	depth    int                // how deep deliveries are nested
	scratch  [][]driver.Request // one for each depth
	starting *opState
	whole    driver.Reply // the combined reply to a request with several keys
}

func newPrograms(la *lane) *programs {
	p := &programs{l: la.l, lane: la}
	p.w, _ = la.tr.(*wire)
	return p
}

func (p *programs) start(s *session, stream *workload.Stream, n int, due, now int64) int {
	for i := range n {
		st := p.l.next(s, stream, due, now)
		if st == nil {
			return i
		}
		p.launch(st, now)
	}
	return n
}

// launch makes the op's program begin it.
func (p *programs) launch(st *opState, now int64) {
	p = st.by
	s, sc := st.session, st.scene
	p.depth++
	p.starting = st
	reqs := p.Start(p.room(), &st.Op)
	if p.through != nil {
		p.l.loads(st, p.through.Loading(st.Slot), now)
	}
	for i := range reqs {
		p.issue(st, &reqs[i], now)
	}
	p.l.gate.began(len(reqs) + p.l.fills.reserved(st))
	p.starting = nil
	p.depth--
	if st.done {
		p.l.proceed(s, sc, now, true)
	}
}

// issue sends a request, or tells its program that it was refused.
func (p *programs) issue(st *opState, req *driver.Request, now int64) {
	la := p.l.lanes[req.Target]
	ledger := la.requests(req.Endpoint, req.Verb)
	if la.tr.send(st.session, st, req) {
		ledger.Sent++
		return
	}
	ledger.Refused++
	la.routes.suspect()
	p.endKeys(st, len(req.Batch), driver.Error, now)
	p.deliver(op.Event{Kind: op.Refused, Op: &st.Op, Target: req.Target, Endpoint: req.Endpoint, Verb: req.Verb, Tag: req.Tag}, now)
}

// answered handles the reply to a request, or to its announcement.
func (p *programs) answered(c *wireConn, b []byte, now int64) (took int, whole bool, err error) {
	w, at := p.w, c.queue.at(0)
	if at.asking {
		return w.announced(c, b)
	}
	r := request{st: at.st, endpoint: c.endpoint, verb: at.verb, tag: at.tag, keys: int(at.keys)}
	if took, err = w.parseOne(c, b); err != nil || took == 0 {
		return 0, false, err
	}
	c.queue.take(1)
	if r.keys > 0 {
		p.repliedBatch(r, w.replies[:r.keys], took, now)
		return took, true, nil
	}
	var to *op.Redirect
	if w.reply.Outcome == driver.Error {
		to, err = p.lane.routes.redirect(c.endpoint, w.reply.Message)
	}
	p.replied(r, &w.reply, to, took, now)
	return took, true, err
}

// replied handles a reply to a request. to is where the reply redirects the request, or nil; n is the reply's length in bytes.
func (p *programs) replied(r request, reply *driver.Reply, to *op.Redirect, n int, now int64) {
	l := p.l
	l.answers = now
	ledger := p.lane.requests(r.endpoint, r.verb)
	ev := p.event(r, op.Replied)
	ev.Reply, ev.Redirect = reply, to
	switch {
	case !reply.Outcome.Failed():
		ledger.Answered++
	case to == nil:
		ledger.Error++
		l.wrong(l.said.of(reply.Message))
	case to.Ask:
		ledger.Ask++
	default:
		ledger.Moved++
	}
	if found := reply.Found; found != nil {
		p.found(r, found, ledger)
	}
	n += reply.Aside
	l.rec.AddBytes(r.st.Verb, n, 0)
	r.st.in += int64(n)
	if r.verb == driver.Get {
		key := r.st.Key
		if p.chain != nil {
			key = p.chain.Item(&r.st.Op, r.tag).Key
		}
		ev.Astray = p.lane.examine(reply, driver.KeyHash(key))
	}
	if l.sampling != nil {
		l.sampling.code = reply.Code
	}
	if p.lane.confirms {
		for k := range int(reply.Acks) {
			l.rec.Ack(r.st.Verb, k+1, now-r.st.startOr(now))
		}
	}
	p.deliver(ev, now)
}

// found takes what a form has found in a reply.
func (p *programs) found(r request, found *driver.Findings, ledger *measure.Requests) {
	if found.Failed > 0 {
		p.l.rec.FailCheck(r.verb, found.Failed)
	}
	ledger.Sent += uint64(found.Hops)
	ledger.Moved += uint64(found.Hops)
	if sc := r.st.scene; sc != nil && !r.st.done {
		for _, n := range found.Bag {
			sc.bag.Put(n)
		}
	}
}

// repliedBatch handles the replies to a request with several keys; n is their length in bytes. The request's outcome is the worst of theirs.
func (p *programs) repliedBatch(r request, replies []driver.Reply, n int, now int64) {
	l := p.l
	l.answers = now
	if r.verb == driver.Get {
		p.lane.examineAll(replies, r.st.Batch)
	}
	var ended [driver.NumOutcomes]uint64
	for i := range replies {
		reply := &replies[i]
		ended[reply.Outcome]++
		if reply.Message != nil {
			l.wrong(l.said.of(reply.Message))
		}
		if p.lane.checked && foreign(r.verb, reply) {
			l.rec.Foreign++
		}
	}
	p.whole = driver.Reply{Outcome: driver.Miss}
	for outcome, count := range ended {
		if count == 0 {
			continue
		}
		p.endKeys(r.st, int(count), driver.Outcome(outcome), now)
		if o := driver.Outcome(outcome); o != driver.Miss {
			p.whole.Outcome = o
		}
	}
	ledger := p.lane.requests(r.endpoint, r.verb)
	if p.whole.Outcome == driver.Error {
		ledger.Error++
	} else {
		ledger.Answered++
	}
	l.rec.AddBytes(r.verb, n, 0)
	r.st.in += int64(n)
	ev := p.event(r, op.Replied)
	ev.Reply = &p.whole
	p.deliver(ev, now)
}

// endKeys counts that n of the keys of st have ended; n is 0 if the request has just one.
func (p *programs) endKeys(st *opState, n int, o driver.Outcome, now int64) {
	if n > 0 {
		st.keys -= n
		p.l.rec.EndKeys(st.Verb, o, uint64(n), st.due, now)
	}
}

// links counts the keys of a chain, or of the puts of its rest.
func (p *programs) links(st *opState, step *op.Step, now int64) {
	if step.Done {
		p.endKeys(st, step.Good, driver.OK, now)
		p.endKeys(st, st.keys, max(step.Outcome, driver.Miss), now)
	}
	if step.Wasted > 0 {
		p.l.rec.Waste(st.Verb, step.Wasted)
	}
}

func (p *programs) failed(c *wireConn, x *pending, kind op.EventKind, now int64) {
	p.lost(request{st: x.st, endpoint: c.endpoint, verb: x.verb, tag: x.tag, keys: int(x.keys)}, kind, now)
}

// lost ends a request that will not be answered. kind is op.RequestTimeout, op.Lost or, for a request that was counted as sent but has not left,
// op.Refused.
func (p *programs) lost(r request, kind op.EventKind, now int64) {
	unanswered(p.lane.requests(r.endpoint, r.verb), kind, 1)
	outcome := driver.Error
	if kind == op.RequestTimeout {
		outcome = driver.Timeout
	}
	p.endKeys(r.st, r.keys, outcome, now)
	p.deliver(p.event(r, kind), now)
}

// event returns the event for the end of a request in this lane.
func (p *programs) event(r request, kind op.EventKind) op.Event {
	return op.Event{Kind: kind, Op: &r.st.Op, Target: p.lane.side.number, Endpoint: r.endpoint, Verb: r.verb, Tag: r.tag}
}

// deliver gives an event to its op's program and does what the program says.
func (p *programs) deliver(ev op.Event, now int64) {
	l := p.l
	st := l.slab[ev.Op.Slot]
	p = st.by
	s := st.session
	p.depth++
	reqs, step := p.On(p.room(), ev)
	if p.through != nil {
		l.loads(st, p.through.Loading(ev.Op.Slot), now)
	}
	if step.Ack > 0 && p.lane.acks {
		l.rec.Ack(st.Verb, int(step.Ack), now-st.startOr(now))
	}
	if step.Foreign {
		l.rec.Foreign++
	}
	sc, missed := st.scene, false
	if ev.Redirect != nil && (step.Done || step.Wait > 0) {
		l.wrong(ending(ev.Redirect))
		p.lane.routes.suspect()
	}
	if p.chain != nil {
		p.links(st, &step, now)
	}
	if step.Done {
		l.ended(st, step, ev.Kind, now)
		missed = l.fills.take(st, &step)
	}
	if l.sampling != nil {
		l.sampling.forget()
	}
	for i := range reqs {
		if !l.gate.holds(st, &reqs[i], now) {
			p.issue(st, &reqs[i], now)
		}
	}
	p.depth--
	// If the op is just being launched, launch still iterates over its requests, and then tells the feed itself.
	held := st == p.starting
	if step.Settled {
		l.release(st)
	}
	switch {
	case step.Wait > 0:
		l.awaitTry(st, ev.Kind, step.Wait, now)
	case missed:
		l.fills.put(s, sc, now)
	case step.Done && !held:
		l.proceed(s, sc, now, p.through != nil && ev.Kind == op.Refused && step.Outcome > driver.Miss) // else a slot whose source is away would not wait
	}
}

// room returns an empty slice for the requests at this depth of delivery. Deliveries nest: a refusal is delivered while sibling requests are still
// being sent.
func (p *programs) room() []driver.Request {
	for p.depth >= len(p.scratch) {
		p.scratch = append(p.scratch, make([]driver.Request, 0, max(maxReplicas, len(p.l.reqNow)/driver.NumVerbs)))
	}
	return p.scratch[p.depth][:0]
}

// maxReplicas is the largest number of replicas (N).
const maxReplicas = 16

func (p *programs) sweep(now int64) int64 {
	l := p.l
	timeout := p.lane.opTimeout
	if timeout == 0 {
		return never
	}
	next := now + timeout
	for _, st := range l.slab {
		if !st.used || st.done || st.by != p {
			continue
		}
		if deadline := st.begun + timeout; deadline > now {
			next = min(next, deadline)
			continue
		}
		p.deliver(op.Event{Kind: op.OpTimeout, Op: &st.Op}, now)
	}
	return next
}

func (p *programs) census(ops, keys *[driver.NumVerbs]int64) { p.l.countStates(ops, keys) }

// ending returns the reason why a redirect is not followed.
func ending(to *op.Redirect) []byte {
	if to.Endpoint < 0 {
		return strangeNode
	}
	return noEnd
}
