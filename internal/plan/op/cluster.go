package op

import "github.com/loadgen/loadgen/pkg/driver"

// MaxRedirects is how many redirects an op follows. A slot that has moved takes one, a slot that is moving two, and a map that changes meanwhile
// takes more. Beyond five, nodes are sending the op back and forth.
const MaxRedirects = 5

// Redirect is the answer of an endpoint that does not have the key: it names the one that does.
type Redirect struct {
	Endpoint int  // the endpoint that has the key; −1 if it is none of the target's
	Ask      bool // only this request goes there, after an announcement; otherwise the key's slot has moved there
}

// Cluster is the program that sends one request to the endpoint that has the key's slot, and another for each redirect.
type Cluster struct {
	*Plain
	slots     *Slots
	redirects []uint8 // by slot of an op: how many it has followed
}

// NewCluster returns the program over the map, which it updates from redirects. checked is as for NewPlain.
func NewCluster(slots *Slots, checked bool) *Cluster {
	return &Cluster{Plain: NewPlain(slots, checked), slots: slots}
}

// Start implements Program.
func (p *Cluster) Start(dst []driver.Request, o *Op) []driver.Request {
	p.redirects = grown(p.redirects, o.Slot)
	p.redirects[o.Slot] = 0
	dst = p.Plain.Start(dst, o)
	if r := &dst[len(dst)-1]; o.Verb == driver.Get {
		r.Endpoint = p.slots.Reader(r.Endpoint, o.Stream)
	}
	return dst
}

// On implements Program.
func (p *Cluster) On(dst []driver.Request, ev Event) ([]driver.Request, Step) {
	to := ev.Redirect
	if to == nil {
		return p.Plain.On(dst, ev)
	}
	if !to.Ask && to.Endpoint >= 0 {
		p.slots.Set(SlotOf(ev.Op.Key), to.Endpoint)
	}
	followed := &p.redirects[ev.Op.Slot]
	if to.Endpoint < 0 || *followed == MaxRedirects || p.done[ev.Op.Slot] {
		return p.Plain.On(dst, ev) // the reply is an error
	}
	*followed++
	r := request(ev.Op, to.Endpoint)
	r.Asking = to.Ask
	return append(dst, r), Step{}
}
