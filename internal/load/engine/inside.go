package engine

import (
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// answersEach is how many requests a loop's own cache answers before the loop looks at its connections again.
const answersEach = 64

// caches are the caches of a worker's sessions for a target that reads through a cache. They last for the run.
type caches struct {
	shared *lru
	own    map[int]*lru // by session
}

// inside is the transport of a target that lives in the loop: its sessions' caches, and the loads that other gets wait for. It answers without I/O,
// in the loop's next wait.
type inside struct {
	l        *loop
	lane     *lane
	of       *caches
	by       []*lru // by the session's index in the loop; all the same if they share one; nil if nothing is cached here
	distinct []*lru
	ttl      int64
	timeout  int64
	coalesce bool
	flights  map[string]*flight
	spare    []*flight
	due      []answer // answers to give; those before at were given
	at       int
	waiting  int
	blocked  uint64
	waited   int64 // ns
	before   measure.Cache
}

// flight is a load that others may wait for.
type flight struct{ waiters []waiter }

// waiter is a get that waits for a load.
type waiter struct {
	st    *opState
	tag   uint8
	since int64
}

// answer is a reply that is due.
type answer struct {
	st    *opState
	verb  driver.Verb
	tag   uint8
	reply driver.Reply
}

// keep gives the loop's sessions their caches; the worker has here sessions and the phase has all. The caches share the room that the plan sets, so
// each one's room depends on the number of sessions.
func (t *inside) keep(here, all int) {
	c := t.lane.side.target.Cache
	sized := func(had *lru, part int) *lru {
		most, entries := c.Memory*int64(part)/int64(all), 0
		if c.Entries > 0 {
			entries = max(1, int(c.Entries*int64(part)/int64(all)))
		}
		if had == nil {
			had = newLRU(c.Wipes())
		}
		had.resize(most, entries)
		t.distinct = append(t.distinct, had)
		return had
	}
	switch c.Scope {
	case plan.SharedCache:
		t.of.shared = sized(t.of.shared, here)
		for range t.l.sessions {
			t.by = append(t.by, t.of.shared)
		}
	case plan.SessionCache:
		for _, s := range t.l.sessions {
			t.of.own[s.id] = sized(t.of.own[s.id], 1)
			t.by = append(t.by, t.of.own[s.id])
		}
	}
}

// begin readies the target for a step: its counts start here. The caches keep their entries.
func (t *inside) begin() {
	t.before = measure.Cache{Blocked: t.blocked, BlockedTime: uint64(t.waited)}
	for _, c := range t.distinct {
		t.before.Evictions += c.evictions
		t.before.Cleared += c.cleared
	}
}

// empty empties the cache of a session whose scenario ended in a rollback; of a cache that is shared, only of the scenario's keys.
func (t *inside) empty(s *session, keys [][]byte) {
	switch {
	case t.by == nil:
	case len(t.distinct) == len(t.by) && t.of.shared == nil:
		t.by[s.index].clear()
	default:
		for _, key := range keys {
			t.by[s.index].remove(key)
		}
	}
}

// wipe empties all of the worker's caches for the target.
func (of *caches) wipe() {
	if of.shared != nil {
		of.shared.clear()
	}
	for _, c := range of.own {
		c.clear()
	}
}

// count adds what has changed since the last call.
func (t *inside) count(into *measure.Cache) {
	now := measure.Cache{Caches: uint64(len(t.distinct)), Blocked: t.blocked, BlockedTime: uint64(t.waited)}
	for _, c := range t.distinct {
		now.Entries += int64(c.n)
		now.Bytes += c.size
		now.Evictions += c.evictions
		now.Cleared += c.cleared
	}
	if p, ok := t.lane.programs.Program.(*op.Through); ok {
		now.Unavailable = p.Unavailable
		now.Gets, now.Hits, now.Misses, now.Loads, now.Coalesced, now.Uncached = p.Gets, p.Hits, p.Misses, p.Loads, p.Coalesced, p.Uncached
	}
	change := now.Less(&t.before)
	into.Add(&change)
	t.before = now
}

func (t *inside) open(int64) error { return nil }

func (t *inside) send(s *session, st *opState, req *driver.Request) bool {
	now := t.l.clock.now()
	if t.l.expired(now) {
		return false
	}
	if st.start == 0 {
		st.start = now
	}
	a := t.room()
	a.st, a.verb, a.tag = st, req.Verb, req.Tag
	a.reply = driver.Reply{Value: a.reply.Value[:0]}
	var c *lru
	if t.by != nil {
		c = t.by[s.index]
	}
	switch req.Tag {
	case op.TagLook, op.TagAsk:
		if !t.look(c, a, req, now) {
			t.due = t.due[:len(t.due)-1]
		}
	case op.TagFill:
		if !t.fill(c, req, now) {
			a.reply.Outcome = driver.Conflict
		} else if f := t.flights[string(req.Key)]; f != nil {
			t.share(f, req, now)
		}
	case op.TagShare:
		if f := t.flights[string(req.Key)]; f != nil {
			t.share(f, req, now)
		}
	case op.TagRelease:
		t.pass(req.Key, now)
	default:
		if c == nil || !c.remove(req.Key) {
			a.reply.Outcome = driver.Miss
		}
	}
	return true
}

// room returns a free place for an answer.
func (t *inside) room() *answer {
	if len(t.due) < cap(t.due) {
		t.due = t.due[:len(t.due)+1]
	} else {
		t.due = append(t.due, answer{})
	}
	return &t.due[len(t.due)-1]
}

// look answers a get, and reports whether it did; otherwise the get waits for a load under way.
func (t *inside) look(c *lru, a *answer, req *driver.Request, now int64) bool {
	if c != nil && req.Tag == op.TagLook {
		if value, there := c.get(req.Key, now); there {
			a.reply.Value = append(a.reply.Value, value...)
			return true
		}
	}
	a.reply.Outcome = driver.Miss
	if !t.coalesce {
		return true
	}
	if f := t.flights[string(req.Key)]; f != nil {
		f.waiters = append(f.waiters, waiter{a.st, req.Tag, now})
		t.waiting++
		t.blocked++
		return false
	}
	var f *flight
	if n := len(t.spare); n > 0 {
		f, t.spare = t.spare[n-1], t.spare[:n-1]
	} else {
		f = new(flight)
	}
	t.flights[string(req.Key)] = f
	return true
}

// fill stores a value; it returns false if the value is larger than the cache.
func (t *inside) fill(c *lru, req *driver.Request, now int64) bool {
	until := int64(never)
	if t.ttl > 0 {
		until = now + t.ttl
	}
	return c != nil && c.put(req.Key, req.Value, until)
}

// share ends a load: all gets that wait for it get its value.
func (t *inside) share(f *flight, req *driver.Request, now int64) {
	for _, w := range f.waiters {
		a := t.room()
		a.st, a.verb, a.tag = w.st, driver.Get, w.tag
		a.reply = driver.Reply{Value: req.Value.AppendTo(a.reply.Value[:0]), Code: op.Waited}
		t.left(w, now)
	}
	t.land(req.Key, f)
}

// pass ends a load that brought no value: the first get that waited for it loads in its place.
func (t *inside) pass(key []byte, now int64) {
	f := t.flights[string(key)]
	switch {
	case f == nil:
	case len(f.waiters) == 0:
		t.land(key, f)
	default:
		w := f.waiters[0]
		f.waiters = append(f.waiters[:0], f.waiters[1:]...)
		a := t.room()
		a.st, a.verb, a.tag = w.st, driver.Get, w.tag
		a.reply = driver.Reply{Outcome: driver.Miss, Value: a.reply.Value[:0]}
		t.left(w, now)
	}
}

func (t *inside) land(key []byte, f *flight) {
	delete(t.flights, string(key))
	f.waiters = f.waiters[:0]
	t.spare = append(t.spare, f)
}

// left notes that a waiting get waits no more.
func (t *inside) left(w waiter, now int64) {
	t.waiting--
	t.waited += now - w.since
}

// answer delivers the answers that are due, and some of those that become due meanwhile. It reports whether there were any.
func (t *inside) answer() bool {
	if t.at == len(t.due) {
		return false
	}
	for n := max(answersEach, len(t.due)-t.at); n > 0 && t.at < len(t.due); n-- {
		a := t.due[t.at]
		t.at++
		t.lane.programs.replied(request{st: a.st, verb: a.verb, tag: a.tag}, &a.reply, nil, 0, t.l.clock.now())
	}
	left := len(t.due) - t.at
	for i := range left { // swapped, not copied: each place owns a buffer
		t.due[i], t.due[t.at+i] = t.due[t.at+i], t.due[i]
	}
	t.due, t.at = t.due[:left], 0
	return true
}

func (t *inside) wait(d time.Duration) bool { return t.answer() }

func (t *inside) fire(timer, int64) {}

func (t *inside) flush() {}

func (t *inside) recall() {}

// sweep times out gets that have waited for too long.
func (t *inside) sweep(now int64) int64 {
	if t.waiting == 0 {
		return never
	}
	next := now + t.timeout
	for _, f := range t.flights {
		for len(f.waiters) > 0 {
			w := f.waiters[0]
			if deadline := w.since + t.timeout; deadline > now {
				next = min(next, deadline)
				break
			}
			f.waiters = append(f.waiters[:0], f.waiters[1:]...)
			t.left(w, now)
			t.lane.programs.lost(request{st: w.st, verb: driver.Get, tag: w.tag}, op.RequestTimeout, now)
		}
	}
	return next
}

func (t *inside) outstanding(into []measure.Requests) {
	row := t.lane.row(0) * driver.NumVerbs
	for i := t.at; i < len(t.due); i++ {
		into[row+int(t.due[i].verb)].InFlight++
	}
	into[row+int(driver.Get)].InFlight += int64(t.waiting)
}

func (t *inside) close() {}

// loads notes whether an op is loading from the source of a cache.
func (l *loop) loads(st *opState, loading bool, now int64) {
	switch began := st.loading > 0; {
	case loading && !began:
		st.loading = now
		l.loading++
		l.rec.Cache.MostLoads = max(l.rec.Cache.MostLoads, uint64(l.loading))
	case !loading && began:
		l.rec.Cache.LoadTime += uint64(max(0, now-st.loading))
		st.loading = 0
		l.loading--
	}
}
