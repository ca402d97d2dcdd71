package experiment

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/loadgen/loadgen/internal/count/stat"
)

const (
	leastRuns = 3    // the fewest runs for an interval of their mean: two hardly show how much runs scatter
	mistaken  = 0.05 // largest share of experiments without any true difference that report one
	power     = 0.9  // probability with which a detectable difference is found
)

// Holm returns the p-values of several tests, adjusted so that a claim about any of them is wrong no more often than a single test would be (Holm,
// Scand. J. Statist. 6, 1979). It keeps the order of p.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	adjusted := make([]float64, len(p))
	least := 0.0
	for rank, i := range order {
		least = max(least, min(1, float64(len(p)-rank)*p[i]))
		adjusted[i] = least
	}
	return adjusted
}

// Detectable returns the difference, in standard deviations between runs, that the test finds nine times in ten if all other comparisons of a family
// show nothing. The variants, with the baseline, have n runs each, in rounds, and scatter alike. It is +Inf with too few of either.
func Detectable(n, variants, family int) float64 {
	if variants < 2 || n < stat.LeastRounds(variants) {
		return math.Inf(1)
	}
	limits := limitsOf(n, variants, mistaken/float64(max(family, 1)))
	low, high := 0.0, 1.0
	for limits.found(high) < power {
		high *= 2
	}
	for range 20 {
		if mid := (low + high) / 2; limits.found(mid) < power {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// Repetitions returns the fewest runs of each variant with which a difference, in standard deviations between runs, is [Detectable]; 0 if more than
// most would be needed.
func Repetitions(difference float64, variants, family, most int) int {
	n := sort.Search(most+1, func(n int) bool { return Detectable(n, variants, family) <= difference })
	if n > most {
		return 0
	}
	return n
}

// limits holds the differences of means beyond which the test finds a difference, for each way in which the runs may happen to scatter.
type limits struct {
	at, weight []float64 // in standard deviations between runs, with the probability of each
	se         float64   // of the difference of means
}

// limitsOf puts a grid over the deviation of the pair and that of the other contrasts between variants, which are independent.
func limitsOf(n, variants int, p float64) limits {
	l := limits{se: math.Sqrt(2 / float64(n))}
	known := map[float64]float64{}
	for s, dense := range deviations(n - 1) {
		for t, also := range deviations((variants - 2) * (n - 1)) {
			limit := 0.0
			for _, e := range stat.Guard(2*s*s, (s*s+float64(variants-2)*t*t)/float64(variants-1), n, variants) {
				if known[e.Free] == 0 {
					known[e.Free] = stat.StudentLimit(p, e.Free)
				}
				limit = max(limit, known[e.Free]*e.SE)
			}
			l.at, l.weight = append(l.at, limit), append(l.weight, dense*also)
		}
	}
	return l
}

// deviations yields estimates of a standard deviation of 1 with some degrees of freedom, and the probability of each: that of √(χ²(k)/k).
func deviations(free int) func(yield func(s, weight float64) bool) {
	const steps = 16
	if free == 0 {
		return func(yield func(s, weight float64) bool) { yield(1, 1) }
	}
	k := float64(free)
	from, to := max(0, 1-4/math.Sqrt(2*k)), 1+5/math.Sqrt(2*k)
	var at, weight [steps]float64
	sum := 0.0
	for i := range at {
		s := from + (to-from)*(float64(i)+0.5)/steps
		at[i], weight[i] = s, math.Exp((k-1)*math.Log(s)-k*(s*s-1)/2)
		sum += weight[i]
	}
	return func(yield func(s, weight float64) bool) {
		for i := range at {
			if !yield(at[i], weight[i]/sum) {
				return
			}
		}
	}
}

// found returns the probability that a true difference is found.
func (l limits) found(difference float64) (p float64) {
	for i, at := range l.at {
		p += l.weight[i] * math.Erfc((at-difference)/l.se/math.Sqrt2) / 2
	}
	return p
}
