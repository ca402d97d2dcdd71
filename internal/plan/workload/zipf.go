package workload

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// zipf draws ranks k in [1, n] with probability proportional to k⁻ˢ, for any s > 0, by rejection-inversion (Hörmann and
// Derflinger, Rejection-inversion to generate variates from monotone discrete distributions, ACM TOMACS 6(3), 1996, algorithm
// ZRI). The density x⁻ˢ is inverted exactly and corrected by rejection, so that every rank has its exact probability;
// a draw takes fewer than 1.2 tries on average and no memory, whatever n.
type zipf struct {
	n       float64
	s       float64
	oneMins float64 // 1 − s
	top     float64 // H(n + ½)
	span    float64 // H(1½) − 1 − H(n + ½)
	accept  float64 // a rank within this distance above x is taken without evaluating H
}

func newZipf(s float64, n int64) zipf {
	z := zipf{s: s, oneMins: 1 - s}
	z.accept = 2 - z.inverse(z.integral(2.5)-z.density(2))
	return z.over(float64(n))
}

// over returns the same distribution over the ranks [1, n].
func (z zipf) over(n float64) zipf {
	z.n = n
	z.top = z.integral(n + 0.5)
	z.span = z.integral(1.5) - 1 - z.top
	return z
}

// rank draws a rank from 1.
func (z *zipf) rank(random *rand.PCG) uint64 {
	for {
		if k, ok := z.try(unit(random)); ok {
			return uint64(k)
		}
	}
}

// try maps a uniform number in [0, 1) to a rank, and reports whether it is accepted.
func (z *zipf) try(unit float64) (k float64, ok bool) {
	u := z.top + unit*z.span
	x := z.inverse(u)
	k = min(max(math.Floor(x+0.5), 1), z.n)
	return k, k-x <= z.accept || u >= z.integral(k+0.5)-z.density(k)
}

func (z *zipf) density(x float64) float64 { return math.Exp(-z.s * math.Log(x)) }

// integral is H(x) = (x¹⁻ˢ − 1)/(1 − s), the integral of the density from 1 to x, and ln x for s = 1.
func (z *zipf) integral(x float64) float64 {
	log := math.Log(x)
	t := z.oneMins * log
	if t == 0 {
		return log
	}
	return log * math.Expm1(t) / t
}

// inverse is H⁻¹(y) = (1 + (1 − s)y)^(1/(1 − s)), and eʸ for s = 1.
func (z *zipf) inverse(y float64) float64 {
	t := max(z.oneMins*y, -1) // rounding may take it below
	if t == 0 {
		return math.Exp(y)
	}
	return math.Exp(y * math.Log1p(t) / t)
}

// permutation is a pseudo-random bijection of [0, count), which spreads the popular keys over the key space. It is a Feistel network of
// six rounds on the two halves of a word just wide enough for count − 1. It is applied again until the result is in range (cycle walking:
// Black and Rogaway, Ciphers with Arbitrary Finite Domains, CT-RSA 2002, §4). There are fewer than twice as many words as count, so this
// takes fewer than two applications on average.
type permutation struct {
	count    uint64
	lowBits  int
	low      uint64 // mask of the lower half
	high     uint64 // mask of the upper half, shifted down
	roundKey [6]uint64
}

func newPermutation(seed uint64, count int64) permutation {
	width := bits.Len64(uint64(count - 1))
	p := permutation{count: uint64(count), lowBits: width / 2}
	p.low = 1<<p.lowBits - 1
	p.high = 1<<(width-p.lowBits) - 1
	for i := range p.roundKey {
		seed = mix(seed)
		p.roundKey[i] = seed
	}
	return p
}

// at returns the image of x, which must be below count.
func (p *permutation) at(x uint64) uint64 {
	for {
		low, high := x&p.low, x>>p.lowBits
		for i := 0; i < len(p.roundKey); i += 2 {
			high ^= mix(low^p.roundKey[i]) & p.high
			low ^= mix(high^p.roundKey[i+1]) & p.low
		}
		if x = high<<p.lowBits | low; x < p.count {
			return x
		}
	}
}
