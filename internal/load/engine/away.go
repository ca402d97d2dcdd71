package engine

import (
	"time"

	"github.com/loadgen/loadgen/internal/plan/op"
)

// Ops do no bookkeeping for lost connections. The time that a connection and its session's slots lose is counted when the connection goes, when it
// comes back and, while it is away, at the end of each interval.

const (
	reopenAfter  = 10 * time.Millisecond   // roughly: the pause before a lost connection is made again
	probeEvery   = 50 * time.Millisecond   // pause between a loop's attempts to connect to an endpoint that refuses
	connectLimit = time.Second             // the longest an attempt to connect may take, unless the target's timeout is longer
	longestWait  = int64(30 * time.Second) // the longest a slot waits for a connection, in a load that ends only when its ops have ended
)

// link tracks whether a connection, or a blocking client, is there or away.
type link struct {
	session *session
	row     int   // the row of its endpoint in the ledger of requests
	gone    int   // 1 + its index in absences.links; 0 if it is not away
	since   int64 // its time away is counted up to here
}

// absences holds the connections of a loop that are away, and how many slots wait for one.
type absences struct {
	links []*link
	slots int   // waiting slots of all sessions
	until int64 // when the waiting slots go on without a connection
}

// made notes that a connection was made. The slots that waited for it go on.
func (l *loop) made(k *link, now int64) {
	k.session.links++
	k.session.forsaken = false
	l.forget(k, now)
	if k.session.waiting > 0 {
		l.resume(k.session, now)
	}
}

// missed notes that a connection is away.
func (l *loop) missed(k *link, now int64) {
	if k.gone == 0 {
		l.away.links = append(l.away.links, k)
		k.gone, k.since = len(l.away.links), now
	}
}

// forget notes that a connection is not away any more, and counts the time for which it was.
func (l *loop) forget(k *link, now int64) {
	if k.gone == 0 {
		return
	}
	l.rec.AddAway(k.row, now-k.since)
	last := len(l.away.links) - 1
	moved := l.away.links[last]
	l.away.links[k.gone-1], moved.gone = moved, k.gone
	l.away.links, k.gone = l.away.links[:last], 0
}

// stranded reports whether slots of a session must wait for a connection because it has none.
func (l *loop) stranded(s *session) bool { return s.links == 0 && !s.forsaken }

// park makes n slots of a session wait for a connection.
func (l *loop) park(s *session, n int, now int64) {
	if l.away.slots == 0 && l.endless {
		l.away.until = now + longestWait
	}
	l.waste(s, s.waiting, s.waitsFrom, now)
	s.waitsFrom = now
	s.waiting += n
	l.away.slots += n
}

// unpark ends the wait of a session's slots, and returns how many waited.
func (l *loop) unpark(s *session, now int64) (n int) {
	l.waste(s, s.waiting, s.waitsFrom, now)
	n, s.waiting = s.waiting, 0
	if l.away.slots -= n; l.away.slots == 0 {
		l.away.until = never
	}
	return n
}

// resume lets the waiting slots of a session go on.
func (l *loop) resume(s *session, now int64) {
	n := l.unpark(s, now)
	l.timers.set(now, startSlots, int32(s.index), int32(n))
}

// despair lets all waiting slots go on without a connection, so that the load ends.
func (l *loop) despair(now int64) {
	for _, s := range l.waiting() {
		s.forsaken = true
		l.resume(s, now)
	}
}

// dismiss ends all waits because the load is over, and returns how many slots waited. Their sessions count as at work until now.
func (l *loop) dismiss(now int64) (n int) {
	for _, s := range l.waiting() {
		n += l.unpark(s, now)
		s.last = now
	}
	return n
}

// waiting lists the sessions with slots that wait for a connection.
func (l *loop) waiting() (list []*session) {
	if l.away.slots == 0 {
		return nil
	}
	for _, s := range l.sessions {
		if s.waiting > 0 {
			list = append(list, s)
		}
	}
	return list
}

// fruitless counts the time of n failed ops as lost, unless a reply ended them.
func (l *loop) fruitless(s *session, n int, cause op.EventKind, due, now int64) {
	if cause != op.Replied {
		l.waste(s, n, due, now)
	}
}

// waste counts the time in which n slots of a session did nothing. It is counted in a measured closed load only.
func (l *loop) waste(s *session, n int, from, to int64) {
	if !l.slotted || n == 0 || to <= from {
		return
	}
	if !s.idled {
		s.idled, s.idleFrom = true, from
	}
	l.rec.AddLost(n, from, to)
}

// settle counts, up to now, the time of connections that are away and of slots that wait.
func (l *loop) settle(now int64) {
	for _, k := range l.away.links {
		l.rec.AddAway(k.row, now-k.since)
		k.since = now
	}
	for _, s := range l.waiting() {
		l.waste(s, s.waiting, s.waitsFrom, now)
		s.waitsFrom = now
	}
}

// startAway begins a step: time lost before it does not count.
func (l *loop) startAway(now int64) {
	for _, k := range l.away.links {
		k.since = now
	}
	l.away.slots, l.away.until = 0, never
}
