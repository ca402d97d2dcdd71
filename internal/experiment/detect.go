package experiment

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/loadgen/loadgen/internal/stat"
)

const (
	futures = 2000 // simulated repetitions of an experiment
	power   = 0.95 // in normal theory; measured values have longer tails, and only nine in ten is promised
)

// spread is how much the means of repetitions scatter.
type spread struct {
	deviation float64 // standard deviation of one mean
	freedom   int     // degrees of freedom of the estimate
	error     float64 // standard error of the difference of two variants' means: deviation × √(1/n + 1/m)
	limit     float64 // how many deviations a difference must exceed
}

// spreadOf pools the scatter of repetitions' means about their variant's.
func spreadOf(a, b Sample) spread {
	var squares float64
	var s spread
	for _, sample := range []Sample{a, b} {
		if n := len(sample); n > 1 {
			squares += stat.Variance(sample.runs()) * float64(n-1)
			s.freedom += n - 1
		}
	}
	if s.freedom > 0 {
		s.deviation = math.Sqrt(squares / float64(s.freedom))
	}
	return s.over(a, b)
}

// spreadWithin returns how the means of repetitions would scatter if restarts added nothing to the noise within them: the least to expect while there
// is one of each.
func spreadWithin(a, b []float64, baseline, variant Sample) spread {
	one := func(blocks []float64) float64 { return stat.Variance(blocks) / float64(len(blocks)) }
	s := spread{freedom: len(a) + len(b) - 2, deviation: math.Sqrt((one(a) + one(b)) / 2)}
	return s.over(baseline, variant)
}

// over completes a spread for a comparison of two samples. With few repetitions, chance exceeds a limit of two deviations too often; the limit is
// then that of Student's test on their means at 5 %.
func (s spread) over(a, b Sample) spread {
	share := math.Sqrt(1/float64(len(a)) + 1/float64(len(b)))
	s.error, s.limit = s.deviation*share, spreads
	if s.freedom > 0 {
		s.limit = max(spreads, share*stat.StudentLimit(mistaken, float64(s.freedom)))
	}
	return s
}

// detectable returns a difference, as a share, that the same experiment would show nine times in ten if repeated. The estimate of the spread is
// itself uncertain, so that is drawn as well: the true spread is the estimate divided by a χ-distributed factor, the next estimate is the true spread
// times another such factor (the predictive distribution of normal theory), and the error added to the true difference is normal with the true
// standard error. half is half the width of the ratio's confidence interval.
func detectable(half float64, s spread, random *rand.Rand) float64 {
	needed := make([]float64, futures)
	for i := range needed {
		truth := 1 / chi(s.freedom, random)
		next := truth * chi(s.freedom, random)
		needed[i] = max(half*next, s.limit*s.deviation*next) + s.error*truth*random.NormFloat64()
	}
	slices.Sort(needed)
	return math.Expm1(needed[int(power*futures)])
}

// chi draws √(χ²(k)/k), k ≥ 1, from the cube root of χ²(k)/k, which is close to normal (Wilson and Hilferty, PNAS 17, 1931).
func chi(k int, random *rand.Rand) float64 {
	variance := 2 / (9 * float64(k))
	root := 1 - variance + math.Sqrt(variance)*random.NormFloat64()
	root = max(root, 0.01)
	return root * math.Sqrt(root)
}
