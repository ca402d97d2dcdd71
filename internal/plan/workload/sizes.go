package workload

import (
	"github.com/loadgen/loadgen/internal/plan/keyfile"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// sizer gives values their sizes.
type sizer interface {
	// of returns the size of the value with the given seed.
	of(seed uint64) int
}

// newSizer returns the sizer of values; nil if they all have the same size, or if a value's size is known only once it is made. listed holds the
// values of a file.
func newSizer(v *plan.Values, listed *keyfile.Set) (sizer, error) {
	switch {
	case v.File != nil:
		return newFiled(v, listed)
	case v.Sizes != nil:
		drawn, err := v.Drawn(v.LeastSize())
		return sizes{drawn}, err
	}
	return nil, nil
}

// sizes derives a value's size from its seed.
type sizes struct{ *driver.Sizes }

func (s sizes) of(seed uint64) int { return s.Of(mix(seed)) } // the seed's own bits choose the fill
