package experiment

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/loadgen/loadgen/internal/reason"
	"github.com/loadgen/loadgen/internal/stat"
)

const (
	resamples = 999  // of the difference: quantiles at 0.025 and 0.975 are then order statistics
	minBlocks = 3    // in each sample, for a resampled interval
	spreads   = 2    // standard deviations between restarts that a difference must at least exceed
	mistaken  = 0.05 // largest share of equal things reported as different: of comparisons, and of experiments with any number of them
)

// Comparison is how a variant compares with the baseline in one metric.
type Comparison struct {
	Ratio   Estimate // of the geometric means, variant to baseline, with its 95 % confidence interval
	Spread  float64  // between restarts: standard deviation of the repetitions' mean logarithms, about the same as a share; NaN: unknown
	P       float64  // of Welch's t test between blocks, two-sided
	Differs bool     // a difference was shown, if this were the only comparison
	MDE     float64  // smallest difference, as a share of the baseline, that would be shown nine times in ten; +Inf if none would

	// Doubt says why the comparison cannot show a difference, however large; empty if it can.
	Doubt reason.Why
}

// Compare compares a variant with the baseline by the logarithms of their values: a second in which everything was slow weighs no more than its
// share, and a ratio becomes a difference. The same samples and seed give the same result.
func Compare(baseline, variant Sample, seed uint64) Comparison {
	c := Comparison{Ratio: Estimate{math.NaN(), 0, math.Inf(1)}, Spread: math.NaN(), P: 1, MDE: math.Inf(1)}
	baseline, variant = baseline.logs(), variant.logs()
	a, b := baseline.blocks(), variant.blocks()
	at, _ := difference(a, b)
	if math.IsInf(at, 0) || math.IsNaN(at) {
		c.Doubt = reason.Why{Code: reason.NoTime, Text: "a ratio wants values above 0"}
		return c
	}
	c.P = welch(a, b)
	c.Ratio.Value = math.Exp(at)
	if len(a) < minBlocks || len(b) < minBlocks {
		c.Doubt = reason.Why{Code: reason.TooFew, Text: fmt.Sprintf("%d and %d independent values are too few for a confidence interval: repeat at least %d times", len(a), len(b), minBlocks)}
		return c
	}
	random := rand.New(rand.NewPCG(seed, 0))
	lo, hi := interval(a, b, random)
	c.Ratio.Lo, c.Ratio.Hi = math.Exp(lo), math.Exp(hi)
	s := spreadOf(baseline, variant)
	if s.freedom == 0 {
		c.Doubt = reason.Why{Code: reason.TooFew, Text: "one repetition does not tell the spread between restarts: repeat at least twice"}
		c.MDE = detectable((hi-lo)/2, spreadWithin(a, b, baseline, variant), random)
		return c
	}
	c.Spread = s.deviation
	c.MDE = detectable((hi-lo)/2, s, random)
	c.Differs = s.shows(at, lo, hi, c.P)
	return c
}

// shows says whether a difference with the interval from lo to hi counts: the interval excludes 0, the probability p that chance explains it is
// small, and restarts scatter less.
func (s spread) shows(at, lo, hi, p float64) bool {
	return (lo > 0 || hi < 0) && p < mistaken && math.Abs(at) > s.limit*s.deviation
}

// welch returns the two-sided probability that blocks with equal means are this far apart (Welch, Biometrika 34, 1947). It uses the same statistic as
// the interval, so they agree. Even with few blocks it is small if the difference is large, unlike that of a rank test, which cannot be below 0.008
// for five and five, and shows nothing once it is adjusted for a dozen comparisons.
func welch(a, b []float64) float64 {
	d, se := difference(a, b)
	if len(a) < 2 || len(b) < 2 || d == 0 && se == 0 {
		return 1 // too few, or all the same
	}
	ofA, ofB := stat.Variance(a)/float64(len(a)), stat.Variance(b)/float64(len(b))
	free := (ofA + ofB) * (ofA + ofB) / (ofA*ofA/float64(len(a)-1) + ofB*ofB/float64(len(b)-1))
	if se == 0 || math.IsNaN(free) {
		return 0 // values that do not vary, and differ; or vary so little that the square is 0
	}
	return stat.Student(d/se, free)
}

// logs returns the logarithms of the values.
func (s Sample) logs() Sample {
	logs := make(Sample, len(s))
	for i, values := range s {
		for _, v := range values {
			logs[i] = append(logs[i], math.Log(v))
		}
	}
	return logs
}

// interval returns the 95 % confidence interval of the difference of means, b − a, from the quantiles of the studentised difference of resampled
// blocks.
func interval(a, b []float64, random *rand.Rand) (lo, hi float64) {
	at, se := difference(a, b)
	if se == 0 {
		return at, at
	}
	ts := make([]float64, resamples)
	ra, rb := newResampler(a), newResampler(b)
	for i := range ts {
		d, s := difference(ra.draw(random), rb.draw(random))
		ts[i] = (d - at) / s
	}
	slices.Sort(ts)
	tail := (resamples + 1) / 40 // 2.5 % of them
	return at - ts[resamples-tail]*se, at - ts[tail-1]*se
}

// resampler draws from values with replacement, and adds to each a normal deviate with the standard error of the mean: otherwise few values would
// often be drawn as the same one repeatedly (Silverman and Young, Biometrika 74, 1987).
type resampler struct {
	values, drawn []float64
	error         float64
}

func newResampler(values []float64) resampler {
	n := float64(len(values))
	return resampler{values: values, drawn: make([]float64, len(values)), error: math.Sqrt(stat.Variance(values) / n)}
}

// draw returns as many values as there are, valid until the next draw.
func (r resampler) draw(random *rand.Rand) []float64 {
	for i := range r.drawn {
		r.drawn[i] = r.values[random.IntN(len(r.values))] + r.error*random.NormFloat64()
	}
	return r.drawn
}

// difference returns the difference of means, b − a, and its standard error.
func difference(a, b []float64) (d, se float64) {
	squared := stat.Variance(a)/float64(len(a)) + stat.Variance(b)/float64(len(b))
	return stat.Mean(b) - stat.Mean(a), math.Sqrt(squared)
}

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
