package workload

import (
	"math"
	"math/rand/v2"
)

// YCSB's zipfian request distribution (site.ycsb.generator, ZipfianGenerator and ScrambledZipfianGenerator). Whatever the number of keys,
// it draws one of 10¹⁰ + 1 ranks by the approximation of Gray et al. (Quickly Generating Billion-Record Synthetic Databases, SIGMOD 1994,
// figure 3) with YCSB's skew of 0.99 and its constant for the sum over all ranks. A hash then maps each rank to a key. Several ranks share
// a key, so with few keys the probabilities are far from exact.
const (
	ycsbRanks = 1e10 + 1
	ycsbTheta = 0.99
	ycsbZeta  = 26.46902820178302
	ycsbAlpha = 1 / (1 - ycsbTheta)
)

var (
	ycsbSecond = 1 + math.Pow(0.5, ycsbTheta) // Σ k⁻ᶿ of the first two ranks
	ycsbEta    = (1 - math.Pow(2/ycsbRanks, 1-ycsbTheta)) / (1 - ycsbSecond/ycsbZeta)
)

// ycsbRank maps a uniform number in [0, 1) to a rank from 0.
func ycsbRank(unit float64) uint64 {
	switch sum := unit * ycsbZeta; {
	case sum < 1:
		return 0
	case sum < ycsbSecond:
		return 1
	}
	return uint64(ycsbRanks * math.Pow(ycsbEta*unit-ycsbEta+1, ycsbAlpha))
}

// ycsbIndex draws a key's index in [0, count): the FNV-1a hash of the rank's eight bytes, lowest first, taken as a signed integer's absolute
// value, modulo count.
func ycsbIndex(random *rand.PCG, count uint64) uint64 {
	rank := ycsbRank(unit(random))
	hash := uint64(0xCBF29CE484222325)
	for range 8 {
		hash = (hash ^ rank&0xFF) * 1099511628211
		rank >>= 8
	}
	if signed := int64(hash); signed < 0 {
		hash = -hash
	}
	return hash % count
}
