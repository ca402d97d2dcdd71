package workload

import (
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// mostSampled is how many ops Sample looks at.
const mostSampled = 1 << 18

// Sample returns values that a phase without scenarios stores in its own dataset, one after another and at most size bytes of them.
func Sample(p *plan.Plan, ph *plan.Phase, size int) (values []byte, err error) {
	kind := Load
	if ph.Populate != nil {
		kind = Populate
	}
	source, err := New(p, ph, Step{Kind: kind})
	if err != nil {
		return nil, err
	}
	var o op.Op
	add := func(v *driver.Value) {
		if v.Size <= size-len(values) || v.Maker == nil {
			v.Size = min(v.Size, size-len(values))
			values = v.AppendTo(values)
		}
	}
	for i, n := 0, 0; i < source.Streams(); i++ {
		for st := source.Stream(i); n < mostSampled && len(values) < size && st.Next(&o); n++ {
			for j := range o.Batch {
				add(&o.Batch[j].Value)
			}
			if o.Verb.Stores() && len(o.Batch) == 0 {
				add(&o.Value)
			}
		}
	}
	return values, nil
}
