package op

import "github.com/loadgen/loadgen/pkg/driver"

// Kinds of chains: all keys were there, the first ones, or not even the first.
const (
	KindWhole uint8 = iota + KindSource + 1
	KindPart
	KindNone
)

// Chain is the program of ops whose keys are asked for in order, a window of them at a time, until one is not there. Puts of several keys, which
// follow such ops, store all of them, as many at a time.
type Chain struct {
	place   memo
	ahead   int
	checked bool
	one     Op      // scratch
	states  []chain // by slot
}

// chain is the state of an op. Its requests are numbered as its keys are; a request's tag is the low byte of its number.
type chain struct {
	next    int            // the first key that was not asked for
	pending int            // requests that have not ended
	good    int            // all keys before this one were there, or were put
	later   [2]uint64      // bit i mod 128: key i, behind good, was, too
	stop    int            // the first key that was not there, or whose request failed; the number of keys if all are well
	outcome driver.Outcome // of the request for that one
	done    bool
}

// NewChain returns the program with so many gets of an op under way, 1 to 128, or puts. keys and checked are as for [NewPlain].
func NewChain(place Placement, ahead int, keys int64, checked bool) *Chain {
	return &Chain{place: newMemo(place, keys, 1), ahead: ahead, checked: checked}
}

// Start implements Program.
func (p *Chain) Start(dst []driver.Request, o *Op) []driver.Request {
	p.states = grown(p.states, o.Slot)
	p.states[o.Slot] = chain{stop: len(o.Batch)}
	return p.more(dst, o)
}

// more asks for further keys while no request has gone wrong.
func (p *Chain) more(dst []driver.Request, o *Op) []driver.Request {
	s := &p.states[o.Slot]
	for ; s.next < min(s.good+p.ahead, s.stop); s.next++ {
		item := &o.Batch[s.next]
		p.one.Index, p.one.Key = item.Index, item.Key
		r := driver.Request{Target: o.Target, Endpoint: p.home(), Verb: driver.Get, Stream: o.Stream, N: o.N, Index: item.Index, Key: item.Key, Tag: uint8(s.next)}
		if o.Verb == driver.Put {
			r.Verb, r.Value = driver.Put, &item.Value
		}
		dst = append(dst, r)
		s.pending++
	}
	return dst
}

func (p *Chain) home() int {
	if p.place.Endpoints() == 1 {
		return 0
	}
	return p.place.home(&p.one)
}

// at returns the number of a request that is under way.
func (s *chain) at(tag uint8) int { return s.next - 1 - int(uint8(s.next-1)-tag) }

// Item returns the key and value of a request of an op that is under way.
func (p *Chain) Item(o *Op, tag uint8) *driver.Item { return &o.Batch[p.states[o.Slot].at(tag)] }

// On implements Program.
func (p *Chain) On(dst []driver.Request, ev Event) ([]driver.Request, Step) {
	o := ev.Op
	s := &p.states[o.Slot]
	s.pending--
	i, outcome := s.at(ev.Tag), outcomeOf(ev.Kind, ev.Reply)
	step := Step{}
	switch {
	case outcome == driver.OK:
		if p.checked && ev.Verb == driver.Get && !ev.Astray {
			_, ok := ev.Reply.Header()
			step.Foreign = !ok
		}
		if i > s.stop {
			step.Wasted = 1
			break
		}
		s.later[i/64%2] |= 1 << (i % 64)
		for s.good < s.stop && s.take(s.good) > 0 {
			s.good++
		}
	case i < s.stop:
		for k := i + 1; k < min(s.stop, s.next); k++ {
			step.Wasted += s.take(k)
		}
		s.stop, s.outcome = i, outcome
	}
	dst = p.more(dst, o)
	if !s.done && s.good == s.stop {
		s.done = true
		step.Done, step.Good, step.Outcome = true, s.good, s.outcome
		if s.outcome <= driver.Miss && o.Verb != driver.Put {
			step.Kind, step.Outcome = s.kind(o)
		}
	}
	if o.Verb == driver.Put {
		step.Wasted = 0
	}
	step.Settled = s.pending == 0
	return dst, step
}

// take returns 1 if key i was there, and was not taken before.
func (s *chain) take(i int) int {
	word, bit := &s.later[i/64%2], i%64
	was := *word >> bit & 1
	*word &^= was << bit
	return int(was)
}

// kind returns the kind of a chain that has found what there is, and its outcome: ok if anything.
func (s *chain) kind(o *Op) (uint8, driver.Outcome) {
	switch s.good {
	case len(o.Batch):
		return KindWhole, driver.OK
	case 0:
		return KindNone, driver.Miss
	}
	return KindPart, driver.OK
}
