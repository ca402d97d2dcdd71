package workload

import (
	"math/bits"
	"math/rand/v2"
)

// mix is the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, figure 16, with Stafford's variant 13): a bijection
// of 64-bit words in which every input bit flips every output bit with a probability close to one half.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// seedOf hashes a path of names with the plan's seed. It absorbs each step, a name's length or one of its bytes, by xor and mix.
// As mix is a bijection, two paths that differ in only one step never collide, nor do two plan seeds on the same path.
func seedOf(plan uint64, names ...string) uint64 {
	h := mix(plan)
	for _, name := range names {
		h = mix(h ^ uint64(len(name)))
		for i := range len(name) {
			h = mix(h ^ uint64(name[i]))
		}
	}
	return h
}

// generator returns the generator of one stream: PCG-DXSM, whose first seed word differs between any two streams of a step.
func generator(step uint64, stream int) rand.PCG {
	h := mix(step ^ uint64(stream))
	return *rand.NewPCG(h, mix(h))
}

// below returns a uniform integer in [0, n), n ≥ 1, without bias (Lemire, Fast Random Integer Generation in an Interval, ACM
// TOMACS 2019, algorithm 5).
func below(random *rand.PCG, n uint64) uint64 {
	hi, lo := bits.Mul64(random.Uint64(), n)
	if lo < n {
		return reject(random, n, hi, lo)
	}
	return hi
}

// reject is the slow path of below.
func reject(random *rand.PCG, n, hi, lo uint64) uint64 {
	for least := -n % n; lo < least; {
		hi, lo = bits.Mul64(random.Uint64(), n)
	}
	return hi
}

// unit returns a uniform float64 in [0, 1), a multiple of 2⁻⁵³.
func unit(random *rand.PCG) float64 {
	return float64(random.Uint64()>>11) / (1 << 53)
}
