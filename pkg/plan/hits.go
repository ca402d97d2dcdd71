package plan

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/loadgen/loadgen/pkg/driver"
)

// defaultHits is the share of gets that must hit when the plan itself has put every key.
const defaultHits = 0.99

// mayMiss says whether an op of the phase that the plan words itself can end as a miss.
func (p *Plan) mayMiss(ph *Phase) bool {
	return slices.ContainsFunc(p.uses(ph), func(x use) bool {
		return slices.ContainsFunc(ph.opsOn(x.target, x.data), func(name string) bool {
			o := x.target.Op(name)
			return o != nil && slices.Contains(o.Outcomes, driver.Miss)
		})
	})
}

// expectHits sets the default of expect_hits: nearly all gets hit if the phase's own setup, or an earlier populate, has put every key, no phase has
// deleted any since, and the store does not expire them. There is no default for a trace, which has its own keys, nor if misses are filled, since the
// phase then measures how many there are.
func (p *Plan) expectHits(places map[string]hcl.Range) {
	full := map[use]bool{}
	for _, ph := range p.Phases {
		at := use{p.Target(ph.Target), p.Dataset(ph.Dataset)}
		deletes := weightOf(ph.Ops, driver.Delete) > 0
		_, written := places["phase."+ph.Name+".expect_hits"]
		hits := !slices.ContainsFunc(p.uses(ph), func(x use) bool {
			put := full[x] || x == at && ph.fills()
			return !put || x.data.Values.TTL > 0 // how many remain is unknown
		})
		if !written && ph.Verify == nil && ph.HitRatio == nil && ph.OnMiss == "" && ph.Trace() == nil && !deletes && hits && weightOf(ph.Ops, driver.Get) > 0 {
			hits := defaultHits
			ph.ExpectHits = &hits
		}
		switch {
		case ph.Populate != nil:
			full[at] = true
		case ph.Clear != nil && p.flushes(ph):
			for other := range full {
				full[other] = full[other] && other.target != at.target
			}
		case deletes:
			for _, x := range p.uses(ph) {
				full[x] = false
			}
		}
	}
}
