package experiment

import (
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/stat"
)

// blockTimes is the length of a block in autocorrelation times: means of neighbouring blocks are then practically independent.
const blockTimes = 20

// Sample is what a variant's repetitions measured of one metric: for each repetition, the values of its intervals in order of time. No repetition is
// empty.
type Sample [][]float64

// Len returns the number of values.
func (s Sample) Len() int {
	n := 0
	for _, values := range s {
		n += len(values)
	}
	return n
}

// EffectiveLen returns how many independent values would determine the mean as well as the sample's do: n / 2τ.
func (s Sample) EffectiveLen() float64 { return float64(s.Len()) / (2 * s.time()) }

// time returns the autocorrelation time τ = ½ + Σρ(k), in values, summed up to 5τ (Sokal, Monte Carlo Methods in Statistical Mechanics, 1997, §3):
// beyond that the sum collects noise. It is at least ½, which is that of independent values. Deviations are from the mean of all repetitions, not
// from each one's own: what distinguishes a repetition is correlation that lasts as long as it does.
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

// Estimate is a figure with its confidence interval, in the unit of the sample. If the sample is too small for one, Lo and Hi are infinite.
type Estimate struct {
	Value, Lo, Hi float64
}

// Score returns the mean with its 99.9 % confidence interval by Student's t over blocks, which are single values if each repetition has one. It is
// JMH's score ± error, except that JMH ignores autocorrelation.
func (s Sample) Score() Estimate {
	blocks := s.blocks()
	if len(blocks) < 2 {
		return Estimate{blocks[0], math.Inf(-1), math.Inf(1)}
	}
	mean, half := stat.MeanWithin(blocks, 0.001)
	return Estimate{mean, mean - half, mean + half}
}

// Median returns the median of the values with a confidence interval of at least 95 %, from the k-th least to the k-th largest block. It assumes
// nothing about their distribution, and needs six blocks.
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

// fair returns the probability of k heads in n tosses of a coin.
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
