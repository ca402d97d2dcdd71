package workload

import (
	"fmt"
	"math/bits"

	"github.com/loadgen/loadgen/internal/plan/keyfile"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// filed holds a file's values and their sizes. It is a driver.Maker. The seed chooses the value: uniformly or, if values are paired with keys,
// by the seed modulo their number.
type filed struct {
	set    *keyfile.Set
	count  uint64
	paired bool
	header int
}

func newFiled(v *plan.Values, set *keyfile.Set) (*filed, error) {
	if set == nil || int64(set.Len()) != v.File.Count || set.Len() == 0 {
		return nil, fmt.Errorf("the %d values of %s are not at hand", v.File.Count, v.File.Path)
	}
	f := &filed{set: set, count: uint64(set.Len()), paired: v.File.Paired()}
	if v.Checked {
		f.header = driver.HeaderSize
	}
	return f, nil
}

// at returns the number of the value with the given seed.
func (f *filed) at(seed uint64) uint64 {
	if f.paired {
		return seed % f.count
	}
	number, _ := bits.Mul64(mix(seed), f.count)
	return number
}

// Append implements driver.Maker.
func (f *filed) Append(dst []byte, seed uint64) []byte { return f.set.Append(dst, f.at(seed)) }

func (f *filed) of(seed uint64) int { return f.header + f.set.Size(f.at(seed)) }
