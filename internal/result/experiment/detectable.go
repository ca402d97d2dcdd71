package experiment

import (
	"cmp"
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/count/stat"
)

const (
	leastRuns = 3    // the fewest runs of a side for an interval: two hardly show how much runs scatter
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
// show nothing. The two sides have n and m runs that scatter alike. It is +Inf with fewer than three of either.
func Detectable(n, m, family int) float64 {
	if n < leastRuns || m < leastRuns {
		return math.Inf(1)
	}
	limits := limitsOf(n, m, mistaken/float64(max(family, 1)))
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

// limits holds the differences of means beyond which the test finds a difference, for each way in which the runs of the two sides may happen to
// scatter.
type limits struct {
	at, weight []float64 // in standard deviations between runs, with the probability of each
	se         float64   // of the difference of means
}

// limitsOf puts a grid over the two sides' estimates of the deviation. The limit is Student's for the degrees of freedom that Welch's test has
// there; its logarithm is nearly a straight line over their inverse, and interpolated.
func limitsOf(n, m int, p float64) limits {
	const steps = 8
	most, least := 1/float64(min(n, m)-1), 1/float64(n+m-2)
	var logs [steps + 1]float64
	for i := range logs {
		logs[i] = math.Log(stat.StudentLimit(p, 1/(least+(most-least)*float64(i)/steps)))
	}
	ofN, ofM := float64(n), float64(m)
	l := limits{se: math.Sqrt(1/ofN + 1/ofM)}
	for s, dense := range deviations(n - 1) {
		for t, also := range deviations(m - 1) {
			a, b := s*s/ofN, t*t/ofM
			at := (1/stat.WelchFreedom(a, b, ofN, ofM) - least) / (most - least) * steps
			i := min(max(int(at), 0), steps-1)
			limit := math.Exp(logs[i] + (at-float64(i))*(logs[i+1]-logs[i]))
			l.at, l.weight = append(l.at, limit*math.Sqrt(a+b)), append(l.weight, dense*also)
		}
	}
	return l
}

// deviations yields estimates of a standard deviation of 1 with some degrees of freedom, and the probability of each: that of √(χ²(k)/k).
func deviations(free int) func(yield func(s, weight float64) bool) {
	const steps = 16
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
