package engine

// planned is an event of the phase that the loop itself carries out: it empties its sessions' caches.
type planned struct {
	number int   // its number in the phase
	at     int64 // from the step's start
	caches []*lru
}

// foresee sets the timers of the step's events.
func (l *loop) foresee() {
	l.timers.drop(happens)
	for i := range l.events {
		l.timers.set(l.origin+l.events[i].at, happens, int32(i), 0)
	}
}

// happen carries out an event.
func (l *loop) happen(ev *planned, now int64) {
	for _, c := range ev.caches {
		c.clear()
	}
	l.rec.Happened(ev.number, now)
}
