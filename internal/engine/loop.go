package engine

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	backlog   = 64                           // requests outstanding on a connection, beyond the pipeline
	pause     = int64(10 * time.Millisecond) // of a slot whose op failed before anything was sent
	interval  = int64(time.Second)           // between seals
	maxSleep  = int64(50 * time.Millisecond) // the longest a loop does not look whether it should stop
	maxStall  = int64(250 * time.Millisecond)
	sweepStep = int64(time.Millisecond)       // least time between two looks for timeouts
	maxLook   = int64(5 * time.Microsecond)   // a cycle that found nothing and took longer has slept, or was not run
	patience  = int64(300 * time.Millisecond) // with a target that answers nothing, once the step was asked to end early
	minStates = 64                            // op states made at a time
	shedEach  = 4096                          // ops of a schedule that has ended which are shed in one turn
	flushEach = 64                            // sessions that start at the same time: what they send leaves before that of the next is written up
)

// For how long a loop looks at the clock before an op of an open load is due. A thread that sleeps until a time is commonly late by 50 to 100
// µs. A loop that shares its processor with others should not keep it from them for that long before each op; one that is pinned does not
// sleep between the ops of a busy schedule at all, since a virtual processor that sleeps may find its host busy when it wakes.
const (
	DefaultSpin = 50 * time.Microsecond
	PinnedSpin  = 200 * time.Microsecond
)

// transport moves the requests of one loop. It calls the loop's answered and failed as requests end.
type transport interface {
	// open makes the connections of every session, within the deadline on the loop's clock.
	open(deadline int64) error
	// send takes req for the session's connection to req.Endpoint, or refuses it.
	send(s *session, st *opState, req *driver.Request) bool
	// flush passes on what send has gathered.
	flush()
	// recall takes back the requests that have not left. The lease is over: none of them will.
	recall()
	// wait reports what happens within d; at d = 0, what has happened. It returns early when something has, and whether it has.
	wait(d time.Duration) bool
	// fire handles a timer that the transport has set.
	fire(t timer, now int64)
	// sweep times requests out that are due to be, and returns when to look again.
	sweep(now int64) int64
	// outstanding adds 1 to InFlight of each request that is still awaited.
	outstanding(into []measure.Requests)
	close()
}

// feed decides when a loop's sessions start their next ops.
type feed interface {
	// begin sets the first starts of a step.
	begin()
	// fire handles a timer that the feed has set.
	fire(t timer, now int64)
	// due starts what is due by now.
	due(now int64)
	// next returns when due has something to do again.
	next() int64
	// freed tells that n of the session's slots have become free; held: they may not be used again for a pause.
	freed(s *session, n int, now int64, held bool)
	// stop ends the feed: nothing starts any more, and what was due before now and not started is shed.
	stop(now int64)
	// done reports whether nothing will be started any more.
	done() bool
}

// session is one logical client. All of it lives in one loop.
type session struct {
	index   int // in the loop
	id      int // in the phase
	active  int // slots in use
	stream  workload.Stream
	streams []*openStream // of the open feed, the earliest first
	queued  bool          // among the sessions that the open feed can start
	begun   bool
	retired bool  // it has failed for good
	roomAt  int64 // when a slot was last free again after all were in use, of an open load
	first   int64 // start of its first op,
	out     int64 // start of its last, and
	started int64 // how many ops
	last    int64 // end of its last, on the run clock
}

// opState is an op between its start and its last event, where a program carries it out. An op of the direct path has none.
type opState struct {
	op.Op
	session *session
	scene   *scene // whose step it is; nil: it stands for itself
	due     int64
	begun   int64 // when the program started it
	start   int64 // before the write of its first request; 0 until then
	keys    int   // of an op with several, those whose requests have not ended
	used    bool  // between take and release
	done    bool  // the outcome is known; requests may be outstanding
}

// loop carries out one step at a time for its sessions. Its fields belong to the goroutine that runs it.
type loop struct {
	clock    clock
	tr       transport
	feed     feed
	prog     op.Program
	routes   *routes // of a target that is a cluster; else nil
	pipeline int     // slots of a session
	direct   *direct // carries out what prog would, where it can; or nil
	thread   *local  // carries ops out without prog; or nil
	scenes   *scenes // of a step whose sessions carry out scenarios; or nil
	timers   timers
	sessions []*session

	slab    []*opState // by slot
	free    []int32
	used    int // states between take and release
	running int // ops between start and done
	depth   int
	scratch [][]driver.Request // by depth of delivery

	said      said
	rec       *measure.Totals
	spare     chan *measure.Totals
	parts     chan<- part
	opsBefore [driver.NumVerbs]int64
	keyBefore [driver.NumVerbs]int64 // likewise of keys
	reqBefore []measure.Requests
	reqNow    []measure.Requests

	index     int
	origin    int64  // run clock at the step's start
	wall      int64  // Unix nanoseconds of the run clock's zero
	version   uint64 // that no value has yet
	opTimeout int64  // 0: the request's timeout is enough
	sweepAt   int64
	sealAt    int64  // end of the interval under way; never between steps
	excess    int64  // by how much the last cycle took longer than it was to; 0 where that is little
	last      int64  // when it began, and
	planned   int64  // how long it meant to wait
	entered   int64  // when the step began here
	spin      int64  // how long before an op is due the loop looks instead of sleeping
	woken     int64  // when the last cycle was to have something to do, unless something happened before
	looked    bool   // the last cycle found nothing to do, nor did its wait
	spun      int64  // processor time spent looking in vain, in this step
	meter     *meter // of the loop's thread; nil: it has none of its own
	gaps      *gaps  // in this step; nil: nobody counts them
	hold      hold
	acks      bool         // record the latency of the k-th good answer
	checked   bool         // values that are read carry a header
	whole     driver.Reply // to a request of several keys
	starting  *opState
	halt      *atomic.Int32 // how the worker was asked to end the step
	retired   *atomic.Int64 // sessions of all loops that have failed for good, of
	everyone  int64         // so many
	brake     *brake        // ends it when ops fail; nil: nothing does
	lease     *lease        // when it is over, nothing may be started or sent
	answers   int64         // run clock, when the last answer came
	stopped   bool
	stoppedAt int64
	lapsed    bool                 // ended by the lease
	fault     error                // why the step fails
	panics    map[*session][]int64 // of the driver, the last ones of each session
	logged    int                  // of them
	log       *slog.Logger
}

// Values of loop.halt.
const (
	goOn    int32 = iota
	drain         // start nothing more, wait for what is outstanding while answers come
	abandon       // return at once
)

// part is what one loop has counted up to a boundary of intervals.
type part struct {
	loop   int
	upTo   int64 // run clock
	still  int64 // run clock: if later than upTo, the loop stood still from then on until here, and has counted nothing
	totals *measure.Totals
	final  bool
	use    loopUse // of a final part
}

// run carries out the prepared step and returns when all of it has ended.
func (l *loop) run() {
	if f, ok := l.feed.(reading); ok {
		f.open()
	}
	l.await()
	l.enter()
	for l.cycle() {
	}
	l.hold.release()
	l.finish(l.last)
}

// enter sets the step's clockwork going.
func (l *loop) enter() {
	l.stopped, l.lapsed, l.planned, l.answers = false, false, 0, 0
	l.woken, l.looked, l.spun = 0, false, 0
	l.meter.begin()
	l.gaps = nil
	if _, open := l.feed.(*openFeed); open && l.meter != nil && l.meter.queued.known {
		l.gaps = new(gaps)
	}
	l.last = l.clock.now()
	l.entered = l.last
	l.sweepAt = l.last
	l.sealAt = (l.last/interval + 1) * interval
	l.feed.begin()
}

// await returns when the step is to start, or when it is not to: the lease may be over before that.
func (l *loop) await() {
	for now := l.clock.now(); now < l.origin && !l.lease.over(now) && l.halt.Load() != abandon; now = l.clock.now() {
		l.clock.sleep(time.Duration(min(l.origin-now, maxSleep)))
	}
}

// cycle does what is to be done now, then waits for what comes next. It reports false when the step has ended.
func (l *loop) cycle() bool {
	now := l.clock.now()
	if l.excess = now - l.last - l.planned; l.excess > leastGap {
		l.overran(l.excess)
	} else {
		l.excess = 0
	}
	if took := now - l.last; l.looked && took < maxLook {
		l.spun += took
	}
	idle := now < l.woken
	l.last = now
	if l.expired(now) {
		return false
	}
	l.turn(now)
	if l.feed.done() && l.used == 0 && l.running == 0 || l.halt.Load() == abandon || l.forsaken(now) {
		return false
	}
	wake := l.wake(now)
	l.planned = max(0, wake-now)
	doze := l.planned
	if wake == l.feed.next() {
		// A sleeping thread wakes a little late. Before an op is due, the last part of the wait is spent looking.
		doze = max(0, doze-l.spin)
	}
	l.woken, l.looked = wake, idle
	l.hold.before(now, doze)
	if l.tr.wait(time.Duration(doze)) {
		l.woken, l.looked = 0, false
	}
	return true
}

// overran enters that a cycle took longer than it was to.
func (l *loop) overran(excess int64) {
	if excess > maxStall {
		l.rec.Stalls++
		l.rec.MaxStall = max(l.rec.MaxStall, excess)
	}
	if l.gaps == nil {
		return
	}
	if others, known := l.meter.kept(); known {
		l.gaps.enter(excess, others, l.looked)
	}
}

// expired says whether the lease is over. Whoever has taken a time and is about to start or send something asks first: a process that was
// stopped for long must not go on where it was.
func (l *loop) expired(now int64) bool {
	if l.lease.over(now) {
		l.lapsed = true
	}
	return l.lapsed
}

// forsaken says whether the step was asked to end early and no answer has come for so long that none is expected: what is outstanding stays in
// flight.
func (l *loop) forsaken(now int64) bool {
	return l.stopped && now-max(l.stoppedAt, l.answers) > patience
}

// retire notes that a session has failed for good. A closed one starts nothing more. Ops of an open load are due whatever became of those before
// them, and refused, while there are other sessions.
func (l *loop) retire(s *session) {
	s.retired = true
	l.retired.Add(1)
}

// deserted says whether all sessions of this worker have failed for good: no op can go well any more.
func (l *loop) deserted() bool { return l.retired.Load() == l.everyone }

// turn does what the time asks for.
func (l *loop) turn(now int64) {
	l.seal(now)
	if !l.stopped && (l.halt.Load() != goOn || l.deserted()) {
		l.stopped, l.stoppedAt = true, now
		l.feed.stop(now)
		if l.scenes != nil {
			l.scenes.stop(now)
		}
	}
	l.routes.renew()
	for n := 1; l.timers.next() <= now; n++ {
		if n%flushEach == 0 {
			l.tr.flush()
		}
		t := l.timers.pop()
		switch t.kind {
		case startSlots:
			l.feed.fire(t, now)
		case nextScene:
			l.scenes.fire(t, now)
		default:
			l.tr.fire(t, now)
		}
	}
	l.feed.due(now)
	if now >= l.sweepAt {
		l.sweepAt = max(min(l.tr.sweep(now), l.sweepOps(now)), now+sweepStep)
	}
	l.tr.flush()
}

// wake returns when turn has something to do again.
func (l *loop) wake(now int64) int64 {
	return min(l.timers.next(), l.feed.next(), l.sweepAt, l.sealAt, now+maxSleep)
}

// start begins the next n ops of a stream, or fewer when it ends, and returns how many.
func (l *loop) start(s *session, stream *workload.Stream, n int, due, now int64) int {
	if l.direct != nil {
		return l.direct.start(s, stream, n, due, now)
	}
	for i := range n {
		if !l.startOne(s, stream, due, now) {
			return i
		}
	}
	return n
}

func (l *loop) startOne(s *session, stream *workload.Stream, due, now int64) bool {
	if l.scenes != nil {
		return l.scenes.begin(s, stream, due, now)
	}
	st := l.take()
	if !stream.Next(&st.Op) {
		l.release(st)
		return false
	}
	l.occupy(s, 1, now)
	st.scene = nil
	l.launch(st, s, due, now)
	return true
}

// launch has the program begin the op of a state, in a slot of the session that is taken.
func (l *loop) launch(st *opState, s *session, due, now int64) {
	l.count(&st.Op)
	l.sign(&st.Op, now)
	st.session, st.due, st.begun, st.start, st.done, st.keys = s, due, now, 0, false, len(st.Batch)
	if l.thread != nil {
		l.thread.launch(st, now)
		return
	}
	sc := st.scene
	l.depth++
	l.starting = st
	reqs := l.prog.Start(l.room(), &st.Op)
	for i := range reqs {
		l.issue(st, &reqs[i], now)
	}
	l.starting = nil
	l.depth--
	if st.done || !st.used {
		l.proceed(s, sc, now, true)
	}
}

// proceed gives back the slot of an op that has ended, or goes on with its scenario.
func (l *loop) proceed(s *session, sc *scene, now int64, held bool) {
	if sc != nil {
		l.scenes.proceed(sc, now, held)
		return
	}
	l.feed.freed(s, 1, now, held)
}

// sign says in a value who wrote it and when.
func (l *loop) sign(o *op.Op, now int64) {
	if !o.Value.Checked {
		return
	}
	version := l.versions(max(1, len(o.Batch)), now)
	o.Value.Writer, o.Value.Version = uint64(o.Stream), version
	for i := range o.Batch {
		o.Batch[i].Value.Writer, o.Batch[i].Value.Version = o.Value.Writer, version+uint64(i)
	}
}

// versions returns the first of n versions in a row for values that are put now. They are larger than all that the loop gave before, so the values of
// a stream, which belongs to one loop, have versions of their own.
func (l *loop) versions(n int, now int64) uint64 {
	first := max(l.version, uint64(l.wall+now))
	l.version = first + uint64(n)
	return first
}

// occupy takes slots of the session for n ops.
func (l *loop) occupy(s *session, n int, now int64) {
	s.active += n
	l.running += n
	s.out, s.started = now, s.started+int64(n)
	if !s.begun {
		s.begun, s.first = true, now
	}
}

// vacate gives the slots of n ops back that have ended. The feed is still to be told.
func (l *loop) vacate(s *session, n int, now int64) {
	s.active -= n
	l.running -= n
	s.last = now
}

// count enters a due op into the ledger.
func (l *loop) count(o *op.Op) {
	l.rec.AddDue(o.Verb)
	if len(o.Batch) == 0 {
		l.rec.Mix(digestOf(o))
		return
	}
	l.rec.AddKeysDue(o.Verb, len(o.Batch))
	for i := range o.Batch {
		item := &o.Batch[i]
		l.rec.Mix(measure.OpDigest(o.Stream, o.N, o.Verb, item.Key, item.Value.Size))
	}
}

func digestOf(o *op.Op) uint64 {
	return measure.OpDigest(o.Stream, o.N, o.Verb, o.Key, o.Value.Size)
}

// issue sends a request, or tells its program that it could not.
func (l *loop) issue(st *opState, req *driver.Request, now int64) {
	ledger := l.requests(req.Endpoint, req.Verb)
	if l.tr.send(st.session, st, req) {
		ledger.Sent++
		return
	}
	ledger.Refused++
	l.routes.suspect()
	l.endKeys(st, len(req.Batch), driver.Error, now)
	l.deliver(op.Event{Kind: op.Refused, Op: &st.Op, Endpoint: req.Endpoint}, now)
}

// row is where requests to an endpoint are counted: those to nodes that have joined a cluster in the phase together, behind all others.
func (l *loop) row(endpoint int) int { return min(endpoint, len(l.reqNow)/driver.NumVerbs-1) }

// requests is the ledger of those to an endpoint with a verb.
func (l *loop) requests(endpoint int, v driver.Verb) *measure.Requests {
	return l.rec.Request(l.row(endpoint), v)
}

// answered takes a reply to a request of st; n is its length in bytes.
func (l *loop) answered(st *opState, endpoint int, reply *driver.Reply, n int, now int64) {
	l.answers = now
	ledger := l.requests(endpoint, st.Verb)
	ev := op.Event{Kind: op.Replied, Op: &st.Op, Endpoint: endpoint, Reply: reply}
	if reply.Outcome == driver.Error {
		ev.Redirect = l.routes.redirect(endpoint, reply.Message)
	}
	switch {
	case reply.Outcome != driver.Error:
		ledger.Answered++
	case ev.Redirect == nil:
		ledger.Error++
		l.rec.Errors.Add(l.said.of(reply.Message))
	case ev.Redirect.Ask:
		ledger.Ask++
	default:
		ledger.Moved++
	}
	l.rec.AddBytes(st.Verb, n, 0)
	l.deliver(ev, now)
}

// answeredBatch takes the replies to a request of st with as many keys; n is their length in bytes. The request is as bad as the worst of them.
func (l *loop) answeredBatch(st *opState, endpoint int, replies []driver.Reply, n int, now int64) {
	l.answers = now
	var ended [driver.NumOutcomes]uint64
	for i := range replies {
		r := &replies[i]
		ended[r.Outcome]++
		if r.Message != nil {
			l.rec.Errors.Add(l.said.of(r.Message))
		}
		if l.checked && st.Verb == driver.Get && r.Outcome == driver.OK {
			if _, _, ok := driver.ReadHeader(r.Value); !ok {
				l.rec.Foreign++
			}
		}
	}
	l.whole = driver.Reply{Outcome: driver.Miss}
	for outcome, count := range ended {
		if count == 0 {
			continue
		}
		l.endKeys(st, int(count), driver.Outcome(outcome), now)
		if o := driver.Outcome(outcome); o != driver.Miss {
			l.whole.Outcome = o
		}
	}
	ledger := l.requests(endpoint, st.Verb)
	if l.whole.Outcome == driver.Error {
		ledger.Error++
	} else {
		ledger.Answered++
	}
	l.rec.AddBytes(st.Verb, n, 0)
	l.deliver(op.Event{Kind: op.Replied, Op: &st.Op, Endpoint: endpoint, Reply: &l.whole}, now)
}

// endKeys counts n of the keys of st, none where it has one only.
func (l *loop) endKeys(st *opState, n int, o driver.Outcome, now int64) {
	if n > 0 {
		st.keys -= n
		l.rec.EndKeys(st.Verb, o, uint64(n), st.due, now)
	}
}

// failed ends a request that will not be answered: kind is op.RequestTimeout or op.Lost, or op.Refused of one that counts as sent and has not
// left. It had so many keys, 0 for one.
func (l *loop) failed(st *opState, endpoint int, kind op.EventKind, keys int, now int64) {
	unanswered(l.requests(endpoint, st.Verb), kind, 1)
	outcome := driver.Error
	if kind == op.RequestTimeout {
		outcome = driver.Timeout
	}
	l.endKeys(st, keys, outcome, now)
	l.deliver(op.Event{Kind: kind, Op: &st.Op, Endpoint: endpoint}, now)
}

// unanswered enters requests that will not be answered into their ledger.
func unanswered(ledger *measure.Requests, kind op.EventKind, n uint64) {
	switch kind {
	case op.RequestTimeout:
		ledger.Timeout += n
	case op.Refused:
		ledger.Sent -= n
		ledger.Refused += n
	default:
		ledger.Error += n
	}
}

// deliver gives an event to the program and does what it says.
func (l *loop) deliver(ev op.Event, now int64) {
	st := l.slab[ev.Op.Slot]
	s := st.session
	l.depth++
	reqs, step := l.prog.On(l.room(), ev)
	if step.Ack > 0 && l.acks {
		l.rec.Ack(st.Verb, int(step.Ack), now-st.startOr(now))
	}
	if step.Foreign {
		l.rec.Foreign++
	}
	sc := st.scene
	if step.Done {
		if ev.Redirect != nil {
			l.rec.Errors.Add(ending(ev.Redirect))
			l.routes.suspect()
		}
		l.ended(st, step.Outcome, ev.Kind, now)
	}
	for i := range reqs {
		l.issue(st, &reqs[i], now)
	}
	l.depth--
	// Start still holds the requests of an op that it has begun; it tells the feed itself.
	held := st == l.starting
	if step.Settled {
		l.release(st)
	}
	if step.Done && !held {
		l.proceed(s, sc, now, false)
	}
}

// ended records the outcome of an op. Its slot is free for the feed, which is still to be told.
func (l *loop) ended(st *opState, outcome driver.Outcome, cause op.EventKind, now int64) {
	st.done = true
	if outcome > driver.Miss {
		l.brake.ended(outcome, 1)
	}
	sample := measure.Sample{
		Verb: st.Verb, Outcome: outcome, Cause: measure.Cause(cause),
		Due: st.due, Start: st.startOr(now), End: now,
	}
	if st.scene != nil {
		st.scene.took(st, outcome, cause, now)
		l.rec.RecordStep(&sample, st.scene.due)
		return
	}
	l.vacate(st.session, 1, now)
	l.rec.Record(&sample)
}

// startOr is when the op's first request was written; now, when none was.
func (st *opState) startOr(now int64) int64 {
	if st.start == 0 {
		return now
	}
	return st.start
}

// room returns an empty slice for the requests of this depth of delivery: a refused request is delivered while
// its siblings are still being sent.
func (l *loop) room() []driver.Request {
	for l.depth >= len(l.scratch) {
		l.scratch = append(l.scratch, make([]driver.Request, 0, max(maxReplicas, len(l.reqNow)/driver.NumVerbs)))
	}
	return l.scratch[l.depth][:0]
}

// maxReplicas is the largest N.
const maxReplicas = 16

func (l *loop) take() *opState {
	if len(l.free) == 0 {
		l.grow()
	}
	last := len(l.free) - 1
	st := l.slab[l.free[last]]
	l.free = l.free[:last]
	st.used = true
	l.used++
	return st
}

func (l *loop) grow() {
	made := make([]opState, minStates)
	for i := range made {
		made[i].Slot = int32(len(l.slab))
		l.slab = append(l.slab, &made[i])
	}
	for i := len(made) - 1; i >= 0; i-- {
		l.free = append(l.free, made[i].Slot)
	}
}

func (l *loop) release(st *opState) {
	st.used = false
	l.used--
	l.free = append(l.free, st.Slot)
}

// sweepOps ends ops whose own deadline has passed, and returns when to look again.
func (l *loop) sweepOps(now int64) int64 {
	if l.opTimeout == 0 {
		return never
	}
	next := now + l.opTimeout
	for _, st := range l.slab {
		if !st.used || st.done {
			continue
		}
		if deadline := st.begun + l.opTimeout; deadline > now {
			next = min(next, deadline)
			continue
		}
		l.deliver(op.Event{Kind: op.OpTimeout, Op: &st.Op}, now)
	}
	if l.direct != nil && l.direct.volleys != nil {
		next = min(next, l.direct.volleys.sweep(l.direct, now))
	}
	return next
}

// shed counts an op that was due and is never started.
func (l *loop) shed(stream *workload.Stream) bool {
	if l.scenes != nil {
		return l.scenes.drop(stream)
	}
	st := l.take()
	defer l.release(st)
	if !stream.Next(&st.Op) {
		return false
	}
	l.count(&st.Op)
	l.rec.Shed(st.Verb, 1)
	l.rec.ShedKeys(st.Verb, len(st.Batch))
	return true
}
