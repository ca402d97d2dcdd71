package workload

import (
	"fmt"
	"math/rand/v2"

	"github.com/loadgen/loadgen/internal/plan/keyfile"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// supply is the source of keys and values: a dataset, in one step of a phase.
type supply struct {
	keys   keySpace
	value  driver.Value // the fields that all values have in common
	varied bool         // values have different sizes
	sizes  sizer        // sizes of values; nil if they are the lengths of records
	paired bool         // a value's seed is its key's index
	cut    uint64       // bytes between the values of a stream in the long text; 0 if they are not cut from it
}

// Files holds what a dataset takes from files; nil for keys and values that are generated, and for no rows.
type Files struct{ Keys, Values, Rows *keyfile.Set }

// newSupply returns the supply of a dataset that a phase uses.
func newSupply(p *plan.Plan, ph *plan.Phase, name string, step Step) (*supply, error) {
	data := p.Dataset(name)
	if data == nil {
		return nil, fmt.Errorf("phase %q uses dataset %q, which the plan does not have", ph.Name, name)
	}
	keys, err := newKeySpace(p, ph, data, step)
	if err != nil {
		return nil, fmt.Errorf("%s of phase %q: dataset %q: %w", step.Kind, ph.Name, data.Name, err)
	}
	value, err := data.Values.Value()
	if err != nil {
		return nil, fmt.Errorf("dataset %q: %w", data.Name, err)
	}
	sizes, err := newSizer(&data.Values, step.Files[name].Values)
	if err != nil {
		return nil, fmt.Errorf("dataset %q: %w", data.Name, err)
	}
	if f, ok := sizes.(*filed); ok {
		value.Maker = f
	}
	cut := uint64(0)
	if _, of := p.Texts(ph, name); of > driver.ShortText {
		value.CutLong()
		cut = uint64(max(0, value.Size-driver.MarkSize)) | 1 // odd, so that it takes all offsets
	}
	return &supply{
		cut:  cut,
		keys: keys, value: value, varied: sizes != nil || value.Maker != nil, sizes: sizes,
		paired: data.Values.File != nil && data.Values.File.Paired(),
	}, nil
}

// draw picks a key's index independently of previous ones, as for any dataset but the phase's own.
func (s *supply) draw(random *rand.PCG) uint64 {
	k := &s.keys
	way := k.pick
	if way == owned {
		way = k.drawn
	}
	switch way {
	case zipfian:
		return k.popular(random)
	case hotspot:
		return k.warm(random)
	case ycsb:
		return ycsbIndex(random, k.count)
	default:
		return below(random, k.count)
	}
}

// refill makes o a put of its key with a value that is always the same for the key, of the size that o names if it names one.
func (s *supply) refill(o *op.Op, pool uint64) {
	size := o.Value.Size
	o.Verb, o.Value = driver.Put, s.value
	o.Value.Seed, o.Value.Key = (pool+o.Index)*0x9E3779B97F4A7C15, driver.KeyHash(o.Key)
	switch {
	case size > 0:
		o.Value.Size = size
		if s.value.Checked {
			o.Value.Size = max(size, driver.ShortHeader)
		}
	case s.varied:
		s.vary(&o.Value, &o.Key, o.Index)
	}
}

// fill sets the key and value of an op whose verb and index are drawn, in the pool that starts at the given number.
func (s *supply) fill(o *op.Op, pool, index uint64, random *rand.PCG) {
	o.Index = index
	o.Key = s.keys.appendKey(o.Key[:0], pool, index)
	o.Value = driver.Value{}
	if !o.Verb.Stores() {
		return
	}
	o.Value = s.value
	o.Value.Seed, o.Value.Key = random.Uint64(), driver.KeyHash(o.Key)
	if s.varied {
		s.vary(&o.Value, &o.Key, index)
	}
}
