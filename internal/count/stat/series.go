// Package stat analyses a series of equally long intervals: where its warm-up ends, whether it drifts, and how many independent samples it holds. It
// also estimates means, queueing times and how cost grows. All of it is pure computation.
package stat

import (
	"math"
	"slices"
)

// batch is the number of observations in a batch of MSER-5.
const batch = 5

// WarmUp returns how many observations at the beginning of a series differ from the rest, a multiple of 5. If they are more than the share longest of
// the series, it has not settled.
//
// MSER-5 considers all cuts in the first half of the batch means z, and takes the d that minimises Σ_{i>d} (z_i − mean)² / (k − d)² (White, Cobb and
// Spratt, A comparison of five steady-state truncation heuristics for simulation, WSC 2000). On pure noise that d is random, and after a real warm-up
// it is often later than necessary. So the last batches before the cut are kept if they are like the rest, both their first batch and all of them
// together: if the mean differs by no more than the share least, or by no more than chance explains in all but one of a hundred series (Student's t,
// with Bonferroni's correction for the number of comparisons). If MSER-5 would cut more than longest, and the rest still rises or falls, the series
// is cut where MSER-5 says.
func WarmUp(series []float64, least, longest float64) int {
	z := means(series, batch)
	cut := mser(z)
	if float64(cut*batch) > longest*float64(len(series)) {
		if later := Describe(series[cut*batch:]); later.P < chance && math.Abs(later.Drift) > least*math.Abs(later.Mean) {
			return cut * batch
		}
	}
	p := chance / float64(len(z)) // two comparisons per cut
	for d := range cut {
		if alike(z[d:d+1], z[cut:], least, p) && alike(z[d:cut], z[cut:], least, p) {
			return d * batch
		}
	}
	return cut * batch
}

// chance is the probability below which a difference or a trend is not attributed to chance.
const chance = 0.01

// mser returns the cut that gives the mean of the remaining batch means the smallest standard error.
func mser(z []float64) (cut int) {
	k, best := len(z), math.Inf(1)
	for d := 0; d <= k/2 && k-d > 1; d++ {
		_, ss := spread(z[d:])
		if score := ss / float64((k-d)*(k-d)); score < best {
			best, cut = score, d
		}
	}
	return cut
}

// alike says whether the mean of some batches differs from that of the batches after them by no more than the share least, or by no more than their
// spread explains with probability p.
func alike(some, after []float64, least, p float64) bool {
	mean, _ := spread(some)
	rest, squares := spread(after)
	free := float64(len(after) - 1)
	apart := math.Abs(mean - rest)
	if apart <= least*math.Abs(rest) {
		return true
	}
	t := apart / math.Sqrt(squares/free*(1/float64(len(some))+1/float64(len(after))))
	return Student(t, free) > p
}

// means returns the means of n observations each; an incomplete last group is dropped.
func means(series []float64, n int) []float64 {
	var out []float64
	for len(series) >= n {
		m, _ := spread(series[:n])
		out = append(out, m)
		series = series[n:]
	}
	return out
}

// spread returns the mean and the sum of squared deviations from it.
func spread(x []float64) (mean, squares float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	return mean, squares
}

// Trend describes a series.
type Trend struct {
	Mean      float64
	Effective float64 // number of independent observations of equal worth, at most the length of the series; NaN if the series is too short to tell
	HalfWidth float64 // half the width of the 95 % confidence interval of the mean, by Student's t over Effective; NaN if Effective is
	Drift     float64 // change from the beginning to the end, by Sen's slope
	P         float64 // probability of a trend as strong as this by chance
}

// most bounds the points that are compared in pairs. Longer series are first averaged down.
const most = 512

// LeastForMean is the number of observations from which the precision of a mean is estimated. In fewer, rare stalls may not have shown: if 2 % of the
// seconds are stalls, 30 hold none more often than not.
const LeastForMean = 150

// Describe describes a series of at least 5 observations.
//
// Drift is the median of the slopes between all pairs of points (Sen, 1968), times the length. P is from byChance. Effective is the length divided by
// the inefficiency of the series. It requires [LeastForMean] observations, and must be at least three.
func Describe(series []float64) Trend {
	group := (len(series) + most - 1) / most
	x := means(series, group)
	at := make([]float64, len(x))
	for i := range at {
		at[i] = float64(i)
	}
	n := float64(len(series))
	mean, squares := spread(series)
	effective, half := n/inefficiency(series), 0.0
	if effective < 3 || len(series) < LeastForMean {
		effective, half = math.NaN(), math.NaN()
	} else if squares > 0 {
		half = StudentLimit(0.05, longest-1) * math.Sqrt(squares/(n-1)/effective)
	}
	return Trend{
		Mean:      mean,
		Effective: effective,
		HalfWidth: half,
		Drift:     sen(at, x) * float64(len(x)-1),
		P:         byChance(x),
	}
}

// The numbers of batches into which a series is cut to see how it wanders.
const longest, shortest = 8, 32

// inefficiency returns how many observations are worth one independent one, at least 1: the variance of the mean, times the length, divided by the
// variance. That of the mean comes from the means of batches (Schmeiser, Operations Research 30, 1982), of three lengths, the largest. If it grows
// with the length of the batches, it is taken to grow as much up to the length of the series. In simulations of 150 and 300 points the interval then
// contains the mean in 97 % and more of series whose neighbours have a correlation of up to 0.8, and in 94 % of those with a drift of 0.9 to 0.95 below
// white noise, or with stalls in 2 % of the points. Drift that is as slow as the series is long cannot be told from its mean.
func inefficiency(x []float64) float64 {
	_, squares := spread(x)
	if squares == 0 || len(x) < LeastForMean {
		return 1
	}
	most, batched := squares/float64(len(x)-1), map[int]float64{}
	for _, n := range []int{longest, 2 * longest, shortest} {
		length := len(x) / n
		_, s := spread(means(x[:n*length], length))
		batched[n] = float64(length) * s / float64(n-1)
		most = max(most, batched[n])
	}
	if growth := batched[longest] / batched[shortest]; growth > 1 { // by two doublings, and three more make the series
		most = max(most, batched[longest]*math.Pow(growth, 1.5))
	}
	return most / squares * float64(len(x)-1)
}

// Spacing returns how far apart the ends of most rows of a series are, in whole seconds, at least 1; end returns a row's end, in seconds. The first
// and the last row may be shorter than most, and a row with late data may be longer.
func Spacing[R any](rows []R, end func(R) float64) float64 {
	if len(rows) == 0 {
		return 1
	}
	lengths, from := make([]float64, len(rows)), 0.0
	for i, r := range rows {
		lengths[i], from = end(r)-from, end(r)
	}
	slices.Sort(lengths)
	return max(1, math.Round(lengths[len(lengths)/2]))
}
