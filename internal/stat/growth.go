package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Bin is the time that ops of neighbouring ordinals took. An op's ordinal is its position in the order of starts, from 1.
type Bin struct {
	From, To float64 // ordinals From < n ≤ To
	Count    float64 // answered ops
	Time     float64 // seconds that all of these took
	Median   float64 // median of their seconds; NaN: unknown
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

	last     float64   // ordinal
	spent    float64   // seconds, of all ops
	level    float64   // seconds that an op at the ordinal centre takes
	centre   float64   // ordinal
	resample []sampled // of the second half
}

// sampled is the curve fitted to one resample of the second half.
type sampled struct{ order, level float64 }

// LeastForOrder is how many bins the second half needs for a fit.
const LeastForOrder = 24

const (
	resamples = 500
	covers    = 0.95
	normal    = 1.959964 // standard deviations around the mean that hold the share covers of a normal distribution
)

// FitGrowth fits the second half of the ops. It returns false if that has too few bins with a median.
//
// Order is the slope of the logarithms of the bins' medians over the logarithms of their ordinals, by Theil and Sen: the median of the slopes between
// all pairs of bins (Sen, Journal of the American Statistical Association 63, 1968). Medians ignore stalls, and pairs ignore odd bins. The interval
// is from a circular block bootstrap of the residuals (Politis and Romano, A circular block-resampling procedure for stationary data, 1992), drawn
// with the seed: neighbours are alike, so they are drawn together, √bins at a time. With so few blocks, intervals would be too short, so the
// residuals are enlarged by the ratio of Student's t, with one degree of freedom less than the number of blocks, to the normal distribution. The
// interval is then widened on both sides by what the histograms' buckets may move a median: resolution, as a share of it.
//
// It fits only the second half because the cost is rarely a power of the ordinal from the first op on: a part of it does not grow, such as a round
// trip, and the beginning is slower.
func FitGrowth(bins []Bin, resolution float64, seed uint64) (Growth, bool) {
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
	pairs := newPairs(x)
	order := pairs.slope(y)
	g.centre = math.Exp(median(slices.Clone(x)))
	levels := make([]float64, len(half)) // seconds of an op at the centre, by the mean of each bin
	for i := range half {
		levels[i] = half[i].Time / half[i].Count * math.Pow(g.centre/half[i].middle(), order)
	}
	g.level = Mean(levels)
	g.bootstrap(pairs, order, y, levels, rand.New(rand.NewPCG(seed, seed)))
	orders := make([]float64, len(g.resample))
	for i, s := range g.resample {
		orders[i] = s.order
	}
	coarse := resolution / (x[len(x)-1] - x[0])
	g.Order = between(order, orders)
	g.Order.Low -= coarse
	g.Order.High += coarse
	return g, true
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

// bootstrap draws residuals in blocks and fits each resample.
func (g *Growth) bootstrap(pairs *pairs, order float64, y, levels []float64, random *rand.Rand) {
	n := len(y)
	rest := make([]float64, n)
	for i := range y {
		rest[i] = y[i] - order*pairs.x[i]
	}
	middle := median(slices.Clone(rest))
	block := int(math.Ceil(math.Sqrt(float64(n))))
	larger := StudentLimit(1-covers, float64(n)/float64(block)-1) / normal
	for i := range rest {
		rest[i] = (rest[i] - middle) * larger
	}
	drawn := make([]float64, n)
	for range resamples {
		var s sampled
		at := 0
		for i := range drawn {
			if i%block == 0 {
				at = random.IntN(n)
			}
			drawn[i] = order*pairs.x[i] + rest[at]
			s.level += levels[at] / float64(n)
			at = (at + 1) % n
		}
		s.order = pairs.slope(drawn)
		g.resample = append(g.resample, s)
	}
}

// SecondsTo returns how many seconds of ops it takes to carry out n of them: those already run, plus what the fitted curve says for the rest. It is
// the sum of what ops took, one after another.
func (g *Growth) SecondsTo(n float64) Estimate {
	to := func(s sampled) float64 { return g.spent + g.more(s, n) }
	all := make([]float64, len(g.resample))
	for i, s := range g.resample {
		all[i] = to(s)
	}
	return between(to(sampled{g.Order.Value, g.level}), all)
}

// more returns the integral of level·(x/centre)^order from the last ordinal to n.
func (g *Growth) more(s sampled, n float64) float64 {
	power := func(x float64) float64 { return math.Pow(x/g.centre, s.order+1) }
	if math.Abs(s.order+1) < 1e-9 {
		return s.level * g.centre * math.Log(n/g.last)
	}
	return s.level * g.centre / (s.order + 1) * (power(n) - power(g.last))
}

// between returns the interval that the resamples give, widened to include value. It sorts them.
func between(value float64, resampled []float64) Estimate {
	slices.Sort(resampled)
	n := float64(len(resampled))
	low, high := resampled[int(n*(1-covers)/2)], resampled[int(math.Ceil(n*(1+covers)/2))-1]
	return Estimate{Value: value, Low: min(low, value), High: max(high, value)}
}

// pairs is all pairs of points at x, which ascends.
type pairs struct {
	x      []float64
	slopes []float64 // room for them
}

func newPairs(x []float64) *pairs {
	return &pairs{x: x, slopes: make([]float64, 0, len(x)*(len(x)-1)/2)}
}

// slope returns the median of the slopes of y between all pairs of points.
func (p *pairs) slope(y []float64) float64 {
	s := p.slopes[:0]
	for i := range y {
		for j := i + 1; j < len(y); j++ {
			s = append(s, (y[j]-y[i])/(p.x[j]-p.x[i]))
		}
	}
	return median(s)
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
