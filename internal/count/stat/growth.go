package stat

import (
	"math"
	"slices"
)

// Bin is the time that ops of neighbouring ordinals took. An op's ordinal is its position in the order of starts, from 1.
type Bin struct {
	From, To float64 // ordinals From < n ≤ To
	Count    float64 // answered ops
	Time     float64 // seconds that all of these ops took
	Median   float64 // median of their seconds; NaN if unknown
}

// middle is the ordinal in the middle of the bin.
func (b *Bin) middle() float64 { return (b.From + b.To + 1) / 2 }

// within returns the share of the bin's ops that have ordinals from < n ≤ to.
func (b *Bin) within(from, to float64) float64 {
	return max(0, min(b.To, to)-max(b.From, from)) / (b.To - b.From)
}

// Estimate is a figure and its 95 % confidence interval.
type Estimate struct{ Value, Low, High float64 }

// edge is the share of all ops, at each end, that Drift compares.
const edge = 0.05

// Drift returns how many times as long the last twentieth of the ops took, on average, as the first; NaN if either has none. A bin that crosses the
// border of a twentieth counts by the part that is inside.
func Drift(bins []Bin) float64 {
	if len(bins) == 0 {
		return math.NaN()
	}
	last := bins[len(bins)-1].To
	mean := func(from, to float64) float64 {
		time, count := 0.0, 0.0
		for i := range bins {
			part := bins[i].within(from, to)
			time += part * bins[i].Time
			count += part * bins[i].Count
		}
		return time / count
	}
	return mean((1-edge)*last, last) / mean(0, edge*last)
}

// Spent returns the seconds that the ops with ordinals up to n took.
func Spent(bins []Bin, n float64) (seconds float64) {
	for i := range bins {
		seconds += bins[i].within(0, n) * bins[i].Time
	}
	return seconds
}

// Growth says how the cost of an op depends on its ordinal n, near the end of the run: as n to the power of Order.
type Growth struct {
	Order Estimate

	last   float64  // the last ordinal
	spent  float64  // seconds that all ops took
	level  Estimate // seconds that an op at the ordinal centre takes
	centre float64  // the ordinal to which level belongs
}

// LeastForOrder is the number of bins that the second half needs for a fit.
const LeastForOrder = 24

const (
	uncovered   = 0.05 // share of intervals that do not cover the truth
	inefficient = 1.10 // deviation of Theil and Sen's slope of normal errors, relative to that of least squares on limited ones: √(π/3 ÷ 0.8695)
)

// FitGrowth fits the second half of the ops. It returns false if that has too few bins with a median.
//
// Order is the slope of the logarithms of the bins' medians over the logarithms of their ordinals, by Theil and Sen: the median of the slopes between
// all pairs of bins (Sen, Journal of the American Statistical Association 63, 1968). Medians ignore stalls, and pairs ignore odd bins. Its interval
// is that of a least-squares slope whose errors wander (see margin), widened on both sides by what the histograms' buckets may move a median:
// resolution, as a share of it.
//
// It fits only the second half because the cost is rarely a power of the ordinal from the first op on: a part of it does not grow, such as a round
// trip, and the beginning is slower.
func FitGrowth(bins []Bin, resolution float64) (Growth, bool) {
	half := secondHalf(bins)
	if len(half) < LeastForOrder {
		return Growth{}, false
	}
	x, y := make([]float64, len(half)), make([]float64, len(half))
	for i := range half {
		x[i], y[i] = math.Log(half[i].middle()), math.Log(half[i].Median)
	}
	g := Growth{last: bins[len(bins)-1].To}
	for i := range bins {
		g.spent += bins[i].Time
	}
	order := sen(x, y)
	middle, squares := spread(x)
	tilt, even := make([]float64, len(half)), make([]float64, len(half)) // weights whose sums are the slope and the mean
	levels := make([]float64, len(half))                                 // seconds of an op at the centre, by the mean of each bin
	g.centre = math.Exp(median(slices.Clone(x)))
	for i := range half {
		y[i] -= order * x[i] // the residuals
		tilt[i], even[i] = (x[i]-middle)/squares, 1/float64(len(half))
		levels[i] = half[i].Time / half[i].Count * math.Pow(g.centre/half[i].middle(), order)
	}
	limit(y)
	g.Order = around(order, inefficient*margin(tilt, y)+resolution/(x[len(x)-1]-x[0]))
	if sign := math.Copysign(1, order); returns(bins, sign) {
		g.Order.Low, g.Order.High = min(g.Order.Low, 0), max(g.Order.High, 0)
	}
	g.level = around(Mean(levels), margin(even, levels))
	g.level.Low = max(g.level.Low, 0)
	return g, true
}

// returns says whether what rises (sign 1) or falls (−1) may be a stretch of what comes and goes, such as a store that is compacted at times: from the
// second quarter on, the cost goes back at once by half of what it has gained by the end, or more. It looks at medians of neighbours, which ignore stalls.
func returns(bins []Bin, sign float64) bool {
	const neighbours = 9
	var costs []float64
	for i := range bins {
		if bins[i].From >= bins[len(bins)-1].To/4 && bins[i].Median > 0 {
			costs = append(costs, sign*math.Log(bins[i].Median))
		}
	}
	highest, back, first, last := math.Inf(-1), 0.0, math.NaN(), 0.0
	for i := neighbours; i <= len(costs); i++ {
		last = median(slices.Clone(costs[i-neighbours : i]))
		highest, back = max(highest, last), max(back, highest-last)
		if i == neighbours {
			first = last
		}
	}
	return back >= (last-first)/2
}

// limit limits errors to √π standard deviations around their median: an error has no more influence on the slope than that, however large it is
// (Hampel et al., Robust Statistics, 1986, §2.3). The deviation is that of a normal distribution with the same median distance from the median.
func limit(errors []float64) {
	middle := median(slices.Clone(errors))
	far := make([]float64, len(errors))
	for i, e := range errors {
		far[i] = math.Abs(e - middle)
	}
	most := math.Sqrt(math.Pi) * 1.4826 * median(far)
	if most == 0 { // most errors are equal, so there is no scale for the others
		return
	}
	for i, e := range errors {
		errors[i] = min(max(e, middle-most), middle+most)
	}
}

// around returns the interval that reaches a margin to both sides of a value.
func around(value, margin float64) Estimate { return Estimate{value, value - margin, value + margin} }

// margin returns how far the sum of errors, each times its weight, may be from 0. The errors are given up to a constant, and neighbours are alike:
// each is likeness times the one before, plus a step that is independent of it,
//
//	uₜ = φ·uₜ₋₁ + aₜ    so    Σ wₜ·uₜ = Σ cₜ·aₜ,    cₜ = wₜ + φ·cₜ₊₁
//
// whose variance is that of the steps times Σ cₜ², where the first error, of all steps before, counts 1/(1 − φ²) times. If φ is 1, errors have no
// mean to return to, and the sum is relative to the first of them.
func margin(weights, errors []float64) float64 {
	n := len(errors)
	mean, squares := spread(errors)
	if squares == 0 {
		return 0
	}
	e := make([]float64, n)
	for i := range e {
		e[i] = errors[i] - mean
	}
	phi := likeness(e, squares)
	c, factor, steps := 0.0, 0.0, 0.0
	for i := n - 1; i > 0; i-- {
		c = weights[i] + phi*c
		factor += c * c
		step := e[i] - phi*e[i-1]
		steps += step * step
	}
	free := float64(n - 3)
	variance, tails := steps/free, free
	if c = weights[0] + phi*c; phi < 1 {
		factor += c * c / (1 - phi*phi)
	} else {
		tails /= 6 // by simulation: some walks look as if they returned, and the tails of the rest are to make up for them
	}
	return StudentLimit(uncovered, tails) * math.Sqrt(factor*variance)
}

// likeness returns the correlation between errors around a line and those just before them. It errs on the high side: it is the estimate plus its
// standard error, and 1 if that is close to 1. Of few errors, a series that returns to its line and one that does not look the same; taking one for
// the other makes intervals far too short (Perron and Yabu, Estimating deterministic trends with an integrated or stationary noise component, Journal
// of Econometrics 151, 2009).
//
// The estimate is the autocorrelation at lag 1 or, if it is larger and not by chance, the root of that at lag 2: noise of single bins on top of a
// wandering cost makes the former too small. A line fitted to n errors takes about (2 + 4φ)/n from the former and (3 + 4φ)/n from the latter.
func likeness(e []float64, squares float64) float64 {
	n := float64(len(e))
	lag := func(k int) (sum float64) {
		for i := k; i < len(e); i++ {
			sum += e[i] * e[i-k]
		}
		return (n*sum/squares + 1 + float64(k)) / (n - 4)
	}
	upper := func(phi float64) float64 { return phi + math.Sqrt(max(1-phi*phi, 0)/n) }
	most := 1 - 2/math.Sqrt(n)
	phi := upper(lag(1))
	if phi > most {
		return 1
	}
	if second := lag(2); second > 2/math.Sqrt(n) {
		phi = max(phi, min(upper(math.Sqrt(second)), most))
	}
	return max(phi, 0)
}

// secondHalf returns the bins of the second half of the ordinals, without those that have no median or less than half the typical number of ops.
func secondHalf(bins []Bin) (half []Bin) {
	if len(bins) == 0 {
		return nil
	}
	from := bins[len(bins)-1].To / 2
	var counts []float64
	for _, b := range bins {
		if b.From >= from && b.Median > 0 {
			half = append(half, b)
			counts = append(counts, b.Count)
		}
	}
	if len(half) == 0 {
		return nil
	}
	least := median(counts) / 2
	return slices.DeleteFunc(half, func(b Bin) bool { return b.Count < least })
}

// SecondsTo returns how many seconds of ops it takes to carry out n of them: those already run, plus what the fitted curve says for the rest. It is
// the sum of the ops' times, one after another. The contributions of the order and the level to the interval are independent.
func (g *Growth) SecondsTo(n float64) Estimate {
	more := func(order, level float64) float64 { return level * g.more(order, n) }
	rest := more(g.Order.Value, g.level.Value)
	reach := func(order, level float64) float64 {
		return math.Hypot(more(order, g.level.Value)-rest, more(g.Order.Value, level)-rest)
	}
	to := g.spent + rest
	return Estimate{to, max(to-reach(g.Order.Low, g.level.Low), g.spent), to + reach(g.Order.High, g.level.High)}
}

// more returns the integral of (x/centre)^order from the last ordinal to n.
func (g *Growth) more(order, n float64) float64 {
	power := func(x float64) float64 { return math.Pow(x/g.centre, order+1) }
	if math.Abs(order+1) < 1e-9 {
		return g.centre * math.Log(n/g.last)
	}
	return g.centre / (order + 1) * (power(n) - power(g.last))
}

// sen returns the median of the slopes of y between all pairs of points at x, which ascends.
func sen(x, y []float64) float64 {
	slopes := make([]float64, 0, len(y)*(len(y)-1)/2)
	for i := range y {
		for j := i + 1; j < len(y); j++ {
			slopes = append(slopes, (y[j]-y[i])/(x[j]-x[i]))
		}
	}
	return median(slopes)
}

// median returns the median of values, which it reorders.
func median(values []float64) float64 {
	m := len(values) / 2
	upper := nth(values, m)
	if len(values)%2 == 1 {
		return upper
	}
	return (slices.Max(values[:m]) + upper) / 2
}

// nth returns the k-th smallest value, from 0, and reorders values so that none before it is larger (Hoare, Algorithm 65: Find, 1961).
func nth(values []float64, k int) float64 {
	low, high := 0, len(values)-1
	for low < high {
		pivot, i, j := values[low+(high-low)/2], low, high
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			high = j
		case k >= i:
			low = i
		default:
			return values[k]
		}
	}
	return values[k]
}
