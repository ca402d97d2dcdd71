package workload

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/loadgen/loadgen/internal/plan/keyfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// sizer gives values their sizes.
type sizer interface {
	// of returns the size of the value with the given seed.
	of(seed uint64) int
}

// newSizer returns the sizer of values, nil if they are of one size, or if a size is known only once a value is made. listed holds the values of
// a file.
func newSizer(v *plan.Values, listed *keyfile.Set) (sizer, error) {
	switch {
	case v.File != nil:
		return newFiled(v, listed)
	case v.Sizes != nil:
		return newSizes(v)
	}
	return nil, nil
}

// sizes derives a value's size from its seed.
type sizes struct {
	kind  string
	least uint64 // of uniform: the smallest size
	span  uint64 // of uniform: the number of sizes

	upto  []uint64 // of list: 2⁶⁴ × the share of sizes[0..i]
	sizes []int

	median, sigma float64 // of lognormal
	from, width   float64 // of lognormal: probability below the smallest size, and from there to the largest
	smallest      int
	largest       int
}

// newSizes returns the sizes of values that differ in size.
func newSizes(v *plan.Values) (*sizes, error) {
	s := &sizes{kind: v.Sizes.Kind, smallest: v.LeastSize(), largest: v.Size}
	switch s.kind {
	case plan.UniformSizes:
		if v.Sizes.Least < 0 || v.Sizes.Least > v.Size {
			return nil, fmt.Errorf("sizes from %d to %d bytes", v.Sizes.Least, v.Size)
		}
		s.least, s.span = uint64(v.Sizes.Least), uint64(v.Size-v.Sizes.Least+1)
	case plan.LognormalSizes:
		s.median, s.sigma = float64(v.Sizes.Median), v.Sizes.Sigma
		s.from = s.below(float64(s.smallest) - 0.5)
		s.width = s.below(float64(s.largest)+0.5) - s.from
		if !(s.median >= 1 && s.sigma > 0 && s.width > 0) {
			return nil, fmt.Errorf("no sizes are lognormal with median %v and sigma %v and up to %d bytes", s.median, s.sigma, s.largest)
		}
	case plan.ListedSizes:
		if err := s.list(v.Sizes.List); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("sizes cannot be %q", s.kind)
	}
	return s, nil
}

// list prepares sizes with weights.
func (s *sizes) list(all []plan.SizeWeight) error {
	total, sum := 0.0, 0.0
	for _, one := range all {
		total += one.Weight
	}
	if !(total > 0) || math.IsInf(total, 1) {
		return fmt.Errorf("the weights of its sizes add up to %v", total)
	}
	for _, one := range all {
		sum += one.Weight
		s.upto, s.sizes = append(s.upto, word(sum/total)), append(s.sizes, one.Size)
	}
	return nil
}

// below returns the lognormal probability of a size below x, which is 0 for x ≤ 0.
func (s *sizes) below(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return math.Erfc(-math.Log(x/s.median)/(s.sigma*math.Sqrt2)) / 2
}

func (s *sizes) of(seed uint64) int {
	x := mix(seed) // the seed's own bits choose the fill
	switch s.kind {
	case plan.UniformSizes:
		hi, _ := bits.Mul64(x, s.span)
		return int(s.least + hi)
	case plan.ListedSizes:
		i := 0
		for i < len(s.sizes)-1 && x >= s.upto[i] {
			i++
		}
		return s.sizes[i]
	}
	p := s.from + float64(x>>11)/(1<<53)*s.width
	size := s.median * math.Exp(s.sigma*math.Sqrt2*math.Erfinv(2*p-1))
	return min(max(int(math.Round(min(size, float64(s.largest)))), s.smallest), s.largest)
}
