package cachenode

import (
	"sync"
	"sync/atomic"
)

// maxPeers bounds how many peer addresses are counted separately.
const maxPeers = 100_000

// verb is what requests are counted under.
type verb int

const (
	verbGet verb = iota
	verbSet
	verbDel
	verbOther // everything else, and all requests refused unexecuted: unknown, malformed, not authenticated

	numVerbs int = iota
)

// verbNames are their names in reports.
var verbNames = [numVerbs]string{"get", "set", "del", "other"}

// counts are the requests received from one peer, by verb.
type counts [numVerbs]atomic.Uint64

// peers counts requests by peer address. The node's own totals are the sum: everything is counted only once.
type peers struct {
	limit int // of addresses

	mu     sync.Mutex
	byAddr map[string]*counts
	order  []string // addresses in the order of their first connections
	others counts   // all peers beyond the limit
}

// of returns the counts of the peer with the given address, which outlive its connections.
func (p *peers) of(addr string) *counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.byAddr[addr]; c != nil {
		return c
	}
	if len(p.order) >= p.limit {
		return &p.others
	}
	c := new(counts)
	p.byAddr[addr] = c
	p.order = append(p.order, addr)
	return c
}

// each calls f for every peer in the order of their first connections, and last for "others" if there are any.
func (p *peers) each(f func(addr string, requests [numVerbs]uint64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, addr := range p.order {
		f(addr, p.byAddr[addr].load())
	}
	if others := p.others.load(); others != [numVerbs]uint64{} {
		f("others", others)
	}
}

// total returns the requests of all peers.
func (p *peers) total() (sum [numVerbs]uint64) {
	p.each(func(_ string, requests [numVerbs]uint64) {
		for v, n := range requests {
			sum[v] += n
		}
	})
	return sum
}

func (c *counts) load() (v [numVerbs]uint64) {
	for i := range c {
		v[i] = c[i].Load()
	}
	return v
}
