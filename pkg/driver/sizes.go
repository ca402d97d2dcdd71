package driver

import (
	"fmt"
	"math"
	"math/bits"
)

// Sizes is a distribution of the sizes of values, in bytes: of the listed ones, lognormal if Sigma is above 0, or else uniform.
type Sizes struct {
	Least, Most int

	List []int
	Upto []uint64 // 2⁶⁴ × the share of List[0..i]

	Median, Sigma float64
	From, Width   float64 // of lognormal: probability below the smallest size, and from there to the largest
}

// UniformSizes returns sizes of which all are equally likely.
func UniformSizes(least, most int) (*Sizes, error) {
	if least < 0 || least > most {
		return nil, fmt.Errorf("sizes from %d to %d bytes", least, most)
	}
	return &Sizes{Least: least, Most: most}, nil
}

// LognormalSizes returns sizes whose logarithm is normally distributed, truncated.
func LognormalSizes(median, sigma float64, least, most int) (*Sizes, error) {
	s := &Sizes{Least: least, Most: most, Median: median, Sigma: sigma}
	s.From = s.below(float64(least) - 0.5)
	s.Width = s.below(float64(most)+0.5) - s.From
	if !(median >= 1 && sigma > 0 && s.Width > 0) {
		return nil, fmt.Errorf("no sizes are lognormal with median %v and sigma %v and up to %d bytes", median, sigma, most)
	}
	return s, nil
}

// ListedSizes returns the sizes of a list, each with its weight.
func ListedSizes(sizes []int, weights []float64) (*Sizes, error) {
	total, sum := 0.0, 0.0
	for _, weight := range weights {
		total += weight
	}
	if !(total > 0) || math.IsInf(total, 1) {
		return nil, fmt.Errorf("the weights of its sizes add up to %v", total)
	}
	s := &Sizes{List: sizes, Least: sizes[0], Most: sizes[0]}
	for i, weight := range weights {
		sum += weight
		upto := uint64(math.MaxUint64)
		if share := sum / total; share < 1 {
			upto = uint64(math.Ldexp(share, 64))
		}
		s.Upto, s.Least, s.Most = append(s.Upto, upto), min(s.Least, sizes[i]), max(s.Most, sizes[i])
	}
	return s, nil
}

// below returns the lognormal probability of a size below x, which is 0 for x ≤ 0.
func (s *Sizes) below(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return math.Erfc(-math.Log(x/s.Median)/(s.Sigma*math.Sqrt2)) / 2
}

// Of returns the size that a random word selects.
func (s *Sizes) Of(x uint64) int {
	switch {
	case len(s.List) > 0:
		i := 0
		for i < len(s.List)-1 && x >= s.Upto[i] {
			i++
		}
		return s.List[i]
	case s.Sigma == 0:
		hi, _ := bits.Mul64(x, uint64(s.Most-s.Least+1))
		return s.Least + int(hi)
	}
	p := s.From + float64(x>>11)/(1<<53)*s.Width
	size := s.Median * math.Exp(s.Sigma*math.Sqrt2*math.Erfinv(2*p-1))
	return min(max(int(math.Round(min(size, float64(s.Most)))), s.Least), s.Most)
}
