package judge

import (
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/reuse"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// cache copies the counts of the caches that the phase read through.
func (p *phase) cache(ph *plan.Phase, c *measure.Cache) {
	if len(ph.Behind) == 0 {
		return
	}
	p.Cache = &run.Cache{
		Caches: c.Caches, Gets: c.Gets, Hits: c.Hits, Misses: c.Misses, Loads: c.Loads, LoadSeconds: seconds(int64(c.LoadTime)), MostLoads: c.MostLoads,
		Coalesced: c.Coalesced, Blocked: c.Blocked, BlockedSeconds: seconds(int64(c.BlockedTime)), Unavailable: c.Unavailable, Uncached: c.Uncached,
		Entries: c.Entries, Bytes: c.Bytes, Evictions: c.Evictions, Cleared: c.Cleared,
	}
	if c.Gets == 0 {
		p.null("cache.hit_ratio", reason.NoOps, "no get was answered")
		return
	}
	p.Cache.HitRatio = number(float64(c.Hits) / float64(c.Gets))
}

// mostDrawn is the most gets that are drawn again to simulate caches, which takes a second or two.
const mostDrawn = 10_000_000

// simulate sets the hit ratio that LRU caches of the same size have on the same draws.
func (p *phase) simulate(pl *plan.Plan, ph *plan.Phase, m *Measured) {
	if p.Cache == nil {
		return
	}
	caches, why := simulable(pl, ph, m)
	if why == "" {
		ratio, known, err := caches.HitRatio(pl, ph, m.DrawsAs, p.Cache.Gets)
		switch {
		case err != nil:
			why = err.Error()
		case !known:
			why = "no get was drawn"
		default:
			p.Cache.LRUHitRatio = &ratio
			return
		}
	}
	p.null("cache.lru_hit_ratio", reason.NotApplicable, why)
}

// simulable returns the caches to simulate for a phase's load, or the reason why there are none.
func simulable(p *plan.Plan, ph *plan.Phase, m *Measured) (c *reuse.Caches, why string) {
	var of *plan.Target
	for _, name := range ph.Targets() {
		switch t := p.Target(name); {
		case t.Cache == nil:
		case of != nil:
			return nil, "the phase has several targets with caches"
		default:
			of = t
		}
	}
	counted := &m.Load.Cache
	switch {
	case of == nil || ph.Closed == nil && ph.Open == nil || ph.Trace() != nil:
		return nil, "only closed and open loads without a trace are simulated"
	case of.Cache.Scope == plan.NoCache:
		return nil, "there is no cache"
	case of.Cache.Scope == plan.RemoteCache:
		return nil, "how many entries a remote cache has room for is not known"
	case of.Cache.Wipes():
		return nil, "the cache is emptied when it is full"
	case of.Cache.TTL > 0:
		return nil, "entries expire"
	case len(ph.Events) > 0:
		return nil, "the phase has events"
	case filledBefore(p, ph, of):
		return nil, "the caches were used before"
	case counted.Entries < 1 || counted.Bytes < 1:
		return nil, "no entry was kept"
	case of.Cache.Scope == plan.SharedCache && (counted.Caches < 1 || counted.Caches > uint64(ph.Sessions())):
		return nil, "how many caches there were is not known"
	case counted.Gets > mostDrawn:
		return nil, "more than " + quantity.Count(mostDrawn, "get")
	case len(m.Losses) > 0:
		return nil, "a worker was lost"
	}
	for _, name := range ph.DatasetsOn(of.Name) {
		if d := p.Dataset(name); d.Keys.File != nil || d.Values.File != nil {
			return nil, "keys or values are in a file"
		}
	}
	return cachesOf(of, ph.Sessions(), counted), ""
}

// filledBefore reports whether an earlier phase, or the phase's own setup, may have put entries into a target's caches.
func filledBefore(p *plan.Plan, ph *plan.Phase, of *plan.Target) (filled bool) {
	for _, before := range p.Phases {
		if before == ph {
			break
		}
		for _, name := range before.Targets() {
			if name == of.Name {
				filled = before.Clear == nil
			}
		}
	}
	return filled || slices.ContainsFunc(ph.Setup, func(w plan.Weight) bool { return w.Op == driver.Get.String() || w.Op == driver.Put.String() })
}

// cachesOf returns a target's caches as the engine makes them: one for each session, or one for the sessions of each worker. An entry's size is the
// mean size of the entries at the end.
func cachesOf(of *plan.Target, sessions int, counted *measure.Cache) *reuse.Caches {
	c := &reuse.Caches{Target: of.Name, OnPut: of.Cache.OnPut, Rollback: of.Cache.Rollback, Shared: of.Cache.Scope == plan.SharedCache}
	n := sessions
	if c.Shared {
		n = int(counted.Caches)
	}
	for i := range n {
		from, to := sessions*i/n, sessions*(i+1)/n
		room := int64(float64(of.Cache.Memory*int64(to-from)/int64(sessions)) / float64(counted.Bytes) * float64(counted.Entries))
		if most := of.Cache.Entries; most > 0 {
			room = min(room, max(1, most*int64(to-from)/int64(sessions)))
		}
		c.Room = append(c.Room, int(room))
		for range to - from {
			c.Of = append(c.Of, i)
		}
	}
	return c
}
