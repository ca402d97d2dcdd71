package measure

// WithoutBins returns a copy of t without bins, stages or origin, so that steps that began at different times can be merged. It shares everything else
// with t and must only be read. CheckValid does not hold for it.
func (t *Totals) WithoutBins() *Totals { return t.WithoutBinsIn(new(Totals)) }

// WithoutBinsIn is WithoutBins in the memory of an earlier copy, which it returns.
func (t *Totals) WithoutBinsIn(flat *Totals) *Totals {
	ops, scenarios := flat.Ops, flat.Scenarios
	*flat = *t
	flat.Origin, flat.Time = 0, nil
	for v, o := range t.Ops {
		if o != nil {
			flat.Ops[v] = o.withoutBins(ops[v])
			flat.Ops[v].Steps = nil
		}
	}
	flat.Scenarios = scenarios[:0]
	for i, o := range t.Scenarios {
		var room *Op
		if i < len(scenarios) {
			room = scenarios[i]
		}
		flat.Scenarios = append(flat.Scenarios, o.withoutBins(room))
	}
	return flat
}

func (o *Op) withoutBins(flat *Op) *Op {
	if flat == nil {
		flat = new(Op)
	}
	*flat = *o
	for _, all := range flat.allBins() {
		clear(all[:])
	}
	return flat
}
