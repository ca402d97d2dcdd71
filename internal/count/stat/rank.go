package stat

import (
	"cmp"
	"math"
	"slices"
)

// SignedRank returns the probability that values about 0 have ranks above it as high as these have (Wilcoxon, Biometrics Bulletin 1, 1945): exact, for
// values that are as often above 0 as below it and as far. Equal distances count against those above.
func SignedRank(values []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), func(a, b float64) int {
		return cmp.Or(cmp.Compare(math.Abs(a), math.Abs(b)), cmp.Compare(b, a))
	})
	above := 0
	for i, v := range sorted {
		if v > 0 {
			above += i + 1
		}
	}
	return rankTails(len(values))[above]
}

// rankTails returns, for each w, the probability that the ranks 1 to n, each above 0 or not by the toss of a coin, have a sum of at least w above.
func rankTails(n int) []float64 {
	sums := make([]float64, n*(n+1)/2+1) // the probability of each sum
	sums[0] = 1
	for rank := 1; rank <= n; rank++ {
		for s := len(sums) - 1; s >= 0; s-- {
			if sums[s] /= 2; s >= rank {
				sums[s] += sums[s-rank] / 2
			}
		}
	}
	for w := len(sums) - 2; w >= 0; w-- {
		sums[w] += sums[w+1]
	}
	return sums
}

// Centre returns the Hodges-Lehmann estimate of what values lie about, the median of the means of all pairs, and the interval that [SignedRank] does
// not exclude on either side with probability p; infinite if there are too few values.
func Centre(values []float64, p float64) (at, lo, hi float64) {
	var means []float64
	for i, a := range values {
		for _, b := range values[:i+1] {
			means = append(means, (a+b)/2)
		}
	}
	slices.Sort(means)
	n := len(means)
	at, lo, hi = (means[(n-1)/2]+means[n/2])/2, math.Inf(-1), math.Inf(1)
	tails := rankTails(len(values))
	for w := n; w > n/2 && tails[w] < p; w-- {
		lo, hi = means[n-w], means[w-1]
	}
	return at, lo, hi
}
