package experiment

import (
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/stat"
)

// blockTimes is how many autocorrelation times a block is long: means of neighbouring blocks are then as good as independent.
const blockTimes = 20

// Sample is what the repetitions of a variant measured of one metric: by repetition, the values of its intervals in order of time.
// No repetition is empty.
type Sample [][]float64

// Len returns the number of values.
func (s Sample) Len() int {
	n := 0
	for _, values := range s {
		n += len(values)
	}
	return n
}

// EffectiveLen returns how many independent values would tell as much about the mean as the sample's do: n / 2τ.
func (s Sample) EffectiveLen() float64 { return float64(s.Len()) / (2 * s.time()) }

// time returns the autocorrelation time τ = ½ + Σρ(k), in values, summed as far as 5τ (Sokal, Monte Carlo Methods in Statistical
// Mechanics, 1997, §3): beyond that the sum gathers noise. It is at least ½, that of independent values. Values are taken from the mean of
// all repetitions, not of their own: what sets a repetition apart is correlation that lasts as long as it does.
func (s Sample) time() float64 {
	longest := 0
	centred := make(Sample, len(s))
	mean := stat.Mean(slices.Concat(s...))
	for i, values := range s {
		longest = max(longest, len(values))
		for _, v := range values {
			centred[i] = append(centred[i], v-mean)
		}
	}
	tau, variance := 0.5, centred.product(0)
	for lag := 1; lag < longest/2 && float64(lag) < 5*tau && variance > 0; lag++ {
		tau += centred.product(lag) / variance
	}
	return max(tau, 0.5)
}

// product sums the products of values that are lag apart.
func (s Sample) product(lag int) float64 {
	sum := 0.0
	for _, values := range s {
		for i := lag; i < len(values); i++ {
			sum += values[i] * values[i-lag]
		}
	}
	return sum
}

// blocks returns the means of blocks of consecutive values. A repetition shorter than two blocks is one block.
func (s Sample) blocks() []float64 {
	length := int(math.Ceil(blockTimes * s.time()))
	var means []float64
	for _, values := range s {
		n := max(1, len(values)/length)
		for i := range n {
			means = append(means, stat.Mean(values[i*len(values)/n:(i+1)*len(values)/n]))
		}
	}
	return means
}

// runs returns the mean of each repetition.
func (s Sample) runs() []float64 {
	var means []float64
	for _, values := range s {
		means = append(means, stat.Mean(values))
	}
	return means
}

// Estimate is a figure with its confidence interval, in the unit of the sample. Where the sample is too small for one, Lo and Hi are
// infinite.
type Estimate struct {
	Value, Lo, Hi float64
}

// Score returns the mean with its 99.9 % confidence interval by Student's t over blocks, which are single values where each repetition
// has one. It is the score ± error of JMH, but for the autocorrelation, which JMH takes to be none.
func (s Sample) Score() Estimate {
	blocks := s.blocks()
	if len(blocks) < 2 {
		return Estimate{blocks[0], math.Inf(-1), math.Inf(1)}
	}
	mean, half := stat.MeanWithin(blocks, 0.001)
	return Estimate{mean, mean - half, mean + half}
}

// Median returns the median of the values with a confidence interval of at least 95 % between the k-th least and the k-th largest block,
// which assumes nothing about their distribution. It takes six blocks to have one.
func (s Sample) Median() Estimate {
	all := slices.Sorted(slices.Values(slices.Concat(s...)))
	blocks := slices.Sorted(slices.Values(s.blocks()))
	n := len(blocks)
	k := 0
	for below := fair(n, 0); below < 0.025; below += fair(n, k) {
		k++
	}
	if k == 0 {
		return Estimate{middle(all), math.Inf(-1), math.Inf(1)}
	}
	return Estimate{middle(all), blocks[k-1], blocks[n-k]}
}

// fair is the probability of k heads in n throws of a coin.
func fair(n, k int) float64 {
	all, _ := math.Lgamma(float64(n + 1))
	heads, _ := math.Lgamma(float64(k + 1))
	tails, _ := math.Lgamma(float64(n - k + 1))
	return math.Exp(all - heads - tails - float64(n)*math.Ln2)
}

// middle returns the median of sorted values.
func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
