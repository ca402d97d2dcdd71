package workload

import (
	"math"
	"math/rand/v2"
)

// YCSB's zipfian request distribution (site.ycsb.generator, ZipfianGenerator and ScrambledZipfianGenerator): whatever the number of keys,
// ranks are drawn of 10¹⁰ + 1 by the approximation of Gray et al. (Quickly Generating Billion-Record Synthetic Databases, SIGMOD 1994, figure 3)
// with its skew of 0.99 and a sum over all ranks that is a constant there. A hash then takes each rank to a key, so that several ranks
// share a key and a key of few has little to do with its exact probability.
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

// ycsbIndex draws the index of a key in [0, count): the rank's FNV-1a hash, of its eight bytes from the lowest, as a signed integer without
// its sign, modulo count.
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
