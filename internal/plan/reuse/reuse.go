// Package reuse computes the hit ratio that caches of a given size would have on a plan's own draws. The caches make room for an entry by dropping
// the least recently used one (a stack algorithm in the terms of Mattson et al., IBM Systems Journal 9(2), 1970). The package is pure. It models no
// times: sessions take turns.
package reuse

import (
	"hash/maphash"
	"slices"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Caches are the caches before a target in a load.
type Caches struct {
	Target   string
	Of       []int // the number of each session's cache
	Room     []int // the most entries that each cache holds
	OnPut    string
	Shared   bool    // sessions share the caches
	Rollback float64 // share of scenarios that end in a rollback, which empties the session's cache, or drops the scenario's keys from a shared one
}

// HitRatio returns the share of a load's first gets that hit, if all caches are empty before. A repetition draws as in [workload.Step]. It returns
// false if the load draws no gets of the target.
func (c *Caches) HitRatio(p *plan.Plan, ph *plan.Phase, repetition int, gets uint64) (ratio float64, known bool, err error) {
	source, err := workload.New(p, ph, workload.Step{Kind: workload.Load, Repetition: repetition})
	if err != nil {
		return 0, false, err
	}
	d := &draws{Caches: c, source: source, ops: make([]op.Op, max(1, source.Longest())), target: slices.Index(ph.Targets(), c.Target), seed: maphash.MakeSeed()}
	for _, room := range c.Room {
		d.caches = append(d.caches, newStack(room))
	}
	streams := make([]workload.Stream, source.Streams())
	for i := range streams {
		streams[i] = source.Stream(i)
	}
	for d.gets < gets {
		drawn := false
		for i := range streams {
			drawn = d.turn(&streams[i], i%source.Sessions(), gets) || drawn
		}
		if !drawn {
			break
		}
	}
	if d.gets == 0 {
		return 0, false, nil
	}
	return float64(d.hits) / float64(d.gets), true, nil
}

// draws carries out a load's draws on caches.
type draws struct {
	*Caches
	source *workload.Source
	ops    []op.Op
	target int // the target's number in the phase
	caches []*stack
	seed   maphash.Seed

	gets, hits uint64
}

// turn carries out a stream's next op, or scenario. It returns false if the stream has ended.
func (d *draws) turn(st *workload.Stream, session int, gets uint64) bool {
	n, ok := 1, false
	scenic := d.source.Scenarios() > 0
	if scenic {
		_, n, ok = st.NextScenario(d.ops)
	} else {
		ok = st.Next(&d.ops[0])
	}
	if !ok {
		return false
	}
	cache := d.caches[d.Of[session]]
	for i := range d.ops[:n] {
		if o := &d.ops[i]; o.Target == d.target && d.gets < gets {
			d.carryOut(cache, o)
		}
	}
	if first := &d.ops[0]; scenic && d.Rollback > 0 && d.source.Falls(first.Stream, first.N, d.Rollback) {
		d.rollBack(cache, d.ops[:n])
	}
	return true
}

func (d *draws) carryOut(cache *stack, o *op.Op) {
	key := d.hash(o.Key)
	switch {
	case o.Verb == driver.Get:
		d.gets++
		if cache.use(key) {
			d.hits++
		}
	case d.OnPut == plan.UpdateOnPut && o.Verb.Stores():
		cache.use(key)
	case d.OnPut != plan.KeepOnPut:
		cache.drop(key)
	}
}

func (d *draws) rollBack(cache *stack, ops []op.Op) {
	if !d.Shared {
		cache.empty()
		return
	}
	for i := range ops {
		if ops[i].Target == d.target {
			cache.drop(d.hash(ops[i].Key))
		}
	}
}

// hash returns a hash that identifies a key. Among a hundred million keys, two have the same hash in one of about four thousand simulations.
func (d *draws) hash(key []byte) uint64 { return maphash.Bytes(d.seed, key) }

// stack holds a cache's keys in the order in which they were last used.
type stack struct {
	room int
	at   map[uint64]int32 // places by key
	all  []place          // all[0] is before the newest and after the oldest
	free []int32
}

// place is a key's place in the order, between the keys that were used just after it and just before it.
type place struct {
	key          uint64
	newer, older int32
}

func newStack(room int) *stack {
	return &stack{room: room, at: map[uint64]int32{}, all: make([]place, 1)}
}

// use makes a key the newest, and reports whether the stack held it before.
func (s *stack) use(key uint64) bool {
	i, there := s.at[key]
	switch {
	case there:
		s.unlink(i)
	case s.room < 1:
		return false
	case len(s.at) >= s.room:
		i = s.all[0].newer // the oldest
		s.unlink(i)
		delete(s.at, s.all[i].key)
	case len(s.free) > 0:
		i = s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
	default:
		i = int32(len(s.all))
		s.all = append(s.all, place{})
	}
	first := s.all[0].older
	s.all[i] = place{key: key, newer: 0, older: first}
	s.all[first].newer, s.all[0].older = i, i
	s.at[key] = i
	return there
}

// drop removes a key.
func (s *stack) drop(key uint64) {
	if i, there := s.at[key]; there {
		s.unlink(i)
		delete(s.at, key)
		s.free = append(s.free, i)
	}
}

func (s *stack) empty() {
	clear(s.at)
	s.all, s.free = s.all[:1], s.free[:0]
	s.all[0] = place{}
}

func (s *stack) unlink(i int32) {
	e := s.all[i]
	s.all[e.newer].older, s.all[e.older].newer = e.older, e.newer
}
