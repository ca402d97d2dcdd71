package engine

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	backlog   = 64                           // the most requests outstanding on a connection, beyond the pipeline
	pause     = int64(10 * time.Millisecond) // how long a slot rests whose op failed before anything was sent
	interval  = int64(time.Second)           // time between seals
	maxSleep  = int64(50 * time.Millisecond) // the longest a loop goes without checking whether to stop
	maxWatch  = int64(10 * time.Millisecond) // the longest a closed load's loop waits for answers, so that a stop of the process during a wait shows
	maxStall  = int64(250 * time.Millisecond)
	sweepStep = int64(time.Millisecond)       // least time between two checks for timeouts
	maxLook   = int64(5 * time.Microsecond)   // an idle cycle that took longer slept or lost its processor
	patience  = int64(300 * time.Millisecond) // how long to wait for a silent target once the step was asked to end early
	minStates = 64                            // op states made at a time
	shedEach  = 4096                          // ops of an ended schedule to shed in one turn
	flushEach = 64                            // sessions starting at the same time whose requests are flushed before the next ones are gathered
)

// How long a loop watches the clock before an op of an open load is due. A sleeping thread commonly wakes 50 to 100 µs late. A loop that shares its
// processor should not keep it from others for that long before each op. A pinned loop does not sleep between the ops of a busy schedule at all: a
// virtual processor that sleeps may find its host busy when it wakes.
const (
	DefaultSpin = 50 * time.Microsecond
	PinnedSpin  = 200 * time.Microsecond
)

// transport moves the requests of one loop. It reports their ends to the loop's way, or to programs.
type transport interface {
	// open makes the connections of every session, within the deadline on the loop's clock.
	open(deadline int64) error
	// send accepts req for the session's connection to req.Endpoint, or refuses it and returns false.
	send(s *session, st *opState, req *driver.Request) bool
	// flush passes on what send has gathered.
	flush()
	// recall takes back the requests that have not left, since the lease is over.
	recall()
	// wait waits up to d for something to happen and handles it; if d is 0, it handles what has already happened. It reports whether anything did.
	wait(d time.Duration) bool
	// fire handles a timer that the transport has set.
	fire(t timer, now int64)
	// sweep times out overdue requests, and returns when to call it again.
	sweep(now int64) int64
	// outstanding adds each request that is still awaited to InFlight.
	outstanding(into []measure.Requests)
	close()
}

// feed decides when a loop's sessions start their next ops.
type feed interface {
	// begin schedules the first starts of a step.
	begin()
	// fire handles a timer that the feed has set.
	fire(t timer, now int64)
	// due starts the ops that are due by now.
	due(now int64)
	// next returns when to call due again.
	next() int64
	// freed reports that n of the session's slots have become free. If held, they may not be used again for a pause.
	freed(s *session, n int, now int64, held bool)
	// works returns how long the session could have started ops: until now, or until the load's time ended; 0 if it ran out of ops.
	works(s *session, now int64) int64
	// stop ends the feed: nothing more starts, and ops that were due before now and have not started are shed.
	stop(now int64)
	// done reports that nothing more will be started.
	done() bool
}

// session is one logical client. One loop owns it.
type session struct {
	index   int // its index in the loop
	id      int // its number in the phase
	active  int // slots in use
	stream  workload.Stream
	random  rand.PCG      // for think times
	until   int64         // closed load: when it leaves, on the run clock
	armed   int           // closed load: its slots that may start an op now or later, until it leaves
	streams []*openStream // of the open feed, the earliest first
	queued  bool          // it is among the sessions whose next op the open feed can start
	begun   bool
	retired bool  // it has failed for good
	roomAt  int64 // open load: when a slot last became free after all were in use
	first   int64 // start of its first op
	out     int64 // start of its last op; if the step was cut short, until when it could start one
	started int64 // how many ops it has started
	last    int64 // end of its last op; if the step was cut short, at least out, or the time of the cut if ops were under way

	bag       driver.Bag // what its setup left
	links     int        // connections that are up
	waiting   int        // slots that wait for a connection
	waitsFrom int64      // their wait is counted up to here
	forsaken  bool       // its slots have waited too long and go on without a connection
	idled     bool       // slots were idle, or spent their time on ops that got no answer
	idleFrom  int64      // when that first happened
}

// loop carries out one step at a time for its sessions. Its fields belong to the goroutine that runs it.
type loop struct {
	lane                 // the lane of the phase's own target
	lanes []*lane        // the lanes of all targets, that one first
	tr    transport      // the transport to all targets
	poll  sockets.Poller // the wires' poller; nil if there are no wires

	interruptions sync.Map // by a connection's token: what makes its server give up, an interruption

	clock    clock
	feed     feed
	pipeline int         // how many slots each session has
	think    int64       // how long a slot of a closed load pauses after each op, on average
	thinks   *pace.Times // how long it pauses; nil if always think
	stages   []int64     // of its recorders
	way      way         // the way of the step's ops
	states   stateful    // the way that begins one op at a time, programs or thread
	fills    *fills      // puts what gets miss; nil if nothing does
	follows  *follower   // compares versions that are read with those that were acknowledged; nil if nothing does
	scenes   *scenes     // also the way, if the step's sessions carry out scenarios; else nil
	churn    churn
	timers   timers
	sessions []*session

	slab    []*opState // all states, by slot
	free    []int32
	used    int // states in use, between take and release
	running int // ops that have started and are not done
	loading int // those of them that load from the source of a cache

	said      said
	sampling  *sampling       // nil if the step's ops are not sampled
	rec       *measure.Totals // between steps: of what is of none
	spare     chan *measure.Totals
	parts     chan<- part
	opsBefore [driver.NumVerbs]int64
	opsNow    [driver.NumVerbs]int64
	keyBefore [driver.NumVerbs]int64 // keys in flight at the last census, by verb
	keyNow    [driver.NumVerbs]int64
	reqBefore []measure.Requests
	reqNow    []measure.Requests

	index     int
	origin    int64  // run clock at the step's start
	wall      int64  // Unix nanoseconds of the run clock's zero
	version   uint64 // the next version for values
	runBits   uint32 // tell the run's values from those of others; 0 if unknown
	sweepAt   int64
	sealAt    int64  // end of the current interval; the constant never between steps
	excess    int64  // how much longer than planned the last cycle took; 0 if that is little
	last      int64  // when the last cycle began
	planned   int64  // how long that cycle planned to wait
	entered   int64  // when this loop began the step
	spin      int64  // how long before an op is due the loop watches the clock instead of sleeping
	woken     int64  // when the last cycle expected work; 0 if its wait found some
	looked    bool   // neither the last cycle nor its wait found anything to do
	spun      int64  // processor time of idle cycles, in this step
	meter     *meter // the meter of the loop's thread; nil if the loop has no thread of its own
	gaps      *gaps  // of this step; nil if gaps are not counted
	closed    bool   // the gaps are those of a closed load
	hold      hold
	ordinals  uint64        // sessions of the phase if latency is also counted by ordinal; else 0
	halt      *atomic.Int32 // how the worker was asked to end the step
	retired   *atomic.Int64 // sessions of all loops that have failed for good
	everyone  int64         // sessions of all loops
	errorStop *errorStop    // ends the step when too many ops fail; nil if no number does
	events    []planned     // the phase's events that this loop carries out
	gate      *gate         // the worker's policy; nil if it limits no rate
	lease     *lease        // once it is over, nothing may be started or sent
	away      absences
	slotted   bool  // the step is a closed load that is measured
	endless   bool  // the step lasts until its ops have ended
	answers   int64 // when the last answer came, on the run clock
	stopped   bool
	stoppedAt int64
	lapsed    bool                 // the lease ended the step
	abandoned uint64               // connections closed at the end of the phase while the server was at work for them
	noPort    uint64               // attempts to connect for which this machine had no local port, in this step
	unasked   measure.Unasked      // connections of wires, and answers of clients, since it was last asked for
	fault     error                // why the step fails
	panics    map[*session][]int64 // when the driver last panicked, by session
	logged    int                  // how many panics were logged
	log       *slog.Logger
}

// Values of loop.halt.
const (
	goOn    int32 = iota
	drain         // start nothing more; wait for outstanding requests while answers come
	abandon       // return at once
)

// part holds what one loop has counted up to an interval boundary.
type part struct {
	loop   int
	upTo   int64 // on the run clock
	still  int64 // on the run clock; if later than upTo, the loop stood still in between, and counted nothing
	totals *measure.Totals
	drawn  []measure.DrawnOp
	final  bool
	use    loopUse // only in a final part
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

// enter starts the step's clocks and timers.
func (l *loop) enter() {
	l.stopped, l.lapsed, l.planned = false, false, 0
	l.woken, l.looked, l.spun = 0, false, 0
	l.meter.begin()
	l.countGaps()
	l.last = l.clock.now()
	l.entered = l.last
	l.startAway(l.last)
	l.sweepAt = l.last
	l.sealAt = (l.last/interval + 1) * interval
	l.foresee()
	l.feed.begin()
}

// countGaps decides whether to count gaps. In a closed load they count only if all targets are reached over sockets: a log file is written and synced
// in the loop's own time.
func (l *loop) countGaps() {
	l.gaps, l.closed = nil, false
	if l.meter == nil || !l.meter.queued.known {
		return
	}
	switch l.feed.(type) {
	case *openFeed:
		l.gaps = new(gaps)
	case *closedFeed:
		if l.closed = l.wired(); l.closed {
			l.gaps = new(gaps)
		}
	}
}

// wired reports whether all targets outside the loop are reached over sockets.
func (l *loop) wired() bool {
	return !slices.ContainsFunc(l.lanes, func(la *lane) bool {
		switch la.tr.(type) {
		case *wire, *inside:
			return false
		}
		return true
	})
}

// inside lists the targets that are inside the loop.
func (l *loop) inside() (list []*inside) {
	for _, la := range l.lanes {
		if t, ok := la.tr.(*inside); ok {
			list = append(list, t)
		}
	}
	return list
}

// await waits until the step starts, the lease is over or the step is abandoned.
func (l *loop) await() {
	for now := l.clock.now(); now < l.origin && !l.lease.over(now) && l.halt.Load() != abandon; now = l.clock.now() {
		l.clock.sleep(time.Duration(min(l.origin-now, maxSleep)))
	}
}

// cycle does what is due now, then waits for what comes next. It returns false when the step has ended.
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
	if l.feed.done() && l.used == 0 && l.running == 0 || l.halt.Load() == abandon || l.givenUp(now) {
		return false
	}
	wake := l.wake(now)
	l.planned = max(0, wake-now)
	doze := l.planned
	if wake == l.feed.next() {
		// A sleeping thread wakes late: watch the clock for the last part of the wait before an op is due.
		doze = max(0, doze-l.spin)
	}
	l.woken, l.looked = wake, idle
	l.hold.before(now, doze)
	if l.tr.wait(time.Duration(doze)) {
		l.woken, l.looked = 0, false
	}
	return true
}

// overran records that a cycle took longer than planned.
func (l *loop) overran(excess int64) {
	if excess > maxStall {
		l.rec.Stalls++
		l.rec.MaxStall = max(l.rec.MaxStall, excess)
	}
	if l.gaps == nil {
		return
	}
	if others, known := l.meter.kept(); known {
		whole := l.looked || l.closed && excess >= measure.LongGap.Nanoseconds()
		l.gaps.enter(excess, others, whole)
	}
}

// expired reports whether the lease is over. Ask with each timestamp before starting or sending anything: a process that was stopped for long must
// not simply carry on.
func (l *loop) expired(now int64) bool {
	if l.lease.over(now) {
		l.lapsed = true
	}
	return l.lapsed
}

// givenUp reports whether the step was asked to end early and no answer has come for so long that none is expected. Outstanding requests stay in
// flight.
func (l *loop) givenUp(now int64) bool {
	return l.stopped && now-max(l.stoppedAt, l.answers) > patience
}

// retire notes that a session has failed for good. In a closed load it starts nothing more. In an open load its ops stay due, whatever became of
// earlier ones, and are refused, as long as there are other sessions.
func (l *loop) retire(s *session) {
	s.retired = true
	l.retired.Add(1)
}

// deserted reports whether all sessions of this worker have failed for good, so that no op can succeed any more.
func (l *loop) deserted() bool { return l.retired.Load() == l.everyone }

// cutShort notes that the step ends early, now. A session that could go on was at work until then, even if its target had long been silent.
func (l *loop) cutShort(now int64) {
	for _, s := range l.sessions {
		until := l.feed.works(s, now)
		s.out, s.last = max(s.out, until), max(s.last, until)
		if s.active > 0 {
			s.last = now
		}
	}
}

// turn does everything that is due by now.
func (l *loop) turn(now int64) {
	l.seal(now)
	if !l.stopped && (l.halt.Load() != goOn || l.deserted()) {
		l.stopped, l.stoppedAt = true, now
		l.cutShort(now)
		l.feed.stop(now)
		if l.scenes != nil {
			l.scenes.stop(now)
		}
		l.stopTries(now)
	}
	for _, la := range l.lanes {
		la.routes.renew()
	}
	for n := 1; l.timers.next() <= now; n++ {
		if n%flushEach == 0 {
			l.tr.flush()
		}
		l.fire(l.timers.pop(), now)
	}
	for n := 1; l.gate.opens(now); n++ {
		if n%flushEach == 0 {
			l.tr.flush()
		}
		l.fire(l.gate.held.pop(), now)
	}
	if now >= l.away.until {
		l.despair(now)
	}
	l.feed.due(now)
	if now >= l.sweepAt {
		l.sweepAt = max(min(l.tr.sweep(now), l.way.sweep(now)), now+sweepStep)
	}
	l.tr.flush()
}

// rest returns how long a slot of a session pauses after an op.
func (l *loop) rest(s *session) int64 {
	if l.thinks == nil {
		return l.think
	}
	return int64(l.thinks.Draw(&s.random))
}

// fire does what a timer was set for.
func (l *loop) fire(t timer, now int64) {
	switch t.kind {
	case startSlots, comes:
		l.feed.fire(t, now)
	case nextScene:
		l.scenes.fire(t, now)
	case happens:
		l.happen(&l.events[t.arg], now)
	case nextTry:
		l.tryAgain(l.slab[t.arg], op.WaitOver, now)
	case furtherRequest:
		r := l.gate.release(t.arg)
		l.gate.requests.left--
		r.st.by.issue(r.st, &r.req, now)
	default:
		l.tr.fire(t, now)
	}
}

// wake returns when turn must be called again.
func (l *loop) wake(now int64) int64 {
	longest := maxSleep
	if l.closed && l.running > 0 {
		longest = maxWatch
	}
	return min(l.timers.next(), l.feed.next(), l.gate.next(), l.sweepAt, l.sealAt, l.away.until, now+longest)
}
