package op

import "github.com/loadgen/loadgen/pkg/driver"

// Cache says how ops read through a cache. Targets are numbered as in Op.Target.
type Cache struct {
	Self     int // the target that ops belong to. It lives in the loop, and keeps entries, loads under way, or neither
	Look     int // the target that keeps the entries, Self or another; −1 if none does
	Source   int // the target that has all values; −1 if ops do not use it
	OnPut    OnPut
	Fails    bool   // an op fails if the cache does; else the source alone decides
	Coalesce bool   // a get that misses asks Self whether the value is being loaded
	TTL      uint32 // ms for which an entry is valid; 0 for ever
}

// OnPut says what happens to a key's entry when the key is put.
type OnPut uint8

// Values of OnPut. A delete of the key drops the entry, except with Keep.
const (
	Invalidate OnPut = iota // the entry is dropped
	Update                  // the entry gets the new value
	Keep                    // the entry stays as it is
)

// Tags of the requests that an op makes. A tag says which part of the program handles the request's end.
const (
	TagLook    uint8 = iota + 1 // a get of the cache
	TagAsk                      // a get of Self, which waits for a load under way: OK brings that load's value, miss says to load
	TagLoad                     // a get of the source
	TagFill                     // a put of the cache
	TagShare                    // a put of Self: the load under way has ended, with this value
	TagRelease                  // a delete of Self: the load under way has ended without a value
	TagWrite                    // a put or delete of the source
	TagDrop                     // a delete of the cache

	numTags
)

// Waited is the Code of the reply to a get that waited for a load under way and got its value.
const Waited = 1

// Kinds of gets that are OK.
const (
	KindHit    uint8 = iota + 1 // the cache had the value
	KindFilled                  // the value came from the source, and is in the cache now
	KindWaited                  // another get loaded the value
	KindSource                  // the value came from the source, and is not in the cache
)

var kindNames = [...]string{"", "hit", "filled", "waited", "source", "whole", "part", "none"}

// KindName returns the name of a kind in results.
func KindName(kind uint8) string { return kindNames[kind] }

// Kinds lists the names of all kinds of gets that read through a cache, or of chains.
func Kinds(chains bool) []string {
	if chains {
		return kindNames[KindWhole:]
	}
	return kindNames[1:KindWhole]
}

// CacheCounts are a program's counts of gets so far. Gets = Hits + Misses and, once all gets have ended, Misses + Unavailable = Loads + Coalesced.
type CacheCounts struct {
	Gets, Hits, Misses uint64
	Unavailable        uint64 // gets that went on to the source because the cache gave no answer
	Loads              uint64 // gets that asked the source
	Coalesced          uint64 // misses that waited for another get's load, and did not load themselves
	Uncached           uint64 // values that the cache refused
}

// Through is the program that reads through a cache. It is made of the programs that ask the cache and the source, which may themselves be clusters
// or quorums.
type Through struct {
	Cache
	CacheCounts
	parts  [numTags]Program
	states []through // by slot
}

// through is the state of an op.
type through struct {
	ops     [numTags]Op // the op as each part sees it; filled in when needed
	bytes   Verbatim    // the value that was loaded
	version uint64      // its version, if it is checked
	writer  uint64
	pending int
	loading bool
	loaded  bool // bytes holds the source's value
	leads   bool // others may wait for this op's load
	barred  bool // the cache failed to answer, so its entry is left alone
	waits   bool // counted as a miss
	loads   bool // it has asked the source
	done    bool
	outcome driver.Outcome // the source's outcome, kept while the cache is updated
}

// NewThrough returns the program of a cache. part makes the program of ops that belong to one of the targets; each call must return another.
func NewThrough(c Cache, part func(target int) Program) *Through {
	p := &Through{Cache: c}
	for tag := TagLook; tag < numTags; tag++ {
		target := p.target(tag)
		if target < 0 {
			target = c.Self
		}
		p.parts[tag] = part(target)
	}
	return p
}

// target returns the target that a request goes to; −1 if there is none.
func (c *Cache) target(tag uint8) int {
	switch tag {
	case TagLook, TagFill:
		return c.Look
	case TagDrop:
		if c.Look < 0 {
			return c.Self
		}
		return c.Look
	case TagLoad, TagWrite:
		return c.Source
	}
	return c.Self
}

// Loading reports whether the op in a slot is loading from the source.
func (p *Through) Loading(slot int32) bool { return p.states[slot].loading }

// Start implements Program.
func (p *Through) Start(dst []driver.Request, o *Op) []driver.Request {
	p.states = grown(p.states, o.Slot)
	s := &p.states[o.Slot]
	s.pending, s.loading, s.loaded, s.leads, s.barred, s.waits, s.loads, s.done = 0, false, false, false, false, false, false, false
	s.bytes.Bytes, s.version, s.writer = s.bytes.Bytes[:0], 0, 0
	switch {
	case o.Verb != driver.Get && p.Source < 0:
		return p.send(dst, o, s, TagDrop, driver.Delete)
	case o.Verb != driver.Get:
		return p.send(dst, o, s, TagWrite, o.Verb)
	case p.Look >= 0:
		return p.send(dst, o, s, TagLook, driver.Get)
	}
	return p.missed(dst, o, s)
}

// send begins the part of an op that a tag stands for.
func (p *Through) send(dst []driver.Request, o *Op, s *through, tag uint8, verb driver.Verb) []driver.Request {
	sub := &s.ops[tag]
	*sub = *o
	sub.Target, sub.Verb = p.target(tag), verb
	if verb == driver.Put && tag != TagWrite && o.Verb == driver.Get {
		sub.Value = driver.Value{Size: len(s.bytes.Bytes), Maker: &s.bytes}
	}
	if tag == TagFill && p.TTL > 0 {
		sub.Value.TTL = p.TTL
	}
	from := len(dst)
	return p.tagged(p.parts[tag].Start(dst, sub), from, s, tag)
}

// tagged marks the requests of a part.
func (p *Through) tagged(reqs []driver.Request, from int, s *through, tag uint8) []driver.Request {
	for i := from; i < len(reqs); i++ {
		reqs[i].Tag = tag
	}
	s.pending += len(reqs) - from
	return reqs
}

// On implements Program.
func (p *Through) On(dst []driver.Request, ev Event) ([]driver.Request, Step) {
	o := ev.Op
	s := &p.states[o.Slot]
	if ev.Kind == OpTimeout {
		return p.expire(dst, o, s)
	}
	s.pending--
	tag := ev.Tag
	if tag == TagLoad {
		s.keep(ev)
	}
	ev.Op = &s.ops[tag]
	from := len(dst)
	dst, part := p.parts[tag].On(dst, ev)
	dst = p.tagged(dst, from, s, tag)
	step := Step{Foreign: part.Foreign}
	if part.Done {
		if tag == TagLoad {
			s.loading = false
		}
		switch {
		case !s.done:
			dst = p.next(dst, o, s, tag, &ev, part, &step)
		case p.Coalesce && part.Outcome == driver.Miss && (tag == TagAsk || tag == TagLook && p.Look == p.Self): // another get is loading
			dst = p.send(dst, o, s, TagRelease, driver.Delete)
		}
	}
	step.Settled = s.pending == 0
	return dst, step
}

// expire ends an op whose deadline has passed, and the waits of gets for its load.
func (p *Through) expire(dst []driver.Request, o *Op, s *through) ([]driver.Request, Step) {
	if s.done {
		return dst, Step{}
	}
	if s.waits && !s.loads {
		p.Coalesced++
	}
	step := Step{}
	dst = p.end(dst, o, s, &step, driver.Timeout, 0)
	return dst, step
}

// keep keeps the value that the source has sent, the newest if there are several.
func (s *through) keep(ev Event) {
	if s.done || ev.Kind != Replied || ev.Reply.Outcome != driver.OK {
		return
	}
	h, _ := ev.Reply.Header()
	writer, version := uint64(h.Writer), h.Version
	if len(s.bytes.Bytes) > 0 && (version < s.version || version == s.version && writer <= s.writer) {
		return
	}
	s.bytes.Bytes, s.writer, s.version = append(s.bytes.Bytes[:0], ev.Reply.Value...), writer, version
}

// next goes on with an op after one of its parts has ended.
func (p *Through) next(dst []driver.Request, o *Op, s *through, tag uint8, ev *Event, part Step, step *Step) []driver.Request {
	failed := part.Outcome > driver.Miss
	switch tag {
	case TagLook, TagAsk:
		return p.looked(dst, o, s, tag, ev, part, step)
	case TagLoad:
		if part.Outcome != driver.OK {
			return p.end(dst, o, s, step, part.Outcome, 0)
		}
		s.loaded = true
		if s.barred || p.Look < 0 {
			return p.end(dst, o, s, step, driver.OK, KindSource)
		}
		return p.send(dst, o, s, TagFill, driver.Put)
	case TagFill:
		if o.Verb != driver.Get {
			return p.told(dst, o, s, part, step)
		}
		if part.Outcome == driver.OK {
			return p.end(dst, o, s, step, driver.OK, KindFilled)
		}
		if ev.Kind == Replied {
			p.Uncached++
		}
		if p.Fails && part.Outcome != driver.Conflict {
			return p.end(dst, o, s, step, part.Outcome, 0)
		}
		return p.end(dst, o, s, step, driver.OK, KindSource)
	case TagWrite:
		s.outcome = part.Outcome
		switch {
		case failed || p.OnPut == Keep || p.Look < 0:
			return p.end(dst, o, s, step, part.Outcome, 0)
		case p.OnPut == Update && o.Verb == driver.Put:
			return p.send(dst, o, s, TagFill, driver.Put)
		}
		return p.send(dst, o, s, TagDrop, driver.Delete)
	case TagDrop:
		if p.Source < 0 {
			return p.end(dst, o, s, step, part.Outcome, 0)
		}
		return p.told(dst, o, s, part, step)
	}
	return dst // the op is done already
}

// told ends an op once the cache is updated; the outcome is the source's.
func (p *Through) told(dst []driver.Request, o *Op, s *through, part Step, step *Step) []driver.Request {
	if p.Fails && part.Outcome > driver.Miss {
		return p.end(dst, o, s, step, part.Outcome, 0)
	}
	return p.end(dst, o, s, step, s.outcome, 0)
}

// looked goes on after the cache, or Self, has answered a get.
func (p *Through) looked(dst []driver.Request, o *Op, s *through, tag uint8, ev *Event, part Step, step *Step) []driver.Request {
	waited := ev.Kind == Replied && ev.Reply.Code == Waited && p.Cache.target(tag) == p.Self
	switch {
	case part.Outcome == driver.OK && waited:
		p.miss(s)
		p.Coalesced++
		s.writer, s.version = part.Writer, part.Version
		return p.end(dst, o, s, step, driver.OK, KindWaited)
	case part.Outcome == driver.OK:
		p.Gets++
		p.Hits++
		s.writer, s.version = part.Writer, part.Version
		return p.end(dst, o, s, step, driver.OK, KindHit)
	case part.Outcome == driver.Miss && tag == TagLook && p.Look != p.Self:
		return p.missed(dst, o, s)
	case part.Outcome == driver.Miss:
		s.leads = p.Coalesce
		return p.load(dst, o, s)
	case p.Cache.target(tag) == p.Self: // the get waited for too long
		p.miss(s)
		p.Coalesced++
		return p.end(dst, o, s, step, part.Outcome, 0)
	case p.Fails:
		return p.end(dst, o, s, step, part.Outcome, 0)
	}
	s.barred = true
	return p.missed(dst, o, s)
}

// missed goes on with a get whose key is not in the cache.
func (p *Through) missed(dst []driver.Request, o *Op, s *through) []driver.Request {
	if p.Coalesce && p.Look != p.Self {
		p.miss(s)
		return p.send(dst, o, s, TagAsk, driver.Get)
	}
	return p.load(dst, o, s)
}

// miss counts a get that missed, or that the cache did not answer, once.
func (p *Through) miss(s *through) {
	if !s.waits {
		s.waits = true
		if s.barred {
			p.Unavailable++
			return
		}
		p.Gets++
		p.Misses++
	}
}

// load asks the source.
func (p *Through) load(dst []driver.Request, o *Op, s *through) []driver.Request {
	p.miss(s)
	p.Loads++
	s.loads, s.loading = true, true
	return p.send(dst, o, s, TagLoad, driver.Get)
}

// end decides an op, and releases the gets that wait for its load.
func (p *Through) end(dst []driver.Request, o *Op, s *through, step *Step, outcome driver.Outcome, kind uint8) []driver.Request {
	s.done, s.loading = true, false
	step.Done, step.Outcome, step.Kind = true, outcome, kind
	if outcome == driver.OK && o.Verb == driver.Get {
		step.Writer, step.Version = s.writer, s.version
	}
	if !s.leads {
		return dst
	}
	s.leads = false
	switch {
	case outcome == driver.OK && kind == KindFilled && p.Look == p.Self: // the fill has released them
		return dst
	case s.loaded:
		return p.send(dst, o, s, TagShare, driver.Put)
	}
	return p.send(dst, o, s, TagRelease, driver.Delete)
}
