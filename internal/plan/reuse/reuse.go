// Package reuse computes the hit ratio that caches of a given size would have on a plan's own draws, and estimates it for all sizes. The caches make room for an entry by dropping
// the least recently used one (a stack algorithm in the terms of Mattson et al., IBM Systems Journal 9(2), 1970). The package is pure. It models no
// times: sessions take turns.
package reuse

import (
	"math/bits"
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
	d := &draws{Caches: c, source: source, target: slices.Index(ph.Targets(), c.Target)}
	for range c.Room {
		d.caches = append(d.caches, newOrder())
	}
	walk(source, func(session int, ops []op.Op) (more bool) {
		d.turn(session, ops, gets)
		return d.gets < gets
	})
	if d.gets == 0 {
		return 0, false, nil
	}
	return float64(d.hits) / float64(d.gets), true, nil
}

// mostDrawn is the most gets and puts that a Curve counts of a plan.
const mostDrawn = 10_000_000

// Draw counts the draws of a phase's load on its first target, after the puts of earlier phases that populate the same dataset there. All items have
// one size. It ends with the load, or after ten million gets and puts. Ops of any other kind are left out.
func (c *Curve) Draw(p *plan.Plan, ph *plan.Phase, size int64) error {
	steps := append(slices.Clone(p.Phases[:slices.Index(p.Phases, ph)]), ph)
	for _, of := range steps {
		kind := workload.Populate
		if of == ph {
			kind = workload.Load
		} else if of.Populate == nil || of.Target != ph.Target || of.Dataset != ph.Dataset {
			continue
		}
		source, err := workload.New(p, of, workload.Step{Kind: kind})
		if err != nil {
			return err
		}
		walk(source, func(_ int, ops []op.Op) (more bool) {
			for i := range ops {
				if o := &ops[i]; o.Target == 0 && len(o.Batch) == 0 {
					c.Use(o.Verb, o.Key, size)
				}
				for _, item := range ops[i].Batch {
					c.Use(ops[i].Verb, item.Key, size)
				}
			}
			return c.Refs < mostDrawn
		})
	}
	return nil
}

// walk draws a step's ops in turn from each of its streams: one op, or the ops of a scenario. It ends with the streams, or when it need not go on.
func walk(source *workload.Source, each func(session int, ops []op.Op) (more bool)) {
	ops, streams := make([]op.Op, max(1, source.Longest())), make([]workload.Stream, source.Streams())
	for i := range streams {
		streams[i] = source.Stream(i)
	}
	for drawn := true; drawn; {
		drawn = false
		for i := range streams {
			n, ok := 1, false
			if source.Scenarios() > 0 {
				_, n, ok = streams[i].NextScenario(ops)
			} else {
				ok = streams[i].Next(&ops[0])
			}
			if drawn = drawn || ok; ok && !each(i%source.Sessions(), ops[:n]) {
				return
			}
		}
	}
}

// draws carries out a load's draws on caches.
type draws struct {
	*Caches
	source *workload.Source
	target int // the target's number in the phase
	caches []*order

	gets, hits uint64
}

// turn carries out a session's next op, or scenario.
func (d *draws) turn(session int, ops []op.Op, gets uint64) {
	for i := range ops {
		if o := &ops[i]; o.Target == d.target && d.gets < gets {
			d.carryOut(d.Of[session], o)
		}
	}
	if first := &ops[0]; d.source.Scenarios() > 0 && d.Rollback > 0 && d.source.Falls(first.Stream, first.N, d.Rollback) {
		d.rollBack(d.Of[session], ops)
	}
}

func (d *draws) carryOut(cache int, o *op.Op) {
	entries, key := d.caches[cache], hashOf(o.Key)
	switch {
	case o.Verb == driver.Get:
		d.gets++
		if entries.use(key, d.Room[cache]) {
			d.hits++
		}
	case d.OnPut == plan.UpdateOnPut && o.Verb.Stores():
		entries.use(key, d.Room[cache])
	case d.OnPut != plan.KeepOnPut:
		entries.take(key)
	}
}

func (d *draws) rollBack(cache int, ops []op.Op) {
	if !d.Shared {
		d.caches[cache] = newOrder()
		return
	}
	for i := range ops {
		if ops[i].Target == d.target {
			d.caches[cache].take(hashOf(ops[i].Key))
		}
	}
}

// hashOf returns a hash that identifies a key: among a hundred million keys, two have the same hash in one of about four thousand cases. KeyHash spreads
// keys that count up too evenly for a sample.
func hashOf(key []byte) uint64 {
	hi, lo := bits.Mul64(driver.KeyHash(key)^0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
	return hi ^ lo
}
