package engine

import (
	"time"

	"github.com/loadgen/loadgen/internal/load/op"
)

// Nothing is counted on the way of an op for the case that a connection is lost. What a connection and the slots of its session lose is counted when
// the connection goes and when it comes back, and at the end of each interval for those that are still away.

const (
	reopenAfter  = 10 * time.Millisecond   // more or less: before a lost connection is made again
	probeEvery   = 50 * time.Millisecond   // between attempts to connect to an endpoint that refuses, by one connection of a loop
	connectLimit = time.Second             // an attempt to connect may take so long, or for the target's timeout if that is longer
	longestWait  = int64(30 * time.Second) // of a slot for a connection, in a load that ends only when its ops have
)

// link is a connection, or a client that blocks, seen as something that is there or away.
type link struct {
	session *session
	row     int   // of its endpoint
	gone    int   // 1 + its index in absences.links; 0: it is not away
	since   int64 // until when its time away is counted
}

// absences is which of a loop's connections are away, and which slots wait for one.
type absences struct {
	links []*link
	slots int   // of all sessions, waiting
	until int64 // when they go on without a connection
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

// forget counts the time for which a connection was away, if it was. From now on it is not.
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

// stranded reports whether slots of a session wait for a connection: it has none.
func (l *loop) stranded(s *session) bool { return s.links == 0 && !s.forsaken }

// park has n slots of a session wait for a connection.
func (l *loop) park(s *session, n int, now int64) {
	if l.away.slots == 0 && l.endless {
		l.away.until = now + longestWait
	}
	l.waste(s, s.waiting, s.waitsFrom, now)
	s.waitsFrom = now
	s.waiting += n
	l.away.slots += n
}

// unpark ends the wait of a session's slots, and returns how many they were.
func (l *loop) unpark(s *session, now int64) (n int) {
	l.waste(s, s.waiting, s.waitsFrom, now)
	n, s.waiting = s.waiting, 0
	if l.away.slots -= n; l.away.slots == 0 {
		l.away.until = never
	}
	return n
}

// resume has the slots of a session that wait go on.
func (l *loop) resume(s *session, now int64) {
	n := l.unpark(s, now)
	l.timers.set(now, startSlots, int32(s.index), int32(n))
}

// despair has all slots that wait go on without a connection, so that the load ends.
func (l *loop) despair(now int64) {
	for _, s := range l.waiting() {
		s.forsaken = true
		l.resume(s, now)
	}
}

// dismiss ends all waits, and returns how many slots there were. Their load is over: until now they had work.
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

// fruitless counts the time that n ops took that have ended badly, unless a reply ended them.
func (l *loop) fruitless(s *session, n int, cause op.EventKind, due, now int64) {
	if cause != op.Replied {
		l.waste(s, n, due, now)
	}
}

// waste counts that n slots of a session did nothing for a time. It matters to a closed load that is measured.
func (l *loop) waste(s *session, n int, from, to int64) {
	if !l.slotted || n == 0 || to <= from {
		return
	}
	if !s.idled {
		s.idled, s.idleFrom = true, from
	}
	l.rec.AddLost(n, from, to)
}

// settle counts, up to now, what is still away.
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

// startAway begins a step, before which nothing counts.
func (l *loop) startAway(now int64) {
	for _, k := range l.away.links {
		k.since = now
	}
	l.away.slots, l.away.until = 0, never
}
