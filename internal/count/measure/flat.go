package measure

import "github.com/loadgen/loadgen/pkg/driver"

// WithoutBins returns a copy of t without bins or origin, so that steps that began at different times can be merged. It shares everything else with t
// and must only be read. CheckValid does not hold for it.
func (t *Totals) WithoutBins() *Totals {
	flat := *t
	flat.Origin, flat.Time = 0, nil
	for v, o := range t.Ops {
		if o != nil {
			flat.Ops[v] = o.withoutBins()
		}
	}
	flat.Scenarios = nil
	for _, o := range t.Scenarios {
		flat.Scenarios = append(flat.Scenarios, o.withoutBins())
	}
	return &flat
}

func (o *Op) withoutBins() *Op {
	flat := *o
	for _, all := range []*[driver.NumOutcomes]*Bins{&flat.Bins, &flat.Turns, &flat.Keys.Bins, &flat.Keys.Turns} {
		clear(all[:])
	}
	return &flat
}
