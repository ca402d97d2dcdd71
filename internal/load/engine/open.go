package engine

import (
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/plan/workload"
)

// openFeed starts ops when they are due, whatever became of earlier ones.
//
// Every stream computes its own due times, so an op that waits for room costs no memory. Streams are ordered by due time within their session, and
// sessions that can start an op are ordered within the loop.
type openFeed struct {
	tardy

	l        *loop
	pipeline int
	inFlight int   // the most ops running in this loop
	shed     bool  // an op that finds no room is shed instead of waiting
	lasts    int64 // how long the schedule goes on, from the step's start
	drain    int64 // how long after that due ops may still start; then they are shed
	drainAt  int64 // when drain ends, on the run clock
	ready    []turn
	at       *session // the session that step is starting an op of
	live     int      // streams that have ops left
	over     bool     // the schedule's time is up: a load goes on until then, whether or not ops are left
	ending   bool     // nothing more starts: ops that were due by endBy are shed, some in each turn
	endBy    int64
}

// openStream is a stream and the time at which its next op is due, on the run clock.
type openStream struct {
	due   int64
	id    int
	pacer pace.Pacer
	ops   workload.Stream
}

// turn is a session that can start an op, when that op is due, and the stream it is from. Comparing turns does not touch the sessions, since of
// 10,000 few are in the processor's caches.
type turn struct {
	due int64
	id  int
	s   *session
}

func (f *openFeed) begin() {
	f.drainAt = f.l.origin + f.lasts + f.drain
	for _, s := range f.l.sessions {
		armed := s.streams[:0]
		for _, st := range s.streams {
			if due, ok := st.pacer.Next(); ok {
				st.due = f.l.origin + due
				armed = append(armed, st)
			}
		}
		s.streams = armed
		heapify(s.streams, earlierStream)
		f.live += len(armed)
		f.offer(s)
	}
}

func (f *openFeed) fire(timer, int64) {}

// offer adds a session that has ops left and room for one to those that can start.
func (f *openFeed) offer(s *session) {
	if !s.queued && len(s.streams) > 0 && (s.active < f.pipeline || f.shed) {
		s.queued = true
		f.ready = push(f.ready, turn{due: s.streams[0].due, id: s.streams[0].id, s: s}, earlierTurn)
	}
}

func (f *openFeed) due(now int64) {
	f.over = f.over || now >= f.l.origin+f.lasts
	if now >= f.drainAt && f.live > 0 && !f.ending {
		f.end(never)
	}
	if f.ending {
		f.shedSome()
		return
	}
	for len(f.ready) > 0 && f.ready[0].due <= now && (f.shed || f.l.running < f.inFlight) {
		s := f.ready[0].s
		if !f.full(s) {
			if !f.l.gate.open(now) {
				f.roomAt = f.l.gate.after(now) // ops that are due before then wait for the gate, and the loop is not late
				return
			}
			f.l.gate.pass()
		}
		f.ready = pop(f.ready, earlierTurn)
		s.queued = false
		f.step(s, now)
	}
}

// step starts the session's next op, or sheds it.
func (f *openFeed) step(s *session, now int64) {
	st := s.streams[0]
	f.begun(f.l, s, st.due, now)
	if f.full(s) { // only if f.shed: otherwise due would not have chosen it
		f.l.shed(&st.ops)
	} else {
		f.at = s
		f.l.way.start(s, &st.ops, 1, st.due, now)
		f.at = nil
	}
	f.advance(s)
	f.offer(s)
}

// full reports whether there is no room for another op of the session.
func (f *openFeed) full(s *session) bool { return s.active >= f.pipeline || f.l.running >= f.inFlight }

// tardy tells apart why ops of a loop start late.
type tardy struct {
	roomAt int64   // when the loop last had room again after it was full
	away   stretch // due times during which the loop was late though there was room
}

// begun records an op that starts late because it had no room when it was due, and not because the loop was late. The loop was late if it starts an op
// late that had room. From then until now, every due op counts as late because of the loop, even one that had no room.
func (y *tardy) begun(l *loop, s *session, due, now int64) {
	late := now - due
	l.churn.noRoom = false
	switch {
	case due < max(s.roomAt, y.roomAt):
		switch excused := !y.away.holds(due) && l.excess < late/2; {
		case l.churn.plan != nil: // it may yet have to wait for a connection
			l.churn.noRoom = excused
		case excused:
			l.rec.Waited.Record(late)
		}
	case late > leastGap:
		y.away.extend(due, now)
	}
}

// stretch is a stretch of time.
type stretch struct{ from, to int64 }

func (p *stretch) holds(at int64) bool { return p.from <= at && at <= p.to }

// extend adds a stretch that ends later; if the two do not overlap, the new one replaces the old.
func (p *stretch) extend(from, to int64) {
	if from > p.to {
		p.from = from
	}
	p.to = to
}

// advance moves the session's first stream on to its next op.
func (f *openFeed) advance(s *session) {
	st := s.streams[0]
	due, ok := st.pacer.Next()
	if !ok {
		s.streams = pop(s.streams, earlierStream)
		f.live--
		return
	}
	st.due = f.l.origin + due
	sift(s.streams, 0, earlierStream)
}

func (f *openFeed) freed(s *session, n int, now int64, _ bool) {
	if s.active+n >= f.pipeline {
		s.roomAt = now
	}
	if f.l.running+n >= f.inFlight {
		f.roomAt = now
	}
	if s != f.at && !f.ending {
		f.offer(s)
		f.due(now)
	}
}

func (f *openFeed) next() int64 {
	switch {
	case f.live == 0 && !f.over:
		return f.l.origin + f.lasts
	case f.live == 0:
		return never
	case f.ending:
		return 0 // at once
	case len(f.ready) == 0 || !f.shed && f.l.running >= f.inFlight:
		return f.drainAt
	}
	return min(f.l.gate.after(f.ready[0].due), f.drainAt)
}

func (f *openFeed) works(_ *session, now int64) int64 { return min(now, f.l.origin+f.lasts) }

func (f *openFeed) stop(now int64) {
	f.end(now)
	f.shedSome()
}

// end makes the feed shed what was due by a time and forget the rest.
func (f *openFeed) end(by int64) {
	f.ending, f.over, f.endBy, f.ready = true, true, by, nil
}

// shedSome sheds some more ops after end. If the target fell far behind its schedule there are millions; the loop must not stand still to count them.
func (f *openFeed) shedSome() {
	left := shedEach
	for _, s := range f.l.sessions {
		for ; len(s.streams) > 0 && s.streams[0].due <= f.endBy; left-- {
			if left == 0 {
				return
			}
			f.l.shed(&s.streams[0].ops)
			f.advance(s)
		}
		s.streams = nil
	}
	f.live = 0
}

func (f *openFeed) done() bool { return f.live == 0 && f.over }

// Ties are broken by number, so that the order does not depend on the heap's history.

func earlierStream(a, b *openStream) bool {
	return a.due < b.due || a.due == b.due && a.id < b.id
}

func earlierTurn(a, b turn) bool {
	return a.due < b.due || a.due == b.due && a.id < b.id
}
