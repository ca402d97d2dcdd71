package op

import "github.com/loadgen/loadgen/pkg/driver"

// batch is the program of ops with several keys, each of which lives on one endpoint.
type batch struct {
	place  Placement
	states []batchState // by slot
	counts []int        // scratch: the number of keys by endpoint
	homes  []int        // scratch: the endpoint of each item
	sorted []driver.Item
}

// batchState is the state of an op.
type batchState struct {
	pending int  // requests that have not ended
	found   bool // a reply was OK
	done    bool
}

// NewBatch returns the program that sends an op's keys in one request to each endpoint that holds some of them. It reorders the op's Batch by
// endpoint.
func NewBatch(place Placement) Program {
	return &batch{place: place, counts: make([]int, place.Endpoints())}
}

// Start implements Program.
func (p *batch) Start(dst []driver.Request, o *Op) []driver.Request {
	p.states = grown(p.states, o.Slot)
	from := len(dst)
	if len(p.counts) == 1 {
		dst = append(dst, part(o, 0, o.Batch))
	} else {
		dst = p.divide(dst, o)
	}
	p.states[o.Slot] = batchState{pending: len(dst) - from}
	return dst
}

func part(o *Op, endpoint int, items []driver.Item) driver.Request {
	return driver.Request{Target: o.Target, Endpoint: endpoint, Verb: o.Verb, Stream: o.Stream, N: o.N, Batch: items}
}

// divide sorts an op's keys by home endpoint, in linear time, and asks each endpoint for its own.
func (p *batch) divide(dst []driver.Request, o *Op) []driver.Request {
	clear(p.counts)
	p.homes = p.homes[:0]
	for i := range o.Batch {
		home := p.place.Home(o.Batch[i].Key)
		p.homes = append(p.homes, home)
		p.counts[home]++
	}
	if len(p.sorted) < len(o.Batch) {
		p.sorted = make([]driver.Item, len(o.Batch))
	}
	at := 0
	for endpoint, n := range p.counts {
		p.counts[endpoint] = at
		if n > 0 {
			dst = append(dst, part(o, endpoint, o.Batch[at:at+n:at+n]))
			at += n
		}
	}
	for i, home := range p.homes {
		p.sorted[p.counts[home]] = o.Batch[i]
		p.counts[home]++
	}
	copy(o.Batch, p.sorted)
	return dst
}

// On implements Program.
func (p *batch) On(dst []driver.Request, ev Event) ([]driver.Request, Step) {
	s := &p.states[ev.Op.Slot]
	var step Step
	if ev.Kind != OpTimeout {
		s.pending--
		step.Settled = s.pending == 0
	}
	if s.done {
		return dst, step
	}
	switch {
	case ev.Kind == OpTimeout || ev.Kind == RequestTimeout:
		step.Outcome, s.done = driver.Timeout, true
	case ev.Kind != Replied:
		step.Outcome, s.done = driver.Error, true
	case ev.Reply.Outcome > driver.Miss:
		step.Outcome, s.done = ev.Reply.Outcome, true
	default:
		s.found = s.found || ev.Reply.Outcome == driver.OK
		s.done = s.pending == 0
		if !s.found {
			step.Outcome = driver.Miss
		}
	}
	step.Done = s.done
	return dst, step
}
