package measure

// WithoutBins returns a copy without bins and origin, which shares all else with t: only so can steps that began at different times be
// merged. CheckValid does not hold for it.
func (t *Totals) WithoutBins() *Totals {
	flat := *t
	flat.Origin = 0
	for v, o := range t.Ops {
		if o != nil {
			c := *o
			clear(c.Bins[:])
			flat.Ops[v] = &c
		}
	}
	flat.Scenarios = nil
	for _, o := range t.Scenarios {
		c := *o
		clear(c.Bins[:])
		flat.Scenarios = append(flat.Scenarios, &c)
	}
	return &flat
}
